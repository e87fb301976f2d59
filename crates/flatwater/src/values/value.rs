//! Values on their way to SQLite: which are accepted, and which are refused with a hint.
//!
//! Owns: the conversion of any `ToSql` type into a value that can be sent to another thread. Runs on the caller's
//! thread. Invariant: a value that SQLite would silently change (NaN becomes NULL) is refused. Leaves out: names and
//! order of parameters.

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};

use crate::error::{Error, Result};

/// Makes an owned value from any type that rusqlite can bind.
pub(crate) fn own(value: &(impl ToSql + ?Sized)) -> Result<Value> {
    let value = match value.to_sql().map_err(not_convertible)? {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(value) => value.try_into().map_err(|_| not_utf8())?,
        _ => return Err(elsewhere()),
    };
    match value {
        Value::Real(real) if real.is_nan() => Err(nan()),
        value => Ok(value),
    }
}

/// Calls `take` with the borrowed value of any type that rusqlite can bind.
pub(crate) fn with_value(value: &(impl ToSql + ?Sized), take: impl FnOnce(ValueRef<'_>)) -> Result<()> {
    let output = value.to_sql().map_err(not_convertible)?;
    let value = match &output {
        ToSqlOutput::Owned(value) => value.into(),
        ToSqlOutput::Borrowed(value) => *value,
        _ => return Err(elsewhere()),
    };
    match value {
        ValueRef::Text(text) if std::str::from_utf8(text).is_err() => return Err(not_utf8()),
        ValueRef::Real(real) if real.is_nan() => return Err(nan()),
        value => take(value),
    }
    Ok(())
}

#[cold]
fn not_convertible(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::ToSqlConversionFailure(error) => Error::misuse(format!("a value cannot be stored: {error}")),
        other => Error::misuse(format!("a value cannot be stored: {other}")),
    }
}

#[cold]
fn nan() -> Error {
    Error::misuse("NaN cannot be stored: SQLite would make it NULL").with_hint("bind None where NULL is meant")
}

#[cold]
fn not_utf8() -> Error {
    Error::misuse("a text parameter is not valid UTF-8")
}

#[cold]
fn elsewhere() -> Error {
    Error::misuse("this kind of value cannot be sent to another thread")
        .with_hint("use it in `read_with` or `write_with`")
}

/// Bytes a value occupies beyond itself, for the limits on a group.
pub(crate) fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(blob) => blob.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn an_integer_that_does_not_fit_is_refused() {
        let error = own(&u64::MAX).unwrap_err();
        assert_eq!(error.kind(), Kind::Misuse);
        assert_eq!(own(&5_u64).unwrap(), Value::Integer(5));
    }

    #[test]
    fn nan_is_refused_and_infinity_is_kept() {
        assert_eq!(own(&f64::NAN).unwrap_err().kind(), Kind::Misuse);
        assert_eq!(own(&f64::INFINITY).unwrap(), Value::Real(f64::INFINITY));
    }
}
