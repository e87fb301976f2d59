//! The text forms of dates and times: the one that is written, and the ones that are read.
//!
//! Owns: `YYYY-MM-DD HH:MM:SS[.ffffff]`, in parts that the types of each crate are made of. Pure, on any thread. Invariants:
//! what is written sorts as text in the order of time, and a time of whole seconds is written as SQLite's date functions
//! write it, so it is found by its own value. Leaves out: which days a month has, which those crates check.

use rusqlite::types::{FromSqlError, FromSqlResult, ValueRef};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Date {
    pub(super) year: i32,
    pub(super) month: u8,
    pub(super) day: u8,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time {
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) nanosecond: u32,
}

/// A date and a time of day, with the seconds by which it is ahead of UTC if the text says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DateTime {
    pub(super) date: Date,
    pub(super) time: Time,
    pub(super) offset: Option<i32>,
}

/// Years of another length would not sort.
pub(super) fn write_date(date: Date) -> rusqlite::Result<String> {
    let Date { year, month, day } = date;
    if (0..=9999).contains(&year) {
        return Ok(format!("{year:04}-{month:02}-{day:02}"));
    }
    Err(refused_year())
}

/// What is below a microsecond is cut off.
pub(super) fn write_time(time: Time) -> rusqlite::Result<String> {
    let Time { hour, minute, second, nanosecond } = time;
    match nanosecond / 1000 {
        0 => Ok(format!("{hour:02}:{minute:02}:{second:02}")),
        microsecond @ ..1_000_000 => Ok(format!("{hour:02}:{minute:02}:{second:02}.{microsecond:06}")),
        _ => Err(refused("a leap second")),
    }
}

pub(super) fn write_date_time(date: Date, time: Time) -> rusqlite::Result<String> {
    Ok(format!("{} {}", write_date(date)?, write_time(time)?))
}

pub(super) fn refused_year() -> rusqlite::Error {
    refused("a year outside of 0 to 9999")
}

#[cold]
fn refused(what: &str) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(format!("{what} cannot be stored").into())
}

/// Reads a column in one of the forms: `parse` takes the text apart, `make` checks the parts.
pub(super) fn read<P, T>(
    value: ValueRef<'_>,
    form: &str,
    parse: fn(&str) -> Option<P>,
    make: impl FnOnce(P) -> Option<T>,
) -> FromSqlResult<T> {
    parse(value.as_str()?)
        .and_then(make)
        .ok_or_else(|| FromSqlError::Other(format!("it is not of the form {form}").into()))
}

/// Makes types values: each with how one is written, the form, what parses it, and what makes the type of its parts.
macro_rules! calendar_values {
    ($($type:ty: $value:ident => $written:expr, $form:ident, $parse:ident, $make:ident;)+) => {$(
        impl ToSql for $type {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                let $value = self;
                $written.map(ToSqlOutput::from)
            }
        }

        impl FromSql for $type {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                calendar::read(value, calendar::$form, calendar::$parse, $make)
            }
        }
    )+};
}

pub(super) use calendar_values;

pub(super) const DATE: &str = "YYYY-MM-DD";
pub(super) const TIME: &str = "HH:MM:SS[.ffffff]";
pub(super) const DATE_TIME: &str = "YYYY-MM-DD HH:MM:SS[.ffffff]";

pub(super) fn parse_date(text: &str) -> Option<Date> {
    let (date, rest) = take_date(text)?;
    rest.is_empty().then_some(date)
}

pub(super) fn parse_time(text: &str) -> Option<Time> {
    let (time, rest) = take_time(text)?;
    rest.is_empty().then_some(time)
}

/// Also reads what SQLite's functions, RFC 3339 and other libraries write: `T` between date and time, no seconds, fractions
/// of any length, `Z` or an offset at the end; a date alone is its midnight, as it is to SQLite's functions.
pub(super) fn parse_date_time(text: &str) -> Option<DateTime> {
    let (date, rest) = take_date(text)?;
    if rest.is_empty() {
        let midnight = Time { hour: 0, minute: 0, second: 0, nanosecond: 0 };
        return Some(DateTime { date, time: midnight, offset: None });
    }
    let (time, rest) = take_time(rest.strip_prefix([' ', 'T', 't'])?)?;
    let offset = match rest {
        "" => None,
        "Z" | "z" => Some(0),
        rest => Some(take_offset(rest)?),
    };
    Some(DateTime { date, time, offset })
}

