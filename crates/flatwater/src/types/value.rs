//! Values as they are sent to SQLite: what is accepted, and what is refused with a hint.
//!
//! Owns: the conversion of anything `ToSql` into an owned value that may cross threads. Invariant: a value that SQLite
//! would silently change (NaN becomes NULL) is refused.

use rusqlite::types::{ToSql, ToSqlOutput, Value};

use super::error::{Error, Result};

/// Makes an owned value of anything rusqlite can bind.
pub(crate) fn own(value: &(impl ToSql + ?Sized)) -> Result<Value> {
    let output = value.to_sql().map_err(|e| match e {
        rusqlite::Error::ToSqlConversionFailure(e) => Error::misuse(format!("a value cannot be stored: {e}")),
        other => Error::misuse(format!("a value cannot be stored: {other}")),
    })?;
    let value = match output {
        ToSqlOutput::Borrowed(value) => {
            value.try_into().map_err(|_| Error::misuse("a text parameter is not valid UTF-8"))?
        }
        ToSqlOutput::Owned(value) => value,
        _ => {
            return Err(Error::misuse("this kind of value cannot be sent to another thread")
                .hint("use it in `read_with` or `write_with`"));
        }
    };
    match value {
        Value::Real(real) if real.is_nan() => {
            Err(Error::misuse("NaN cannot be stored: SQLite would make it NULL").hint("bind None where NULL is meant"))
        }
        value => Ok(value),
    }
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
    use crate::types::error::Kind;

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
