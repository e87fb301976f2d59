//! Values that are stored as JSON text.
//!
//! Owns: `Json`. Runs on the thread that converts the value. Invariant: no error has a part of the JSON in it. Leaves
//! out: SQLite's JSON functions and its own binary form, JSONB.

use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::convert::{FromSql, ToSql};

/// A value that is stored as JSON text: `(Json(&settings),)` as parameters, `Json<Settings>` as a column.
///
/// NULL is read as `null`. A number is read too, because a column that is declared `JSON` has numeric affinity, and
/// SQLite then stores the text of a number as that number. SQLite's binary form must be converted by the query: `json(x)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        text.map(ToSqlOutput::from).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let read = match value {
            ValueRef::Text(text) => serde_json::from_slice(text),
            ValueRef::Null => serde_json::from_slice(b"null"),
            ValueRef::Integer(number) => serde_json::from_value(number.into()),
            ValueRef::Real(number) if !number.is_finite() => return Err(refused("infinity is not JSON")),
            ValueRef::Real(number) => serde_json::from_value(number.into()),
            ValueRef::Blob(_) => return Err(refused("a BLOB is not JSON text; if it is JSONB, select json(column)")),
        };
        read.map(Json).map_err(|error| explain(&error))
    }
}

/// serde_json's own message may quote the value.
#[cold]
fn explain(error: &serde_json::Error) -> FromSqlError {
    let place = format!("at line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Data => refused(&format!("the JSON does not fit the type {place}")),
        _ => refused(&format!("the JSON is malformed {place}")),
    }
}

fn refused(why: &str) -> FromSqlError {
    FromSqlError::Other(why.into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(value: ValueRef<'_>) -> FromSqlResult<T> {
        Json::column_result(value).map(|json| json.0)
    }

    #[test]
    fn what_was_written_is_read_and_null_and_numbers_are_too() {
        let value = json!({"a": [1, 2.5, null, "é"]});
        let json = Json(&value);
        let ToSqlOutput::Owned(rusqlite::types::Value::Text(text)) = json.to_sql().unwrap() else { panic!("no text") };
        assert_eq!(read::<Value>(ValueRef::Text(text.as_bytes())), Ok(value));
        assert_eq!(read::<Option<i64>>(ValueRef::Null), Ok(None));
        assert_eq!(read::<i64>(ValueRef::Integer(5)), Ok(5));
        assert_eq!(read::<f64>(ValueRef::Real(0.5)), Ok(0.5));
    }

    #[test]
    fn no_error_quotes_the_json() {
        for text in ["\"hunter2\"", "{\"hunter2\": 1", "hunter2"] {
            let error = read::<Vec<u8>>(ValueRef::Text(text.as_bytes())).unwrap_err().to_string();
            assert!(error.contains("line 1") && !error.contains("hunter"), "{error}");
        }
        assert!(read::<Value>(ValueRef::Blob(b"{}")).unwrap_err().to_string().contains("json(column)"));
    }
}
