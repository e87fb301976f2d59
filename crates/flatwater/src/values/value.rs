//! Values on their way to SQLite: which are accepted, and which are refused with a hint.
//!
//! Owns: copying the value of any `ToSql` type into a block, which can be sent to another thread. Runs on the caller's
//! thread. Invariant: a value that SQLite would silently change (NaN becomes NULL) is refused. Leaves out: names and
//! order of parameters, and naming the one that is refused.

use std::num::TryFromIntError;

use rusqlite::types::{ToSqlOutput, ValueRef};

use super::block::Block;
use super::convert::ToSql;
use crate::error::hint::hint;
use crate::error::{Error, Result};

/// Adds a value to a block.
pub(crate) fn add(block: &mut Block, value: &(impl ToSql + ?Sized)) -> Result<()> {
    let output = value.to_sql().map_err(not_convertible)?;
    let value = match &output {
        ToSqlOutput::Owned(value) => value.into(),
        ToSqlOutput::Borrowed(value) => *value,
        _ => return Err(elsewhere()),
    };
    match value {
        // Most texts are short, and in ASCII, which is the quicker check.
        ValueRef::Text(text) if !text.is_ascii() && std::str::from_utf8(text).is_err() => return Err(not_utf8()),
        ValueRef::Real(real) if real.is_nan() => return Err(nan()),
        value => block.push(value),
    }
    Ok(())
}

#[cold]
fn not_convertible(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::ToSqlConversionFailure(error) if error.is::<TryFromIntError>() => {
            Error::misuse("an integer beyond 64 bits with a sign cannot be stored")
                .with_hint("store it as text, or as a blob; the largest integer of SQLite is 9223372036854775807")
        }
        rusqlite::Error::ToSqlConversionFailure(error) => Error::misuse(format!("a value cannot be stored: {error}")),
        other => Error::misuse(format!("a value cannot be stored: {other}")),
    }
}

#[cold]
fn nan() -> Error {
    Error::misuse("NaN cannot be stored: SQLite would make it NULL")
        .with_hint(hint!["bind " Null " where NULL is meant"])
}

#[cold]
fn not_utf8() -> Error {
    Error::misuse("the text is not valid UTF-8")
}

#[cold]
fn elsewhere() -> Error {
    Error::misuse("this kind of value cannot be sent to another thread")
        .with_hint("use it in `read_with` or `write_with`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn added(value: impl ToSql) -> Result<Block> {
        let mut block = Block::default();
        add(&mut block, &value)?;
        Ok(block)
    }

    #[test]
    fn an_integer_that_does_not_fit_is_refused() {
        let error = added(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("beyond 64 bits") && error.hint().is_some_and(|hint| hint.contains("text")));
        assert_eq!(added(5_u64).unwrap().value(0), ValueRef::Integer(5));
    }

    #[test]
    fn nan_is_refused_and_infinity_is_kept() {
        assert_eq!(added(f64::NAN).unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(added(f64::INFINITY).unwrap().value(0), ValueRef::Real(f64::INFINITY));
    }
}
