//! The parameters of one statement: positional or named, owned, ready to cross threads.
//!
//! Owns: `Params`, the ways to make it, and the row that a statement is bound to. Runs on the caller's thread and on
//! the thread that runs the statement. Invariant: every value is one that SQLite stores unchanged. Leaves out: checking
//! whether the values fit the statement, which `flatwater-sqlite` does before anything runs.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use flatwater_sqlite::Bindings;
use rusqlite::types::ValueRef;

use super::block::Block;
use super::convert::{ToSql, add};
use crate::error::location::at_parameter;
use crate::error::{Error, ErrorCode, Result};

/// The names of the values of a row; `None` for positional values. Rows with the same names share them.
pub type ParamNames = Option<Arc<Vec<Box<str>>>>;

/// The values for one run of a statement. Made by [`params!`](crate::params), [`named!`](crate::named) or
/// [`IntoParams`](crate::values::IntoParams).
#[derive(Clone, PartialEq, Default)]
pub struct Params {
    names: ParamNames,
    block: Block,
}

impl Params {
    /// Creates parameters from values in the order of the statement's parameters.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged. The message names the parameter.
    pub fn positional<I: IntoIterator<Item: ToSql>>(values: I) -> Result<Self> {
        let values = values.into_iter();
        let mut block = Block::with_room(values.size_hint().0, 0);
        for (at, value) in values.enumerate() {
            add(&mut block, &value).map_err(|error| at_parameter(error, at + 1))?;
        }
        Ok(Self { names: None, block })
    }

    /// Creates parameters from pairs of name and value. The leading `:`, `@` or `$` may be left out.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged. The message names the parameter.
    pub fn named<'a, I: IntoIterator<Item = (&'a str, V)>, V: ToSql>(pairs: I) -> Result<Self> {
        let (mut names, mut block) = (Vec::new(), Block::default());
        for (name, value) in pairs {
            names.push(name.into());
            add(&mut block, &value).map_err(|error| at_parameter(error, format_args!("{name:?}")))?;
        }
        Ok(Self { names: Some(Arc::new(names)), block })
    }

    /// Adds a value behind the others. Together with [`Params::default`] this makes parameters of any number and types.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged, and for parameters that have names.
    pub fn push(&mut self, value: impl ToSql) -> Result<()> {
        if self.names.is_some() {
            return Err(Error::new(
                ErrorCode::ParameterName,
                "a value without a name cannot be added to named parameters",
            ));
        }
        self.add(&value).map_err(|(number, error)| at_parameter(error, number))
    }

    /// Adds a value without a name, or returns what is wrong with it, and its number.
    #[doc(hidden)]
    pub fn add(&mut self, value: &dyn ToSql) -> Result<(), (usize, Error)> {
        let number = self.block.cells() + 1;
        add(&mut self.block, value).map_err(|error| (number, error))
    }

    /// Returns true if there are no values.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.block.cells() == 0
    }

    #[doc(hidden)]
    pub fn into_block(self) -> Block {
        self.block
    }

    /// Removes all values, and keeps their names and the memory.
    #[doc(hidden)]
    pub fn clear(&mut self) {
        self.block.clear();
    }

    /// Adds the values of other parameters without names.
    #[doc(hidden)]
    pub fn append(&mut self, others: &Self) {
        others.row().values().for_each(|value| self.block.push(value));
    }

    /// Repeats the smallest of the values from this one on, so many times. There is one, or there are none to add.
    #[doc(hidden)]
    pub fn repeat_smallest(&mut self, from: usize, times: usize) {
        if times == 0 {
            return;
        }
        let size = |value: &ValueRef<'_>| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        let smallest = (1..).zip(self.row().values()).skip(from).min_by_key(|(_, value)| size(value));
        let Some(one) = smallest.and_then(|(number, _)| self.pick([number].into_iter())) else { return };
        (0..times).for_each(|_| self.append(&one));
    }

    #[doc(hidden)]
    pub fn names(&self) -> &ParamNames {
        &self.names
    }

    #[doc(hidden)]
    pub fn row(&self) -> ParamRow<'_> {
        ParamRow {
            names: self.names.as_deref().map(Vec::as_slice),
            block: &self.block,
            first: 0,
            width: self.block.cells(),
        }
    }

    /// Returns the values with these numbers, which count from 1, if they have no names and all of them are there.
    #[doc(hidden)]
    pub fn pick(&self, numbers: impl Iterator<Item = i32>) -> Option<Self> {
        let mut block = Block::default();
        for number in numbers {
            block.push(self.numbered(number)?);
        }
        Some(Self { names: None, block })
    }

    /// Returns the value with this number, if it is an integer and has no name.
    #[doc(hidden)]
    pub fn integer(&self, number: i32) -> Option<i64> {
        if let ValueRef::Integer(value) = self.numbered(number)? { Some(value) } else { None }
    }

    /// Returns the value with this number, which counts from 1, if it has no name.
    fn numbered(&self, number: i32) -> Option<ValueRef<'_>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        (self.names.is_none() && index < self.block.cells()).then(|| self.block.value(index))
    }

    /// Adds the values to a hash. Values that are equal here have equal hashes.
    #[doc(hidden)]
    pub fn hash_values<H: Hasher>(&self, hasher: &mut H) {
        for value in self.row().values() {
            match value {
                ValueRef::Null => 0_u8.hash(hasher),
                ValueRef::Integer(value) => value.hash(hasher),
                // 0.0 and -0.0 are equal.
                ValueRef::Real(value) => (value + 0.0).to_bits().hash(hasher),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(hasher),
            }
        }
    }

    /// Bytes of text and blob, for the limits on a group.
    #[doc(hidden)]
    pub fn heap_bytes(&self) -> usize {
        self.block.bytes()
    }
}

