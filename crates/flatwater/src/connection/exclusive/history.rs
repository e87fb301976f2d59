//! The history of migrations: the table `_flatwater_migrations` of the main database.
//!
//! Owns: reading it, creating it, adopting what sqlx's runner wrote, and adding a row. Runs on the thread that has the
//! connection. Invariant: only `create` and `add` write, and only inside of a transaction of the caller. Leaves out:
//! what follows from it (`migrations::plan`).

use flatwater_sqlite::Sqlite;

use crate::error::{Error, Result};
use crate::migrations::{Applied, Step};

const CREATE: &str = "CREATE TABLE main._flatwater_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum BLOB NOT NULL,
    applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT";
const ADOPT: &str = "INSERT INTO main._flatwater_migrations (version, name, checksum, applied_at)
    SELECT version, version || '_' || replace(description, ' ', '_'), checksum, CAST(installed_on AS TEXT)
    FROM main._sqlx_migrations";

/// Returns the rows of the history; `None` if there is no history.
pub(crate) fn history(sqlite: &Sqlite) -> Result<Option<Vec<Applied>>> {
    Ok(sqlite.patiently_with(|sqlite| {
        if !has_table(sqlite, "_flatwater_migrations")? {
            return Ok(None);
        }
        let sql = "SELECT version, name, checksum FROM main._flatwater_migrations ORDER BY version";
        let mut rows = sqlite.prepare(sql)?;
        let rows =
            rows.query_map([], |row| Ok(Applied { version: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? }))?;
        rows.collect::<rusqlite::Result<_>>().map(Some)
    })?)
}

/// Creates the history: empty, or with the rows of sqlx's table.
pub(crate) fn create_history(sqlite: &Sqlite) -> Result<()> {
    let sqlite = sqlite.rusqlite();
    sqlite.execute_batch(CREATE)?;
    if !has_table(sqlite, "_sqlx_migrations")? {
        return Ok(());
    }
    let failed = "SELECT count(*), min(version) FROM main._sqlx_migrations WHERE NOT success";
    let (failed, version): (i64, Option<i64>) = sqlite.query_row(failed, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if failed > 0 {
        let version = version.unwrap_or_default();
        return Err(Error::misuse(format!("sqlx's runner began the migration {version} and did not finish it"))
            .with_hint("clean up what it did, then correct its row in _sqlx_migrations"));
    }
    sqlite.execute_batch(ADOPT)?;
    Ok(())
}

/// Adds the row of a step, unless it is there.
pub(crate) fn add_to_history(sqlite: &Sqlite, step: &Step) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO main._flatwater_migrations (version, name, checksum) VALUES (?1, ?2, ?3)";
    sqlite.rusqlite().execute(sql, (step.version, &step.name, &step.checksum))?;
    Ok(())
}

fn has_table(sqlite: &rusqlite::Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE";
    sqlite.query_row(sql, [name], |row| Ok(row.get::<_, i64>(0)? > 0))
}
