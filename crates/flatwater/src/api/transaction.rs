//! Interactive transactions, those nested in them, and savepoints with names; and snapshots: several reads of one point in time.
//!
//! Owns: the caller's side of an open transaction and of a snapshot; their methods run on the caller's thread. Invariants: a transaction
//! that goes out of scope without `commit` is rolled back, however that happens; a savepoint's parent cannot be used
//! while the savepoint is open; a snapshot that goes out of scope ends, and gives its reader back. Leaves out: serving them, which
//! the writer does, or the readers, and the stack of a transaction's savepoints, which the writer has.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::api::call::Call;
use crate::api::session::Session;
use crate::engine::caller::Caller;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::kept::SnapshotGuard;
use crate::workers::open_transaction::{Inside, Level, TransactionGuard};
use crate::workers::work::{self, NamedStep, SavepointWork, Work};
use flatwater_base::error::{Error, ErrorCode, Result};

/// An open transaction, or a savepoint inside one. It holds the writer: other writes wait until it ends.
///
/// Its operations are those of a [`Session`]. Its reads see its own writes. A statement that fails changes nothing, and the
/// transaction stays open, unless SQLite
/// ends it: because of ROLLBACK in a trigger, a failing disk, or the deadline of a call that interrupts a write.
/// Dropping the transaction rolls it back. A transaction that is not used for
/// [`Tuning::transaction_idle`](crate::options::Tuning::transaction_idle) is rolled back too, and each later use fails with
/// `Expired`.
///
/// Its statements run on the writer's thread. A statement that is known to be short, from earlier uses on the same
/// connection, may run on the thread that polls its call.
#[must_use = "dropping a transaction rolls it back"]
pub struct Transaction<'a> {
    pub(crate) session: Session,
    /// What is rolled back when the transaction goes out of scope.
    level: Level,
    parent: PhantomData<&'a mut ()>,
}

impl<'a> Transaction<'a> {
    fn new(caller: &Caller, guard: TransactionGuard) -> Self {
        let inside = Inside { transaction: guard.0.clone(), savepoints: Vec::new() };
        let session = Session(Caller { inside: Some(Arc::new(inside)), ..caller.clone() });
        Self { session, level: Level::Outermost(guard), parent: PhantomData }
    }

    /// Creates the handle of the savepoint `number`, nested in the transaction of `caller`.
    fn nested(caller: &Caller, number: u64) -> Self {
        let mut caller = caller.clone();
        if let Some(inside) = &mut caller.inside {
            Arc::make_mut(inside).savepoints.push(number);
        }
        let level = Level::nested(caller.inside.clone());
        Self { session: Session(caller), level, parent: PhantomData }
    }

    /// Begins a nested transaction: a savepoint. The outer transaction cannot be used until the nested one ends.
    ///
    /// # Errors
    /// `Misuse`, with the reason, if the transaction is over.
    pub fn begin(&mut self) -> Call<Transaction<'_>> {
        begin(&self.session, None)
    }

    /// Commits the transaction, or releases the savepoint and keeps its changes. If the call is dropped before it
    /// completes, either all changes are committed (or kept), or none.
    ///
    /// # Errors
    /// `Constraint` for a deferred foreign key; `Io`, `Full`; `CommitUnknown` if the outcome cannot be known. After any
    /// error the transaction is rolled back.
    pub fn commit(self) -> Call<()> {
        self.end("commit", work::commit(), SavepointWork::Release.into())
    }

    /// Rolls back the transaction, or the changes since the savepoint began. Dropping the transaction does the same
    /// without waiting. Succeeds if SQLite, the idle limit or a close has already rolled it back.
    ///
    /// # Errors
    /// `Misuse` in a closure on a connection, and in a forked process; `Closed` if the database was closed and its threads have ended.
    pub fn rollback(self) -> Call<()> {
        self.end("rollback", work::rollback(), SavepointWork::Undo.into())
    }

    fn end(self, operation: &'static str, outermost: Work, savepoint: Work) -> Call<()> {
        let Self { session, level, .. } = self;
        let work = if matches!(level, Level::Nested(_)) { savepoint } else { outermost };
        let mut call = session.call(operation, Ok(work), |answer, _| answer.done());
        call.pending.end_level(level);
        call
    }
}

