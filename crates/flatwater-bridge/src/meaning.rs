//! Standard types: what the values of a column mean, by its declared type or as the program says, and reading one.
//!
//! Owns: the meanings, their words, which are the same in every language, and the forms in which each is read. Pure, on any
//! thread. Invariant: a value is what its meaning says or an error, whose text has no value in it; no clock and no time zone of the
//! process is asked. Leaves out: the objects of a language, parsing JSON, and what is bound, whose forms are `flatwater`'s.

use std::borrow::Cow;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};
use flatwater::bindings::{after_the_write, cell, is_of_write};
use flatwater::values::Column;
use flatwater::{Error, ErrorCode, FromSql, Rows, ValueRef};
use uuid::Uuid;

use crate::decimals::digits;
use crate::nearest_name::unknown;

/// What the values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// 0 or 1.
    Boolean,
    /// A day, without a time.
    Date,
    /// A time of day, without a zone.
    Time,
    /// A moment, in UTC.
    Datetime,
    /// A document.
    Json,
    /// A text or 16 bytes.
    Uuid,
    /// A number with all its digits.
    Decimal,
    /// A number of seconds since 1970, which is a moment.
    UnixSeconds,
    /// The same of milliseconds.
    UnixMilliseconds,
    /// A number of days, as `julianday()` returns it. <https://sqlite.org/lang_datefunc.html>
    JulianDay,
}

/// The words, with the first word of the declared types that mean so.
const WORDS: &[(Meaning, &str, &[&str])] = &[
    (Meaning::Boolean, "boolean", &["BOOLEAN", "BOOL"]),
    (Meaning::Date, "date", &["DATE"]),
    (Meaning::Time, "time", &["TIME"]),
    (Meaning::Datetime, "datetime", &["DATETIME", "TIMESTAMP", "TIMESTAMPTZ"]),
    (Meaning::Json, "json", &["JSON"]),
    (Meaning::Uuid, "uuid", &["UUID"]),
    (Meaning::Decimal, "decimal", &["DECIMAL", "NUMERIC"]),
    (Meaning::UnixSeconds, "unix_seconds", &[]),
    (Meaning::UnixMilliseconds, "unix_milliseconds", &[]),
    (Meaning::JulianDay, "julian_day", &[]),
];

/// The word for values as SQLite stores them.
const STORED: &str = "stored";

/// A value as its meaning has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Meant<'a> {
    /// NULL, whatever the column means.
    Null,
    /// A truth.
    Boolean(bool),
    /// A day.
    Date(NaiveDate),
    /// A time of day.
    Time(NaiveTime),
    /// In UTC.
    Datetime(NaiveDateTime),
    /// The text of a document, which was not parsed.
    Json(&'a str),
    /// A document that is a number: SQLite makes one of its text in a column without affinity to texts.
    Integer(i64),
    /// The same, and it is finite.
    Real(f64),
    /// Its bytes.
    Uuid([u8; 16]),
    /// The digits of a number.
    Decimal(Cow<'a, str>),
}

impl Meaning {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(meaning, ..)| *meaning == self).map_or(STORED, |(_, word, _)| word)
    }

    /// Returns what a word means; `None` for values as they are stored.
    ///
    /// # Errors
    /// For another word, with the nearest one.
    pub fn of_word(word: &str) -> Result<Option<Self>, String> {
        match WORDS.iter().find(|(_, known, _)| *known == word) {
            Some((meaning, ..)) => Ok(Some(*meaning)),
            None if word == STORED => Ok(None),
            None => Err(unknown("type", word, words())),
        }
    }

    /// Returns what a declared type means, if it is one of the standard types.
    #[must_use]
    pub fn of_declared(declared: &str) -> Option<Self> {
        let first = declared.split(|c: char| c.is_ascii_whitespace() || c == '(').find(|word| !word.is_empty())?;
        let is_it = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(first));
        WORDS.iter().find(|(_, _, names)| is_it(names)).map(|(meaning, ..)| *meaning)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Why it has not this meaning.
    pub fn read(self, value: ValueRef<'_>) -> Result<Meant<'_>, &'static str> {
        if value == ValueRef::Null {
            return Ok(Meant::Null);
        }
        match self {
            Self::Boolean => match value {
                ValueRef::Integer(number @ 0..=1) => Ok(Meant::Boolean(number == 1)),
                _ => Err("it is neither 0 nor 1"),
            },
            Self::Date => parsed(value, Meant::Date, "it is not of the form YYYY-MM-DD"),
            Self::Time => parsed(value, Meant::Time, "it is not of the form HH:MM:SS[.ffffff]"),
            Self::Datetime if is_number(value) => Err("a number does not say what it counts"),
            Self::Datetime => {
                let why = "it is not of the form YYYY-MM-DD HH:MM:SS[.ffffff], with or without an offset";
                match NaiveDateTime::column_result(value) {
                    Ok(moment) => in_range(Some(moment)).ok_or(why),
                    Err(_) => Err(why),
                }
            }
            Self::Json => json(value),
            Self::Uuid => parsed(value, |uuid: Uuid| Meant::Uuid(uuid.into_bytes()), "it is not a UUID"),
            Self::Decimal => digits(value).map(Meant::Decimal),
            Self::UnixSeconds => moment(value, |number| number.checked_mul(1_000_000), |number| whole(number * 1e6)),
            Self::UnixMilliseconds => moment(value, |number| number.checked_mul(1000), |number| whole(number * 1e3)),
            Self::JulianDay => moment(value, |days| of_julian(days as f64), of_julian),
        }
    }
}

