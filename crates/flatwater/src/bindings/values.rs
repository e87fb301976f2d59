//! What front ends give to calls, and results as they read them, without a `Row`. Part of the interface that `bindings` is, and with it
//! not for programs.
//!
//! Owns: rows of parameters, and statements with theirs, filled in slices; the statements of a script; cells, columns by name, and the
//! rows in which two results differ. Runs on any thread. Invariant: of a result nothing is copied. Leaves out: how parameters are kept
//! (`values`), reading texts (`sql`), and making values of the host's language.

use std::convert::Infallible;
use std::sync::Arc;

use rusqlite::types::ValueRef;

use crate::api::live::LiveRows;
use crate::api::live::row_changes::RowChanges;
use flatwater_base::encode;
use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::error::{Error, ErrorCode, Result, after_the_write};
use flatwater_base::values::column::{ColumnNames, Names};
use flatwater_base::values::difference::Difference;
use flatwater_base::values::outcome::Document;
use flatwater_base::values::{ParamRows, Params, Rows, param_rows};
use flatwater_sql::{text, tokens};

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
pub type BatchStatements = param_rows::BatchStatements<Box<str>>;

/// Returns the rows to which the parameters of the next statement are to be added, which is one row.
pub fn rows_of_next<'a>(statements: &'a mut BatchStatements, sql: &str) -> &'a mut ParamRows {
    let Ok(rows) = statements.rows(|last| **last == *sql, || Ok::<_, Infallible>(sql.into()));
    rows
}

/// The number of statements.
pub fn statements_added(statements: &BatchStatements) -> usize {
    statements.len()
}

/// Sets the number of the first row of parameters, by which errors name a row. It is 0 otherwise.
pub fn number_from(rows: &mut ParamRows, first: usize) {
    rows.first_number = first;
}

/// The number of rows of parameters.
pub fn rows_added(rows: &ParamRows) -> usize {
    rows.len()
}

/// The statements of a script: of each its text, the word that says what it does, and of a PRAGMA its name and, if it is set,
/// whether one that is on or off is on with this value.
pub fn statements(script: &str) -> impl Iterator<Item = (&str, &str, Option<(&str, Option<bool>)>)> {
    text::statements(script).map(|sql| {
        let pragma = tokens::pragma(sql).map(|(name, value)| (name, value.map(|value| !tokens::is_off(value))));
        (sql, tokens::verb(sql).unwrap_or_default(), pragma)
    })
}

/// The value of a cell, which the result must have.
#[inline]
pub fn cell(rows: &Rows, row: usize, column: usize) -> ValueRef<'_> {
    rows.value(row, column)
}

/// The values of a row, which the result must have.
#[inline]
pub fn cells(rows: &Rows, row: usize) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
    rows.values(row)
}

/// Makes a result that no query returned, of the values of its rows, one after the other.
pub fn rows_of(names: Vec<Box<str>>, values: Params) -> Rows {
    let sources = vec![flatwater_sqlite::ColumnSource::default(); names.len()];
    Rows { names: ColumnNames::new(names, sources, "".into()), block: values.into_block() }
}

/// Rows as JSON: an array, as [`Session::query_json`](crate::Session::query_json) returns it.
///
/// # Errors
/// `Decode` for a value that has no form in JSON, `Misuse` for two columns of one name.
pub fn json_of(rows: &Rows, options: &JsonOptions) -> Result<String> {
    let document = encode::json::json_of(rows, options).map_err(|error| {
        let error = error.with_sql(&rows.names.sql);
        if is_of_write(rows) { after_the_write(error) } else { error }
    });
    document.map(Document::into_text)
}

/// True if the statement changes the database: when its rows are there, it has been executed.
pub fn is_of_write(rows: &Rows) -> bool {
    rows.names.is_of_write
}

/// The columns of a statement, as rows: of each the name, and what it returns unchanged.
pub(super) fn described(names: Option<Names>) -> Result<Rows> {
    let names = names.ok_or_else(|| {
        Error::new(ErrorCode::Unsupported, "the columns of this statement are known only when it runs")
            .with_hint("run it, and look at a row")
    })?;
    if names.is_empty() {
        return Err(Error::new(ErrorCode::ReturnsNoRows, "the statement returns no rows").with_sql(&names.sql));
    }
    let mut values = Params::default();
    for column in (0..names.len()).map(|at| names.column(at)) {
        values.push(column.name())?;
        for value in [column.origin_name(), column.table_name(), column.database_name(), column.decl_type()] {
            values.push(value)?;
        }
    }
    Ok(rows_of(["name", "column", "table", "database", "type"].map(Into::into).to_vec(), values))
}

/// The rows of a live query, which are shared and not copied.
pub fn shared_rows(live: &LiveRows) -> Arc<Rows> {
    live.rows.clone()
}

/// The rows in which two results differ, as their positions in these.
pub struct ChangedRows<'a> {
    pub old: &'a Arc<Rows>,
    pub new: &'a Arc<Rows>,
    /// In the new result.
    pub inserted: &'a [usize],
    /// In the old result and in the new one.
    pub updated: &'a [(usize, usize)],
    /// In the old result.
    pub deleted: &'a [usize],
}

/// What [`RowChanges`] yields row by row.
pub fn changed_rows(changes: &RowChanges) -> ChangedRows<'_> {
    let Difference { inserted, updated, deleted } = &*changes.difference;
    ChangedRows { old: &changes.old, new: &changes.new.rows, inserted, updated, deleted }
}

/// Returns the position of the column of this name; if there is none, of one whose name differs in case only.
pub fn position(rows: &Rows, name: &str) -> Option<usize> {
    rows.names.find_name(name)
}

/// The columns of a result, which results of one prepared statement share: a key for what is made of them once.
#[derive(Clone)]
pub struct Schema(Names);

impl Schema {
    pub fn of(rows: &Rows) -> Self {
        Self(rows.names.clone())
    }

    /// Equal for two results only if they share their columns, as long as this is not dropped.
    pub fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The names of the columns.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// The types in the definitions of the columns' tables, as they are written there. `None` for an expression.
    pub fn declared_types(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.0.sources().iter().map(|source| source.declared_type.as_deref())
    }

    /// The tables of the columns that it returns unchanged. `None` for an expression.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        (0..self.0.len()).map(|at| self.0.column(at).table_name())
    }

    /// As [`position`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.find_name(name)
    }
}
