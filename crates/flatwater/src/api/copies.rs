//! Copies of an open database that are no backups of its pages.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: copying (`connection::exclusive::copies`).

use std::path::Path;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::connection::exclusive::copies::Copy;
use crate::connection::exclusive::page_copy::Target;
use crate::workers::work::Work;

impl Database {
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
    /// `Full` if there is not enough memory; `Timeout`, `SnapshotTooOld`, `Io`, `Closed`.
    pub fn serialize(&self) -> Call<Vec<u8>> {
        let work = Work::Copy(Box::new(Copy::Bytes));
        self.session.call("serialize", Ok(work), |answer, _| answer.bytes())
    }
}
