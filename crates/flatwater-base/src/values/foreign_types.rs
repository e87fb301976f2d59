//! Values of other crates' types, each with the feature of its crate: dates and times of `chrono`, `time` and `jiff`, UUIDs of `uuid`, decimals
//! of `rust_decimal`, bytes of `bytes`, and what is stored as JSON text (`serde_json`).
//!
//! Owns: their forms, which are Flatwater's own. Runs on the thread that converts the value. Invariants: a time with a zone or an offset
//! is written in UTC, and one without as it is; a UUID is hyphenated text in lower case; a decimal is text, with its digits; no error has a part of
//! JSON in it. Leaves out:
//! the texts of dates and times (`calendar`); zones and offsets, which are not stored, and so `DateTime<Local>` as a column; writing
//! UUIDs as blobs of 16 bytes, which are read, because rusqlite and sqlx write them; SQLite's JSON functions and its own
//! binary form, JSONB.

#[cfg(feature = "serde_json")]
pub use of_serde_json::Json;

#[cfg(feature = "chrono")]
mod of_chrono {
    use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike, Utc};
    use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};

    use crate::values::calendar::{self, Date, Time, calendar_values, write_date, write_date_time, write_time};
    use crate::values::convert::{FromSql, ToSql};

    fn date_of(date: NaiveDate) -> Date {
        let narrow = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        Date { year: date.year(), month: narrow(date.month()), day: narrow(date.day()) }
    }

    fn time_of(time: NaiveTime) -> Time {
        let narrow = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
        let (hour, minute, second) = (narrow(time.hour()), narrow(time.minute()), narrow(time.second()));
        Time { hour, minute, second, nanosecond: time.nanosecond() }
    }

    fn to_date(date: Date) -> Option<NaiveDate> {
        NaiveDate::from_ymd_opt(date.year, date.month.into(), date.day.into())
    }

    fn to_time(time: Time) -> Option<NaiveTime> {
        NaiveTime::from_hms_nano_opt(time.hour.into(), time.minute.into(), time.second.into(), time.nanosecond)
    }

    /// A text with an offset is the moment in UTC, as a time with a zone is written.
    fn to_naive(parts: calendar::DateTime) -> Option<NaiveDateTime> {
        let ahead = TimeDelta::seconds(parts.offset.unwrap_or(0).into());
        to_date(parts.date)?.and_time(to_time(parts.time)?).checked_sub_signed(ahead)
    }

    /// Without an offset in the text, it is UTC.
    fn to_utc(parts: calendar::DateTime) -> Option<DateTime<Utc>> {
        Some(to_naive(parts)?.and_utc())
    }

    impl<Z: TimeZone> ToSql for DateTime<Z> {
        fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
            let utc = self.naive_utc();
            write_date_time(date_of(utc.date()), time_of(utc.time())).map(ToSqlOutput::from)
        }
    }

    impl FromSql for DateTime<Utc> {
        fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
            calendar::read(value, calendar::DATE_TIME, calendar::parse_date_time, to_utc)
        }
    }

    calendar_values! {
        NaiveDateTime: it => write_date_time(date_of(it.date()), time_of(it.time())), DATE_TIME, parse_date_time, to_naive;
        NaiveDate: it => write_date(date_of(*it)), DATE, parse_date, to_date;
        NaiveTime: it => write_time(time_of(*it)), TIME, parse_time, to_time;
    }
}

#[cfg(feature = "time")]
mod of_time {
    use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};
    use time::{Month, OffsetDateTime, PrimitiveDateTime, UtcOffset};

    use crate::values::calendar::{
        self, Date, Time, calendar_values, refused_year, write_date, write_date_time, write_time,
    };
    use crate::values::convert::{FromSql, ToSql};

    fn date_of(date: time::Date) -> Date {
        Date { year: date.year(), month: date.month().into(), day: date.day() }
    }

    fn time_of(time: time::Time) -> Time {
        let (hour, minute, second, nanosecond) = time.as_hms_nano();
        Time { hour, minute, second, nanosecond }
    }

    fn to_date(date: Date) -> Option<time::Date> {
        time::Date::from_calendar_date(date.year, Month::try_from(date.month).ok()?, date.day).ok()
    }

    fn to_time(time: Time) -> Option<time::Time> {
        time::Time::from_hms_nano(time.hour, time.minute, time.second, time.nanosecond).ok()
    }

    /// A text with an offset is the moment in UTC, as a time with an offset is written.
    fn to_primitive(parts: calendar::DateTime) -> Option<PrimitiveDateTime> {
        let ahead = time::Duration::seconds(parts.offset.unwrap_or(0).into());
        PrimitiveDateTime::new(to_date(parts.date)?, to_time(parts.time)?).checked_sub(ahead)
    }

    /// Without an offset in the text, it is UTC.
    fn to_utc(parts: calendar::DateTime) -> Option<OffsetDateTime> {
        Some(to_primitive(parts)?.assume_utc())
    }

    fn write_utc(value: &OffsetDateTime) -> rusqlite::Result<String> {
        let utc = value.checked_to_offset(UtcOffset::UTC).ok_or_else(refused_year)?;
        write_date_time(date_of(utc.date()), time_of(utc.time()))
    }

    calendar_values! {
        OffsetDateTime: it => write_utc(it), DATE_TIME, parse_date_time, to_utc;
        PrimitiveDateTime: it => write_date_time(date_of(it.date()), time_of(it.time())), DATE_TIME, parse_date_time, to_primitive;
        time::Date: it => write_date(date_of(*it)), DATE, parse_date, to_date;
        time::Time: it => write_time(time_of(*it)), TIME, parse_time, to_time;
    }
}

