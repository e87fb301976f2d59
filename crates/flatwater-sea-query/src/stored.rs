//! The form in which a value of sea-query is stored: that of the same value in any other call.

use flatwater::ToSql;
use flatwater::rusqlite::types::{ToSqlOutput, Value as Owned};
use flatwater::rusqlite::{Error, Result};
use sea_query::{OptionEnum, Value};

#[cfg(feature = "with-jiff")]
const NULL: ToSqlOutput<'static> = ToSqlOutput::Owned(Owned::Null);

/// A value that is bound.
pub(crate) struct Stored<'a>(pub(crate) &'a Value);

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self.0 {
            Value::Bool(value) => value.to_sql(),
            Value::TinyInt(value) => value.to_sql(),
            Value::SmallInt(value) => value.to_sql(),
            Value::Int(value) => value.to_sql(),
            Value::BigInt(value) => value.to_sql(),
            Value::TinyUnsigned(value) => value.to_sql(),
            Value::SmallUnsigned(value) => value.to_sql(),
            Value::Unsigned(value) => value.to_sql(),
            Value::BigUnsigned(value) => value.to_sql(),
            Value::Float(value) => value.to_sql(),
            Value::Double(value) => value.to_sql(),
            Value::String(value) => value.to_sql(),
            Value::Char(value) => Ok(text(*value)),
            Value::Bytes(value) => value.to_sql(),
            Value::Enum(OptionEnum::Some(value)) => Ok(text(Some(&value.value))),
            Value::Enum(OptionEnum::None(_)) => Ok(text(None::<char>)),
            #[cfg(feature = "with-json")]
            Value::Json(value) => Ok(text(value.as_ref())),
            #[cfg(feature = "with-chrono")]
            Value::ChronoDate(value) => value.to_sql(),
            #[cfg(feature = "with-chrono")]
            Value::ChronoTime(value) => value.to_sql(),
            #[cfg(feature = "with-chrono")]
            Value::ChronoDateTime(value) => value.to_sql(),
            #[cfg(feature = "with-chrono")]
            Value::ChronoDateTimeUtc(value) => value.to_sql(),
            #[cfg(feature = "with-chrono")]
            Value::ChronoDateTimeLocal(value) => value.to_sql(),
            #[cfg(feature = "with-chrono")]
            Value::ChronoDateTimeWithTimeZone(value) => value.to_sql(),
            #[cfg(feature = "with-time")]
            Value::TimeDate(value) => value.to_sql(),
            #[cfg(feature = "with-time")]
            Value::TimeTime(value) => value.to_sql(),
            #[cfg(feature = "with-time")]
            Value::TimeDateTime(value) => value.to_sql(),
            #[cfg(feature = "with-time")]
            Value::TimeDateTimeWithTimeZone(value) => value.to_sql(),
            #[cfg(feature = "with-jiff")]
            Value::JiffDate(value) => value.to_sql(),
            #[cfg(feature = "with-jiff")]
            Value::JiffTime(value) => value.to_sql(),
            #[cfg(feature = "with-jiff")]
            Value::JiffDateTime(value) => value.as_deref().map_or_else(|| Ok(NULL), ToSql::to_sql),
            #[cfg(feature = "with-jiff")]
            Value::JiffTimestamp(value) => value.as_deref().map_or_else(|| Ok(NULL), ToSql::to_sql),
            #[cfg(feature = "with-rust_decimal")]
            Value::Decimal(value) => value.to_sql(),
            #[cfg(feature = "with-uuid")]
            Value::Uuid(value) => value.to_sql(),
            // Of other databases, or of a crate whose feature another package has turned on in sea-query alone.
            #[allow(unreachable_patterns, reason = "which variants there are depends on the features of the program")]
            _ => Err(Error::ToSqlConversionFailure(
                "it is of a kind that SQLite does not store, or its feature of flatwater-sea-query is off".into(),
            )),
        }
    }
}

fn text(value: Option<impl ToString>) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(value.map_or(Owned::Null, |value| Owned::Text(value.to_string())))
}
