//! The values for one run of a statement, in whatever form their owner keeps them.
//!
//! Owns: the interface between that form and `bind`. Invariant: values are read where they are, without a copy of their
//! own. Leaves out: binding (`running`).

use rusqlite::types::{Value, ValueRef};

/// The values for one run of a statement: either in the order of its parameters, exactly as many as there are
/// parameters, or by name, with exactly the names of the statement.
pub trait Bindings {
    /// The number of values.
    fn count(&self) -> usize;

    /// The value at `index`, below [`count`](Self::count). Texts are valid UTF-8.
    fn value(&self, index: usize) -> ValueRef<'_>;

    /// The name of the value at `index`, with or without the leading `:`, `@` or `$`; `None` if the values are in the
    /// order of the parameters. Either all values have names or none has.
    fn name(&self, index: usize) -> Option<&str>;
}

/// No values.
impl Bindings for () {
    fn count(&self) -> usize {
        0
    }

    fn value(&self, _: usize) -> ValueRef<'_> {
        ValueRef::Null
    }

    fn name(&self, _: usize) -> Option<&str> {
        None
    }
}

/// Values in the order of the parameters.
impl Bindings for [Value] {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        (&self[index]).into()
    }

    fn name(&self, _: usize) -> Option<&str> {
        None
    }
}

/// Values by name.
impl Bindings for [(&str, Value)] {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        (&self[index].1).into()
    }

    fn name(&self, index: usize) -> Option<&str> {
        Some(self[index].0)
    }
}
