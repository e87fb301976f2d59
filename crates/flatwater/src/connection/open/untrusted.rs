//! What protects a connection from a file of strangers.
//!
//! Owns: the settings and the limits, and reading a schema again. Runs on the thread that opens the connection, before
//! anything of the file is read. Invariants: nothing in the file lifts one of them; SQL of the program may not either,
//! because it is refused where it sets what belongs to the connection; no function that was registered after a schema was
//! read is called by it. Leaves out: that the file is only read (`options::resolve`), and deadlines.
//!
//! SQLite decides whether a generated column, a CHECK or an index may call a function when it reads the schema
//! (`sqlite3ResolveExprNames`). One that does not exist by then is called unchecked when it does.
//!
//! See <https://sqlite.org/security.html>.

use flatwater_sqlite::Sqlite;
use rusqlite::TransactionState;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use crate::error::Result;
use crate::options::Options;

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
