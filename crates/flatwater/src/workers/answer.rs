//! Reading an answer: what a worker returns to a caller.
//!
//! Owns: reading each as the type that an operation returns, and counting its rows. Runs on callers' and workers'
//! threads. Invariant: an answer of another kind than was asked for is an error, not a panic. Leaves out: delivering it
//! (`outbox`).

use std::sync::Arc;

use flatwater_sqlite::CheckpointInfo;

use crate::connection::learn::live_query::LiveRun;
use crate::connection::run::blobs::BlobUsed;
use crate::connection::run::execute::{Collected, Outcome, result_of};
use crate::queue::metrics::Numbers;
use crate::workers::Answer;
use crate::workers::kept::CursorGuard;
use crate::workers::open_transaction::TransactionGuard;
use crate::workers::work::{Wanted, Work};
use flatwater_base::error::hint::Sentence;
use flatwater_base::error::location::row_not_found;
use flatwater_base::error::{Error, ErrorCode, Result, after_the_write};
use flatwater_base::values::column::Names;
use flatwater_base::values::outcome::{ExecuteResult, RunResult};
use flatwater_base::values::row::{Row, Rows};
use flatwater_sql::class::Route;
use flatwater_sql::statement_info::StatementInfo;

impl From<Outcome> for Answer {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        match outcome.result {
            Collected::Nothing => Self::Executed(outcome.executed),
            Collected::Rows(rows) => Self::Rows(rows),
            Collected::Json(document) => Self::Json(document),
            Collected::Unmade(error, Route::Read) => Self::Unmade(error),
            Collected::Unmade(error, Route::Write) => Self::Unmade(after_the_write(error)),
        }
    }
}

impl Work {
    /// Returns true if the statement may be one with rows or without.
    pub(crate) fn takes_any(&self) -> bool {
        matches!(self, Self::Query { wanted: Wanted::Ran, .. })
    }

    /// Returns the answer that a run of the one statement is. What was done and has no result is not an error here, for nothing may do
    /// it again.
    pub(crate) fn answer(&self, outcome: Outcome) -> Result<Answer> {
        match outcome.result {
            Collected::Unmade(..) => Ok(outcome.into()),
            _ if self.takes_any() => Ok(Answer::Ran(Box::new(result_of(outcome)?))),
            _ => Ok(outcome.into()),
        }
    }
}

impl Answer {
    /// Returns false for what only a read answers.
    pub(crate) fn may_be_of_write(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.names.is_of_write,
            Self::Ran(result) => has_written(result),
            Self::LastPart(_) | Self::Live(_) | Self::Begun(_) | Self::Fetched(_) | Self::Prepared(..) => false,
            _ => true,
        }
    }

    /// Returns the number of rows in the answer, and of rows that were changed, as far as it tells them.
    pub(crate) fn numbers(&self) -> Numbers {
        let (rows, changes) = match self {
            Self::Executed(executed) => (None, Some(executed.changes)),
            Self::Changes(changes) => (None, Some(*changes)),
            Self::Rows(rows) => (Some(rows.len()), None),
            Self::Begun(part) => (Some(part.0.len()), None),
            Self::Fetched(part) => (Some(part.0.len()), None),
            Self::LastPart(last) => (Some(last.1 + last.0.len()), None),
            Self::Json(document) => (Some(document.rows), None),
            Self::Ran(result) => (result.rows.as_ref().map(Rows::len), has_written(result).then_some(result.changes)),
            Self::Batch(results) => (
                Some(results.iter().filter_map(|result| result.rows.as_ref()).map(Rows::len).sum()),
                Some(results.iter().map(|result| result.changes).sum()),
            ),
            _ => (None, None),
        };
        (rows.map(|rows| rows as u64), changes)
    }
}

/// Converts the answer to the type that each operation returns.
impl Answer {
    #[cold]
    fn unexpected<T>(self) -> Result<T> {
        if let Self::Unmade(error) = self {
            return Err(error);
        }
        Err(Error::new(
            ErrorCode::Internal,
            "a worker returned another kind of result than requested; please report it",
        ))
    }

    pub(crate) fn flag(self) -> Result<bool> {
        if let Self::Flag(flag) = self { Ok(flag) } else { self.unexpected() }
    }

    pub(crate) fn executed(self) -> Result<ExecuteResult> {
        if let Self::Executed(executed) = self { Ok(executed) } else { self.unexpected() }
    }

    pub(crate) fn changes(self) -> Result<u64> {
        if let Self::Changes(changes) = self { Ok(changes) } else { self.unexpected() }
    }

