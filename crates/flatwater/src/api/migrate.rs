//! Applying migrations to an open database.
//!
//! Owns: the call. Runs on callers' threads. Leaves out: what the writer does (`workers::exclusive::migration`).

use crate::api::call::Call;
use crate::api::database::Database;
use crate::migrations::Migrations;
use crate::workers::work::Work;

impl Database {
    /// Applies the migrations that the database does not have yet, in the order of their numbers, and returns the names
    /// of those that this call applied.
    ///
    /// Each migration runs in a transaction of its own, with BEGIN IMMEDIATE, together with a row in the table
    /// `_flatwater_migrations`. So each is applied once, even if several processes start at the same time. Other writes
    /// wait until all are applied.
    ///
    /// A migration whose first line begins with `-- no-transaction` runs outside of a transaction, for VACUUM and other
    /// statements that need this. Its statements are committed one by one, with foreign keys as the options say and
    /// without a check after it. Flatwater records it after its last statement. So it runs again from its start if it
    /// failed or its process died, and processes that start at the same time may all run it.
    ///
    /// Foreign keys are off while any other migration runs, so that tables can be rebuilt
    /// (<https://sqlite.org/lang_altertable.html#otheralter>); `PRAGMA foreign_keys` has no effect there. Afterwards
    /// Flatwater checks the tables with foreign keys, which reads all their rows
    /// ([`ForeignKeyCheck`](crate::calls::ForeignKeyCheck) can limit that). A migration fails if it adds a violation.
    ///
    /// If the database has sqlx's migration table and not Flatwater's, Flatwater copies sqlx's rows.
    ///
    /// Dropping the call, and the deadline of [`with_timeout`](Database::with_timeout), end a wait for locks, and roll
    /// back the migration that runs, until its commit begins; earlier ones stay applied.
    ///
    /// # Errors
    /// The error of the migration that failed, with its name, the line and the statement; earlier ones stay applied.
    /// `Constraint` if one leaves a row without its parent. `Misuse` for a migration that was changed after it was
    /// applied, for a database that is newer than the list ([`Migrations::ignore_missing`]), and for a list that is not
    /// in order. `Busy` or `Timeout` if another process keeps the write lock; `Full`, `Io`, `Closed`, `CommitUnknown`.
    pub fn migrate(&self, migrations: impl Into<Migrations>) -> Call<Vec<String>> {
        self.session.call("migrate", Ok(Work::Migrate(migrations.into())), |answer, _| answer.returned())
    }
}