/// What a program said of the types of a result's columns: the declared types count, but for columns that it names.
#[derive(Debug, Clone, Default)]
pub struct Types {
    named: Vec<(Box<str>, Option<Meaning>)>,
}

impl Types {
    /// Says what a column means. `name` is that of a result's column, or of a table and its column: `events.at`.
    ///
    /// # Errors
    /// For an unknown word.
    pub fn name(&mut self, name: &str, word: &str) -> Result<(), String> {
        self.named.push((name.into(), Meaning::of_word(word)?));
        Ok(())
    }

    /// The same types; of a column that both name `others` say nothing.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        self.named.extend_from_slice(&others.named);
        self
    }

    /// What a column means, if it is more than what SQLite stores.
    #[must_use]
    pub fn of(&self, column: Column<'_>) -> Option<Meaning> {
        match self.named.iter().find(|(name, _)| is_name_of(name, column)) {
            Some((_, meaning)) => *meaning,
            None => Meaning::of_declared(column.decl_type()?),
        }
    }

    /// Returns a name that no column of the result has.
    #[must_use]
    pub fn unused(&self, rows: &Rows) -> Option<&str> {
        let is_used = |name: &str| {
            (0..rows.columns().len()).filter_map(|at| rows.column(at).ok()).any(|one| is_name_of(name, one))
        };
        self.named.iter().map(|(name, _)| &**name).find(|name| !is_used(name))
    }
}

/// All words.
pub fn words() -> impl Iterator<Item = &'static str> + Clone {
    WORDS.iter().map(|(_, word, _)| *word).chain([STORED])
}

/// Returns the error for a value of a result that has not this meaning. `before` is the number of rows before the result's own.
#[must_use]
pub fn unreadable(rows: &Rows, (row, column): (usize, usize), before: usize, meaning: Meaning, why: &str) -> Error {
    let kind = cell(rows, row, column).data_type().to_string().to_uppercase();
    let name = rows.columns().nth(column).unwrap_or_default();
    let number = row + before;
    let message =
        format!("column {column} ({name}): {kind} cannot be read as {}: {why} (row {number})", meaning.word());
    let mut error = rows.explain(Error::new(ErrorCode::UnreadableValue, message));
    if is_of_write(rows) {
        error = after_the_write(error);
    }
    match meaning {
        Meaning::Datetime if kind == "INTEGER" || kind == "REAL" => error.with_hint(
            "say what it counts: \"unix_seconds\", \"unix_milliseconds\" or \"julian_day\" for this column in `types`",
        ),
        Meaning::Json if kind == "BLOB" => error.with_hint("select json(column), if it is SQLite's binary JSON"),
        _ => error.with_hint("\"stored\" for this column in `types` reads the value as it is stored"),
    }
}

fn is_name_of(name: &str, column: Column<'_>) -> bool {
    if name.eq_ignore_ascii_case(column.name()) {
        return true;
    }
    let (Some(table), Some(origin)) = (column.table_name(), column.origin_name()) else { return false };
    let of_table = |length| name.split_at_checked(length).filter(|(start, _)| start.eq_ignore_ascii_case(table));
    of_table(table.len())
        .and_then(|(_, rest)| rest.strip_prefix('.'))
        .is_some_and(|rest| rest.eq_ignore_ascii_case(origin))
}

