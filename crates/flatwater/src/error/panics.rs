//! The error for code of the user that panicked.
//!
//! Owns: its message. Pure. Leaves out: catching the panic, which whoever runs such code does.

use std::any::Any;

use super::Error;

/// Returns the error for a user closure that panicked. The hint depends on what was committed.
#[cold]
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::misuse(format!("the closure panicked: {}", said(panic)))
}

/// Returns what the panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<&str>().copied();
    said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
