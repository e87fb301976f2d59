//! What is true of each kind of work, for all but the worker that runs it.
//!
//! Owns: one row for each kind of work, and how a work is called in messages. Runs on callers' and workers' threads. Pure.
//! Invariant: a new kind of work needs a row here, a constructor in `work`, and a worker that runs it. Leaves out: running
//! it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::work::{Exclusive, NamedStep, Ours, SavepointWork, Wanted, WantedOfRuns, Work};
use crate::stats::CallKind;
use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::error::shorten;
use flatwater_sql::class::Route;
use flatwater_sql::statement_info::StatementInfo;

/// What is true of a work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Description {
    /// As what its calls are counted.
    pub(crate) kind: CallKind,
    /// How messages call it, if it has no SQL text.
    pub(crate) name: &'static str,
    effect: Effect,
    /// It may keep a reader for as long as its caller wants.
    pub(crate) holds_reader: bool,
}

/// What a work does to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// As far as is known it writes nothing.
    Reads,
    Writes,
    /// It begins a transaction.
    Begins,
    /// It commits the transaction that it belongs to.
    Commits,
    /// It undoes the transaction that it belongs to.
    RollsBack,
    /// It undoes a nested transaction.
    Undoes,
    /// It opens or keeps a nested transaction, or is a step with a savepoint that has a name.
    Marks,
    /// It copies the WAL into the file.
    Checkpoints,
    /// It is no caller's.
    Ours,
    /// The same, and it needs no lock.
    OursWithoutLock,
}

impl Description {
    /// Returns true if the work is known to write nothing.
    #[inline]
    pub(crate) fn only_reads(&self) -> bool {
        self.effect == Effect::Reads
    }

    /// Returns true if the work consists of statements that may write.
    pub(crate) fn writes(&self) -> bool {
        self.effect == Effect::Writes
    }

    /// Returns true if the work belongs to the crate, or neither reads nor writes a caller's data.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.effect, Effect::Ours | Effect::OursWithoutLock)
    }

    /// Returns true if the work may need the lock of writers.
    pub(crate) fn takes_turn(&self) -> bool {
        !matches!(self.effect, Effect::Reads | Effect::OursWithoutLock)
    }

    /// Returns true if the work is a read, as far as can be told before its text is known.
    pub(crate) fn may_read(&self) -> bool {
        matches!(self.kind, CallKind::Query) || self.only_reads()
    }

    /// Returns true if the work makes the WAL longer.
    pub(crate) fn grows_wal(&self) -> bool {
        matches!(self.effect, Effect::Writes | Effect::Begins | Effect::Commits) || self.is_control()
    }

    /// Returns true if the work begins or ends a transaction, is a step with a savepoint, or begins a snapshot, and may run
    /// inline.
    pub(crate) fn is_bracket(&self) -> bool {
        self.is_control() || self.ends() || self.effect == Effect::Begins || self.kind == CallKind::Snapshot
    }

    /// Returns true if the work commits a transaction, or rolls it back.
    pub(crate) fn ends(&self) -> bool {
        matches!(self.effect, Effect::Commits | Effect::RollsBack)
    }

    /// Returns true if the work undoes a transaction, or a nested one.
    pub(crate) fn undoes(&self) -> bool {
        matches!(self.effect, Effect::RollsBack | Effect::Undoes)
    }

    /// Returns true if the work runs the engine's own statements inside a transaction.
    pub(crate) fn is_control(&self) -> bool {
        self.undoes() || self.effect == Effect::Marks
    }
}

impl Work {
    /// Returns how a query writes JSON, if it does.
    pub(crate) fn json_options(&mut self) -> Option<&mut Arc<JsonOptions>> {
        if let Self::Query { wanted: Wanted::Json(options), .. } = self { Some(options) } else { None }
    }

    /// Returns what is true of the work. Of a query it depends on what is known of its text by now.
    #[inline]
    pub(crate) fn describe(&self) -> Description {
        let (kind, name, effect, holds_reader) = match self {
            Self::Execute { .. } => (CallKind::Execute, "a statement", Effect::Writes, false),
            Self::Query { text, wanted, .. } => {
                (CallKind::Query, "a query", effect_of_query(text), matches!(wanted, Wanted::Batches))
            }
            _ => return self.describe_other(),
        };
        Description { kind, name, effect, holds_reader }
    }

