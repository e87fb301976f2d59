//! What protects a connection from a file of strangers.
//!
//! Owns: the settings and the limits. Runs on the thread that opens the connection, before anything of the file is
//! read. Invariant: nothing in the file lifts one of them; SQL of the program may not either, because it is refused
//! where it sets what belongs to the connection. Leaves out: that the file is only read (`options::resolve`), and
//! deadlines.
//!
//! See <https://sqlite.org/security.html>.

use flatwater_sqlite::Connection as Sqlite;
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
