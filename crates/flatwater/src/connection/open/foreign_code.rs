//! The extensions and the closures of the user on a connection that was just opened.
//!
//! Owns: running them, and making the connection ours again. Runs on the thread that opens the connection, which may block.
//! Invariants: after them the hooks, the handlers and the settings are ours, no transaction is open, and no statement is in
//! the middle of its rows; a connection with which one failed is not used. Leaves out: when they run (`settings`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use flatwater_sqlite::Sqlite;

use super::keep_wal_at_close;
use super::pragmas::{apply_pragmas, watch_wal};
use super::role::Role;
use super::untrusted::read_schemas_again;
use crate::error::cause::panicked;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sql::policy;
use crate::thread::current::mark_closure;

/// Runs them on a connection that has its settings, and applies these again.
pub(crate) fn run_foreign_code(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<()> {
    if !options.has_foreign_code() {
        return Ok(());
    }
    for extension in &options.load_extension {
        let load = |sqlite: &Sqlite| Ok(sqlite.load_extension(&extension.path, extension.entry.as_deref())?);
        run(sqlite, load).map_err(|error| {
            let message = format!("the extension {} cannot be loaded: {}", extension.path.display(), error.message());
            error.with_kind(ErrorKind::Open).with_message(message).in_operation("open")
        })?;
    }
    for closure in &options.on_connect {
        run(sqlite, |sqlite| Ok(closure.run(sqlite.rusqlite())?)).map_err(|error| {
            let message = format!("`on_connect` failed: {}", error.message());
            error.with_message(message).in_operation("open")
        })?;
    }
    keep_wal_at_close(sqlite, true)?;
    apply_pragmas(sqlite, options, role)?;
    watch_wal(sqlite, options);
    Ok(())
}

/// Runs foreign code, and checks what it leaves.
fn run(sqlite: &mut Sqlite, code: impl FnOnce(&Sqlite) -> Result<()>) -> Result<()> {
    let before = sqlite.hooks().authorizer.set_policy(policy::on_connect);
    let _earlier = sqlite.hooks().authorizer.take_denied();
    let ran = catch_unwind(AssertUnwindSafe(|| mark_closure(|| code(sqlite))));
    let denied = sqlite.hooks().authorizer.take_denied();
    let is_ours = sqlite.restore_handlers();
    sqlite.hooks().authorizer.set_policy(before);
    match ran.unwrap_or_else(|panic| Err(panicked(&*panic))) {
        Ok(()) => check(sqlite, is_ours).and_then(|()| read_schemas_again(sqlite)),
        // The initialisation of an extension has no code, but passes SQLite's message on.
        Err(error) => Err(match denied {
            Some(event) if error.message().contains("not authorized") => policy::refusal(&event, None),
            _ => error,
        }),
    }
}

/// Refuses what may not be left behind.
fn check(sqlite: &Sqlite, is_ours: bool) -> Result<()> {
    if !is_ours {
        return Err(Error::misuse(
            "it replaced the commit hook, the rollback hook, the update hook or the authorizer, which Flatwater needs",
        ));
    }
    if !sqlite.handle().is_autocommit() || sqlite.handle().has_busy_statement() {
        return Err(Error::misuse("it left a transaction open, or a statement in the middle of its rows"));
    }
    Ok(())
}
