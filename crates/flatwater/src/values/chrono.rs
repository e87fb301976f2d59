//! Dates and times of crate chrono.
//!
//! Owns: their conversion to and from the parts of `calendar`. Runs on the thread that converts. Invariant: a time with a
//! zone is written in UTC, and one without as it is. Leaves out: `DateTime<Local>` and other zones as columns, because the
//! zone is not stored.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike, Utc};
use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};

use super::calendar::{self, Date, Time, calendar_values, write_date, write_date_time, write_time};
use super::convert::{FromSql, ToSql};

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
