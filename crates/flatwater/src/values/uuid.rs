//! UUIDs of crate uuid.
//!
//! Owns: their form: hyphenated text in lower case. Runs on the thread that converts. Leaves out: writing blobs of 16
//! bytes, which are read, because rusqlite and sqlx write them.

use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
use uuid::Uuid;

use super::convert::{FromSql, ToSql};

impl ToSql for Uuid {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.hyphenated().to_string()))
    }
}

impl FromSql for Uuid {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let read = match value {
            ValueRef::Blob(bytes) => Self::from_slice(bytes).ok(),
            // The error of the crate quotes the text.
            value => Self::try_parse(value.as_str()?).ok(),
        };
        read.ok_or_else(|| FromSqlError::Other("it is not a UUID".into()))
    }
}
