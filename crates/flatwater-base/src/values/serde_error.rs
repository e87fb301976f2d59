//! Why serde could not read a row.
//!
//! Owns: the error while it has no column, its text and its hint. Runs on the thread that reads the row. Invariant: the
//! text names SQLite's type and the wanted one, and never has the value of a cell in it; a message of the caller's own
//! type is passed on. Leaves out: the number of the row and the SQL, which the row adds.

use std::fmt::{Display, Formatter};

use serde::de::{Error as Refusal, Expected, Unexpected};

use super::convert::column_of;
use super::row::Row;
use crate::error::{Error, ErrorCode};

#[derive(Debug)]
pub(super) struct Failure {
    error: Error,
    column: Option<usize>,
}

impl Failure {
    fn new(message: String) -> Self {
        Self { error: Error::new(ErrorCode::UnreadableValue, message), column: None }
    }

    fn hinting(self, hint: &'static str) -> Self {
        Self { error: self.error.with_hint(hint), ..self }
    }

    /// Adds the column, unless it is known.
    pub(super) fn in_column(self, column: usize) -> Self {
        Self { column: self.column.or(Some(column)), ..self }
    }

    /// Returns the error for the row.
    pub(super) fn explain(self, row: &Row<'_>) -> Error {
        match self.column.and_then(|position| Some(column_of(position, row.columns().nth(position)?))) {
            Some(column) => {
                let message = format!("{column}: {}", self.error.message());
                self.error.with_message(message)
            }
            None => self.error,
        }
    }
}

/// Returns what a value is in SQLite, without the value.
fn type_of(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Unit | Unexpected::Option => "NULL",
        Unexpected::Bool(_) | Unexpected::Unsigned(_) | Unexpected::Signed(_) => "INTEGER",
        Unexpected::Float(_) => "REAL",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::UnitVariant => "TEXT",
        Unexpected::Bytes(_) | Unexpected::Seq => "BLOB",
        Unexpected::Map => "a row",
        _ => "a value",
    }
}

impl Refusal for Failure {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let failure = Self::new(format!("{} cannot be read as {wanted}", type_of(&found)));
        match found {
            Unexpected::Unit | Unexpected::Option => failure.hinting("read a column that may be NULL as an Option"),
            _ => failure,
        }
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::new(format!("its {} does not fit into {wanted}", type_of(&found)))
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        Self::new(format!("{length} value(s) cannot be read as {wanted}"))
    }

    fn unknown_variant(_: &str, variants: &'static [&'static str]) -> Self {
        Self::new(format!("its TEXT is not one of the variants {}", variants.join(", ")))
    }

    fn unknown_field(_: &str, fields: &'static [&'static str]) -> Self {
        Self::new(format!("no field has this name; there are {}", fields.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the result has no column {field}")).hinting("select it, or give the field #[serde(default)]")
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("two columns are read as {field}")).hinting("name one of them with AS")
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.error.message())
    }
}

impl std::error::Error for Failure {}
