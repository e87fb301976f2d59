//! How rows are written as JSON.
//!
//! Owns: the options of a caller. Pure. Leaves out: writing (`json`).

use std::sync::Arc;

/// How `query_json` writes rows, as its call is told. The default is an array of objects, with every integer as a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
#[non_exhaustive]
pub struct JsonOptions {
    #[doc(hidden)]
    pub arrays: bool,
    #[doc(hidden)]
    pub big_integers_as_strings: bool,
    /// The names of the columns whose texts are JSON. Of feature `serde_json`.
    #[doc(hidden)]
    pub embedded: Option<Arc<Vec<Box<str>>>>,
}

impl JsonOptions {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes each row an array of its values instead of an object. Default false. Several columns may then have the same
    /// name.
    pub fn arrays(mut self, arrays: bool) -> Self {
        self.arrays = arrays;
        self
    }

    /// Writes an integer as a string if it is beyond 2^53 - 1 or below its negative: JavaScript, among others, cannot
    /// read it as a number without loss. Default false. Numbers within an embedded text stay as they are.
    pub fn big_integers_as_strings(mut self, strings: bool) -> Self {
        self.big_integers_as_strings = strings;
        self
    }

    /// Inserts the texts of the columns of this name as JSON instead of as strings. Can be called several times. The
    /// name is the column's name in the result, and is case-sensitive; a result without such a column is written as
    /// usual.
    ///
    /// Flatwater checks each text, so that none can break the document. NULL and numbers are written as usual.
    ///
    /// Needs feature `serde_json`, which checks the texts.
    #[cfg(feature = "serde_json")]
    pub fn embed(mut self, column: impl Into<Box<str>>) -> Self {
        Arc::make_mut(self.embedded.get_or_insert_default()).push(column.into());
        self
    }
}
