//! A migration on its connection: its history, the table `_flatwater_migrations` of the main database; its statements, one by one; and
//! the rows whose foreign key has no parent, before and after it, which a dump is checked for too.
//!
//! Owns: reading and creating the history, adopting what sqlx's runner wrote, and adding a row; running the next statement of a
//! script, and an error that says which one failed; finding violations with `PRAGMA foreign_key_check`, which reads every row of each
//! table that is checked, and comparing two findings. Runs on the thread that has the connection. Invariants: of the history only
//! `create_history` and `add_to_history` write, and only inside of a transaction of the caller; each statement is prepared after the
//! earlier ones ran, under the policy; the rest of a script is not copied for each of its statements. Leaves out: transactions, and
//! what follows from the history and from violations (`migrations`, `workers::exclusive`).

use std::collections::{HashMap, HashSet};

use flatwater_sqlite::{AuthEvent, Discard, Policy, Prepared, Sqlite, Verdict, statement_start};
use rusqlite::{Row, ffi};

use crate::connection::open::pragma_answers::{judge, prepare_under};
use crate::connection::run::failures::explain_write;
use crate::connection::{EngineConnection, rows};
use crate::migrations::{Applied, Step, line};
use flatwater_base::error::constraint::of_foreign_key;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_sql::dependencies::change::{Unreported, Writes};
use flatwater_sql::policy;
use flatwater_sql::tokens::quoted;

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
        let read = |row: &Row<'_>| Ok(Applied { version: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? });
        rows(sqlite, sql, [], read).map(Some)
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
        return Err(Error::new(
            ErrorCode::InvalidMigration,
            format!("sqlx's runner began the migration {version} and did not finish it"),
        )
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

/// A statement of a step, by its place in the script.
pub(crate) struct StatementPlace<'a> {
    step: &'a Step,
    at: usize,
    length: usize,
}

impl StatementPlace<'_> {
    /// Adds the file, the line and the statement to an error. An offset is one in the statement's text.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let sql = &self.step.sql[self.at..self.at + self.length];
        let at = self.at + error.offset().unwrap_or(0);
        let message = format!("migration {}, line {}: {}", self.step.name, line(&self.step.sql, at), error.message());
        error.with_message(message).with_sql(sql)
    }

    /// Returns where the next statement begins, or what precedes it.
    pub(crate) fn end(&self) -> usize {
        self.at + self.length
    }
}

/// Runs the statement of `step` at byte `at` or after it. `script` is its SQL, terminated. Returns the statement's place
/// and what it does; `None` if there is none.
pub(crate) fn run_statement<'a>(
    connection: &mut EngineConnection,
    step: &'a Step,
    script: &str,
    at: usize,
    policy: Policy,
) -> Option<(StatementPlace<'a>, Result<Vec<AuthEvent>>)> {
    let at = at + statement_start(&step.sql[at..]);
    let prepared = match prepare_under(&mut connection.sqlite, &script[at..], policy, refusal) {
        Ok(prepared) => prepared?,
        Err(error) => return Some((StatementPlace { step, at, length: step.sql.len() - at }, Err(error))),
    };
    let place = StatementPlace { step, at, length: prepared.length };
    Some((place, run(connection, prepared, policy)))
}

/// Runs a statement that was prepared under this policy, and ends it. Returns what it does.
fn run(connection: &mut EngineConnection, mut prepared: Prepared, policy: Policy) -> Result<Vec<AuthEvent>> {
    if prepared.events.iter().any(|event| policy(event) == Verdict::Ignore) {
        prepared = judge(&mut connection.sqlite, &connection.stated, prepared, policy)?.prepared;
    }
    let ran = connection.sqlite.statement(prepared.id).run(&(), &mut Discard);
    connection.sqlite.statement(prepared.id).finalize();
    match ran {
        Ok(()) => Ok(prepared.events),
        Err(error) => {
            let writes = Writes::of_rows(&prepared.events, Unreported::default());
            Err(explain_write(&connection.sqlite, error.into(), &writes))
        }
    }
}