fn take_date(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = take_number(text, 4)?;
    let (month, rest) = take_number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = take_number(rest.strip_prefix('-')?, 2)?;
    Some((Date { year: year.try_into().ok()?, month: month.try_into().ok()?, day: day.try_into().ok()? }, rest))
}

fn take_time(text: &str) -> Option<(Time, &str)> {
    let (hour, rest) = take_number(text, 2)?;
    let (minute, rest) = take_number(rest.strip_prefix(':')?, 2)?;
    let (mut second, mut rest, mut nanosecond) = (0, rest, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (second, rest) = take_number(after, 2)?;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (shown, _) = take_number(after, digits.clamp(1, 9))?;
            nanosecond = shown * 10_u32.pow(9 - u32::try_from(digits.min(9)).ok()?);
            rest = &after[digits..];
        }
    }
    let narrow = |number: u32| u8::try_from(number).ok();
    Some((Time { hour: narrow(hour)?, minute: narrow(minute)?, second: narrow(second)?, nanosecond }, rest))
}

fn take_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = take_number(rest, 2)?;
    let (minutes, rest) = take_number(rest.strip_prefix(':').unwrap_or(rest), 2)?;
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * i32::try_from(hours * 3600 + minutes * 60).ok()?)
}

/// Takes so many digits off the text.
fn take_number(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Date = Date { year: 2024, month: 2, day: 29 };
    const NOON: Time = Time { hour: 12, minute: 3, second: 4, nanosecond: 5_006_789 };

    #[test]
    fn what_is_written_has_one_form_and_is_read_again() {
        let text = write_date_time(DAY, NOON).unwrap();
        assert_eq!(text, "2024-02-29 12:03:04.005006");
        let time = Time { nanosecond: 5_006_000, ..NOON };
        assert_eq!(parse_date_time(&text), Some(DateTime { date: DAY, time, offset: None }));
        assert_eq!(parse_date(&write_date(DAY).unwrap()), Some(DAY));
        assert_eq!(parse_time(&write_time(NOON).unwrap()), Some(time));
        assert_eq!(write_date(Date { year: 7, ..DAY }).unwrap(), "0007-02-29");
    }

    #[test]
    fn a_fraction_is_written_if_it_is_not_zero_after_what_is_finer_was_cut_off() {
        let fractions = [(0, ""), (999, ""), (1000, ".000001"), (120_000_000, ".120000"), (999_999_999, ".999999")];
        for (nanosecond, fraction) in fractions {
            assert_eq!(write_time(Time { nanosecond, ..NOON }).unwrap(), format!("12:03:04{fraction}"));
        }
    }

    #[test]
    fn what_would_not_sort_is_refused() {
        for year in [-1, 10_000] {
            assert!(write_date(Date { year, ..DAY }).unwrap_err().to_string().contains("year"));
        }
        assert!(
            write_time(Time { nanosecond: 1_500_000_000, ..NOON }).unwrap_err().to_string().contains("leap second")
        );
    }

    #[test]
    fn forms_of_others_are_read_and_what_is_none_is_not() {
        let read = |text| parse_date_time(text).map(|read| (read.time.second, read.time.nanosecond, read.offset));
        for (text, expected) in [
            ("2024-02-29", (0, 0, None)),
            ("2024-02-29 12:03", (0, 0, None)),
            ("2024-02-29T12:03:04Z", (4, 0, Some(0))),
            ("2024-02-29 12:03:04.5+01:30", (4, 500_000_000, Some(5400))),
            ("2024-02-29 12:03:04.1234567891-0800", (4, 123_456_789, Some(-28_800))),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "2024-02-29 ",
            "2024-02-29T",
            "2024-02-29Z",
            "2024-2-29 12:03:04",
            "2024-02-29  12:03:04",
            "2024-02-29 12:03:04.",
            "2024-02-29 12:03:04 x",
            "2024-02-29 12:03:04+1",
            "2024-02-29 12:03:04+25:00",
            "+024-02-29 12:03:04",
            "2024-02-29 1é:03:04",
            "2024-02-29 12:03:04.é",
            "1709208184",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!((parse_date("2024-02-29 12:03"), parse_time("12:03:04Z")), (None, None));
    }
}
