//! Dates and times of crate time.
//!
//! Owns: their conversion to and from the parts of `calendar`. Runs on the thread that converts. Invariant: a time with an
//! offset is written in UTC, and one without as it is. Leaves out: the offset, which is not stored.

use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};
use time::{Month, OffsetDateTime, PrimitiveDateTime, UtcOffset};

use super::calendar::{
    self, DATE, DATE_TIME, Date, TIME, Time, output, read, refused_year, write_date, write_date_time, write_time,
};
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

fn to_date_time(parts: calendar::DateTime) -> Option<PrimitiveDateTime> {
    Some(PrimitiveDateTime::new(to_date(parts.date)?, to_time(parts.time)?))
}

/// Without an offset in the text, it is UTC.
fn to_utc(parts: calendar::DateTime) -> Option<OffsetDateTime> {
    let ahead = time::Duration::seconds(parts.offset.unwrap_or(0).into());
    Some(to_date_time(parts)?.checked_sub(ahead)?.assume_utc())
}

/// A text with an offset is no time without one.
fn to_primitive(parts: calendar::DateTime) -> Option<PrimitiveDateTime> {
    if parts.offset.is_some() { None } else { to_date_time(parts) }
}

impl ToSql for OffsetDateTime {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let utc = self.checked_to_offset(UtcOffset::UTC).ok_or_else(refused_year)?;
        output(write_date_time(date_of(utc.date()), time_of(utc.time())))
    }
}

impl FromSql for OffsetDateTime {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read(value, DATE_TIME, calendar::parse_date_time, to_utc)
    }
}

impl ToSql for PrimitiveDateTime {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        output(write_date_time(date_of(self.date()), time_of(self.time())))
    }
}

impl FromSql for PrimitiveDateTime {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read(value, DATE_TIME, calendar::parse_date_time, to_primitive)
    }
}

impl ToSql for time::Date {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        output(write_date(date_of(*self)))
    }
}

impl FromSql for time::Date {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read(value, DATE, calendar::parse_date, to_date)
    }
}

impl ToSql for time::Time {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        output(write_time(time_of(*self)))
    }
}

impl FromSql for time::Time {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        read(value, TIME, calendar::parse_time, to_time)
    }
}
