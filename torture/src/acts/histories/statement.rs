//! Runs one statement on a plain connection, and returns its result. The oracle and the closures of Flatwater's calls
//! use it.

use rusqlite::types::Value;
use rusqlite::{Connection, ffi};

use super::op::{Statement, Table, Told};

/// How many of a statement's rows to return.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wants {
    Nothing,
    All,
    /// The first one, or each that could be it if no order is asked for.
    First,
    Any,
}

impl Told {
    pub(super) fn sqlite(code: i32, message: &str) -> Self {
        let is_constraint = code & 0xff == ffi::SQLITE_CONSTRAINT;
        let quotes = [ffi::SQLITE_CONSTRAINT_TRIGGER, ffi::SQLITE_CONSTRAINT_VTAB].contains(&code);
        Self::Sqlite(code, (is_constraint && !quotes).then(|| message.to_owned()))
    }
}

/// Returns the changes and rows of a statement, or how it failed.
pub(super) fn run(connection: &Connection, statement: &Statement, wants: Wants) -> Result<(u64, Option<Table>), Told> {
    let Statement { sql, params } = statement;
    if is_refused(sql) {
        return Err(Told::Misuse);
    }
    let mut prepared = connection.prepare(sql).map_err(failed)?;
    let columns = prepared.column_count();
    let fits = match wants {
        Wants::Nothing => columns == 0,
        Wants::All | Wants::First => columns > 0,
        Wants::Any => true,
    };
    if !fits || prepared.parameter_count() != params.len() {
        return Err(Told::Misuse);
    }
    let first_only = wants == Wants::First && sql.contains("ORDER BY");
    let mut cells: Vec<Vec<Value>> = Vec::new();
    let mut rows = prepared.query(rusqlite::params_from_iter(params)).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let columns = row.as_ref().column_count();
        cells.push((0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<_>>().map_err(failed)?);
        if first_only {
            break;
        }
    }
    drop(rows);
    let names = prepared.column_names().map(str::to_owned).collect();
    let changes = if changes_rows(sql) { connection.changes() } else { 0 };
    Ok((changes, (columns > 0).then_some((names, cells))))
}

/// Runs the statements of a closure one by one, regardless of their results, as long as the transaction is open. Also
/// returns whether its changes are to be kept.
pub(super) fn closure(connection: &Connection, statements: &[Statement], commits: bool) -> (Vec<Told>, bool) {
    let mut told = Vec::new();
    for statement in statements {
        told.push(match run(connection, statement, Wants::Any) {
            Ok((changes, rows)) => Told::Batch(vec![(changes, None, rows)]),
            Err(failure) => failure,
        });
        if connection.is_autocommit() {
            return (told, false);
        }
    }
    (told, commits)
}

/// Decides by the first word. None of these texts begins with WITH.
fn changes_rows(sql: &str) -> bool {
    ["INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|word| sql.starts_with(word))
}

/// Returns whether Flatwater refuses the text and plain SQLite does not.
fn is_refused(sql: &str) -> bool {
    super::schema::REFUSED.contains(&sql)
}

/// Returns the part of an error that is compared.
pub(super) fn failed(error: rusqlite::Error) -> Told {
    match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            Told::sqlite(error.extended_code, &message.unwrap_or_default())
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => Told::sqlite(error.extended_code, &msg),
        other => Told::Other(other.to_string()),
    }
}
