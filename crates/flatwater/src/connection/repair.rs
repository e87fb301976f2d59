//! Making a connection the engine's again, after code of the program had it or a commit of it failed.
//!
//! Owns: the engine's handlers and switches on it, what is checked of them, and what is dropped. Runs on the thread that has the
//! connection. Invariant: what cannot be checked is not trusted, so a connection that may be another than before is replaced, or
//! repaired where it cannot be. Leaves out: lending the connection (`exclusive::lend`), and replacing it, which who has it does.

use flatwater_sqlite::{Busy, Policy};
use rusqlite::config::DbConfig;

use crate::connection::EngineConnection;
use crate::connection::open::switches::double_quoted_strings;
use flatwater_base::error::Result;
use flatwater_sql::policy;
use flatwater_sql::tokens::quoted;

/// Called right after a closure of the user, before anything else runs: restores our handlers, and returns true if
/// everything that can be checked is as it was.
pub(crate) fn restore_handlers(connection: &mut EngineConnection, busy: Busy) -> bool {
    connection.had_closure = true;
    connection.sqlite.hooks().authorizer.set_policy(policy::trusted);
    connection.sqlite.hooks().set_busy(Some(busy));
    let ours = connection.sqlite.restore_handlers();
    let is_zero = |mut pragma: rusqlite::CachedStatement<'_>| {
        pragma.query_row([], |row| row.get(0)).is_ok_and(|pages: i64| pages == 0)
    };
    let as_before = |switch, on: bool| connection.sqlite.rusqlite().db_config(switch).is_ok_and(|now| now == on);
    ours && as_before(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, connection.foreign_keys)
        && as_before(DbConfig::SQLITE_DBCONFIG_DQS_DML, connection.double_quoted_strings)
        && as_before(DbConfig::SQLITE_DBCONFIG_DQS_DDL, connection.double_quoted_strings)
        && connection.sqlite.rusqlite().prepare_cached("PRAGMA wal_autocheckpoint").is_ok_and(is_zero)
}

/// Returns true if no transaction is open and no statement is in the middle of its rows.
pub(crate) fn is_idle(connection: &EngineConnection) -> bool {
    connection.sqlite.handle().is_autocommit() && !connection.sqlite.handle().has_busy_statement()
}

/// Makes a connection usable again that cannot be replaced.
pub(crate) fn repair(connection: &mut EngineConnection) -> Result<()> {
    connection.sqlite.repair()?;
    connection.sqlite.execute_batch("PRAGMA query_only = OFF")?;
    connection.statements.clear(&mut connection.sqlite);
    connection.sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, connection.foreign_keys)?;
    double_quoted_strings(&connection.sqlite, connection.double_quoted_strings)
}

/// Drops the TEMP objects that a transaction made. Foreign keys are off meanwhile, because these tables may refer
/// to each other.
pub(crate) fn drop_temp_objects(connection: &EngineConnection) -> Result<()> {
    let sqlite = connection.sqlite.rusqlite();
    let objects = "SELECT type, name FROM temp.sqlite_schema WHERE type <> 'index' AND name NOT GLOB 'sqlite_*'";
    let mut objects = sqlite.prepare_cached(objects)?;
    let names = objects.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let names: Vec<(String, String)> = names.collect::<rusqlite::Result<_>>()?;
    if names.is_empty() {
        return Ok(());
    }
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    // A trigger is dropped with its table, if that is a TEMP table too.
    let dropped = names
        .iter()
        .try_for_each(|(kind, name)| sqlite.execute_batch(&format!("DROP {kind} IF EXISTS temp.{}", quoted(name))));
    sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, connection.foreign_keys)?;
    Ok(dropped?)
}

/// Returns what a caller may do on the connection who has it for itself.
pub(crate) fn exclusive_policy(connection: &EngineConnection) -> Policy {
    let keeps_journal = !matches!(&*connection.journal, "wal" | "memory");
    if keeps_journal { policy::exclusive_keeping_journal } else { policy::exclusive_connection }
}
