//! A request: the one message that a caller sends to a worker.
//!
//! Owns: the closed list of what can be asked. Runs on callers' and workers' threads. Invariant: a request has one
//! owner at a time: the caller's future, a queue, or the worker that runs it. Leaves out: running requests.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::CheckpointMode;

use crate::connection::exclusive::page_copy::Target;
use crate::connection::learn::live_query::Derived;
use crate::connection::run::execute::Output;
use crate::error::{Error, Result};
use crate::migrations::Migrations;
use crate::options::json_options::JsonOptions;
use crate::queue::on_its_way::OnItsWay;
use crate::queue::parts::Parts;
use crate::queue::reply::Promise;
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Route;
use crate::sql::tokens::looks_like_a_write;
use crate::stats::CallKind;
use crate::values::decoded::Decode;
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::Rows;
use crate::workers::Answer;

/// The result of a user's closure, for its caller, which knows the type; whether the result was `Ok`, and the error if it
/// is one of Flatwater's.
pub(crate) struct Returned {
    pub(crate) is_ok: bool,
    pub(crate) error: Option<Error>,
    pub(crate) result: Box<dyn Any + Send>,
}

impl Returned {
    /// Returns the answer for the caller, or an error if the closure failed because the deadline passed.
    pub(crate) fn answer(self, ticket: &Ticket) -> Result<Answer> {
        if !self.is_ok {
            ticket.closure_failed()?;
        }
        Ok(Answer::Returned(self.result, self.error))
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

/// What the caller of a query wants of its rows.
pub(crate) enum Wanted {
    All,
    First,
    /// A batch now, and the others later. Where a reader cannot be kept for the caller, all of them.
    Batches,
    /// All of them, as values of the caller's type.
    Decoded(Decode),
    /// All of them, as JSON.
    Json(Arc<JsonOptions>),
    /// All of them: from a reader in parts, of which the answer contains the last.
    Parts(Arc<Parts<Rows>>),
}

/// What is done with a savepoint that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedStep {
    Open,
    Release,
    RollbackTo,
}

/// A query that is run again whenever its result may have changed, or several of which the results are of one snapshot.
/// Equal ones are one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct LiveQuery(pub(crate) Box<[LivePart]>);

impl LiveQuery {
    /// The statements, each with what its text read the last time.
    pub(crate) fn parts<'a>(
        &'a self,
        known: &'a [Option<Derived>],
    ) -> impl Iterator<Item = (&'a Arc<StatementInfo>, &'a Params, Option<&'a Derived>)> + Clone {
        self.0.iter().zip(known).map(|(part, known)| (&part.text, &part.params, known.as_ref()))
    }
}

/// One statement of a live query.
#[derive(Debug)]
pub(crate) struct LivePart {
    pub(crate) text: Arc<StatementInfo>,
    pub(crate) params: Params,
}

impl PartialEq for LivePart {
    fn eq(&self, other: &Self) -> bool {
        self.text.sql == other.text.sql && self.params == other.params
    }
}

/// No parameter is NaN, so each equals itself.
impl Eq for LivePart {}

impl Hash for LivePart {
    /// Equal ones have equal hashes; the parameters of others may have too.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.text.sql.hash(hasher);
        self.params.hash_values(hasher);
    }
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
        wanted: Wanted,
    },
    Many {
        text: Arc<StatementInfo>,
        rows: ParamRows,
    },
    Batch(Vec<(Arc<StatementInfo>, Params)>),
    Script(Arc<StatementInfo>),
    /// Runs a live query. It contains what each of its texts read the last time.
    Live(Arc<LiveQuery>, Box<[Option<Derived>]>),
    /// Opens a snapshot.
    Snapshot,
    /// Fetches the next batch of the cursor with this number.
    Fetch(u64),
    /// Compiles the text and runs nothing. Some PRAGMAs act when they are compiled, so these are left alone.
    Prepare(Arc<StatementInfo>),
    ReadWith(ReadClosure),
    WriteWith(WriteClosure),
    WithConnection(WholeClosure),
    Migrate(Migrations),
    /// Copies the database into a new file.
    Backup(Box<Target>),
    Begin,
    /// Valid inside a transaction only: opens a savepoint with this number.
    Savepoint(u64),
    /// Valid inside a transaction only: a step with the savepoint of this name.
    Named(NamedStep, Box<str>),
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
    /// The last request of a queue: calls the first closure, which returns how long the rest of the WAL may be copied,
    /// closes the connection, calls the second closure.
    Close(Box<dyn FnOnce() -> Duration + Send>, Box<dyn FnOnce() + Send>),
}

