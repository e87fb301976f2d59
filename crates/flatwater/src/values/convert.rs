//! What a type must do to be bound to a statement, and to be read from a column.
//!
//! Owns: the two traits, and the types of the standard library that implement them. Runs on the thread that converts.
//! Invariant: a value has the form that rusqlite gives it, so that closures and calls write the same. Leaves out: types of
//! other crates, one file each, whose forms are Flatwater's own.

use std::borrow::Cow;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
    NonZeroUsize,
};
use std::rc::Rc;
use std::sync::Arc;

use rusqlite::types::{FromSqlResult, Null, ToSqlOutput, Value, ValueRef};

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
