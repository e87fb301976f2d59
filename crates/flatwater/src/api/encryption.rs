//! The key of an open database, and copies with another one.
//!
//! Owns: the calls. Runs on callers' threads. Leaves out: opening with a key (`options::key`), encrypting
//! (`connection::exclusive`).

use std::path::Path;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::connection::exclusive::copy::Copy;
use crate::connection::exclusive::page_copy::Target;
use crate::options::Key;
use crate::workers::work::Work;

impl Database {
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
        let work = key.check().map(|()| Work::Rekey(key));
        self.session.call("rekey", work, |answer, _| answer.done())
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
        let work = key.check().map(|()| Work::HasKey(key));
        self.session.call("has_key", work, |answer, _| answer.flag())
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
        let work = Target::with_key(path.as_ref(), key).map(|target| Work::Copy(Box::new(Copy::Pages(target))));
        self.session.call("export", work, |answer, _| answer.done())
    }
}