/// Savepoints with names, for code that has no scopes to nest.
impl Transaction<'_> {
    /// Opens a savepoint, to which [`rollback_to`](Self::rollback_to) returns.
    ///
    /// Savepoints form a stack, as [SQLite's](https://sqlite.org/lang_savepoint.html) do. A name may be any text that
    /// is not empty, and may be used again: it then refers to the newest savepoint of this name. Names are compared
    /// without regard to the case of ASCII letters. A savepoint ends with its transaction at the latest. To nest
    /// transactions by scopes instead, use [`transaction`](Self::transaction).
    ///
    /// If the call is dropped before it completes, it is undefined whether the savepoint was opened.
    ///
    /// # Errors
    /// `Misuse` for an empty name, or if the transaction is over.
    pub fn savepoint(&self, name: &str) -> Call<()> {
        self.named("savepoint", NamedStep::Open, name)
    }

    /// Closes the savepoint of this name and all that were opened after it, and keeps their changes. The transaction
    /// stays open, even if this is its first savepoint. If the call is dropped before it completes, it is undefined
    /// whether they were closed.
    ///
    /// # Errors
    /// `Misuse` if there is no such savepoint in this transaction, or if the transaction is over. A nested transaction
    /// does not see the savepoints of the outer one.
    pub fn release(&self, name: &str) -> Call<()> {
        self.named("release", NamedStep::Release, name)
    }

    /// Undoes all changes since the savepoint of this name was opened. The savepoint stays open; those that were opened
    /// after it are closed. If the call is dropped before it completes, it is undefined whether the changes
    /// were undone.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn rollback_to(&self, name: &str) -> Call<()> {
        self.named("rollback_to", NamedStep::RollbackTo, name)
    }

    fn named(&self, operation: &'static str, step: NamedStep, name: &str) -> Call<()> {
        let work = if name.is_empty() {
            Err(Error::new(ErrorCode::InvalidArgument, "the name of a savepoint is empty")
                .with_hint("name it, or nest with `begin`"))
        } else {
            Ok(SavepointWork::Named(step, name.into()).into())
        };
        self.session.call(operation, work, |answer, _| answer.done())
    }
}

/// Begins a transaction, or in a transaction a nested one. In one that is not nested `last_insert_rowid()` tells `rowid` until a row is
/// inserted.
pub(crate) fn begin(session: &Session, rowid: Option<i64>) -> Call<Transaction<'static>> {
    let work = match &session.0.inside {
        None => work::begin(rowid),
        Some(inside) => SavepointWork::Open(inside.transaction.next_savepoint()).into(),
    };
    session.call("begin", Ok(work), |answer, caller| {
        let caller = caller.ok_or_else(Error::closed)?;
        match answer {
            Answer::Savepoint(number) => Ok(Transaction::nested(caller, number)),
            answer => answer.transaction().map(|guard| Transaction::new(caller, guard)),
        }
    })
}

impl std::ops::Deref for Transaction<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Outermost(_) => "transaction",
            Level::Nested(_) => "savepoint",
        };
        f.debug_tuple("Transaction").field(&level).finish()
    }
}

/// One point in time of the database: all reads of it see the same state, whatever is committed meanwhile.
///
/// It holds a reader and its read transaction until it is dropped, for
/// [`Tuning::snapshot_age`](crate::options::Tuning::snapshot_age) at most, because it blocks a restart of the WAL. Its
/// operations are those of a [`Session`], without writes; they run one after the other. Several streams may be open at
/// once.
///
/// In a database with one connection ([`Stats::one_connection`](crate::stats::Stats::one_connection)) writes wait until the
/// snapshot ends, as for a transaction, and it ends if it is not used for
/// [`Tuning::transaction_idle`](crate::options::Tuning::transaction_idle).
#[must_use = "a snapshot ends when it is dropped"]
pub struct Snapshot {
    /// Dropped before the handle to the database.
    _guard: Guard,
    session: Session,
}

/// What ends the snapshot when it is dropped.
#[allow(dead_code, reason = "the drop of each is what counts")]
enum Guard {
    Reader(SnapshotGuard),
    Transaction(TransactionGuard),
}

impl Snapshot {
    fn new(caller: &Caller, answer: Answer) -> Result<Self> {
        let options = CallOptions { read_only: true, ..caller.options };
        let caller = Caller { options, ..caller.clone() };
        let (caller, guard) = match answer {
            Answer::Snapshot(guard) => (Caller { kept: Some(guard.at.clone()), ..caller }, Guard::Reader(guard)),
            answer => {
                let guard = answer.transaction()?;
                let inside = Arc::new(Inside { transaction: guard.0.clone(), savepoints: Vec::new() });
                (Caller { inside: Some(inside), ..caller }, Guard::Transaction(guard))
            }
        };
        Ok(Self { session: Session(caller), _guard: guard })
    }
}

/// Opens a snapshot.
pub(crate) fn snapshot(of: &Session) -> Call<Snapshot> {
    of.call("snapshot", Ok(work::snapshot()), |answer, caller| {
        caller.map(|caller| Snapshot::new(caller, answer)).unwrap_or_else(|| Err(Error::closed()))
    })
}

impl std::ops::Deref for Snapshot {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
opaque!(Snapshot);

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use crate::options::Inline;
    use crate::{Database, Options};

    /// Begins a transaction, uses and ends it, and returns once nothing keeps it any more.
    fn is_let_go_of(db: &Database, commits: bool) {
        let tx = db.begin().wait().unwrap();
        let of = Arc::downgrade(&tx.session.0.inside.as_ref().unwrap().transaction);
        tx.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
        if commits {
            tx.commit().wait().unwrap();
        } else {
            drop(tx);
        }
        let late = Instant::now() + Duration::from_secs(60);
        while of.upgrade().is_some() {
            assert!(Instant::now() < late, "something keeps it");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_transaction_that_the_writers_thread_has_served_is_let_go_of() {
        for inline in [Inline::Never, Inline::default()] {
            let db = Options::new(":memory:").tuning(|t| t.inline(inline)).open().wait().unwrap();
            db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
            for commits in [true, false, true] {
                is_let_go_of(&db, commits);
            }
        }
    }
}
