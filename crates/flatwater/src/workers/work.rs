//! The work of a request: the closed list of what a worker can be asked for.
//!
//! Owns: the list, and reading from it what the statements of a work are. Runs on callers' and workers' threads. Plain values.
//! Leaves out: what is true of each kind (`work_kinds`), who asks (`request`), running it (the workers).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::CheckpointMode;

use crate::connection::exclusive::copy::Copy;
use crate::connection::learn::live_query::{Derived, LiveQuery};
use crate::connection::run::blobs::BlobUse;
use crate::connection::run::execute::Output;
use crate::migrations::Migrations;
use crate::options::key::Key;
use crate::queue::reply::Parts;
use crate::stats::CallKind;
use crate::workers::user_closures::{ExclusiveClosure, ReadClosure, WriteClosure};
use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::error::{Error, Result};
use flatwater_base::values::outcome::Decode;
use flatwater_base::values::param_rows::{BatchStatements, ParamRows};
use flatwater_base::values::params::Params;
use flatwater_base::values::row::Rows;
use flatwater_sql::statement_info::StatementInfo;

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
    /// All of them, if there are any, and what the statement changed.
    Ran,
    /// All of them: from a reader in parts, of which the answer contains the last.
    Parts(Arc<Parts<Rows>>),
}

/// What the caller wants of the runs of a statement that has many rows of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedOfRuns {
    /// The number of rows that they change. They return none.
    Changes,
    /// The rows that they return.
    Rows,
    /// The same, if they return any, and the number of those that they change.
    Any,
}

/// What is done with a savepoint in an open transaction.
pub(crate) enum SavepointWork {
    /// Opens one with this number.
    Open(u64),
    Release,
    Undo,
    /// A step with the one of this name.
    Named(NamedStep, Box<str>),
}

/// What is done with a savepoint that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedStep {
    Open,
    Release,
    RollbackTo,
}

/// Work that has the writer's connection for itself, outside of any transaction but its own.
pub(crate) enum Exclusive {
    WriteWith(WriteClosure),
    WithConnection(ExclusiveClosure),
    Migrate(Migrations),
    /// Rebuilds the file without free pages, by this text.
    Vacuum(Arc<StatementInfo>),
    /// Encrypts the database with this key.
    Rekey(Key),
    /// Asks whether the database has this key.
    HasKey(Key),
}

/// Work of the engine itself.
pub(crate) enum Ours {
    /// Goes on with the transaction that ran on its caller's thread until now. No caller waits for an answer.
    GoOn,
    /// A write that failed on its caller's thread; answered when it is known whether the write was committed.
    Settle(Unsettled),
    /// A closure of the checkpointer. No caller waits for an answer.
    InSlot(InSlot),
    /// Opens the writer's connection, if the database is parked.
    Unpark,
    /// The last request of a queue: calls the first closure, which returns how long the rest of the WAL may be copied,
    /// closes the connection, calls the second closure.
    Close(Box<dyn FnOnce() -> Duration + Send>, Box<dyn FnOnce() + Send>),
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
        wanted: WantedOfRuns,
    },
    Batch(BatchStatements<Arc<StatementInfo>>),
    Script(Arc<StatementInfo>),
    /// Runs a live query. It contains what each of its texts read the last time.
    Live(Arc<LiveQuery>, Box<[Option<Derived>]>),
    /// Uses a part of a large value.
    Blob(Box<BlobUse>),
    /// Opens a snapshot.
    Snapshot,
    /// Fetches the next batch of the cursor with this number.
    Fetch(u64),
    /// Compiles the text and runs nothing. Some PRAGMAs act when they are compiled, so these are left alone.
    Prepare(Arc<StatementInfo>),
    ReadWith(ReadClosure),
    /// Copies the database, into a new file or as bytes.
    Copy(Box<Copy>),
    /// A checkpoint requested by a caller.
    Checkpoint(CheckpointMode),
    /// In the transaction `last_insert_rowid()` tells this rowid, if there is one, until a row is inserted.
    Begin(Option<i64>),
    /// Valid inside a transaction only, as are `Commit` and `Rollback`.
    Savepoint(SavepointWork),
    Commit,
    Rollback,
    /// Lends the writer's connection to a connection of a caller, which writes meanwhile.
    Slot,
    /// Closes the connection of a caller.
    Leave,
    Exclusive(Exclusive),
    Ours(Ours),
}

/// Makes works of what they consist of.
macro_rules! works {
    ($($part:ident($given:ident) = $made:expr;)+) => {$(
        impl From<$part> for Work {
            fn from($given: $part) -> Self {
                $made
            }
        }
    )+};
}

works! {
    SavepointWork(step) = Self::Savepoint(step);
    BlobUse(blob) = Self::Blob(Box::new(blob));
    Copy(copy) = Self::Copy(Box::new(copy));
    Exclusive(work) = Self::Exclusive(work);
    Ours(work) = Self::Ours(work);
}

impl Work {
    /// Makes a statement whose rows are not wanted, in the form of the text for its values.
    #[inline]
    pub(crate) fn execute(text: Arc<StatementInfo>, params: Params) -> Self {
        Self::Execute { text: text.for_values(&params.row()), params }
    }

