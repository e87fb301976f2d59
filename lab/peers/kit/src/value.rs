//! Values as they go in as parameters and come out as cells.
//!
//! Owns: `Value`, rows of parameters, and reading the cells of a row. Leaves out: how a peer binds or reads them.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Result;

/// A parameter or a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

/// Rows of parameters, made before a lane is timed; a peer that sends them to another thread clones the handle only.
pub type Rows = Arc<Vec<Vec<Value<'static>>>>;

impl Value<'_> {
    /// The same value on its own, as a call that crosses threads needs it.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Integer(value) => Value::Integer(value),
            Self::Real(value) => Value::Real(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Blob(bytes) => Value::Blob(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// The parameters of one call on their own.
#[must_use]
pub fn owned(params: &[Value<'_>]) -> Vec<Value<'static>> {
    params.iter().map(|value| value.clone().into_owned()).collect()
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// One row as a peer has it.
pub trait Cells {
    /// The cell in column `at`, from 0.
    fn cell(&self, at: usize) -> Result<Value<'_>>;
}

impl Cells for Vec<Value<'_>> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        self.get(at).cloned().ok_or_else(|| anyhow::anyhow!("there is no column {at}"))
    }
}