    /// The same of work that is not the run of one statement. Not inlined: many ask for one of the fields.
    #[inline(never)]
    fn describe_other(&self) -> Description {
        use CallKind as Kind;
        use Effect::{Begins, Checkpoints, Commits, Reads, RollsBack, Writes};
        let (kind, name, effect) = match self {
            Self::Execute { .. } | Self::Query { .. } => unreachable!("described by `describe`"),
            Self::Many { wanted: WantedOfRuns::Rows, .. } => {
                (Kind::ExecuteMany, "a statement with many rows of parameters", Writes)
            }
            Self::Many { .. } => (Kind::ExecuteMany, "an `execute_many`", Writes),
            Self::Batch(_) => (Kind::Batch, "a batch", Writes),
            Self::Script(_) => (Kind::Script, "a script", Writes),
            Self::Live(..) => (Kind::Live, "a live query", Reads),
            Self::Blob(blob) if blob.only_reads() => (Kind::Query, "a read of a blob", Reads),
            Self::Blob(_) => (Kind::Execute, "a write into a blob", Writes),
            Self::Snapshot => (Kind::Snapshot, "a snapshot", Reads),
            Self::Fetch(_) => (Kind::Fetch, "a batch of rows", Reads),
            Self::Prepare(_) => (Kind::Control, "a statement", Reads),
            Self::ReadWith(_) => (Kind::ReadWith, "a closure of `read_with`", Reads),
            Self::Copy(_) => (Kind::Backup, "a backup", Reads),
            Self::Checkpoint(_) => (Kind::Control, "a checkpoint", Checkpoints),
            Self::Begin(_) => (Kind::Begin, "the begin of a transaction", Begins),
            Self::Savepoint(step) => step.describe(),
            Self::Commit => (Kind::Commit, "a commit", Commits),
            Self::Rollback => (Kind::Control, "a rollback", RollsBack),
            Self::Slot => (Kind::Begin, "a transaction of a connection", Begins),
            Self::Leave => (Kind::Control, "the close of a connection", RollsBack),
            Self::Exclusive(work) => work.describe(),
            Self::Ours(work) => work.describe(),
        };
        let holds_reader = matches!(self, Self::Snapshot | Self::ReadWith(_) | Self::Copy(_));
        Description { kind, name, effect, holds_reader }
    }

    /// Returns the statement that the work stands for, if its caller wrote none.
    pub(crate) fn control_sql(&self) -> Option<&'static str> {
        Some(match self {
            Self::Begin(_) => "BEGIN IMMEDIATE",
            Self::Snapshot => "BEGIN",
            Self::Savepoint(step) => step.sql(),
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            _ => return None,
        })
    }
}

impl SavepointWork {
    fn describe(&self) -> (CallKind, &'static str, Effect) {
        match self {
            Self::Open(_) => (CallKind::Begin, "the begin of a nested transaction", Effect::Marks),
            Self::Named(..) => (CallKind::Control, "a savepoint", Effect::Marks),
            Self::Release => (CallKind::Commit, "the end of a nested transaction", Effect::Marks),
            Self::Undo => (CallKind::Control, "the rollback of a nested transaction", Effect::Undoes),
        }
    }

    fn sql(&self) -> &'static str {
        match self {
            Self::Open(_) | Self::Named(NamedStep::Open, _) => "SAVEPOINT",
            Self::Release | Self::Named(NamedStep::Release, _) => "RELEASE",
            Self::Undo | Self::Named(NamedStep::RollbackTo, _) => "ROLLBACK TO",
        }
    }
}

impl Exclusive {
    fn describe(&self) -> (CallKind, &'static str, Effect) {
        let (kind, name) = match self {
            Self::WriteWith(_) => (CallKind::WriteWith, "a closure of `write_with`"),
            Self::WithConnection(_) => (CallKind::WithConnection, "a closure of `with_connection`"),
            Self::Migrate(_) => (CallKind::Migrate, "a migration"),
            Self::Vacuum(_) => (CallKind::Execute, "a vacuum"),
            Self::Rekey(_) => (CallKind::Control, "a change of the key"),
            Self::HasKey(_) => (CallKind::Control, "a question about the key"),
        };
        // A question about the key has its place among the writes, after the changes of the key that it asks about.
        (kind, name, Effect::Writes)
    }
}

impl Ours {
    fn describe(&self) -> (CallKind, &'static str, Effect) {
        match self {
            Self::GoOn => (CallKind::Control, "a transaction", Effect::OursWithoutLock),
            Self::Settle(unsettled) => (unsettled.kind, "a commit that failed", Effect::Ours),
            Self::InSlot(_) => (CallKind::Control, "a checkpoint", Effect::Ours),
            Self::Unpark => (CallKind::Control, "an opening", Effect::OursWithoutLock),
            Self::Close(..) => (CallKind::Control, "a close", Effect::OursWithoutLock),
        }
    }
}

fn effect_of_query(text: &StatementInfo) -> Effect {
    if may_read_only(text) { Effect::Reads } else { Effect::Writes }
}

/// Returns true for a text that only reads, as far as is known.
pub(crate) fn may_read_only(text: &StatementInfo) -> bool {
    text.route().map_or(!text.looks_like_a_write, |route| route == Route::Read)
}

/// How a work that runs is called in messages.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Sql(Arc<StatementInfo>),
    Words(&'static str),
}

impl Name {
    pub(crate) fn of(work: &Work) -> Self {
        work.text().map_or_else(|| Self::Words(work.describe().name), |text| Self::Sql(text.clone()))
    }

    /// Returns the SQL, if it is not too long, or what the work is.
    pub(crate) fn short(&self) -> Cow<'_, str> {
        match self {
            Self::Sql(text) => shorten(&text.sql),
            Self::Words(words) => Cow::Borrowed(words),
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::Words("a request")
    }
}

/// As a part of a sentence.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(_) => write!(f, "`{}`", self.short()),
            Self::Words(words) => f.write_str(words),
        }
    }
}
