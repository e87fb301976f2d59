//! The forms of values in a chunk of rows (`flat`).
//!
//! Owns: which form a value has, by its kind, its column's meaning and what becomes of integers. Pure, on any thread. Invariant: no integer
//! is a number that is not exactly it.

use flatwater::ValueRef;

use crate::meaning::Meaning;

/// Up to here all integers are exact as a number of 64 bits.
const EXACT: i64 = 1 << 53;

/// Returns the integer as a number, if that is exactly it and no other integer.
#[must_use]
pub fn exact(integer: i64) -> Option<f64> {
    (-EXACT..=EXACT).contains(&integer).then_some(integer as f64)
}

/// What becomes of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Integers {
    /// Numbers. One beyond 2^53 is refused.
    #[default]
    Exact,
    /// Numbers, and those beyond 2^53 integers of 64 bits.
    Auto,
    /// Integers of 64 bits.
    Big,
}

/// The form of a column, or of a value in a mixed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// All values are NULL.
    Null = 0,
    /// Numbers.
    Number = 1,
    /// The end of each in the text of the chunk.
    Text = 2,
    /// The end of each in the bytes of the chunk.
    Blob = 3,
    /// The bits of an integer.
    Big = 4,
    /// Two cells for each value: its form, and what that says.
    Mixed = 5,
    /// 0 or 1.
    Boolean = 6,
    /// Milliseconds since 1970, in UTC.
    Moment = 7,
    /// The end of the text of each document in the text of the chunk.
    Json = 8,
}

pub(crate) fn form_of(value: ValueRef<'_>, integers: Integers, meaning: Option<Meaning>) -> Form {
    match meaning {
        Some(_) if value == ValueRef::Null => return Form::Null,
        Some(Meaning::Boolean) => return Form::Boolean,
        Some(Meaning::Json) if matches!(value, ValueRef::Text(_)) => return Form::Json,
        Some(Meaning::Date | Meaning::Time | Meaning::Uuid | Meaning::Decimal) => return Form::Text,
        Some(Meaning::Datetime | Meaning::UnixSeconds | Meaning::UnixMilliseconds | Meaning::JulianDay) => {
            return Form::Moment;
        }
        Some(Meaning::Json) | None => {}
    }
    match (value, integers) {
        (ValueRef::Null, _) => Form::Null,
        (ValueRef::Integer(_), Integers::Big) => Form::Big,
        (ValueRef::Integer(number), Integers::Auto) if exact(number).is_none() => Form::Big,
        (ValueRef::Integer(_) | ValueRef::Real(_), _) => Form::Number,
        (ValueRef::Text(_), _) => Form::Text,
        (ValueRef::Blob(_), _) => Form::Blob,
    }
}
