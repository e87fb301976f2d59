//! The place of a failure in a script, or in the rows of parameters.
//!
//! Owns: adding it to an error. Runs where the failure happens. Leaves out: the rows of a result (`reading`).

use super::Error;

impl Error {
    /// Shows the SQL around the failure of the statement that begins there, behind white space, in a script.
    #[must_use]
    pub(crate) fn with_sql_at(mut self, sql: &str, statement: usize) -> Self {
        let blank = sql[statement..].len() - sql[statement..].trim_start().len();
        self.0.offset = Some(self.0.offset.map_or(statement + blank, |offset| statement + offset));
        self.0.sql = None;
        self.with_sql(sql)
    }

    /// Names the row of `execute_many` that failed.
    #[must_use]
    pub(crate) fn in_row(self, row: usize) -> Self {
        let message = format!("row {row}, counted from 0: {}", self.0.message);
        self.with_message(message)
    }
}
