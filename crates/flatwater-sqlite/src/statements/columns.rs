//! The columns of a statement's result: their names, and what they were declared as.
//!
//! Owns: reading them from SQLite. Runs on the thread that uses the connection. Invariant: every text is copied, since
//! SQLite frees it when it prepares the statement again. Leaves out: the cells (`running`). Without the feature
//! `column_metadata` the linked SQLite need not know the origin of a column, and none is reported.

use std::ffi::{CStr, c_char, c_int};

use rusqlite::ffi;

use crate::error::{Error, Result};
use crate::statements::{StatementId, Statements};

/// What a result column was declared as.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnSource {
    /// The type in the table's definition, as it is written there. `None` for an expression, and for a column that was
    /// declared without a type.
    pub declared_type: Option<Box<str>>,
    /// The column of a table that this column returns unchanged.
    pub origin: Option<ColumnOrigin>,
}

/// A column of a table, by the names in the table's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// The schema name of the database: `main`, `temp`, or the name of an attached one.
    pub database: Box<str>,
    /// The table.
    pub table: Box<str>,
    /// The column.
    pub column: Box<str>,
}

impl Statements {
    /// Returns the names of the result columns, in order.
    ///
    /// # Errors
    /// Returns [`Error::StaleStatement`] if the statement was finalized.
    pub fn column_names(&self, id: StatementId) -> Result<Vec<Box<str>>> {
        // SAFETY: a statement of the table is alive, and the caller that has the table has the connection.
        Ok(unsafe { names(self.get(id).ok_or(Error::StaleStatement)?.raw) })
    }

    /// Returns what the result columns were declared as, in order.
    ///
    /// # Errors
    /// Returns [`Error::StaleStatement`] if the statement was finalized.
    pub fn column_sources(&self, id: StatementId) -> Result<Vec<ColumnSource>> {
        let raw = self.get(id).ok_or(Error::StaleStatement)?.raw;
        // SAFETY: as in `column_names`.
        Ok(unsafe {
            let source = |column| ColumnSource {
                declared_type: text(ffi::sqlite3_column_decltype(raw, column)),
                origin: origin(raw, column),
            };
            (0..ffi::sqlite3_column_count(raw)).map(source).collect()
        })
    }
}

/// Returns the names of the result columns.
///
/// # Safety
/// The statement is alive, and no other thread uses its connection.
pub(crate) unsafe fn names(raw: *mut ffi::sqlite3_stmt) -> Vec<Box<str>> {
    // SAFETY: as the caller promises.
    unsafe {
        let columns = ffi::sqlite3_column_count(raw);
        (0..columns).map(|column| text(ffi::sqlite3_column_name(raw, column)).unwrap_or_default()).collect()
    }
}

/// # Safety
/// As `names`.
#[cfg(feature = "column_metadata")]
unsafe fn origin(raw: *mut ffi::sqlite3_stmt, column: c_int) -> Option<ColumnOrigin> {
    // SAFETY: as the caller promises.
    unsafe {
        Some(ColumnOrigin {
            database: text(ffi::sqlite3_column_database_name(raw, column))?,
            table: text(ffi::sqlite3_column_table_name(raw, column))?,
            column: text(ffi::sqlite3_column_origin_name(raw, column))?,
        })
    }
}

/// # Safety
/// As `names`.
#[cfg(not(feature = "column_metadata"))]
unsafe fn origin(_: *mut ffi::sqlite3_stmt, _: c_int) -> Option<ColumnOrigin> {
    None
}

/// Returns a copy of the text.
///
/// # Safety
/// `text` is null, or a NUL-terminated text that lives for the call.
unsafe fn text(text: *const c_char) -> Option<Box<str>> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}
