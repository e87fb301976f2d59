//! Care of a database that is open: giving space back, checkpoints, migrations, copies (of its pages, of its rows, as bytes, with
//! another key), and its own key.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: serving them, which the workers do, copying and encrypting
//! (`connection::exclusive`), and looking for damage (`integrity_check`).

use std::path::Path;

use flatwater_sqlite::{CheckpointInfo, CheckpointMode};

use crate::api::backup_call::BackupCall;
use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::session::Session;
use crate::connection::exclusive::copy::Copy;
use crate::connection::exclusive::copy_target::{Report, Target};
use crate::migrations::Migrations;
use crate::options::Key;
use crate::workers::Answer;
use crate::workers::work::{self, Exclusive, Work};
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::RunResult;

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

    /// Copies the database into a new file, which is the same database at the time of this call. Other
    /// connections read and write meanwhile, and do not wait for it.
    ///
    /// The pages are copied as they are, so the copy has the same rowids, application ID, user version, page size and
    /// journal mode. Attached files are not copied. The copy is written under another name beside `path`, which ends with
    /// `.partial`, and gets its name when it is complete and synced. Dropping the call, its deadline and a close end
    /// the backup and remove the partial file; only a process that is killed leaves it.
    ///
    /// The backup uses a connection beyond those of other reads ([`Tuning::extra_readers`](crate::options::Tuning::extra_readers)),
    /// and blocks a restart of the WAL while it runs, so [`Tuning::read_limit`](crate::options::Tuning::read_limit)
    /// ends it too. In a database with one connection (in memory, or in another journal mode than WAL) all calls wait
    /// for it.
    ///
    /// [`BackupCall::progress`] tells how far it is.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// db.backup("backups/app-2026-11-24.db").timeout(std::time::Duration::from_secs(600)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Misuse` if `path` exists, or a `-wal` or `-journal` of that name, or if `path` itself ends like that; `Open` if
    /// no file can be created there; `Full` if the disk of the copy is full; `Timeout`, `SnapshotTooOld`, `Io`,
    /// `Closed`. After an error `path` is as it was before.
    pub fn backup(&self, path: impl AsRef<Path>) -> BackupCall {
        BackupCall::new(|report| backup_reported(&self.session, path.as_ref(), report))
    }

    /// Writes a compact copy of the database into a new file: the rows as of one point in time, without free pages.
    ///
    /// It holds up what [`backup`](Self::backup) does, which is no read and no write of a file in WAL mode; its file
    /// gets its name in the same way, and it is ended by the same. It takes longer than a backup, because it inserts
    /// each row, and it needs the collations and functions that the indexes use. Like VACUUM it may change the rowids
    /// of tables that have no INTEGER PRIMARY KEY (<https://sqlite.org/lang_vacuum.html#how_vacuum_works>). The copy is
    /// not in WAL mode.
    ///
    /// # Errors
    /// As [`backup`](Self::backup), and `Sql` if a row cannot be inserted.
    pub fn vacuum_into(&self, path: impl AsRef<Path>) -> Call<()> {
        vacuum_into(&self.session, path.as_ref())
    }

    /// Returns the database as bytes, as of one point in time: those that a file with it would have, without a WAL.
    /// [`Tuning::deserialize`](crate::options::Tuning::deserialize) opens them, and so does any SQLite that finds them in a
    /// file.
    ///
    /// It holds up what [`backup`](Self::backup) does: nothing in WAL mode, and all other calls in a database with one
    /// connection. For a large database in a file use a backup: this needs up to three times its size in memory.
    ///
    /// # Errors
    /// `Misuse` for an encrypted database, whose bytes would be plain; `Full` if there is not enough memory; `Timeout`,
    /// `SnapshotTooOld`, `Io`, `Closed`.
    pub fn serialize(&self) -> Call<Vec<u8>> {
        serialize(&self.session)
    }

    /// Encrypts the database with another key, and goes on with it. Every page is written, so it takes as long as
    /// writing the file, and as much room again until it is done. Other calls wait for it. If the process is killed
    /// meanwhile, the file has one of both keys as a whole: try the new one, then the old one.
    ///
    /// No other connection may have the file open: the call waits for reads in progress and for other processes, up to
    /// [`Options::busy_timeout`](crate::Options::busy_timeout). Backups made before keep their key.
    ///
    /// Dropping the call ends that wait; once the pages are being written, nothing ends it. Whichever it was, the database
    /// goes on with the key that its file has. After a dropped call, [`has_key`](Self::has_key) tells which one that is.
    ///
    /// # Errors
    /// `Misuse` for a database without a key, with attached files, or for an empty key; `Busy` if the file stays in
    /// use; `Full`, `Io`, `Timeout`, `Closed`. After an error the database has its key as before.
    pub fn rekey(&self, key: Key) -> Call<()> {
        rekey(&self.session, key)
    }

    /// Returns true if the database has this key, after the changes of the key that were asked for before. So it tells what
    /// became of a [`rekey`](Self::rekey) whose call was dropped: it waits for it, and then the file has this key, or the one
    /// from before. False for a database without a key.
    ///
    /// It waits for its turn among the writes. Dropping the call has no effect.
    ///
    /// # Errors
    /// `Misuse` for an empty key, and without the feature `sqlcipher`; `Timeout`, `Closed`.
    pub fn has_key(&self, key: Key) -> Call<bool> {
        has_key(&self.session, key)
    }

    /// Copies the database into a new file that is encrypted with `key`, or into a plain one with `None`: to encrypt a
    /// database that exists, or to decrypt one. Like a [`backup`](Self::backup) it is of one moment, delays no other
    /// call, and the file gets its name when it is complete and synced.
    ///
    /// The copy has the same rows, rowids, application ID and user version, and the journal mode `delete`; opening it
    /// switches it to WAL. Its pages are packed, as after VACUUM. Needs the cargo feature `sqlcipher`. Indexes,
    /// generated columns and checks may call functions that [`on_connect`](crate::Options::on_connect) registers, but
    /// none that were registered later.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    /// use flatwater::options::Key;
    ///
    /// let plain = Options::new("app.db").open().await?;
    /// plain.export("app-encrypted.db", Some(Key::text("correct horse battery staple"))).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`backup`](Self::backup), and `Misuse` for a database in memory, for an empty key, and without the feature.
    pub fn export(&self, path: impl AsRef<Path>, key: Option<Key>) -> Call<()> {
        export(&self.session, path.as_ref(), key)
    }
}

