//! Copies of an open database: of its pages, of its rows, and as bytes.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: copying (`connection::exclusive::copy`).

use std::path::Path;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::connection::exclusive::copy::Copy;
use crate::connection::exclusive::page_copy::Target;
use crate::workers::work::Work;

impl Database {
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
    pub fn backup(&self, path: impl AsRef<Path>) -> Call<()> {
        let work = Target::new(path.as_ref()).map(|target| Work::Copy(Box::new(Copy::Pages(target))));
        self.session.call("backup", work, |answer, _| answer.done())
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
        let work = Target::new(path.as_ref()).map(|target| Work::Copy(Box::new(Copy::Compact(target))));
        self.session.call("vacuum_into", work, |answer, _| answer.done())
    }

    /// Returns the database as bytes, as of one point in time: those that a file with it would have, without a WAL.
    /// [`Options::deserialize`](crate::Options::deserialize) opens them, and so does any SQLite that finds them in a
    /// file.
    ///
    /// It holds up what [`backup`](Self::backup) does: nothing in WAL mode, and all other calls in a database with one
    /// connection. For a large database in a file use a backup: this needs up to three times its size in memory.
    ///
    /// # Errors
    /// `Misuse` for an encrypted database, whose bytes would be plain; `Full` if there is not enough memory; `Timeout`,
    /// `SnapshotTooOld`, `Io`, `Closed`.
    pub fn serialize(&self) -> Call<Vec<u8>> {
        let work = Work::Copy(Box::new(Copy::Bytes));
        self.session.call("serialize", Ok(work), |answer, _| answer.bytes())
    }
}