/// Values stay out of debug output, as they stay out of errors.
impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Params({} values)", self.block.cells())
    }
}

/// The values for one run, where they lie in a block: all of its values, or those of one of its rows.
#[derive(Clone, Copy)]
pub struct ParamRow<'a> {
    pub(super) names: Option<&'a [Box<str>]>,
    pub(super) block: &'a Block,
    /// The first cell of the row.
    pub(super) first: usize,
    pub(super) width: usize,
}

impl<'a> ParamRow<'a> {
    /// Returns its values.
    pub fn values(self) -> impl Iterator<Item = ValueRef<'a>> {
        (self.first..self.first + self.width).map(|cell| self.block.value(cell))
    }
}

impl Bindings for ParamRow<'_> {
    fn count(&self) -> usize {
        self.width
    }

    #[inline]
    fn value(&self, index: usize) -> ValueRef<'_> {
        self.block.value(self.first + index)
    }

    fn name(&self, index: usize) -> Option<&str> {
        self.names.map(|names| &*names[index])
    }
}

/// Positional parameters of any number and mixed types: `params![1, "two", 3.0]`.
#[macro_export]
macro_rules! params {
    // The block ends the borrows of the values, so that no future holds them.
    ($($value:expr),* $(,)?) => {{
        let params = $crate::Params::positional::<&[&dyn $crate::ToSql]>(&[$(&$value as &dyn $crate::ToSql),*]);
        params
    }};
}

/// Named parameters: `named! { ":id": 1, ":name": "Ada" }`. The leading `:`, `@` or `$` may be left out.
#[macro_export]
macro_rules! named {
    ($($name:literal : $value:expr),* $(,)?) => {{
        let params = $crate::Params::named::<[(&str, &dyn $crate::ToSql); _], &dyn $crate::ToSql>(
            [$(($name, &$value as &dyn $crate::ToSql)),*]
        );
        params
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_parameters_keep_their_names() {
        let named = named! { ":id": 1, "name": "Ada" }.unwrap();
        let row = named.row();
        assert_eq!((row.count(), row.name(0), row.name(1)), (2, Some(":id"), Some("name")));
        assert_eq!((row.value(0), row.value(1)), (ValueRef::Integer(1), ValueRef::Text(b"Ada")));
        assert_eq!(params![1].unwrap().row().name(0), None);
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", params!["secret", 7].unwrap()), "Params(2 values)");
    }
}
