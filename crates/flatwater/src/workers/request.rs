//! A request and its answer: the one message a caller sends to a worker.
//!
//! Owns: the closed lists of what can be asked and answered. A request is owned by one place at a time: the caller's
//! future, a queue, or the worker that runs it.

use std::any::Any;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flatwater_sqlite::{CheckpointMode, Checkpointed};
use rusqlite::types::FromSql;

use crate::error::{Error, Result};
use crate::queue::reply::{Promise, wake};
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Route;
use crate::sql::tokens::looks_like_a_write;
use crate::stats::{CallKind, Recorder};
use crate::values::executed::{BatchResult, Executed};
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::session::TransactionGuard;

/// What a closure of the user returned, for its caller, who knows the type; and whether it was `Ok`.
pub(crate) struct Returned {
    pub(crate) is_ok: bool,
    pub(crate) result: Box<dyn Any + Send>,
}

impl Returned {
    /// For its caller, unless it failed because the deadline passed.
    pub(crate) fn answer(self, ticket: &Ticket) -> Result<Answer> {
        if !self.is_ok {
            ticket.closure_failed()?;
        }
        Ok(Answer::Returned(self.result))
    }
}

/// A closure of the user for a reader.
pub(crate) type ReadClosure = Box<dyn FnOnce(&rusqlite::Connection) -> Returned + Send>;
/// A closure of the user for the writer, whose changes are committed if it returns `Ok`.
pub(crate) type WriteClosure = Box<dyn FnOnce(&rusqlite::Transaction<'_>) -> Returned + Send>;

/// What runs between two turns of the writer. It is given the smallest commit there is, which it may make.
pub(crate) type AtBoundary = Box<dyn FnOnce(&mut dyn FnMut() -> Result<()>) + Send>;

/// The failure of a write that may have come from its commit.
pub(crate) struct Unsettled {
    pub(crate) error: Error,
    /// The change counter of the WAL before the write.
    pub(crate) change: u32,
    pub(crate) kind: CallKind,
}

/// What is asked.
pub(crate) enum Work {
    Execute {
        text: Arc<StatementInfo>,
        params: Params,
    },
    Query {
        text: Arc<StatementInfo>,
        params: Params,
        limit: usize,
    },
    Many {
        text: Arc<StatementInfo>,
        rows: ParamRows,
    },
    Batch(Vec<(Arc<StatementInfo>, Params)>),
    Script(Arc<StatementInfo>),
    ReadWith(ReadClosure),
    WriteWith(WriteClosure),
    Begin,
    /// Inside a transaction only: with the number of the new savepoint.
    Savepoint(u64),
    Release,
    Undo,
    Commit,
    Rollback,
    /// A write that failed on its caller's thread, to be answered when it is known what became of it.
    Settle(Unsettled),
    /// For the checkpointer. Nobody waits for an answer.
    Boundary(AtBoundary),
    /// A checkpoint that somebody asked for.
    Checkpoint(CheckpointMode),
    /// The last request a queue takes: calls the first closure, closes the connection, calls the second.
    Close(Box<dyn FnOnce() + Send>, Box<dyn FnOnce() + Send>),
}

impl Work {
    /// The one text it is about, if it is about one.
    pub(crate) fn text(&self) -> Option<&StatementInfo> {
        match self {
            Self::Execute { text, .. } | Self::Query { text, .. } | Self::Many { text, .. } | Self::Script(text) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// All its texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &StatementInfo> {
        let several = if let Self::Batch(statements) = self { statements.as_slice() } else { &[] };
        self.text().into_iter().chain(several.iter().map(|(text, _)| &**text))
    }

    /// Whether it is known to write nothing.
    pub(crate) fn only_reads(&self) -> bool {
        match self {
            Self::Query { text, .. } => match text.route() {
                Some(route) => route == Route::Read,
                None => !looks_like_a_write(&text.sql),
            },
            Self::ReadWith(_) => true,
            _ => false,
        }
    }

    /// Whether it is no caller's, or neither reads nor writes anything of a caller's.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Settle(_) | Self::Boundary(_) | Self::Close(..))
    }

    /// The error with the SQL it is about.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match self.text() {
            Some(text) => error.with_sql(&text.sql),
            None => error,
        }
    }

    pub(crate) fn kind(&self) -> CallKind {
        match self {
            Self::Execute { .. } => CallKind::Execute,
            Self::Query { .. } => CallKind::Query,
            Self::Many { .. } => CallKind::ExecuteMany,
            Self::Batch(_) => CallKind::Batch,
            Self::Script(_) => CallKind::Script,
            Self::ReadWith(_) => CallKind::ReadWith,
            Self::WriteWith(_) => CallKind::WriteWith,
            Self::Begin | Self::Savepoint(_) => CallKind::Begin,
            Self::Commit | Self::Release => CallKind::Commit,
            Self::Settle(unsettled) => unsettled.kind,
            Self::Undo | Self::Rollback | Self::Boundary(_) | Self::Checkpoint(_) | Self::Close(..) => {
                CallKind::Control
            }
        }
    }
}

/// What is answered.
pub(crate) enum Answer {
    Executed(Executed),
    Changes(u64),
    Rows(Rows),
    Batch(Vec<BatchResult>),
    Done,
    Transaction(TransactionGuard),
    /// A savepoint was opened, with this number.
    Savepoint(u64),
    Checkpointed(Checkpointed),
    /// What a closure returned, or the database that was opened.
    Returned(Box<dyn Any + Send>),
}

