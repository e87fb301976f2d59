//! Migrations on a server.
//!
//! Owns: the history, and applying what it does not have. Runs as a task on the thread of the connection to the server, by calls of a session. Invariant: a migration and
//! its row of the history are one request, and the row comes first, so of several programs that start together one applies each.
//! Leaves out: which migration is next, which is decided as for a file.

use flatwater::bindings::server::{AppliedMigration, NextMigration, error, next_migration};
use flatwater::bindings::statements;
use flatwater::{Error, ErrorKind, Migrations, Params, Result, Session, params};

use crate::clock::seconds;

/// As in a file, but that the time of a row is given.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS _flatwater_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum BLOB NOT NULL,
    applied_at TEXT NOT NULL
) STRICT";
const ADD: &str = "INSERT INTO _flatwater_migrations (version, name, checksum, applied_at)
    VALUES (?, ?, ?, datetime(?, 'unixepoch'))";
const EXISTS: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '_flatwater_migrations'";
const HISTORY: &str = "SELECT version, name, checksum FROM _flatwater_migrations ORDER BY version";

/// Applies what the database does not have yet, by calls of `on`, whose reads must be the newest. Returns the names.
pub(crate) async fn migrate(on: &Session, migrations: &Migrations) -> Result<Vec<String>> {
    let mut done = Vec::new();
    loop {
        let Some(step) = next_migration(migrations, history(on).await?)? else { return Ok(done) };
        match apply(on, &step).await {
            Ok(()) => done.push(step.name.to_owned()),
            // Another program has applied it.
            Err(error) if is_there(&error) => {}
            Err(error) => return Err(step.explain(error)),
        }
    }
}

async fn history(on: &Session) -> Result<Vec<AppliedMigration>> {
    match on.query_value::<i64>(EXISTS, ()).await? {
        0 => Ok(Vec::new()),
        _ => on.query_as(HISTORY, ()).await,
    }
}

async fn apply(on: &Session, step: &NextMigration<'_>) -> Result<()> {
    if !step.in_transaction {
        let hint = "a server runs each migration in a transaction: write it without `-- no-transaction`";
        return Err(error(ErrorKind::Misuse, "it must run outside of a transaction".into(), hint));
    }
    let row = params![step.version, step.name, step.checksum, seconds()]?;
    let own = [(CREATE, Params::default()), (ADD, row)];
    let theirs = statements(step.sql).map(|(sql, _, _)| (sql, Params::default()));
    on.batch(own.into_iter().chain(theirs)).await.map(drop)
}

/// Returns true for the row of a migration that the history has by now.
fn is_there(error: &Error) -> bool {
    error.kind() == ErrorKind::Constraint && error.message().contains("_flatwater_migrations.version")
}