fn is_number(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Integer(_) | ValueRef::Real(_))
}

fn parsed<T: FromSql>(
    value: ValueRef<'_>,
    make: impl FnOnce(T) -> Meant<'static>,
    why: &'static str,
) -> Result<Meant<'static>, &'static str> {
    T::column_result(value).map(make).map_err(|_| why)
}

/// An offset may lead out of the years that the forms have.
fn in_range(moment: Option<NaiveDateTime>) -> Option<Meant<'static>> {
    moment.filter(|moment| (0..=9999).contains(&moment.year())).map(Meant::Datetime)
}

fn json(value: ValueRef<'_>) -> Result<Meant<'_>, &'static str> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).map(Meant::Json).map_err(|_| "it is not UTF-8"),
        ValueRef::Integer(number) => Ok(Meant::Integer(number)),
        ValueRef::Real(number) if number.is_finite() => Ok(Meant::Real(number)),
        ValueRef::Real(_) => Err("infinity is not JSON"),
        _ => Err("it is not JSON text"),
    }
}

/// A number as a moment. What is finer than a microsecond is rounded.
fn moment(
    value: ValueRef<'_>,
    of_integer: impl FnOnce(i64) -> Option<i64>,
    of_real: impl FnOnce(f64) -> Option<i64>,
) -> Result<Meant<'static>, &'static str> {
    let microseconds = match value {
        ValueRef::Integer(number) => of_integer(number),
        ValueRef::Real(number) => of_real(number),
        _ => return Err("it is not a number"),
    };
    let moment = microseconds.and_then(DateTime::from_timestamp_micros).map(|moment| moment.naive_utc());
    in_range(moment).ok_or("it is outside of the years 0 to 9999")
}

/// The microseconds since 1970, in whole milliseconds, as SQLite has them: <https://sqlite.org/lang_datefunc.html#time_values>
fn of_julian(days: f64) -> Option<i64> {
    whole(days * 86_400_000.0)?.checked_sub(210_866_760_000_000)?.checked_mul(1000)
}

/// Rounds to an integer that a float has exactly.
fn whole(number: f64) -> Option<i64> {
    let rounded = number.round();
    (rounded.abs() <= 9.0e18).then_some(rounded as i64)
}

#[cfg(test)]
mod tests {
    use chrono::Timelike;

    use super::*;