/// How each operation reads its answer.
impl Answer {
    #[cold]
    fn unexpected<T>() -> Result<T> {
        Err(Error::misuse("a worker answered something else than was asked; please report it"))
    }

    pub(crate) fn executed(self) -> Result<Executed> {
        if let Self::Executed(executed) = self { Ok(executed) } else { Self::unexpected() }
    }

    pub(crate) fn changes(self) -> Result<u64> {
        if let Self::Changes(changes) = self { Ok(changes) } else { Self::unexpected() }
    }

    pub(crate) fn batch(self) -> Result<Vec<BatchResult>> {
        if let Self::Batch(results) = self { Ok(results) } else { Self::unexpected() }
    }

    pub(crate) fn rows(self) -> Result<Rows> {
        if let Self::Rows(rows) = self { Ok(rows) } else { Self::unexpected() }
    }

    pub(crate) fn first_row(self) -> Result<Option<Row<'static>>> {
        Ok(self.rows()?.into_first())
    }

    pub(crate) fn first_value<T: FromSql>(self) -> Result<Option<T>> {
        self.rows()?.get(0).map(|row| row.get(0)).transpose()
    }

    pub(crate) fn read_rows<T: FromRow>(self) -> Result<Vec<T>> {
        self.rows()?.read()
    }

    pub(crate) fn done(self) -> Result<()> {
        if let Self::Done = self { Ok(()) } else { Self::unexpected() }
    }

    pub(crate) fn checkpointed(self) -> Result<Checkpointed> {
        if let Self::Checkpointed(done) = self { Ok(done) } else { Self::unexpected() }
    }

    pub(crate) fn savepoint(self) -> Result<u64> {
        if let Self::Savepoint(number) = self { Ok(number) } else { Self::unexpected() }
    }

    /// What was returned, in the type that it was returned in.
    pub(crate) fn returned<R: 'static, E: From<Error> + 'static>(self) -> Result<R, E> {
        let Self::Returned(result) = self else { return Self::unexpected().map_err(E::from) };
        match result.downcast::<Result<R, E>>() {
            Ok(result) => *result,
            Err(_) => Self::unexpected().map_err(E::from),
        }
    }

    pub(crate) fn transaction(self) -> Result<TransactionGuard> {
        if let Self::Transaction(claim) = self { Ok(claim) } else { Self::unexpected() }
    }
}

/// Counts a write that is on its way, from its first push until it is answered or dropped.
pub(crate) struct OnItsWay<C: Deref<Target = AtomicU64> = Arc<AtomicU64>>(C);

impl<C: Deref<Target = AtomicU64>> OnItsWay<C> {
    pub(crate) fn new(count: C) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl<C: Deref<Target = AtomicU64>> Drop for OnItsWay<C> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) struct Request {
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) work: Work,
    pub(crate) promise: Promise<Result<Answer>>,
    /// When the first try to take the lock for it began.
    pub(crate) lock_since: Option<Instant>,
    /// Its group was lost: it must not be a member again.
    pub(crate) must_be_alone: bool,
    /// A write was on its way when the call began.
    pub(crate) had_active_writes: bool,
    /// Set by the writer when the request comes to it.
    pub(crate) on_its_way: Option<OnItsWay>,
}

impl Request {
    pub(crate) fn new(ticket: Arc<Ticket>, work: Work, promise: Promise<Result<Answer>>) -> Self {
        Self {
            ticket,
            work,
            promise,
            lock_since: None,
            must_be_alone: false,
            had_active_writes: false,
            on_its_way: None,
        }
    }
}

/// The writer, to a reader that finds out that a request is not a reader's.
pub(crate) trait TakesOver: Send + Sync {
    /// Whether a write is queued or running.
    fn is_active(&self) -> bool;

    /// Takes over the request, which began on the reader's thread. If no other thread is to be had for it, that thread serves
    /// the writer until nothing is left to do.
    fn take_over(&self, request: Request);
}

/// Answers that are ready, until they can be delivered: when no lock and no token is held any more.
pub(crate) struct Outbox<'a> {
    recorder: &'a Recorder,
    answers: Vec<(Promise<Result<Answer>>, Result<Answer>)>,
}

impl<'a> Outbox<'a> {
    pub(crate) fn new(recorder: &'a Recorder) -> Self {
        Self { recorder, answers: Vec::new() }
    }

    pub(crate) fn answer(
        &mut self,
        kind: CallKind,
        ticket: &Ticket,
        promise: Promise<Result<Answer>>,
        answer: Result<Answer>,
    ) {
        self.recorder.answered(kind, ticket.began.elapsed());
        self.answers.push((promise, answer.map_err(|error| error.in_operation(kind.name()))));
    }

    /// Delivers the answers and wakes their callers, whose wakers may do anything.
    pub(crate) fn deliver(&mut self) {
        for (promise, answer) in self.answers.drain(..) {
            match promise.fill(answer) {
                Ok(waker) => wake(waker),
                // Dropped here, which rolls back a transaction in it, and may run code of the user.
                Err(unwanted) => drop(catch_unwind(AssertUnwindSafe(|| drop(unwanted)))),
            }
        }
    }
}