fn refusal(event: &AuthEvent) -> Error {
    if event.action != ffi::SQLITE_TRANSACTION {
        return policy::refusal(event, None);
    }
    let first = event.first.as_deref().unwrap_or_default();
    Error::new(ErrorCode::InvalidMigration, format!("{first} in a migration, which runs in a transaction of its own"))
        .with_hint("leave it out, or make `-- no-transaction` the first line of the script")
}

/// The violations of a database: how many there are of each table, rowid and parent table. A table that cannot be
/// checked, because a foreign key does not fit its parent, has one with the reason in the place of the parent.
#[derive(Debug, Default)]
pub(crate) struct Violations(HashMap<(String, Option<i64>, String), u64>);

impl Violations {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an error if there is a violation that `before` has not.
    pub(crate) fn refuse_new_since(&self, before: &Self) -> Result<()> {
        let is_new = |key: &&(String, Option<i64>, String)| self.0[*key] > before.0.get(*key).copied().unwrap_or(0);
        let mut new: Vec<_> = self.0.keys().filter(is_new).collect();
        new.sort();
        let Some((table, rowid, parent)) = new.first() else { return Ok(()) };
        let row = rowid.map_or_else(String::new, |rowid| format!(", rowid {rowid}"));
        let message =
            format!("it adds {} foreign key violations; the first: table {table}{row}, parent {parent}", new.len());
        Err(of_foreign_key(Error::new(ErrorCode::ForeignKeyCheck, message), table.clone())
            .with_hint("foreign keys, CASCADE included, are off while a migration or a dump runs"))
    }
}

/// Switches the enforcement of foreign keys. Does nothing inside of a transaction.
pub(crate) fn enforce_foreign_keys(sqlite: &Sqlite, on: bool) -> Result<()> {
    let fkey = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY;
    sqlite.rusqlite().set_db_config(fkey, on)?;
    Ok(())
}

/// Returns the names of the tables, in lower case.
pub(crate) fn tables(sqlite: &Sqlite) -> Result<HashSet<String>> {
    let names = "SELECT lower(name) FROM main.sqlite_schema WHERE type = 'table'";
    Ok(rows(sqlite.rusqlite(), names, [], |row| row.get(0))?)
}

/// Returns the violations in the tables with a foreign key for which `is_checked` is true, or that refer to such a
/// table. The names are in lower case.
pub(crate) fn violations(sqlite: &Sqlite, is_checked: impl Fn(&str) -> bool) -> Result<Violations> {
    let sqlite = sqlite.rusqlite();
    let keys = "SELECT tables.name, keys.\"table\" FROM main.sqlite_schema AS tables,
        pragma_foreign_key_list(tables.name, 'main') AS keys WHERE tables.type = 'table'";
    let keys: Vec<(String, String)> = rows(sqlite, keys, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_checked = |name: &str| is_checked(&name.to_lowercase());
    let keys = keys.into_iter().filter(|(table, parent)| is_checked(table) || is_checked(parent));
    let tables: HashSet<String> = keys.map(|(table, _)| table).collect();
    let mut found = Violations::default();
    for table in tables {
        let check = format!("PRAGMA main.foreign_key_check({})", quoted(&table));
        let violations = rows(sqlite, &check, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        match violations.map_err(Error::from) {
            Ok(rows) => Vec::into_iter(rows).for_each(|row| *found.0.entry(row).or_default() += 1),
            Err(error) if error.kind() == ErrorKind::Sql => {
                found.0.insert((table, None, error.message().to_owned()), 1);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_violations_are_refused_and_each_counts() {
        let of = |list: &[(&str, Option<i64>, u64)]| {
            Violations(list.iter().map(|(table, row, count)| (((*table).into(), *row, "p".into()), *count)).collect())
        };
        let before = of(&[("a", Some(1), 1), ("b", None, 2)]);
        assert!(of(&[("a", Some(1), 1)]).refuse_new_since(&before).is_ok());
        assert!(before.refuse_new_since(&before).is_ok());
        for worse in [&[("a", Some(2), 1)][..], &[("b", None, 3)], &[("a", Some(1), 1), ("c", None, 1)]] {
            let error = of(worse).refuse_new_since(&before).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{worse:?}");
            assert!(error.message().contains("adds 1 "), "{error}");
        }
    }
}
