//! The whole connection for a closure of the user or for a migration, which may change anything of it.
//!
//! Owns: lending it, taking it back, and bringing a connection that cannot be replaced back to its
//! settings. Runs on the thread that has the connection. Invariants: after `take_back` no transaction is open and no statement is in
//! the middle of its rows, whatever was left; a connection that a closure left changed is never used again, unless it cannot be
//! replaced: then it is repaired. Leaves out: what is checked and repaired (`repair`), and replacing the connection, which the writer
//! does with every one that has a file.

use flatwater_sqlite::Busy;

use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::connection::open::settings::{attach_one, attached_names, run_foreign_code, run_on_open};
use crate::connection::open::switches::{apply_pragmas, protect, watch_wal};
use crate::connection::repair::{drop_temp_objects, repair, restore_handlers};
use crate::options::Options;
use flatwater_base::error::Result;

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
