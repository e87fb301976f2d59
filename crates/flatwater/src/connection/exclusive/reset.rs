//! A connection after a closure of the user: checking it, and making it usable again.
//!
//! Owns: what is checked and what is restored. Runs on the thread that has the connection. Invariant: a connection that a
//! closure left changed is never used again, unless it cannot be replaced: then it is repaired. Leaves out: replacing it.

use flatwater_sqlite::{Busy, Sqlite};
use rusqlite::config::DbConfig;

use crate::connection::EngineConnection;
use crate::connection::open::pragmas::double_quoted_strings;
use crate::error::Result;
use crate::sql::policy;
use crate::sql::tokens::quoted;

/// Called right after a closure of the user, before anything else runs: restores our handlers, and returns true if
/// everything that can be checked is as it was.
pub(crate) fn restore_handlers(connection: &mut EngineConnection, busy: Busy) -> bool {
    connection.had_closure = true;
    connection.sqlite.hooks().authorizer.set_policy(policy::trusted);
    connection.sqlite.hooks().set_busy(Some(busy));
    let ours = connection.sqlite.restore_handlers();
    let as_before = |switch, on: bool| connection.sqlite.rusqlite().db_config(switch).is_ok_and(|now| now == on);
    ours && as_before(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, connection.foreign_keys)
        && as_before(DbConfig::SQLITE_DBCONFIG_DQS_DML, connection.double_quoted_strings)
        && as_before(DbConfig::SQLITE_DBCONFIG_DQS_DDL, connection.double_quoted_strings)
        && autocheckpoint(&connection.sqlite).is_ok_and(|pages| pages == 0)
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
    let fkey = DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY;
    connection.sqlite.rusqlite().set_db_config(fkey, connection.foreign_keys)?;
    double_quoted_strings(&connection.sqlite, connection.double_quoted_strings)
}

/// Drops the TEMP objects that a transaction made. Foreign keys are off meanwhile, because these tables may refer
/// to each other.
pub(crate) fn drop_temp_objects(connection: &EngineConnection) -> Result<()> {
    let sqlite = connection.sqlite.rusqlite();
    let names: Vec<(String, String)> = sqlite
        .prepare_cached("SELECT type, name FROM temp.sqlite_schema WHERE type <> 'index' AND name NOT GLOB 'sqlite_*'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
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

fn autocheckpoint(sqlite: &Sqlite) -> Result<i64> {
    Ok(sqlite.rusqlite().prepare_cached("PRAGMA wal_autocheckpoint")?.query_row([], |row| row.get(0))?)
}
