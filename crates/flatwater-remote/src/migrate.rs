//! Migrations on a server.
//!
//! Owns: the history, and applying what it does not have. Runs as a task on the thread of the connection to the server, by calls of a session. Invariant: a migration and
//! its row of the history are one request, and the row comes first, so of several programs that start together one applies each.
//! Leaves out: which migration is next, which is decided as for a file.

use flatwater::bindings::server::{AppliedMigration, NextMigration, error, next_migration};
use flatwater::bindings::{statements, tokens};
use flatwater::{Error, ErrorCode, ErrorKind, Migrations, Params, Result, Session, params};

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

const REFERS: &str = "SELECT m.name FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f
    WHERE m.type = 'table' AND f.\"table\" = ?1 COLLATE NOCASE AND m.name <> ?1 COLLATE NOCASE
    AND f.on_delete NOT IN ('NO ACTION', 'RESTRICT') LIMIT 1";

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
        return Err(error(ErrorCode::InvalidMigration, "it must run outside of a transaction".into(), hint));
    }
    refuse_lost_rows(on, step.sql).await?;
    let row = params![step.version, step.name, step.checksum, seconds()]?;
    let own = [(CREATE, Params::default()), (ADD, row)];
    let theirs = statements(step.sql).map(|(sql, _, _)| (sql, Params::default()));
    on.batch(own.into_iter().chain(theirs)).await.map(drop)
}

/// Refuses to drop a table if the rows that refer to it would be changed with it: SQLite deletes the rows of a table that is dropped,
/// and with foreign keys enforced does to others what ON DELETE says (<https://sqlite.org/foreignkeys.html#fk_schemacommands>). In a file
/// foreign keys are off meanwhile, which a server cannot do.
async fn refuse_lost_rows(on: &Session, sql: &str) -> Result<()> {
    let mut dropped = Vec::new();
    let mut named = Vec::new();
    for (statement, ..) in statements(sql) {
        let table = dropped_table(statement);
        let is_named =
            table.as_ref().is_some_and(|table| named.iter().any(|name: &String| name.eq_ignore_ascii_case(table)));
        dropped.extend(table.map(|table| (table, is_named)));
        named.extend(names_that_refer(statement));
    }
    if dropped.is_empty() || on.query_optional_value::<i64>("PRAGMA foreign_keys", ()).await? != Some(1) {
        return Ok(());
    }
    for (table, is_named) in dropped {
        let refers = match is_named {
            true => Some("tables of the migration".to_owned()),
            false => on.query_optional_value::<String>(REFERS, (&*table,)).await?,
        };
        if let Some(refers) = refers {
            let message = format!("to drop the table {table} may change the rows of {refers}, which refer to it");
            let hint = "change the table with ALTER TABLE; the server enforces foreign keys, and a file has them off in a migration";
            return Err(error(ErrorCode::InvalidMigration, message, hint));
        }
    }
    Ok(())
}

/// The words and the signs of a text, without comments.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    tokens(sql).filter(|(kind, ..)| matches!(*kind, "word" | "name" | "other" | "text")).map(|(_, token, _)| token)
}

/// The table that a DROP TABLE names.
fn dropped_table(sql: &str) -> Option<String> {
    let mut words = words(sql);
    let mut is = |expected: &str| words.next().is_some_and(|word| word.eq_ignore_ascii_case(expected));
    if !(is("DROP") && is("TABLE")) {
        return None;
    }
    let mut rest: Vec<&str> = words.collect();
    if rest.get(..2).is_some_and(|two| two[0].eq_ignore_ascii_case("IF") && two[1].eq_ignore_ascii_case("EXISTS")) {
        rest.drain(..2);
    }
    let name = if rest.get(1) == Some(&".") { rest.get(2) } else { rest.first() };
    name.map(|name| unquoted(name))
}

/// The names behind REFERENCES, and those behind RENAME TO: other tables refer to a table by its new name, too.
fn names_that_refer(sql: &str) -> Vec<String> {
    let words: Vec<&str> = words(sql).collect();
    let is = |at: usize, expected: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(expected));
    let begins = |at: &usize| is(*at, "REFERENCES") || (is(*at, "TO") && *at > 0 && is(*at - 1, "RENAME"));
    (0..words.len()).filter(begins).filter_map(|at| words.get(at + 1)).map(|name| unquoted(name)).collect()
}

fn unquoted(name: &str) -> String {
    let (begin, end) = (name.chars().next(), name.chars().next_back());
    match (begin, end) {
        (Some(begin @ ('"' | '`' | '\'')), Some(end)) if begin == end && name.len() > 1 => {
            let quote = begin.to_string();
            name[1..name.len() - 1].replace(&quote.repeat(2), &quote)
        }
        (Some('['), Some(']')) => name[1..name.len() - 1].to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns true for the row of a migration that the history has by now.
fn is_there(error: &Error) -> bool {
    error.kind() == ErrorKind::Constraint && error.message().contains("_flatwater_migrations.version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_to_which_others_may_refer_are_found() {
        let of = |sql| names_that_refer(sql);
        assert_eq!(of("CREATE TABLE n (a REFERENCES \"o\" (id) ON DELETE CASCADE, b REFERENCES [p q])"), ["o", "p q"]);
        assert_eq!(of("ALTER TABLE a RENAME TO b"), ["b"]);
        assert_eq!(of("ALTER TABLE a RENAME COLUMN b TO c"), [] as [String; 0]);
        assert_eq!(of("INSERT INTO t VALUES ('REFERENCES o')"), [] as [String; 0]);
    }

    #[test]
    fn the_table_that_is_dropped_is_found() {
        let of = |sql| dropped_table(sql);
        assert_eq!(of("drop table if exists main.users").as_deref(), Some("users"));
        assert_eq!(of("/* a */ DROP TABLE [my users]").as_deref(), Some("my users"));
        assert_eq!(of("DROP TABLE \"IF\"").as_deref(), Some("IF"));
        assert_eq!((of("DROP INDEX a"), of("ALTER TABLE a RENAME TO b")), (None, None));
    }
}
