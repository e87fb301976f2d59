//! The PRAGMAs and switches that the options set, and their values; the hook that belongs to one of them.
//!
//! Owns: setting them on a connection, by its role. Runs on the thread that opens the connection. Invariant: a value depends
//! on the options and on the role only. Leaves out: the journal mode, attached files, and the caller's SQL (`settings`).

use flatwater_sqlite::{CAN_ENCRYPT, Sqlite};
use rusqlite::config::DbConfig;

use super::role::Role;
use crate::error::Result;
use crate::options::{Durability, Options, TempStore};

/// A commit that finds this many frames in the WAL of an attached file copies them, as SQLite does by default.
const ATTACHED_FRAMES: u16 = 1000;

/// Sets what the options set.
pub(crate) fn apply_pragmas(sqlite: &Sqlite, options: &Options, role: Role) -> Result<()> {
    double_quoted_strings(sqlite, options.double_quoted_strings)?;
    let synchronous = synchronous(options);
    let temp_store = temp_store(options, role != Role::Reader);
    let cache_size = cache_size(options, role.writes());
    Ok(sqlite.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = {}; PRAGMA temp_store = {temp_store};
         PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = {}; PRAGMA cache_size = {cache_size}; PRAGMA cache_spill = -{};",
        u8::from(options.foreign_keys),
        options.mmap_bytes,
        kib(options.spill_bytes),
    ))?)
}

/// Says whether a name in double quotes that names no column is a text. A definition of the file is read as it always was
/// when SQLite loads the schema, but a view or a trigger is compiled with the statement that uses it.
pub(crate) fn double_quoted_strings(sqlite: &Sqlite, on: bool) -> Result<()> {
    sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, on)?;
    in_definitions(sqlite, on)
}

/// The same for definitions alone. VACUUM, and what else copies tables, runs those of the file again.
pub(crate) fn in_definitions(sqlite: &Sqlite, on: bool) -> Result<()> {
    sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, on)?;
    Ok(())
}

/// Counts commits from now on. Called after `apply_pragmas`, which sets the hook of the autocheckpoint.
pub(crate) fn watch_wal(sqlite: &Sqlite, options: &Options) {
    sqlite.hooks().watch_wal(if options.attach.is_empty() { 0 } else { ATTACHED_FRAMES });
}

/// Returns the value of the PRAGMA for a connection that writes, or for a reader.
pub(crate) fn temp_store(options: &Options, writes: bool) -> i64 {
    match options.temp_store {
        // Temporary files are not encrypted.
        _ if options.key.is_some() => 2,
        // The default, which is memory in the builds of SQLCipher.
        // What it may grow to is not known.
        TempStore::Auto if options.untrusted => 1,
        TempStore::Auto if !writes && CAN_ENCRYPT => 1,
        TempStore::Auto if !writes => 0,
        TempStore::File => 1,
        TempStore::Auto | TempStore::Memory => 2,
    }
}

/// The same for the page cache, in KiB.
pub(crate) fn cache_size(options: &Options, writes: bool) -> i64 {
    let bytes = if writes { options.writer_cache_bytes } else { options.reader_cache_bytes };
    i64::try_from(kib(bytes)).map_or(i64::MIN, i64::wrapping_neg)
}

/// Returns how a commit is made durable, as the PRAGMA names it.
pub(crate) fn synchronous(options: &Options) -> &'static str {
    match options.durability {
        Durability::Normal => "NORMAL",
        Durability::Full => "FULL",
    }
}

/// SQLite's sizes in KiB are 32-bit numbers, of which it computes a number of pages that must be one too. The least is 1: 0
/// would mean something else.
pub(crate) fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024).clamp(1, i32::MAX as usize / 4)
}
