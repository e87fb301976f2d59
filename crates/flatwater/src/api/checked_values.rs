//! Whether a value fits the column beside its parameter, for the macros that check SQL.
//!
//! Owns: the class of each type of the standard library. Invariant: a type of the program is accepted, whatever it is bound as. Leaves
//! out: binding a value.

use std::borrow::Cow;
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64,
    NonZeroUsize,
};
use std::rc::Rc;
use std::sync::Arc;

/// INTEGER and REAL.
pub struct Numbers;
/// TEXT.
pub struct Texts;
/// BLOB.
pub struct Blobs;

/// A type whose values have one class.
pub trait HasClass {
    type Class;
}

macro_rules! classes {
    ($($class:ident: $($name:ty),+;)+) => {$($(
        impl HasClass for $name {
            type Class = $class;
        }
    )+)+};
}

classes! {
    Numbers: bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64;
    Numbers: NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize;
    Numbers: NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize;
    Texts: str, String;
    Blobs: [u8], Vec<u8>;
}

impl<const N: usize> HasClass for [u8; N] {
    type Class = Blobs;
}

macro_rules! around {
    ($($name:ty),+) => {$(
        impl<T: HasClass + ?Sized> HasClass for $name {
            type Class = T::Class;
        }
    )+};
}

around!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: HasClass> HasClass for Option<T> {
    type Class = T::Class;
}

impl<T: HasClass + ToOwned + ?Sized> HasClass for Cow<'_, T> {
    type Class = T::Class;
}

/// A class of values that may stand beside a column of another.
#[diagnostic::on_unimplemented(
    message = "this value is of the class `{Self}`, and its parameter stands beside a column of `{Class}`",
    label = "not a value of `{Class}`",
    note = "where SQLite shall convert it, say so: `CAST(? AS TEXT)`"
)]
pub trait Beside<Class> {}

impl<Class> Beside<Class> for Class {}

/// A value that is bound.
pub struct Bound<'a, T: ?Sized>(pub &'a T);

/// Of a value whose class is known. The compiler prefers it, because it takes one reference less.
pub trait OfKnownClass<T: HasClass + ?Sized> {
    /// Accepts a value that has the class.
    fn fits<Class>(&self)
    where
        T::Class: Beside<Class>,
    {
    }
}

impl<T: HasClass + ?Sized> OfKnownClass<T> for Bound<'_, T> {}

/// Of any other.
pub trait OfAnyClass {
    /// Accepts the value.
    fn fits<Class>(&self) {}
}

impl<T: ?Sized> OfAnyClass for &Bound<'_, T> {}
