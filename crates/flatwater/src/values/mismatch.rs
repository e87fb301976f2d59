//! The error for a cell that is not of the type it is read as.
//!
//! Owns: its text and its hint. Pure, on any thread. Invariant: neither has the value of the cell in it, except where the
//! message of the caller's own type has it. Leaves out: the row and the SQL, which the row adds.

use rusqlite::types::{FromSqlError, Type};

use crate::error::Error;

/// Returns the error for a column, by position and name, whose value is of the type `found` and is read as `wanted`.
#[cold]
pub(crate) fn mismatch(column: (usize, &str), found: Type, wanted: &str, error: &FromSqlError) -> Error {
    let (column, wanted) = (column_of(column.0, column.1), short_name(wanted));
    let type_name = type_name(found);
    let what = match error {
        FromSqlError::InvalidType => format!("{type_name} cannot be read as {wanted}"),
        // The number itself is the database's content and stays out of errors.
        FromSqlError::OutOfRange(_) => format!("its {type_name} does not fit into {wanted}"),
        other => format!("its {type_name} cannot be read as {wanted}: {other}"),
    };
    let error = Error::misuse(format!("{column}: {what}"));
    match found {
        Type::Null => error.with_hint(format!("read a column that may be NULL as an Option: Option<{wanted}>")),
        _ if !what.ends_with(&wanted) => error,
        Type::Integer => error.with_hint("read it as an i64, or CAST it in the SQL"),
        Type::Real => error.with_hint("read it as an f64, or CAST it in the SQL"),
        Type::Text => error.with_hint("read it as a String, or CAST it in the SQL"),
        Type::Blob => error.with_hint("read it as a Vec<u8>, or CAST it in the SQL"),
    }
}

pub(crate) fn column_of(position: usize, name: &str) -> String {
    format!("column {position} ({name})")
}

/// The name of a type as SQLite writes it.
fn type_name(of: Type) -> &'static str {
    match of {
        Type::Null => "NULL",
        Type::Integer => "INTEGER",
        Type::Real => "REAL",
        Type::Text => "TEXT",
        Type::Blob => "BLOB",
    }
}

/// The name of a Rust type without the paths of its modules.
pub(crate) fn short_name(name: &str) -> String {
    let parts = name.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    parts.map(|part| part.rsplit("::").next().unwrap_or(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_types_are_named_and_the_value_is_not() {
        let text = |found, error| mismatch((1, "age"), found, std::any::type_name::<Option<u8>>(), &error).to_string();
        assert_eq!(
            text(Type::Text, FromSqlError::InvalidType),
            "misuse: column 1 (age): TEXT cannot be read as Option<u8> -- read it as a String, or CAST it in the SQL"
        );
        let too_large = text(Type::Integer, FromSqlError::OutOfRange(4321));
        assert!(
            too_large.contains("INTEGER does not fit into Option<u8>") && !too_large.contains("4321"),
            "{too_large}"
        );
        let size = FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: 3 };
        assert!(text(Type::Blob, size).contains("cannot be read as Option<u8>: Cannot read 16 byte value"));
    }

    #[test]
    fn the_name_of_a_type_has_no_paths() {
        let name = std::any::type_name::<Option<Vec<(String, &[u8; 3])>>>();
        assert_eq!(short_name(name), "Option<Vec<(String, &[u8; 3])>>");
    }
}