    /// Makes a query, in the form of the text for its values.
    #[inline]
    pub(crate) fn query(text: Arc<StatementInfo>, params: Params, wanted: Wanted) -> Self {
        Self::Query { text: text.for_values(&params.row()), params, wanted }
    }

    /// Makes statements that run together. One that has many rows of parameters is left to SQLite, which may make another plan
    /// for each.
    pub(crate) fn batch(statements: BatchStatements<Arc<StatementInfo>>) -> Self {
        Self::Batch(statements.map_texts(|text, rows| match rows.only() {
            Some(row) => text.for_values(&row),
            None => text,
        }))
    }

    /// Makes a statement that runs once for each row of parameters.
    pub(crate) fn many(text: Arc<StatementInfo>, rows: ParamRows, wanted: WantedOfRuns) -> Self {
        Self::Many { text, rows, wanted }
    }

    /// Makes the statements of a script.
    pub(crate) fn script(text: Arc<StatementInfo>) -> Self {
        Self::Script(text)
    }

    /// Makes the compiling of a text.
    pub(crate) fn prepare(text: Arc<StatementInfo>) -> Self {
        Self::Prepare(text)
    }

    /// Returns true if it compiles a text and runs nothing.
    pub(crate) fn only_prepares(&self) -> bool {
        matches!(self, Self::Prepare(_))
    }

    /// Returns true if the rows are wanted in parts.
    pub(crate) fn wants_parts(&self) -> bool {
        matches!(self, Self::Query { wanted: Wanted::Batches, .. })
    }

    /// Returns its SQL text, if it has exactly one.
    pub(crate) fn text(&self) -> Option<&Arc<StatementInfo>> {
        match self {
            Self::Execute { text, .. } | Self::Query { text, .. } | Self::Many { text, .. } => Some(text),
            Self::Script(text) | Self::Prepare(text) | Self::Exclusive(Exclusive::Vacuum(text)) => Some(text),
            Self::Live(query, _) => match &*query.0 {
                [part] => Some(&part.text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns all its SQL texts, except those of several live queries. Statements of a batch that follow each other and have
    /// one text have it once.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Arc<StatementInfo>> {
        let several = if let Self::Batch(statements) = self { statements.texts() } else { &[] };
        self.text().into_iter().chain(several.iter().map(|(text, _)| text))
    }

    /// Returns the same with the text of each statement of a batch.
    pub(crate) fn text_of_each(&self) -> impl Iterator<Item = &Arc<StatementInfo>> {
        let several = if let Self::Batch(statements) = self { statements.texts() } else { &[] };
        self.text().into_iter().chain(several.iter().flat_map(|(text, rows)| std::iter::repeat_n(text, rows.len())))
    }

    /// Returns the text and the parameters of work that is one run of one statement.
    pub(crate) fn statement(&self) -> Option<(&Arc<StatementInfo>, &Params)> {
        match self {
            Self::Execute { text, params } | Self::Query { text, params, .. } => Some((text, params)),
            _ => None,
        }
    }

    /// Returns how many runs of statements it is, and the bytes of their values, if it consists of statements with
    /// parameters.
    pub(crate) fn runs(&self) -> Option<(usize, usize)> {
        match self {
            Self::Execute { text, params } | Self::Query { text, params, .. } => {
                Some((1, text.bytes_of_values() + params.heap_bytes()))
            }
            Self::Many { rows, .. } => Some((rows.len(), rows.heap_bytes())),
            Self::Batch(statements) => {
                let texts = statements.texts().iter();
                let bytes = texts.map(|(text, rows)| text.bytes_of_values() * rows.len() + rows.heap_bytes());
                Some((statements.len(), bytes.sum()))
            }
            _ => None,
        }
    }

    /// Returns the same of a work that runs its statements in a transaction of their own.
    pub(crate) fn rows(&self) -> Option<(usize, usize)> {
        self.runs().filter(|_| matches!(self, Self::Many { .. } | Self::Batch(_)))
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

    /// Adds the work's SQL text to the error.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match self.text() {
            Some(text) => error.with_sql(&text.sql),
            None => error,
        }
    }
}

/// Makes a closure on a reader.
pub(crate) fn read_with(closure: ReadClosure) -> Work {
    Work::ReadWith(closure)
}

/// Makes the begin of a transaction, in which `last_insert_rowid()` tells this rowid.
pub(crate) fn begin(rowid: Option<i64>) -> Work {
    Work::Begin(rowid)
}

/// Makes the commit of a transaction.
pub(crate) fn commit() -> Work {
    Work::Commit
}

/// Makes the rollback of a transaction.
pub(crate) fn rollback() -> Work {
    Work::Rollback
}

/// Makes the begin of a snapshot.
pub(crate) fn snapshot() -> Work {
    Work::Snapshot
}

/// Makes the next batch of a cursor.
pub(crate) fn fetch(cursor: u64) -> Work {
    Work::Fetch(cursor)
}

/// Makes a checkpoint.
pub(crate) fn checkpoint(mode: CheckpointMode) -> Work {
    Work::Checkpoint(mode)
}

/// Makes the close of a caller's connection.
pub(crate) fn leave() -> Work {
    Work::Leave
}

/// Makes the wait of a caller's connection for the writer's.
pub(crate) fn slot() -> Work {
    Work::Slot
}
