//! The PRAGMAs, switches and limits that the options set, and their values; among them what protects a connection from a file of
//! strangers.
//!
//! Owns: setting them on a connection, by its role, the hook that belongs to one of them, and reading a schema again. Runs on the thread
//! that opens the connection; what protects it is set before anything of the file is read. Invariants: a value depends on the options
//! and on the role only; nothing in the file lifts what protects; SQL of the program may not either, because it is refused where it
//! sets what belongs to the connection; no function that was registered after a schema was read is called by it. Leaves out: the
//! journal mode, attached files, and the caller's SQL (`settings`); that a file is only read (`options::resolve`), and deadlines.
//!
//! SQLite decides whether a generated column, a CHECK or an index may call a function when it reads the schema
//! (`sqlite3ResolveExprNames`). One that does not exist by then is called unchecked when it does.
//!
//! See <https://sqlite.org/security.html>.

use flatwater_sqlite::{CAN_ENCRYPT, Sqlite};
use rusqlite::TransactionState;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use super::Role;
use crate::options::{Durability, Options, TempStore};
use flatwater_base::error::Result;

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

/// The limits of SQLite, most of which are far above what a schema needs. That of parameters is not among them: only
/// the texts of the program have any.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 16 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_COLUMN, 500),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
];

/// Sets what the options say.
pub(crate) fn protect(sqlite: &Sqlite, options: &Options) -> Result<()> {
    if let Some(steps) = options.step_limit {
        sqlite.hooks().interrupts.limit_steps(steps);
    }
    if let Some(bytes) = options.memory_limit {
        sqlite.hooks().interrupts.limit_memory(bytes);
    }
    if !options.untrusted {
        return Ok(());
    }
    let connection = sqlite.rusqlite();
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    for (limit, most) in LIMITS {
        connection.set_limit(*limit, *most)?;
    }
    // One more than the options attach, for VACUUM.
    let attached = i32::try_from(options.attach.len()).unwrap_or(i32::MAX).saturating_add(1);
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, attached)?;
    Ok(sqlite.execute_batch("PRAGMA cell_size_check = ON")?)
}

/// Makes the connection read its schemas again, because functions were registered. Neither a statement may be in the
/// middle of its rows, nor a transaction that writes be open: SQLite would forget that it has changed the schema.
pub(crate) fn read_schemas_again(sqlite: &Sqlite) -> Result<()> {
    sqlite.execute_batch("PRAGMA writable_schema = RESET")?;
    Ok(sqlite.patiently_with(|sqlite| sqlite.execute_batch("SELECT 1 FROM main.sqlite_schema LIMIT 1"))?)
}

/// Returns true if that may be done now.
pub(crate) fn may_read_again(sqlite: &Sqlite) -> bool {
    let writes =
        || sqlite.rusqlite().transaction_state::<&str>(None).is_ok_and(|state| state == TransactionState::Write);
    !sqlite.handle().has_busy_statement() && !writes()
}

/// Returns true if the schemas may call what may have effects.
pub(crate) fn trusts_schemas(sqlite: &Sqlite) -> bool {
    sqlite.rusqlite().db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA).unwrap_or(false)
}
