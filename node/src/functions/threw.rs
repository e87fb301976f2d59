//! The failure of a function of JavaScript, as the source of the error of its statement.
//!
//! Owns: what is said of it, and what was thrown, as bytes of `v8.serialize`. Made on the worker thread or on one of a database, and
//! read on that of the call. Invariant: what is said has no value in it.

use std::fmt;

use flatwater::Error;

#[derive(Debug)]
pub(crate) struct Threw {
    said: Box<str>,
    thrown: Option<Box<[u8]>>,
}

impl Threw {
    pub(crate) fn new(said: impl Into<Box<str>>, thrown: Option<Box<[u8]>>) -> Self {
        Self { said: said.into(), thrown }
    }

    /// What was thrown, if that is the cause of an error of the engine.
    pub(crate) fn thrown_in(error: &Error) -> Option<&[u8]> {
        std::error::Error::source(error)?.downcast_ref::<Self>()?.thrown.as_deref()
    }
}

impl fmt::Display for Threw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for Threw {}