pub(crate) fn vacuum(of: &Session) -> Call<()> {
    of.call("vacuum", of.0.text("VACUUM").map(|text| Exclusive::Vacuum(text).into()), |answer, _| answer.done())
}

pub(crate) fn checkpoint(of: &Session, mode: CheckpointMode) -> Call<CheckpointInfo> {
    of.call("checkpoint", Ok(work::checkpoint(mode)), |answer, _| answer.checkpointed())
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
    of.call("incremental_vacuum", of.0.bind_each(texts).map(Work::batch), |answer, _| pages_freed(answer))
}

/// Returns how many pages the work gave back.
fn pages_freed(answer: Answer) -> Result<u64> {
    let results = answer.batch()?;
    let number = |at: usize| results.get(at).map_or(Ok(0), first_number);
    if number(0)? == 0 {
        return Err(Error::new(
            ErrorCode::Unsupported,
            "the database was created without `auto_vacuum`, so its free pages stay in the file",
        )
        .with_hint(hint!["use " Vacuum ", or set " AutoVacuum " for a new file"])
        .in_operation("incremental_vacuum"));
    }
    Ok(number(1)?.saturating_sub(number(3)?))
}

fn first_number(result: &RunResult) -> Result<u64> {
    result.rows.as_ref().map_or(Ok(0), |rows| rows.read_value::<u64>())
}

pub(crate) fn backup(of: &Session, path: &Path) -> Call<()> {
    copy(of, "backup", Target::new(path).map(Copy::Pages))
}

/// The same, which reports how far it is.
pub(crate) fn backup_reported(of: &Session, path: &Path, report: Report) -> Call<()> {
    copy(of, "backup", Target::new(path).map(|target| Copy::Pages(target.reporting(report))))
}

pub(crate) fn vacuum_into(of: &Session, path: &Path) -> Call<()> {
    copy(of, "vacuum_into", Target::new(path).map(Copy::Compact))
}

pub(crate) fn export(of: &Session, path: &Path, key: Option<Key>) -> Call<()> {
    copy(of, "export", Target::with_key(path, key).map(Copy::Pages))
}

fn copy(of: &Session, operation: &'static str, copy: Result<Copy>) -> Call<()> {
    of.call(operation, copy.map(Work::from), |answer, _| answer.done())
}

pub(crate) fn serialize(of: &Session) -> Call<Vec<u8>> {
    of.call("serialize", Ok(Copy::Bytes.into()), |answer, _| answer.bytes())
}

pub(crate) fn rekey(of: &Session, key: Key) -> Call<()> {
    of.call("rekey", key.check().map(|()| Exclusive::Rekey(key).into()), |answer, _| answer.done())
}

pub(crate) fn has_key(of: &Session, key: Key) -> Call<bool> {
    of.call("has_key", key.check().map(|()| Exclusive::HasKey(key).into()), |answer, _| answer.flag())
}