#[cfg(feature = "jiff")]
mod of_jiff {
    use jiff::civil;
    use jiff::tz::TimeZone;
    use jiff::{SignedDuration, Timestamp, Zoned};
    use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};

    use crate::values::calendar::{self, Date, Time, calendar_values, write_date, write_date_time, write_time};
    use crate::values::convert::{FromSql, ToSql};

    fn date_of(date: civil::Date) -> Date {
        let narrow = |number: i8| u8::try_from(number).unwrap_or(u8::MAX);
        Date { year: date.year().into(), month: narrow(date.month()), day: narrow(date.day()) }
    }

    fn time_of(time: civil::Time) -> Time {
        let narrow = |number: i8| u8::try_from(number).unwrap_or(u8::MAX);
        let (hour, minute, second) = (narrow(time.hour()), narrow(time.minute()), narrow(time.second()));
        Time { hour, minute, second, nanosecond: time.subsec_nanosecond().cast_unsigned() }
    }

    fn to_date(date: Date) -> Option<civil::Date> {
        let narrow = |number: u8| i8::try_from(number).ok();
        civil::Date::new(date.year.try_into().ok()?, narrow(date.month)?, narrow(date.day)?).ok()
    }

    fn to_time(time: Time) -> Option<civil::Time> {
        let narrow = |number: u8| i8::try_from(number).ok();
        let nanosecond = time.nanosecond.try_into().ok()?;
        civil::Time::new(narrow(time.hour)?, narrow(time.minute)?, narrow(time.second)?, nanosecond).ok()
    }

    /// A text with an offset is the moment in UTC, as a time with a zone is written.
    fn to_civil(parts: calendar::DateTime) -> Option<civil::DateTime> {
        let ahead = SignedDuration::from_secs(parts.offset.unwrap_or(0).into());
        to_date(parts.date)?.to_datetime(to_time(parts.time)?).checked_sub(ahead).ok()
    }

    /// Without an offset in the text, it is UTC.
    fn to_timestamp(parts: calendar::DateTime) -> Option<Timestamp> {
        TimeZone::UTC.to_timestamp(to_civil(parts)?).ok()
    }

    fn write_utc(value: Timestamp) -> rusqlite::Result<String> {
        let utc = TimeZone::UTC.to_datetime(value);
        write_date_time(date_of(utc.date()), time_of(utc.time()))
    }

    impl ToSql for Zoned {
        fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
            write_utc(self.timestamp()).map(ToSqlOutput::from)
        }
    }

    calendar_values! {
        Timestamp: it => write_utc(*it), DATE_TIME, parse_date_time, to_timestamp;
        civil::DateTime: it => write_date_time(date_of(it.date()), time_of(it.time())), DATE_TIME, parse_date_time, to_civil;
        civil::Date: it => write_date(date_of(*it)), DATE, parse_date, to_date;
        civil::Time: it => write_time(time_of(*it)), TIME, parse_time, to_time;
    }
}

#[cfg(feature = "rust_decimal")]
mod of_rust_decimal {
    use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
    use rust_decimal::Decimal;

    use crate::values::convert::{FromSql, ToSql};

    impl ToSql for Decimal {
        fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
            Ok(ToSqlOutput::from(self.to_string()))
        }
    }

    /// A column with numeric affinity has made a number of the text: an integer, or what is closest to it in 15 digits.
    impl FromSql for Decimal {
        fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
            let read = match value {
                ValueRef::Integer(number) => return Ok(number.into()),
                ValueRef::Real(number) => Self::from_str_exact(&number.to_string()),
                value => Self::from_str_exact(value.as_str()?),
            };
            // The error of the crate may quote the text.
            read.map_err(|_| FromSqlError::Other("it is not a decimal of at most 28 digits".into()))
        }
    }
}

#[cfg(feature = "bytes")]
mod of_bytes {
    use bytes::Bytes;
    use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};

    use crate::values::convert::{FromSql, ToSql};

    impl ToSql for Bytes {
        fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
            Ok(ToSqlOutput::from(&**self))
        }
    }

    impl FromSql for Bytes {
        fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
            value.as_blob().map(Self::copy_from_slice)
        }
    }
}

#[cfg(feature = "uuid")]
mod of_uuid {
    use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
    use uuid::Uuid;

    use crate::values::convert::{FromSql, ToSql};

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
}

#[cfg(feature = "serde_json")]
mod of_serde_json {
    use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::error::Category;

    use crate::values::convert::{FromSql, ToSql};

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
                ValueRef::Blob(_) => {
                    return Err(refused("a BLOB is not JSON text; if it is JSONB, select json(column)"));
                }
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
}

#[cfg(all(test, feature = "serde_json"))]
mod tests {
    use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::Json;
    use crate::values::convert::{FromSql, ToSql};

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
