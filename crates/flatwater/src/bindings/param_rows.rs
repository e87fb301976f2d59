//! Rows of parameters that a front end fills in slices. Part of the room's interface.
//!
//! Owns: adding rows. Runs on the caller's thread. Leaves out: how they are kept (`values`).

use rusqlite::types::ValueRef;

use crate::values::param_rows::ParamRows;
use crate::values::params::Params;

/// Adds a row of parameters, and empties `row`, whose memory and names are used again.
pub fn add_row(rows: &mut ParamRows, row: &mut Params) {
    rows.push(row);
    row.clear();
}

/// Adds a row of this many values without names. None of them is NaN, which SQLite does not store.
pub fn add_values<'a>(rows: &mut ParamRows, width: usize, values: impl Iterator<Item = ValueRef<'a>>) {
    rows.push_values(width, values);
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
