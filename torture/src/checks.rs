//! The checks of a database after each round, with plain SQLite.

use std::path::Path;

use rusqlite::Connection;

use crate::finding::Finding;

/// Runs `integrity_check` and `foreign_key_check` on the main database.
pub(crate) fn is_sound(path: &Path) -> Result<(), Finding> {
    says_sound(&Connection::open(path)?)
}

/// The same for a connection that is open.
pub(crate) fn says_sound(plain: &Connection) -> Result<(), Finding> {
    let mut said = plain.prepare("PRAGMA integrity_check(5)")?;
    let said: Vec<String> = said.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    if said != ["ok"] {
        return Err(Finding::new("integrity_check finds damage").with_history(said.join("\n")));
    }
    let mut violated = plain.prepare("SELECT \"table\", count(*) FROM pragma_foreign_key_check GROUP BY 1")?;
    let violated: Vec<(String, i64)> =
        violated.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    if !violated.is_empty() {
        return Err(Finding::new(format!("foreign_key_check finds rows without their parents: {violated:?}")));
    }
    Ok(())
}
