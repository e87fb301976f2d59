//! Opening a database: from its options to a handle.
//!
//! Owns: the call that opens. Its work runs on a thread of its own, or on the caller's if that may block. Invariant: if the
//! caller has left, the database is closed again. Leaves out: what opening does (`engine`).

use crate::call::{Call, Read};
use crate::database::Database;
use crate::engine::dispatch::Submitted;
use crate::engine::handle::{Handle, refuse_forked};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::workers::answer::Answer;
use crate::workers::request::Work;

impl Options {
    /// Opens the database on a separate thread, so the caller's thread does not block. A file that is already open in
    /// this process, by whatever path or link, is not opened a second time: the result is another handle to the same
    /// database. That handle may have fewer rights ([`read_only`](Self::read_only)).
    ///
    /// # Errors
    /// `Misuse` for options that cannot work (checked before anything is opened), for options that differ from those
    /// the file is already open with, and for a second SQLite library in this process that has the file open; `Open` if
    /// the path, the file or its directory cannot be used; `Busy` if another process keeps it locked; `Io` if the file
    /// was replaced while it was open.
    pub fn open(self) -> Call<Database> {
        self.open_as(|answer, _| answer.returned())
    }

    pub(crate) fn open_as<T>(self, read: Read<T, Error>) -> Call<T> {
        let start = move |may_block| {
            refuse_forked()?;
            // If the caller drops the call meanwhile, the database is dropped with the answer, which closes it.
            Submitted::blocking(may_block, || Ok(Answer::Returned(Box::new(open_migrated(self)), None)))
        };
        Call::starting(None, "open", Box::new(start), read)
    }
}

/// Opens the database and applies the migrations of its options. Blocks.
fn open_migrated(options: Options) -> Result<Database> {
    let migrations = options.migrations.clone();
    let db = Database::from_handle(Handle::open(options)?);
    if let Some(migrations) = migrations {
        let migrate: Call<Vec<String>> =
            db.operations.call("migrate", Ok(Work::Migrate(migrations)), |answer, _| answer.returned());
        migrate.wait()?;
    }
    Ok(db)
}
