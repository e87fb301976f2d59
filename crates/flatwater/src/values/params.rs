//! The parameters of one statement: positional or named, owned, ready to cross threads.
//!
//! Owns: `Params` and the ways to make it. Invariant: every value is one that SQLite stores unchanged. Leaves out:
//! checking whether they fit the statement, which floor 0 does before anything runs.

use flatwater_sqlite::Bindings;
use rusqlite::types::{ToSql, Value};

use super::value::{heap_bytes, own};
use crate::error::Result;

/// The values for one run of a statement. Made by [`params!`](crate::params), [`named!`](crate::named) or
/// [`IntoParams`](crate::IntoParams).
#[derive(Clone, PartialEq, Default)]
pub struct Params(Values);

#[derive(Clone, PartialEq)]
enum Values {
    Positional(Vec<Value>),
    Named(Vec<(Box<str>, Value)>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Positional(Vec::new())
    }
}

impl Params {
    /// Creates parameters from values in the order of the statement's parameters.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged.
    pub fn positional<I>(values: I) -> Result<Self>
    where
        I: IntoIterator,
        I::Item: ToSql,
    {
        let values = values.into_iter().map(|value| own(&value)).collect::<Result<_>>()?;
        Ok(Self(Values::Positional(values)))
    }

    /// Creates parameters from pairs of name and value. The leading `:`, `@` or `$` may be left out.
    ///
    /// # Errors
    /// `Misuse` for a value that SQLite cannot store unchanged.
    pub fn named<'a, I, V>(pairs: I) -> Result<Self>
    where
        I: IntoIterator<Item = (&'a str, V)>,
        V: ToSql,
    {
        let pairs = pairs.into_iter().map(|(name, value)| Ok((name.into(), own(&value)?))).collect::<Result<_>>()?;
        Ok(Self(Values::Named(pairs)))
    }

    /// Creates positional parameters from values that are already checked.
    pub(crate) fn owned(values: Vec<Value>) -> Self {
        Self(Values::Positional(values))
    }

    /// Returns the values, if none has a name.
    pub(crate) fn positional_values(&self) -> Option<&[Value]> {
        if let Values::Positional(values) = &self.0 { Some(values) } else { None }
    }

    pub(crate) fn bindings(&self) -> Bindings<'_> {
        match &self.0 {
            Values::Positional(values) => Bindings::Positional(values),
            Values::Named(pairs) => Bindings::Named(pairs),
        }
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        let (positional, named): (&[Value], &[(Box<str>, Value)]) = match &self.0 {
            Values::Positional(values) => (values, &[]),
            Values::Named(pairs) => (&[], pairs),
        };
        positional.iter().chain(named.iter().map(|(_, value)| value))
    }

    /// Bytes of text and blob, for the limits on a group.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.values().map(heap_bytes).sum()
    }

    /// Returns true if `fragment` is part of a bound value as SQLite would write it, and so must not be shown.
    pub(crate) fn reveals(&self, fragment: &str) -> bool {
        self.values().any(|value| match value {
            Value::Null => false,
            Value::Integer(number) => number.to_string().contains(fragment),
            Value::Real(number) => number.to_string().contains(fragment),
            Value::Text(text) => text.contains(fragment),
            Value::Blob(bytes) => String::from_utf8_lossy(bytes).contains(fragment),
        })
    }
}

/// Values stay out of debug output, as they stay out of errors.
impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Params({} values)", self.values().count())
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
        assert!(matches!(named.bindings(), Bindings::Named([(a, _), (b, _)]) if &**a == ":id" && &**b == "name"));
        assert!(named.reveals("Ada") && !named.reveals("Eve"));
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", params!["secret", 7].unwrap()), "Params(2 values)");
    }
}
