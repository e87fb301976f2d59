//! Migrations on a cluster.
//!
//! Owns: the history, and applying what it does not have. Runs on the caller's task, by calls of the session. Invariant: a migration and
//! its row of the history are one request, and the row comes first, so of several programs that start together one applies each.
//! Leaves out: which migration is next, which is decided as for a file.

use flatwater::bindings::server::{AppliedMigration, NextMigration, error, next_migration};
use flatwater::bindings::statements;
use flatwater::{Error, ErrorKind, Migrations, Params, Result, params};

use crate::clock::seconds;
use crate::options::Level;
use crate::remote::Remote;

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

impl Remote {
    /// Applies the migrations that the database does not have yet, in the order of their numbers, and returns the names of those
    /// that this call applied. The history is that of [`Database::migrate`](flatwater::Database::migrate), so a database that was moved
    /// to a cluster goes on with it.
    ///
    /// Each migration is one request, all or nothing, together with its row of the history. So each is applied once, even if several
    /// programs start at the same time. Foreign keys are as the server was started with: a migration that rebuilds a table to
    /// which others refer needs a server without `-fk`.
    ///
    /// Dropping the future leaves the migration that was sent to be finished, and begins no other.
    ///
    /// # Errors
    /// The error of the migration that failed, with its name; earlier ones stay applied. `Misuse` for a migration that was changed
    /// after it was applied, for a database that is newer than the list, for a list that is not in order, and for one that must
    /// run outside of a transaction, which the server does not do; and the errors of writes.
    pub async fn migrate(&self, migrations: impl Into<Migrations>) -> Result<Vec<String>> {
        let migrations = migrations.into();
        let mut done = Vec::new();
        loop {
            let history = self.history().await?;
            let Some(step) = next_migration(&migrations, history)? else { return Ok(done) };
            match self.apply(&step).await {
                Ok(()) => done.push(step.name.to_owned()),
                // Another program has applied it.
                Err(error) if is_there(&error) => {}
                Err(error) => return Err(step.explain(error)),
            }
        }
    }

    async fn history(&self) -> Result<Vec<AppliedMigration>> {
        let newest = self.with_level(Level::Linearizable);
        match newest.query_value::<i64>(EXISTS, ()).await? {
            0 => Ok(Vec::new()),
            _ => newest.query_as(HISTORY, ()).await,
        }
    }

    async fn apply(&self, step: &NextMigration<'_>) -> Result<()> {
        if !step.in_transaction {
            let hint = "a cluster runs each migration in a transaction: write it without `-- no-transaction`";
            return Err(error(ErrorKind::Misuse, "it must run outside of a transaction".into(), hint));
        }
        let row = params![step.version, step.name, step.checksum, seconds()]?;
        let own = [(CREATE, Params::default()), (ADD, row)];
        let theirs = statements(step.sql).map(|(sql, _, _)| (sql, Params::default()));
        self.batch(own.into_iter().chain(theirs)).await.map(drop)
    }
}

/// Returns true for the row of a migration that the history has by now.
fn is_there(error: &Error) -> bool {
    error.kind() == ErrorKind::Constraint && error.message().contains("_flatwater_migrations.version")
}
