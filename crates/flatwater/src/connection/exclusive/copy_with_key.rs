//! Copying a database into a file with another key, or without one.
//!
//! Owns: the connection to that file, and what of a database is not in its tables. Runs on the thread that copies, and
//! blocks it. SQLite copies no pages between a plain and an encrypted file (`sqlite3_backup_init`), so SQLCipher copies
//! the tables, with their rowids, as VACUUM does (`sqlcipher_exportFunc`). Invariant: all rows are of one commit.
//! Leaves out: the file until it is whole, and its name (`page_copy`).

use std::path::Path;
use std::sync::Arc;

use flatwater_sqlite::{Interrupt, Sqlite};
use rusqlite::config::DbConfig;

use crate::connection::open::encryption;
use crate::connection::open::foreign_code::run_foreign_code;
use crate::connection::open::pragmas::in_definitions;
use crate::connection::open::role::Role;
use crate::error::{Error, Result};
use crate::options::uri::{self, Mode};
use crate::options::{Attached, Key, Options};

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
        return Err(
            Error::misuse("a database in memory has no file to export").with_hint("make a backup, and export that")
        );
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
    let place = uri::write(&options.path, mode, options.immutable);
    let attached = Attached { name: "source".into(), path: options.path.clone(), mode, immutable: options.immutable };
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
