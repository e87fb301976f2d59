//! The whole connection for a closure of the user or for a migration, which may change anything of it.
//!
//! Owns: lending it, taking it back, what is checked afterwards, and bringing a connection that cannot be replaced back to its
//! settings. Runs on the thread that has the connection. Invariants: after `take_back` no transaction is open and no statement is in
//! the middle of its rows, whatever was left; a connection that a closure left changed is never used again, unless it cannot be
//! replaced: then it is repaired. Leaves out: closing and replacing the connection, which the writer does with every one that has a
//! file.

use flatwater_sqlite::Busy;
use rusqlite::config::DbConfig;

use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::connection::open::settings::{attach_one, attached_names, run_foreign_code, run_on_open};
use crate::connection::open::switches::{apply_pragmas, double_quoted_strings, protect, watch_wal};
use crate::options::Options;
use flatwater_base::error::Result;
use flatwater_sql::policy;
use flatwater_sql::tokens::quoted;

/// What was left on a connection.
pub(crate) struct Remains {
    /// A transaction was open. It is rolled back.
    pub(crate) transaction: bool,
    /// A commit may have failed and be in the WAL all the same.
    pub(crate) may_have_phantom: bool,
}

/// Runs `f` with rusqlite's whole connection. Returns the connection too, or `None` if `f` took it away.
pub(crate) fn lend<T>(
    mut connection: EngineConnection,
    f: impl FnOnce(&mut rusqlite::Connection) -> T,
) -> Result<(T, Option<EngineConnection>)> {
    let (result, sqlite) = connection.sqlite.lend(f)?;
    let Some(sqlite) = sqlite else { return Ok((result, None)) };
    connection.sqlite = sqlite;
    Ok((result, Some(connection)))
}

/// Makes it ours again: our handlers, no transaction, no statement in the middle of its rows.
pub(crate) fn take_back(connection: &mut EngineConnection, busy: Busy) -> Result<Remains> {
    let is_ours = restore_handlers(connection, busy);
    let may_have_phantom = !is_ours || connection.sqlite.hooks().commits.missed();
    let transaction = !connection.sqlite.handle().is_autocommit();
    repair(connection)?;
    Ok(Remains { transaction, may_have_phantom })
}

/// Applies the settings once more, detaches what no option attaches, and drops TEMP objects. For a database in
/// memory, which has no other connection. What SQLite cannot tell stays: functions, collations, limits, and PRAGMAs
/// that no option sets.
pub(crate) fn reset(connection: &mut EngineConnection, options: &Options) -> Result<()> {
    let attached = attached_names(&connection.sqlite)?;
    let is_option = |name: &str| options.attach.iter().any(|option| option.name.eq_ignore_ascii_case(name));
    for stranger in attached.iter().filter(|name| !is_option(name)) {
        connection.sqlite.rusqlite().execute("DETACH ?1", [stranger])?;
    }
    drop_temp_objects(connection)?;
    protect(&connection.sqlite, options)?;
    apply_pragmas(&connection.sqlite, options, Role::Writer)?;
    watch_wal(&connection.sqlite, options);
    let is_missing = |name: &str| !attached.iter().any(|there| there.eq_ignore_ascii_case(name));
    for missing in options.attach.iter().filter(|option| is_missing(&option.name)) {
        attach_one(&mut connection.sqlite, missing, options, Role::Writer)?;
    }
    run_foreign_code(&mut connection.sqlite, options, Role::Writer)?;
    connection.functions.forget();
    connection.catch_up()?;
    options.on_open.iter().try_for_each(|sql| run_on_open(&mut connection.sqlite, sql, options))
}

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
    let fkey = DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY;
    connection.sqlite.rusqlite().set_db_config(fkey, connection.foreign_keys)?;
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
