//! The runners of other migration libraries on a Flatwater database, each through `Database::with_connection`: it lends
//! them the writer's whole connection, on which they begin and commit their own transactions.

use flatwater::rusqlite::Connection;
use flatwater::{Call, Database};
use rusqlite_migration::{M, Migrations};

/// An error of either library.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

mod embedded {
    refinery::embed_migrations!("migrations");
}

const STEPS: &[M<'_>] = &[
    M::up("CREATE TABLE friend (name TEXT NOT NULL, email TEXT);").down("DROP TABLE friend;"),
    M::up("ALTER TABLE friend ADD COLUMN birthday TEXT;").foreign_key_check(),
];

/// The steps for rusqlite_migration.
pub const MIGRATIONS: Migrations<'_> = Migrations::from_slice(STEPS);

/// Runs rusqlite_migration's runner, as its README does.
pub fn with_rusqlite_migration(db: &Database) -> Call<(), AnyError> {
    db.with_connection(|connection: &mut Connection| {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        Ok(MIGRATIONS.to_latest(connection)?)
    })
}

/// Runs refinery's runner with the files of the folder `migrations`. Returns how many it applied.
pub fn with_refinery(db: &Database) -> Call<usize, AnyError> {
    db.with_connection(|connection: &mut Connection| {
        let report = embedded::migrations::runner().run(connection)?;
        Ok(report.applied_migrations().len())
    })
}
