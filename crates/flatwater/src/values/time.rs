//! Dates and times of crate time.
//!
//! Owns: their conversion to and from the parts of `calendar`. Runs on the thread that converts. Invariant: a time with an
//! offset is written in UTC, and one without as it is. Leaves out: the offset, which is not stored.

use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};
use time::{Month, OffsetDateTime, PrimitiveDateTime, UtcOffset};

use super::calendar::{self, Date, Time, calendar_values, refused_year, write_date, write_date_time, write_time};
use super::convert::{FromSql, ToSql};

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
