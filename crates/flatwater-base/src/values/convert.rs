//! What a type must do to be bound to a statement, and to be read from a column; and its values on their way to SQLite:
//! which are accepted, and which are refused with a hint.
//!
//! Owns: the two traits, the types of the standard library that implement them, copying a value of any `ToSql` type
//! into a block, which can be sent to another thread, and the error for a cell that is not of the type it is read as. Runs on the
//! thread that converts. Invariants: a value has the form that rusqlite gives it, so that closures and calls write the same; one that
//! SQLite would silently change (NaN becomes NULL) is refused; no error has a value in it, except where the message of the caller's
//! own type has it. Leaves out: types of other crates, whose forms are Flatwater's own (`foreign_types`); names and order of
//! parameters, and naming the one that is refused; the row and the SQL, which the row adds.

use std::borrow::Cow;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
    NonZeroUsize, TryFromIntError,
};
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::types::{FromSqlError, FromSqlResult, Null, ToSqlOutput, Type, Value, ValueRef};

use super::block::Block;
use crate::error::hint::hint;
use crate::error::{Error, ErrorCode, Result};

/// A type whose values can be bound to a statement. The method is that of rusqlite's trait of this name.
///
/// Implemented for what SQLite stores: integers, floats, text, blobs, `bool` as 0 or 1, and an `Option` of them. With the
/// cargo features `chrono`, `time` and `uuid` it is implemented for types of these crates. Newtypes and enums derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be bound to a statement",
    label = "not a value that SQLite stores",
    note = "a newtype or an enum derives it: `#[derive(flatwater::ToSql)]`; JSON is bound as `Json(value)`",
    note = "dates, times and UUIDs need the cargo feature `chrono`, `time` or `uuid` of flatwater",
    note = "SQLite has no decimals: store text, or an integer number of the smallest unit",
    note = "a type that implements rusqlite's `ToSql` is bound as `Rusqlite(value)`"
)]
pub trait ToSql {
    /// Converts the value to one that SQLite stores.
    ///
    /// # Errors
    /// If SQLite cannot store the value. The text of this error becomes part of the error of the call.
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>>;
}

/// A type that can be read from a column. The method is that of rusqlite's trait of this name.
///
/// Implemented for the types that can be bound and own their value. Newtypes and enums derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a column",
    label = "not a value that SQLite stores",
    note = "a newtype or an enum derives it: `#[derive(flatwater::FromSql)]`; JSON is read as `Json<T>`",
    note = "dates, times and UUIDs need the cargo feature `chrono`, `time` or `uuid` of flatwater",
    note = "SQLite has no decimals: read text, or an integer number of the smallest unit",
    note = "a type that implements rusqlite's `FromSql` is read as `Rusqlite<T>`"
)]
pub trait FromSql: Sized {
    /// Converts the value of a column.
    ///
    /// # Errors
    /// For a value of another type or form. The error of the call names the column, the row and both types.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self>;
}

/// A value of a type that implements rusqlite's traits: `(Rusqlite(url),)` as parameters, `Rusqlite<Url>` as a column. It
/// is stored in rusqlite's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Rusqlite<T>(pub T);

impl<T: rusqlite::ToSql> ToSql for Rusqlite<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl<T: rusqlite::types::FromSql> FromSql for Rusqlite<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::column_result(value).map(Self)
    }
}

/// Types that are bound as rusqlite binds them.
macro_rules! bound {
    ($($name:ty),+ $(,)?) => {$(
        impl ToSql for $name {
            #[inline]
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                rusqlite::ToSql::to_sql(self)
            }
        }
    )+};
}

/// Types that are read as rusqlite reads them.
macro_rules! read {
    ($($name:ty),+ $(,)?) => {$(
        impl FromSql for $name {
            #[inline]
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <Self as rusqlite::types::FromSql>::column_result(value)
            }
        }
    )+};
}

macro_rules! both {
    ($($name:ty),+ $(,)?) => {
        bound!($($name),+);
        read!($($name),+);
    };
}

both!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, String, Vec<u8>, Value);
both!(NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize);
both!(NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize);
bound!(str, [u8], Null, ToSqlOutput<'_>);

/// Owned forms of text and of a blob.
macro_rules! converted {
    ($($from:ty => $name:ty),+ $(,)?) => {$(
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <$from as FromSql>::column_result(value).map(Into::into)
            }
        }
    )+};
}

converted!(String => Box<str>, String => Rc<str>, String => Arc<str>);
converted!(Vec<u8> => Box<[u8]>, Vec<u8> => Rc<[u8]>, Vec<u8> => Arc<[u8]>);

impl<const N: usize> ToSql for [u8; N] {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        rusqlite::ToSql::to_sql(self)
    }
}

impl<const N: usize> FromSql for [u8; N] {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <Self as rusqlite::types::FromSql>::column_result(value)
    }
}

impl<T: ToSql> ToSql for Option<T> {
    #[inline]
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.as_ref().map_or(Ok(ToSqlOutput::Owned(Value::Null)), T::to_sql)
    }
}

impl<T: FromSql> FromSql for Option<T> {
    #[inline]
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if value == ValueRef::Null { Ok(None) } else { T::column_result(value).map(Some) }
    }
}

impl<T: ToOwned<Owned: FromSql> + ?Sized> FromSql for Cow<'_, T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::Owned::column_result(value).map(Cow::Owned)
    }
}

/// Pointers are bound as what they point to.
macro_rules! pointers {
    ($($name:ty),+ $(,)?) => {$(
        impl<T: ToSql + ?Sized> ToSql for $name {
            #[inline]
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                (**self).to_sql()
            }
        }
    )+};
}

pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: ToSql + ToOwned + ?Sized> ToSql for Cow<'_, T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        (**self).to_sql()
    }
}

/// Adds a value to a block.
pub fn add(block: &mut Block, value: &(impl ToSql + ?Sized)) -> Result<()> {
    let output = value.to_sql().map_err(not_convertible)?;
    let value = match &output {
        ToSqlOutput::Owned(value) => value.into(),
        ToSqlOutput::Borrowed(value) => *value,
        _ => {
            return Err(Error::new(ErrorCode::InvalidValue, "this kind of value cannot be sent to another thread")
                .with_hint("use it in `read_with` or `write_with`"));
        }
    };
    match value {
        // Most texts are short, and in ASCII, which is the quicker check.
        ValueRef::Text(text) if !text.is_ascii() && std::str::from_utf8(text).is_err() => {
            return Err(Error::new(ErrorCode::InvalidValue, "the text is not valid UTF-8"));
        }
        ValueRef::Real(real) if real.is_nan() => {
            return Err(Error::new(ErrorCode::InvalidValue, "NaN cannot be stored: SQLite would make it NULL")
                .with_hint(hint!["bind " Null " where NULL is meant"]));
        }
        value => block.push(value),
    }
    Ok(())
}

#[cold]
fn not_convertible(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::ToSqlConversionFailure(error) if error.is::<TryFromIntError>() => {
            Error::new(ErrorCode::InvalidValue, "an integer beyond 64 bits with a sign cannot be stored")
                .with_hint("store it as text, or as a blob; the largest integer of SQLite is 9223372036854775807")
        }
        rusqlite::Error::ToSqlConversionFailure(error) => {
            Error::new(ErrorCode::InvalidValue, format!("a value cannot be stored: {error}"))
        }
        other => Error::new(ErrorCode::InvalidValue, format!("a value cannot be stored: {other}")),
    }
}

/// Returns the error for a column, by position and name, whose value is of the type `found` and is read as `wanted`.
#[cold]
pub fn mismatch(column: (usize, &str), found: Type, wanted: &str, error: &FromSqlError) -> Error {
    let (column, wanted) = (column_of(column.0, column.1), short_name(wanted));
    let type_name = type_name(found);
    let what = match error {
        FromSqlError::InvalidType => format!("{type_name} cannot be read as {wanted}"),
        // The number itself is the database's content and stays out of errors.
        FromSqlError::OutOfRange(_) => format!("its {type_name} does not fit into {wanted}"),
        other => format!("its {type_name} cannot be read as {wanted}: {other}"),
    };
    let error = Error::new(ErrorCode::UnreadableValue, format!("{column}: {what}"));
    match found {
        Type::Null => error.with_hint(format!("read a column that may be NULL as an Option: Option<{wanted}>")),
        _ if !what.ends_with(&wanted) => error,
        Type::Integer | Type::Real if is_time(&wanted) => {
            error.with_hint("make it a text in the SQL: datetime(column, 'unixepoch') AS column")
        }
        Type::Integer => error.with_hint("read it as an i64, or CAST it in the SQL"),
        Type::Real => error.with_hint("read it as an f64, or CAST it in the SQL"),
        Type::Text => error.with_hint("read it as a String, or CAST it in the SQL"),
        Type::Blob => error.with_hint("read it as a Vec<u8>, or CAST it in the SQL"),
    }
}

/// True for the name of a type that is a point in time, which is read from a text.
fn is_time(name: &str) -> bool {
    ["DateTime", "Timestamp", "Zoned"].iter().any(|part| name.contains(part))
}

/// Returns how an error names a column.
pub fn column_of(position: usize, name: &str) -> String {
    format!("column {position} ({name})")
}

/// The name of a type as SQLite writes it.
fn type_name(of: Type) -> &'static str {
    match of {
        Type::Null => "NULL",
        Type::Integer => "INTEGER",
        Type::Real => "REAL",
        Type::Text => "TEXT",
        Type::Blob => "BLOB",
    }
}

/// The name of a Rust type without the paths of its modules.
pub fn short_name(name: &str) -> String {
    let parts = name.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    parts.map(|part| part.rsplit("::").next().unwrap_or(part)).collect()
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

    #[test]
    fn a_number_that_is_read_as_a_point_in_time_is_made_a_text() {
        let error = mismatch((0, "at"), Type::Integer, "chrono::datetime::DateTime<Utc>", &FromSqlError::InvalidType);
        assert_eq!(error.message(), "column 0 (at): INTEGER cannot be read as DateTime<Utc>");
        assert_eq!(error.hint(), Some("make it a text in the SQL: datetime(column, 'unixepoch') AS column"));
    }

    #[test]
    fn both_types_are_named_and_the_value_is_not() {
        let text = |found, error| mismatch((1, "age"), found, std::any::type_name::<Option<u8>>(), &error).to_string();
        assert_eq!(
            text(Type::Text, FromSqlError::InvalidType),
            "decode: column 1 (age): TEXT cannot be read as Option<u8> -- read it as a String, or CAST it in the SQL"
        );
        let too_large = text(Type::Integer, FromSqlError::OutOfRange(4321));
        assert!(
            too_large.contains("INTEGER does not fit into Option<u8>") && !too_large.contains("4321"),
            "{too_large}"
        );
        let size = FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: 3 };
        assert!(text(Type::Blob, size).contains("cannot be read as Option<u8>: Cannot read 16 byte value"));
    }

    #[test]
    fn the_name_of_a_type_has_no_paths() {
        let name = std::any::type_name::<Option<Vec<(String, &[u8; 3])>>>();
        assert_eq!(short_name(name), "Option<Vec<(String, &[u8; 3])>>");
    }
}