    fn text(text: &str) -> ValueRef<'_> {
        ValueRef::Text(text.as_bytes())
    }

    fn at(value: ValueRef<'_>, meaning: Meaning) -> Result<String, &'static str> {
        match meaning.read(value)? {
            Meant::Datetime(moment) => {
                let seconds = moment.time().with_nanosecond(0).unwrap();
                Ok(format!("{} {seconds}.{:06}", moment.date(), moment.nanosecond() / 1000))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_word_of_a_declared_type_counts_in_any_case() {
        for (declared, meaning) in [
            ("BOOLEAN", Some(Meaning::Boolean)),
            ("bool", Some(Meaning::Boolean)),
            ("Timestamp with time zone", Some(Meaning::Datetime)),
            ("DATETIME(6)", Some(Meaning::Datetime)),
            ("DECIMAL TEXT", Some(Meaning::Decimal)),
            ("numeric (10, 2)", Some(Meaning::Decimal)),
            ("DATES", None),
            ("LONG DATE", None),
            ("INTEGER", None),
            ("JSONB", None),
            ("", None),
        ] {
            assert_eq!(Meaning::of_declared(declared), meaning, "{declared}");
        }
    }

    #[test]
    fn every_word_is_read_again_and_another_one_names_the_nearest() {
        for (meaning, word, _) in WORDS {
            assert_eq!((Meaning::of_word(word), meaning.word()), (Ok(Some(*meaning)), *word));
        }
        assert_eq!(Meaning::of_word("stored"), Ok(None));
        assert!(Meaning::of_word("datetim").unwrap_err().contains("\"datetime\""));
    }

    #[test]
    fn times_are_the_moments_that_sqlite_says() {
        let db = flatwater::rusqlite::Connection::open_in_memory().unwrap();
        let sqlite = |sql: &str| db.query_row(sql, (), |row| row.get::<_, String>(0)).unwrap();
        for number in [0, -1, 1_709_208_184, -62_167_219_200, 253_402_300_799] {
            let expected = format!("{}.000000", sqlite(&format!("SELECT datetime({number}, 'unixepoch')")));
            assert_eq!(at(ValueRef::Integer(number), Meaning::UnixSeconds), Ok(expected.clone()));
            assert_eq!(at(ValueRef::Integer(number * 1000), Meaning::UnixMilliseconds), Ok(expected.clone()));
            assert_eq!(at(ValueRef::Real(number as f64), Meaning::UnixSeconds), Ok(expected));
        }
        for day in [0.0_f64, 1721059.5, 2440587.5, 2_460_370.002_123_4, 5_373_484.499_999] {
            let sql = format!("SELECT strftime('%Y-%m-%d %H:%M:%f', {day})");
            match at(ValueRef::Real(day), Meaning::JulianDay) {
                // Before the year 0 SQLite counts on.
                Err(why) => assert!(day < 1_721_059.5 && why.contains("years"), "{day}"),
                Ok(read) => assert_eq!(read, format!("{}000", sqlite(&sql)), "{day}"),
            }
        }
        assert_eq!(at(ValueRef::Real(0.5), Meaning::UnixSeconds).unwrap(), "1970-01-01 00:00:00.500000");
        for value in [ValueRef::Integer(i64::MAX), ValueRef::Real(f64::INFINITY), ValueRef::Integer(253_402_300_800)] {
            assert!(at(value, Meaning::UnixSeconds).unwrap_err().contains("years"));
        }
        assert!(at(text("0"), Meaning::UnixSeconds).unwrap_err().contains("number"));
        for (written, read) in [
            ("2024-02-29", "2024-02-29 00:00:00.000000"),
            ("2024-02-29T23:05", "2024-02-29 23:05:00.000000"),
            ("2024-02-29 23:05:06.1234567", "2024-02-29 23:05:06.123456"),
            ("2024-02-29 23:05:06+01:30", "2024-02-29 21:35:06.000000"),
            ("2024-02-29 23:05:06Z", "2024-02-29 23:05:06.000000"),
        ] {
            assert_eq!(at(text(written), Meaning::Datetime), Ok(read.to_owned()));
        }
        for none in
            ["", "now", "12:00", "2024-02-30", "2024-02-29 24:00:00", "2024-02-29 23:05:60", "9999-12-31 23:00-02:00"]
        {
            assert!(at(text(none), Meaning::Datetime).unwrap_err().contains("form"), "{none}");
        }
        assert!(at(ValueRef::Integer(2_460_370), Meaning::Datetime).unwrap_err().contains("count"));
        assert!(at(ValueRef::Blob(b"2024-02-29"), Meaning::Datetime).is_err());
    }

    #[test]
    fn other_values_are_read_or_refused() {
        let read = Meaning::read;
        assert_eq!(read(Meaning::Boolean, ValueRef::Integer(1)), Ok(Meant::Boolean(true)));
        for wrong in [ValueRef::Integer(2), ValueRef::Real(1.0), text("true")] {
            assert!(read(Meaning::Boolean, wrong).is_err());
        }
        assert!(read(Meaning::Date, text("2024-02-29 00:00:00")).is_err());
        assert!(read(Meaning::Time, text("23:05:06Z")).is_err());
        let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        let Ok(Meant::Uuid(bytes)) = read(Meaning::Uuid, text(uuid)) else { panic!() };
        assert_eq!(read(Meaning::Uuid, ValueRef::Blob(&bytes)), Ok(Meant::Uuid(bytes)));
        assert!(read(Meaning::Uuid, ValueRef::Integer(1)).is_err());
        for (value, digits) in [
            (ValueRef::Integer(-7), "-7"),
            (ValueRef::Real(0.1), "0.1"),
            (ValueRef::Real(1e22), "10000000000000000000000"),
            (text("-0012.50"), "-0012.50"),
        ] {
            assert_eq!(read(Meaning::Decimal, value), Ok(Meant::Decimal(digits.into())));
        }
        for none in ["", ".", "1.", ".5", "1e5", "NaN", "1_0", " 1", "1,5"] {
            assert!(read(Meaning::Decimal, text(none)).is_err(), "{none}");
        }
        assert!(read(Meaning::Decimal, ValueRef::Real(f64::INFINITY)).is_err());
        assert!(read(Meaning::Json, ValueRef::Blob(b"{}")).is_err());
        for (meaning, ..) in WORDS {
            assert_eq!(meaning.read(ValueRef::Null), Ok(Meant::Null));
        }
    }
}
