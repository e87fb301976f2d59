//! Values as scenarios write them.
//!
//! Owns: reading a value from JSON, binding it, and comparing it with one of SQLite. Pure. Invariant: a JSON number that
//! not every language reads as the same type is refused.
//!
//! | in JSON | is in SQLite |
//! |---|---|
//! | `null`, `"text"` | NULL, TEXT |
//! | `7`, `-1` | INTEGER, from -(2^53 - 1) to 2^53 - 1 |
//! | `1.5` | REAL, if it has a fraction |
//! | `{"int": "9223372036854775807"}` | INTEGER. Beyond 64 bits, up to 2^64 - 1, it is only a parameter, which is refused |
//! | `{"real": "1"}` | REAL; also `"Infinity"`, `"-Infinity"`, `"NaN"`, `"-0"`. Zero and minus zero are different |
//! | `{"blob": "AQI="}` | BLOB, in Base64 |
//! | `{"zeros": 1000}` | BLOB of that many zero bytes |
//! | `{"repeat": ["ab", 500]}` | TEXT: `ab`, 500 times |
//!
//! Only as parameters, because SQLite has no such type:
//!
//! | in JSON | is |
//! |---|---|
//! | `true`, `false` | the language's boolean |
//! | `{"utc": "2024-02-29T23:05:06.007+00:00"}` | its date with time and zone, to the millisecond, which every language has |
//! | `{"datetime": "2024-02-29T23:05:06.000007"}` | its date with time, without zone |
//! | `{"date": "2024-02-29"}`, `{"time": "23:05:06.000007"}` | its date; its time of day |
//! | `{"uuid": "67e55044-10b1-426f-9247-bb680e5fe0c8"}` | its UUID |
//! | `{"decimal": "12.50"}`, `{"json": [1]}` | its decimal; a document |
//!
//! In scenarios with the option `types`, which Rust does not have, results have these types too: in JavaScript a date, a time of day, a UUID
//! and a decimal are texts.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};
use flatwater::{ToSql, ValueRef};
use rusqlite::types::ToSqlOutput;
use serde::Deserialize;
use serde_json::Value as Json;
use uuid::Uuid;

/// The largest integer that every language reads from JSON without loss.
const LARGEST: i64 = (1 << 53) - 1;

/// A value of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Json")]
pub(crate) enum Value {
    Null,
    Integer(i64),
    /// Beyond 64 bits with a sign: only a parameter, and one that is refused.
    Beyond(u64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
    Boolean(bool),
    Utc(DateTime<FixedOffset>),
    DateTime(NaiveDateTime),
    Date(NaiveDate),
    Time(NaiveTime),
    Uuid(Uuid),
    /// Of scenarios with types: a decimal, a document.
    Typed(String),
}

/// A value with the name of its type: `{"blob": "AQI="}`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tagged {
    Int(String),
    Real(String),
    Blob(String),
    Zeros(usize),
    Repeat(String, usize),
    Utc(String),
    DateTime(String),
    Date(String),
    Time(String),
    Uuid(String),
    Decimal(String),
    Json(Json),
}

impl TryFrom<Json> for Value {
    type Error = String;

    fn try_from(json: Json) -> Result<Self, String> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(boolean) => Self::Boolean(boolean),
            Json::String(text) => Self::Text(text),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) if (-LARGEST..=LARGEST).contains(&integer) => Self::Integer(integer),
                (None, Some(real)) if real.fract() != 0.0 => Self::Real(real),
                _ => return Err(format!("{number}: write {{\"int\": \"...\"}} or {{\"real\": \"...\"}}")),
            },
            Json::Object(_) => serde_json::from_value::<Tagged>(json).map_err(|error| error.to_string())?.try_into()?,
            Json::Array(_) => return Err("a list is no value".to_owned()),
        })
    }
}

impl TryFrom<Tagged> for Value {
    type Error = String;

    fn try_from(tagged: Tagged) -> Result<Self, String> {
        Ok(match tagged {
            Tagged::Int(digits) => match digits.parse() {
                Ok(integer) => Self::Integer(integer),
                Err(_) => Self::Beyond(parsed(&digits)?),
            },
            Tagged::Real(text) => Self::Real(parsed(&text)?),
            Tagged::Blob(text) => Self::Blob(STANDARD.decode(text).map_err(|error| error.to_string())?),
            Tagged::Zeros(length) => Self::Blob(vec![0; length]),
            Tagged::Repeat(text, times) => Self::Text(text.repeat(times)),
            Tagged::Utc(text) => Self::Utc(parsed(&text)?),
            Tagged::DateTime(text) => Self::DateTime(parsed(&text)?),
            Tagged::Date(text) => Self::Date(parsed(&text)?),
            Tagged::Time(text) => Self::Time(parsed(&text)?),
            Tagged::Uuid(text) => Self::Uuid(parsed(&text)?),
            Tagged::Decimal(digits) => Self::Typed(digits),
            Tagged::Json(document) => Self::Typed(document.to_string()),
        })
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(ToSqlOutput::Borrowed(ValueRef::Null)),
            Self::Integer(integer) => integer.to_sql(),
            Self::Beyond(beyond) => beyond.to_sql(),
            Self::Real(real) => real.to_sql(),
            Self::Text(text) | Self::Typed(text) => text.to_sql(),
            Self::Blob(bytes) => bytes.to_sql(),
            Self::Boolean(boolean) => boolean.to_sql(),
            Self::Utc(utc) => utc.to_sql(),
            Self::DateTime(datetime) => datetime.to_sql(),
            Self::Date(date) => date.to_sql(),
            Self::Time(time) => time.to_sql(),
            Self::Uuid(uuid) => uuid.to_sql(),
        }
    }
}

impl Value {
    /// The bytes of a text or a blob.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
            _ => &[],
        }
    }

    /// Returns true if `stored` is of the same type and the same bits.
    pub(crate) fn is(&self, stored: ValueRef<'_>) -> bool {
        match (self, stored) {
            (Self::Null, ValueRef::Null) => true,
            (Self::Integer(expected), ValueRef::Integer(is)) => *expected == is,
            (Self::Real(expected), ValueRef::Real(is)) => expected.to_bits() == is.to_bits(),
            (Self::Text(expected), ValueRef::Text(is)) => expected.as_bytes() == is,
            (Self::Blob(expected), ValueRef::Blob(is)) => expected == is,
            _ => false,
        }
    }
}
