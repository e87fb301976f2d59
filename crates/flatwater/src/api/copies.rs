//! Copies of an open database (of its pages, of its rows, as bytes, with another key), and its own key.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: copying and encrypting (`connection::exclusive`), and opening
//! with a key (`options::key`).

use std::path::Path;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::session::Session;
use crate::connection::exclusive::copy::Copy;
use crate::connection::exclusive::page_copy::Target;
use crate::error::Result;
use crate::options::Key;
use crate::workers::work::{Exclusive, Work};

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
        backup(&self.session, path.as_ref())
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

pub(crate) fn backup(of: &Session, path: &Path) -> Call<()> {
    copy(of, "backup", Target::new(path).map(Copy::Pages))
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