    /// Returns what one statement did, whatever it is.
    pub(crate) fn ran(self) -> Result<RunResult> {
        match self {
            Self::Ran(result) => Ok(*result),
            Self::Executed(executed) => Ok(RunResult::of(executed, None)),
            Self::Changes(changes) => Ok(RunResult::of(ExecuteResult::of(changes, None), None)),
            answer => Ok(RunResult::of(ExecuteResult::default(), Some(answer.rows()?))),
        }
    }

    pub(crate) fn batch(self) -> Result<Vec<RunResult>> {
        if let Self::Batch(results) = self { Ok(results) } else { self.unexpected() }
    }

    pub(crate) fn bytes(self) -> Result<Vec<u8>> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { self.unexpected() }
    }

    /// The answer for a copy, which has bytes if it was made as bytes.
    pub(crate) fn of_copy(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(Self::Done, Self::Bytes)
    }

    pub(crate) fn blob(self) -> Result<BlobUsed> {
        if let Self::Blob(used) = self { Ok(*used) } else { self.unexpected() }
    }

    pub(crate) fn rows(self) -> Result<Rows> {
        match self {
            Self::Rows(rows) => Ok(rows),
            Self::LastPart(last) => Ok(last.0),
            answer => answer.unexpected(),
        }
    }

    /// Returns a part of a result, the right to the rest if there is more and it is held from now on, and whether there may
    /// be more.
    pub(crate) fn batch_of_rows(self) -> Result<(Rows, Option<CursorGuard>, bool)> {
        match self {
            Self::Begun(part) => {
                let (rows, cursor) = *part;
                Ok((rows, Some(cursor), true))
            }
            Self::Fetched(part) => {
                let (rows, has_more) = *part;
                Ok((rows, None, has_more))
            }
            answer => Ok((answer.rows()?, None, false)),
        }
    }

    pub(crate) fn live(self) -> Result<Vec<LiveRun>> {
        if let Self::Live(runs) = self { Ok(runs) } else { self.unexpected() }
    }

    pub(crate) fn json(self) -> Result<String> {
        if let Self::Json(document) = self { Ok(document.into_text()) } else { self.unexpected() }
    }

    pub(crate) fn first_row(self) -> Result<Option<Row<'static>>> {
        Ok(self.rows()?.into_first())
    }

    /// Returns the rows, of which there must be one. `hint` names the call that needs none.
    pub(crate) fn needed_rows(self, hint: &'static Sentence) -> Result<Rows> {
        let rows = self.rows()?;
        if rows.is_empty() { Err(rows.explain(row_not_found(hint))) } else { Ok(rows) }
    }

    /// Returns the rows as values of `T`; `read` makes them if no worker did. A panic of the caller's code that made them
    /// goes on here.
    pub(crate) fn decoded<T: 'static>(self, read: fn(&Rows) -> Result<Vec<T>>) -> Result<Vec<T>> {
        match self {
            Self::Decoded(decoded) => decoded.get(),
            answer => read(&answer.rows()?),
        }
    }

    pub(crate) fn done(self) -> Result<()> {
        if let Self::Done = self { Ok(()) } else { self.unexpected() }
    }

    pub(crate) fn checkpointed(self) -> Result<CheckpointInfo> {
        if let Self::Checkpointed(done) = self { Ok(done) } else { self.unexpected() }
    }

    pub(crate) fn prepared(self) -> Result<Arc<StatementInfo>> {
        if let Self::Prepared(text, _) = self { Ok(text) } else { self.unexpected() }
    }

    /// The columns of a statement that was compiled, if they are known before it runs.
    pub(crate) fn columns(self) -> Result<Option<Names>> {
        if let Self::Prepared(_, names) = self { Ok(names) } else { self.unexpected() }
    }

    /// Returns the closure's result, in the type in which the closure returned it.
    pub(crate) fn returned<R: 'static, E: From<Error> + 'static>(self) -> Result<R, E> {
        let (result, _) = match self {
            Self::Returned(result, keeps) => (result, keeps),
            answer => return answer.unexpected().map_err(E::from),
        };
        match result.downcast::<Result<R, E>>() {
            Ok(result) => *result,
            Err(_) => Self::Done.unexpected().map_err(E::from),
        }
    }

    pub(crate) fn transaction(self) -> Result<TransactionGuard> {
        if let Self::Transaction(claim) = self { Ok(claim) } else { self.unexpected() }
    }
}

/// Returns true if a statement that may have rows or not can have written.
fn has_written(result: &RunResult) -> bool {
    result.rows.as_ref().is_none_or(|rows| rows.names.is_of_write)
}
