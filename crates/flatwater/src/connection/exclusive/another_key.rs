//! A database with another key: encrypting its file anew, and copying it into a file with another key, or without one.
//!
//! Owns: the connections that do it, finding out what became of a change of the key, and what of a database is not in its tables.
//! Runs on the thread that holds the slot, or that copies, and blocks it; nothing ends a change of the key, for which every page is
//! read, written and synced. Invariants: while the key is changed no other connection has the file open, here or in another process,
//! and it is encrypted with one of both keys as a whole, whenever the process is killed; all rows of a copy are of one commit. Leaves
//! out: closing the connections of this process (`workers::writer`), the file of a copy until it is complete, and its name
//! (`copy_target`).
//!
//! A connection with the old key cannot read a page that was written with the new one, so there may be no other. SQLite
//! makes sure of that: it lets a file leave WAL mode only if it has the file for itself. What undoes the change after a
//! kill is then the rollback journal, with the pages as they were before. SQLite copies no pages between a plain and an encrypted
//! file (`sqlite3_backup_init`), so SQLCipher copies the tables, with their rowids, as VACUUM does (`sqlcipher_exportFunc`).

use std::path::Path;
use std::sync::Arc;

use flatwater_sqlite::{Cipher, Interrupt, Sqlite};
use rusqlite::config::DbConfig;

use crate::connection::open::Role;
use crate::connection::open::encryption::{self, open_alone};
use crate::connection::open::settings::run_foreign_code;
use crate::connection::open::switches::in_definitions;
use crate::options::uri::{self, Mode};
use crate::options::{Attached, Key, Options};
use flatwater_base::error::{Error, ErrorCode, Result};

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
    let not_committed = "the change of the key could not be committed, and the file has its key as before";
    let not_committed = Error::new(ErrorCode::System, not_committed).with_hint(
        "check the disk of the database, and the room on it: each page is written, and so is what undoes that",
    );
    // SQLCipher does not say whether the commit failed.
    let (now, changed) = match open(new).and_then(read) {
        Ok(sqlite) => (Ok(sqlite), Ok(())),
        Err(_) => (open(old).and_then(read), changed.and(Err(not_committed))),
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

/// What is asked of the database, and set in the copy before its first page is written.
const FIRST: [&str; 3] = ["encoding", "auto_vacuum", "page_size"];
/// The same for when the tables are there.
const LAST: [&str; 2] = ["user_version", "application_id"];

/// Copies the file of `options`, which `source` has open, into the empty file `to`.
pub(super) fn export(
    source: &rusqlite::Connection,
    options: &Options,
    key: Option<&Key>,
    to: &Path,
    ends: &Arc<dyn Interrupt>,
) -> Result<()> {
    if options.is_memory() {
        return Err(Error::new(ErrorCode::Unsupported, "a database in memory has no file to export")
            .with_hint("make a backup, and export that"));
    }
    let mut copy = encryption::open_alone(to, key, options.vfs.as_deref())?;
    copy.hooks().interrupts.arm(ends.clone());
    copy.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, !options.untrusted)?;
    // Indexes may need functions that it registers.
    run_foreign_code(&mut copy, options, Role::Reader)?;
    in_definitions(&copy, true)?;
    // A file that is not whole is removed, so nothing has to be undone in it.
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY")?;
    // The pages of an encrypted file have their own size.
    let first = if key.is_some() { &FIRST[..2] } else { &FIRST[..] };
    take_over(source, &copy, first)?;
    let mode = Some(Mode::ReadOnly);
    let place = uri::write(&options.path, mode, options.assume_immutable);
    let attached =
        Attached { name: "source".into(), path: options.path.clone(), mode, immutable: options.assume_immutable };
    encryption::attach(&mut copy, &attached, &place, options)?;
    copy.patiently_with(|copy| copy.execute_batch("BEGIN; SELECT count(*) FROM source.sqlite_schema"))?;
    copy.rusqlite().query_row("SELECT sqlcipher_export('main', 'source')", [], |_| Ok(()))?;
    take_over(source, &copy, &LAST)?;
    Ok(copy.execute_batch("COMMIT")?)
}

/// Sets what these PRAGMAs say of the database in the copy.
fn take_over(source: &rusqlite::Connection, copy: &Sqlite, names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|name| {
        let value: rusqlite::types::Value = source.query_row(&format!("PRAGMA main.{name}"), [], |row| row.get(0))?;
        Ok(copy.rusqlite().pragma_update(Some("main"), name, value)?)
    })
}
