//! A request and its answer: the one message that a caller sends to a worker.
//!
//! Owns: the closed lists of requests and answers. Runs on callers' and workers' threads. Invariant: a request has one
//! owner at a time: the caller's future, a queue, or the worker that runs it. Leaves out: running requests.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flatwater_sqlite::{CheckpointMode, Checkpointed};
use rusqlite::types::FromSql;

use crate::error::{Error, Result};
use crate::migrations::Migrations;
use crate::queue::reply::{Promise, Reply};
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Route;
use crate::sql::tokens::looks_like_a_write;
use crate::stats::CallKind;
use crate::values::decoded::{Decode, Decoded, decode_as};
use crate::values::executed::{BatchResult, Executed};
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::session::TransactionGuard;

/// The result of a user's closure, for its caller, which knows the type; and whether the result was `Ok`.
pub(crate) struct Returned {
    pub(crate) is_ok: bool,
    pub(crate) result: Box<dyn Any + Send>,
}

impl Returned {
    /// Returns the answer for the caller, or an error if the closure failed because the deadline passed.
    pub(crate) fn answer(self, ticket: &Ticket) -> Result<Answer> {
        if !self.is_ok {
            ticket.closure_failed()?;
        }
        Ok(Answer::Returned(self.result))
    }
}

/// A user's closure for a reader.
pub(crate) type ReadClosure = Box<dyn FnOnce(&rusqlite::Connection) -> Returned + Send>;
/// A user's closure for the writer, whose changes are committed if it returns `Ok`.
pub(crate) type WriteClosure = Box<dyn FnOnce(&rusqlite::Transaction<'_>) -> Returned + Send>;

/// A user's closure for the writer's whole connection.
pub(crate) type WholeClosure = Box<dyn FnOnce(&mut rusqlite::Connection) -> Returned + Send>;

/// A closure that runs in the writer slot between two writes. Its argument makes the smallest possible commit, if called.
pub(crate) type InSlot = Box<dyn FnOnce(&mut dyn FnMut() -> Result<()>) + Send>;

/// The failure of a write that may have come from its commit.
pub(crate) struct Unsettled {
    pub(crate) error: Error,
    /// The change counter of the WAL before the write.
    pub(crate) change: u32,
    pub(crate) kind: CallKind,
}

/// The work of a request.
pub(crate) enum Work {
    Execute {
        text: Arc<StatementInfo>,
        params: Params,
    },
    Query {
        text: Arc<StatementInfo>,
        params: Params,
        limit: usize,
        /// Set if the caller wants the rows as values of a type of its own.
        decode: Option<Decode>,
    },
    Many {
        text: Arc<StatementInfo>,
        rows: ParamRows,
    },
    Batch(Vec<(Arc<StatementInfo>, Params)>),
    Script(Arc<StatementInfo>),
    ReadWith(ReadClosure),
    WriteWith(WriteClosure),
    WithConnection(WholeClosure),
    Migrate(Migrations),
    Begin,
    /// Valid inside a transaction only: opens a savepoint with this number.
    Savepoint(u64),
    Release,
    Undo,
    Commit,
    Rollback,
    /// A write that failed on its caller's thread; answered when it is known whether the write was committed.
    Settle(Unsettled),
    /// A closure of the checkpointer. No caller waits for an answer.
    InSlot(InSlot),
    /// Opens the writer's connection, if the database is parked.
    Unpark,
    /// A checkpoint requested by a caller.
    Checkpoint(CheckpointMode),
    /// The last request of a queue: calls the first closure, closes the connection, calls the second closure.
    Close(Box<dyn FnOnce() + Send>, Box<dyn FnOnce() + Send>),
}

impl Work {
    /// Returns its SQL text, if it has exactly one.
    pub(crate) fn text(&self) -> Option<&StatementInfo> {
        match self {
            Self::Execute { text, .. } | Self::Query { text, .. } | Self::Many { text, .. } | Self::Script(text) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// Makes a query's rows values of `T`.
    pub(crate) fn decoding<T: FromRow + Send + 'static>(mut self) -> Self {
        if let Self::Query { decode, .. } = &mut self {
            *decode = Some(decode_as::<T>);
        }
        self
    }

    /// Returns what makes the rows values of the caller's type.
    pub(crate) fn decode(&self) -> Option<Decode> {
        if let Self::Query { decode, .. } = self { *decode } else { None }
    }

    /// Returns the text and the parameters of work that is one run of one statement.
    pub(crate) fn statement(&self) -> Option<(&StatementInfo, &Params)> {
        match self {
            Self::Execute { text, params } | Self::Query { text, params, .. } => Some((text, params)),
            _ => None,
        }
    }

    /// Returns all its SQL texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &StatementInfo> {
        let several = if let Self::Batch(statements) = self { statements.as_slice() } else { &[] };
        self.text().into_iter().chain(several.iter().map(|(text, _)| &**text))
    }

    /// Returns true if the work is known to write nothing.
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

    /// Returns true if the work belongs to the crate, or neither reads nor writes a caller's data.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Settle(_) | Self::InSlot(_) | Self::Unpark | Self::Close(..))
    }

    /// Adds the work's SQL text to the error.
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
            Self::WithConnection(_) => CallKind::WithConnection,
            Self::Migrate(_) => CallKind::Migrate,
            Self::Begin | Self::Savepoint(_) => CallKind::Begin,
            Self::Commit | Self::Release => CallKind::Commit,
            Self::Settle(unsettled) => unsettled.kind,
            Self::Undo | Self::Rollback | Self::Unpark | Self::InSlot(_) | Self::Checkpoint(_) | Self::Close(..) => {
                CallKind::Control
            }
        }
    }
}

/// The answer to a request.
pub(crate) enum Answer {
    Executed(Executed),
    Changes(u64),
    Rows(Rows),
    /// The rows as values of the caller's type, made by a `Decode`.
    Decoded(Decoded),
    Batch(Vec<BatchResult>),
    Done,
    Transaction(TransactionGuard),
    /// A savepoint was opened, with this number.
    Savepoint(u64),
    Checkpointed(Checkpointed),
    /// The result of a closure, or the database that was opened.
    Returned(Box<dyn Any + Send>),
}

/// Converts the answer to the type that each operation returns.
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

    /// Returns the rows as values of `T`. A panic of the caller's code that made them goes on here.
    pub(crate) fn decoded<T: FromRow + Send + 'static>(self) -> Result<Vec<T>> {
        match self {
            Self::Decoded(decoded) => decoded.get(),
            answer => answer.rows()?.read(),
        }
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

    /// Returns the closure's result, in the type in which the closure returned it.
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

/// Counts a write in progress, from its first push until it is answered or dropped.
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
    /// When the first attempt to take the lock for this request began.
    pub(crate) lock_since: Option<Instant>,
    /// Its group was lost: it must not join a group again.
    pub(crate) must_be_alone: bool,
    /// A write was in progress when the call began.
    pub(crate) had_active_writes: bool,
    /// Set by the writer when it receives the request.
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

/// The writer, for a reader that finds that a request must not run on a reader.
pub(crate) trait TakesOver: Send + Sync {
    /// Returns true if a write is queued or running.
    fn is_active(&self) -> bool;

    /// Takes over the request, which began on the reader's thread. If no other thread can be started for it, that
    /// thread serves the writer until no work is left.
    fn take_over(&self, request: Request);

    /// Asks the writer to open its connection before all waiting requests, so that a parked database may have connections
    /// again.
    fn unpark(&self, ticket: Arc<Ticket>) -> Result<Reply<Result<Answer>>>;
}
