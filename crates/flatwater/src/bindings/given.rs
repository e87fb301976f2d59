//! What front ends give to calls: rows of parameters, and statements with theirs, filled in slices; and the statements of a script.
//!
//! Owns: adding rows and statements. Runs on the caller's thread. Leaves out: how they are kept (`values`), and reading texts (`sql`).

use std::convert::Infallible;

use rusqlite::types::ValueRef;

use crate::sql::{script, tokens};
use crate::values::batch_statements;
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;

/// Adds a row of parameters, and empties `row`, whose memory and names are used again.
pub fn add_row(rows: &mut ParamRows, row: &mut Params) {
    rows.push(row);
    row.clear();
}

/// Adds a row of parameters, whose long values are not copied.
pub fn take_row(rows: &mut ParamRows, row: Params) {
    rows.take(row);
}

/// Adds a row of this many values without names. None of them is NaN, which SQLite does not store.
pub fn add_values<'a>(rows: &mut ParamRows, width: usize, values: impl Iterator<Item = ValueRef<'a>>) {
    rows.push_values(width, values);
}

/// The statements of a batch. A text that follows itself is there once.
pub type BatchStatements = batch_statements::BatchStatements<Box<str>>;

/// Returns the rows to which the parameters of the next statement are to be added, which is one row.
pub fn rows_of_next<'a>(statements: &'a mut BatchStatements, sql: &str) -> &'a mut ParamRows {
    let Ok(rows) = statements.rows(|last| **last == *sql, || Ok::<_, Infallible>(sql.into()));
    rows
}

/// The number of statements.
#[must_use]
pub fn statements_added(statements: &BatchStatements) -> usize {
    statements.len()
}

/// Sets the number of the first row of parameters, by which errors name a row. It is 0 otherwise.
pub fn number_from(rows: &mut ParamRows, first: usize) {
    rows.first_number = first;
}

/// The number of rows of parameters.
#[must_use]
pub fn rows_added(rows: &ParamRows) -> usize {
    rows.len()
}

/// The statements of a script: of each its text, the word that says what it does, and of a PRAGMA its name and, if it is set,
/// whether one that is on or off is on with this value.
pub fn statements(script: &str) -> impl Iterator<Item = (&str, &str, Option<(&str, Option<bool>)>)> {
    script::statements(script).map(|sql| {
        let pragma = tokens::pragma(sql).map(|(name, value)| (name, value.map(|value| !tokens::is_off(value))));
        (sql, tokens::verb(sql).unwrap_or_default(), pragma)
    })
}