impl Work {
    /// Returns its SQL text, if it has exactly one.
    pub(crate) fn text(&self) -> Option<&StatementInfo> {
        match self {
            Self::Execute { text, .. } | Self::Query { text, .. } | Self::Many { text, .. } => Some(text),
            Self::Script(text) | Self::Prepare(text) => Some(text),
            Self::Live(query, _) => match &*query.0 {
                [part] => Some(&part.text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns what the caller wants of the rows.
    pub(crate) fn output(&self) -> Output<'_> {
        match self {
            Self::Query { wanted: Wanted::Json(options), .. } => Output::Json(options),
            Self::Query { wanted: Wanted::First, .. } => Output::Rows(1),
            Self::Query { .. } => Output::Rows(usize::MAX),
            _ => Output::Nothing,
        }
    }

    /// Returns what makes the rows values of the caller's type.
    pub(crate) fn decode(&self) -> Option<Decode> {
        if let Self::Query { wanted: Wanted::Decoded(decode), .. } = self { Some(*decode) } else { None }
    }

    /// Returns the text and the parameters of work that is one run of one statement.
    pub(crate) fn statement(&self) -> Option<(&StatementInfo, &Params)> {
        match self {
            Self::Execute { text, params } | Self::Query { text, params, .. } => Some((text, params)),
            _ => None,
        }
    }

    /// Returns true if it opens a nested transaction, or keeps one.
    pub(crate) fn is_savepoint(&self) -> bool {
        matches!(self, Self::Savepoint(_) | Self::Release)
    }

    /// Returns true if it undoes a transaction, or a nested one.
    pub(crate) fn undoes(&self) -> bool {
        matches!(self, Self::Rollback | Self::Undo)
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
            Self::ReadWith(_)
            | Self::Snapshot
            | Self::Fetch(_)
            | Self::Prepare(_)
            | Self::Live(..)
            | Self::Backup(_) => true,
            _ => false,
        }
    }

    /// Returns true if the work may keep a reader for as long as its caller wants.
    pub(crate) fn holds_a_reader(&self) -> bool {
        matches!(
            self,
            Self::Query { wanted: Wanted::Batches, .. } | Self::ReadWith(_) | Self::Snapshot | Self::Backup(_)
        )
    }

    /// Returns true if the work belongs to the crate, or neither reads nor writes a caller's data.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Settle(_) | Self::InSlot(_) | Self::Unpark | Self::Close(..))
    }

    /// Returns true if the work takes the turn of this process, or may take it.
    pub(crate) fn takes_turn(&self) -> bool {
        !(self.only_reads() || matches!(self, Self::Unpark | Self::Close(..)))
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
            Self::Fetch(_) => CallKind::Fetch,
            Self::Live(..) => CallKind::Live,
            Self::Many { .. } => CallKind::ExecuteMany,
            Self::Batch(_) => CallKind::Batch,
            Self::Script(_) => CallKind::Script,
            Self::ReadWith(_) => CallKind::ReadWith,
            Self::WriteWith(_) => CallKind::WriteWith,
            Self::WithConnection(_) => CallKind::WithConnection,
            Self::Migrate(_) => CallKind::Migrate,
            Self::Backup(_) => CallKind::Backup,
            Self::Begin | Self::Savepoint(_) => CallKind::Begin,
            Self::Commit | Self::Release => CallKind::Commit,
            Self::Settle(unsettled) => unsettled.kind,
            Self::Snapshot => CallKind::Snapshot,
            Self::Undo | Self::Rollback | Self::Named(..) | Self::Prepare(_) => CallKind::Control,
            Self::Unpark | Self::InSlot(_) | Self::Checkpoint(_) | Self::Close(..) => CallKind::Control,
        }
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
