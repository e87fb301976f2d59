//! Encrypting a file with another key.
//!
//! Owns: the connection that does it, and finding out what became of it. Runs on the thread that holds the slot, and
//! blocks it: every page is read, written and synced, and nothing ends that. Invariants: no other connection has the
//! file open, here or in another process; the file is encrypted with one of both keys as a whole, whenever the process
//! is killed. Leaves out: closing the connections of this process (`workers::writer`).
//!
//! A connection with the old key cannot read a page that was written with the new one, so there may be no other. SQLite
//! makes sure of that: it lets a file leave WAL mode only if it has the file for itself. What undoes the change after a
//! kill is then the rollback journal, with the pages as they were before.

use flatwater_sqlite::{Cipher, Sqlite};

use crate::connection::open::encryption::open_alone;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Key, Options};

const SCHEMA: &str = "SELECT count(*) FROM main.sqlite_schema";

/// Encrypts the file with `new`. `Busy` if another connection has it open.
pub(crate) fn change_key(options: &Options, old: &Key, new: &Key) -> Result<()> {
    let open = |key| open_alone(&options.path, Some(key), options.vfs.as_deref());
    let sqlite = open(old)?;
    let journal = mode(&sqlite, "PRAGMA main.journal_mode")?;
    let is_wal = journal.eq_ignore_ascii_case("wal");
    if is_wal {
        mode(&sqlite, "PRAGMA main.journal_mode = delete")?;
    }
    let key = new.of_file(&options.path)?;
    let changed = Cipher::of(&sqlite).change_key(key.bytes()).map_err(Error::from);
    drop(sqlite);
    // SQLCipher does not say whether the commit failed.
    let (now, changed) = match open(new).and_then(read) {
        Ok(sqlite) => (Ok(sqlite), Ok(())),
        Err(_) => (open(old).and_then(read), changed.and(Err(not_committed()))),
    };
    if is_wal {
        mode(&now?, "PRAGMA main.journal_mode = wal")?;
    }
    changed
}

/// Returns the mode that the PRAGMA returns.
fn mode(sqlite: &Sqlite, pragma: &str) -> Result<String> {
    Ok(sqlite.rusqlite().query_row(pragma, [], |row| row.get(0))?)
}

fn read(sqlite: Sqlite) -> Result<Sqlite> {
    sqlite.rusqlite().query_row(SCHEMA, [], |_| Ok(()))?;
    Ok(sqlite)
}

#[cold]
fn not_committed() -> Error {
    Error::new(ErrorKind::Io, "the change of the key could not be committed, and the file has its key as before")
        .with_hint(
            "check the disk of the database, and the room on it: each page is written, and so is what undoes that",
        )
}
