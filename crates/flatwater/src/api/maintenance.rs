//! Care of a database that is open: giving space back, checkpoints, migrations.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: serving them, which the workers do, copies (`copies`), and
//! looking for damage (`integrity_check`).

use flatwater_sqlite::{CheckpointInfo, CheckpointMode};

use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::session::Session;
use crate::error::hint::hint;
use crate::error::{Error, Result};
use crate::migrations::Migrations;
use crate::values::executed::BatchResult;
use crate::workers::Answer;
use crate::workers::work::{Exclusive, Work};

impl Database {
    /// Rebuilds the database without its free pages, and gives their space back to the file system
    /// (<https://sqlite.org/lang_vacuum.html>). The rowids of tables without an INTEGER PRIMARY KEY may change.
    ///
    /// It waits its turn among the writes, and holds the writer until it is done: later writes of this process wait in
    /// the queue, those of other processes for the lock. Reads, streams, snapshots and live queries continue in a file
    /// in WAL mode; each live query runs once again afterwards. In another journal mode, and in memory, reads wait too.
    /// It needs free space for the new database twice: in the directory of temporary files, and in the WAL, from which
    /// it is then copied into the file as far as readers allow. What they do not allow, a later checkpoint copies.
    ///
    /// If the call is dropped, or its deadline passes, before the commit, the vacuum is undone.
    ///
    /// # Errors
    /// `Full` if there is not enough space; `Busy` if another process keeps the lock; `Misuse` on a read-only handle;
    /// `Timeout`, `Io`, `Closed`; `CommitUnknown`. After an error the database is as it was.
    pub fn vacuum(&self) -> Call<()> {
        vacuum(&self.session)
    }

    /// Gives up to so many free pages back to the file system, 0 for all, and returns how many there were. The file
    /// gets shorter with the next checkpoint. For a database with
    /// [`AutoVacuum::Incremental`](crate::options::AutoVacuum::Incremental), which has a free page wherever rows were
    /// deleted.
    ///
    /// It is a write like others, and holds the writer for as long as moving that many pages takes. So a service calls
    /// it with a few hundred pages at a time.
    ///
    /// # Errors
    /// `Misuse` if the database has [`AutoVacuum::None`](crate::options::AutoVacuum::None); and as
    /// [`Session::execute`](crate::Session::execute).
    pub fn incremental_vacuum(&self, pages: u32) -> Call<u64> {
        incremental_vacuum(&self.session, pages)
    }

    /// Runs a checkpoint of the main database now, and returns how many frames its WAL has and how many of them are
    /// copied into the database (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>). You do not have to call this: see
    /// [`Checkpoint`](crate::options::Checkpoint).
    ///
    /// The checkpoint is queued among the writes, and later writes wait for it. If another checkpoint blocks it, or in
    /// all modes but [`Passive`](CheckpointMode::Passive) a reader or another process, it waits until
    /// [`Options::busy_timeout`](crate::Options::busy_timeout) or the deadline ends. In a journal mode other than WAL
    /// it returns 0 frames. In a file that has Litestream's tables a small commit may follow, so that Litestream notices what
    /// was copied while it was not running. If the call is dropped while it waits, the wait ends; frames that it has copied stay
    /// copied.
    ///
    /// # Errors
    /// `Busy` or `Timeout` if another checkpoint, a reader or another process blocked it for that long; `Misuse` on
    /// a read-only handle; `Io`, `Full`, `Closed`. After a failed sync, writes are refused until the database is opened
    /// again.
    pub fn checkpoint(&self, mode: CheckpointMode) -> Call<CheckpointInfo> {
        checkpoint(&self.session, mode)
    }

    /// Applies the migrations that the database does not have yet, in the order of their numbers, and returns the names
    /// of those that this call applied.
    ///
    /// Each migration runs in a transaction of its own, with BEGIN IMMEDIATE, together with a row in the table
    /// `_flatwater_migrations`. So each is applied once, even if several processes start at the same time. Other writes
    /// wait until all are applied.
    ///
    /// A migration whose first line begins with `-- no-transaction` runs outside of a transaction, for VACUUM and other
    /// statements that need this. Its statements are committed one by one, with foreign keys as the options say and
    /// without a check after it. Flatwater records it after its last statement. So it runs again from its start if it
    /// failed or its process died, and processes that start at the same time may all run it.
    ///
    /// Foreign keys are off while any other migration runs, so that tables can be rebuilt
    /// (<https://sqlite.org/lang_altertable.html#otheralter>); `PRAGMA foreign_keys` has no effect there. Afterwards
    /// Flatwater checks the tables with foreign keys, which reads all their rows
    /// ([`ForeignKeyCheck`](crate::calls::ForeignKeyCheck) can limit that). A migration fails if it adds a violation.
    ///
    /// If the database has sqlx's migration table and not Flatwater's, Flatwater copies sqlx's rows.
    ///
    /// Dropping the call, and the deadline of [`with_timeout`](Database::with_timeout), end a wait for locks, and roll
    /// back the migration that runs, until its commit begins; earlier ones stay applied.
    ///
    /// # Errors
    /// The error of the migration that failed, with its name, the line and the statement; earlier ones stay applied.
    /// `Constraint` if one leaves a row without its parent. `Misuse` for a migration that was changed after it was
    /// applied, for a database that is newer than the list ([`Migrations::ignore_missing`]), and for a list that is not
    /// in order. `Busy` or `Timeout` if another process keeps the write lock; `Full`, `Io`, `Closed`, `CommitUnknown`.
    pub fn migrate(&self, migrations: impl Into<Migrations>) -> Call<Vec<String>> {
        migrate(&self.session, migrations.into())
    }
}

pub(crate) fn vacuum(of: &Session) -> Call<()> {
    of.call("vacuum", of.0.text("VACUUM").map(|text| Exclusive::Vacuum(text).into()), |answer, _| answer.done())
}

pub(crate) fn checkpoint(of: &Session, mode: CheckpointMode) -> Call<CheckpointInfo> {
    of.call("checkpoint", Ok(Work::Checkpoint(mode)), |answer, _| answer.checkpointed())
}

/// Applies the migrations that the database does not have yet.
pub fn migrate(of: &Session, migrations: Migrations) -> Call<Vec<String>> {
    of.call("migrate", Ok(Exclusive::Migrate(migrations).into()), |answer, _| answer.returned())
}

pub(crate) fn incremental_vacuum(of: &Session, pages: u32) -> Call<u64> {
    let pages = pages.min(i32::MAX as u32);
    let vacuum = format!("PRAGMA main.incremental_vacuum({pages})");
    let free = "PRAGMA main.freelist_count";
    let texts = ["PRAGMA main.auto_vacuum", free, &vacuum, free].map(|sql| (sql, ()));
    of.call("incremental_vacuum", of.0.bind_each(texts).map(Work::Batch), |answer, _| pages_freed(answer))
}

/// Returns how many pages the work gave back.
fn pages_freed(answer: Answer) -> Result<u64> {
    let results = answer.batch()?;
    let number = |at: usize| results.get(at).map_or(Ok(0), first_number);
    if number(0)? == 0 {
        return Err(Error::misuse(
            "the database was created without `auto_vacuum`, so its free pages stay in the file",
        )
        .with_hint(hint!["use " Vacuum ", or set " AutoVacuum " for a new file"])
        .in_operation("incremental_vacuum"));
    }
    Ok(number(1)?.saturating_sub(number(3)?))
}

fn first_number(result: &BatchResult) -> Result<u64> {
    result.rows.as_ref().map_or(Ok(0), |rows| rows.read_value::<u64>())
}
