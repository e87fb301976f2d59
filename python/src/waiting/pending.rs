//! What a call waits for: a call of the engine, or anything else that is polled.
//!
//! Owns: how it is polled and given up. Runs on the loop's thread, or on the thread that waits, with the interpreter's lock.
//! Leaves out: the call around it (`call`).

use std::sync::Arc;

use flatwater::bindings::{FrontCall, Mailbox, Polled};
use pyo3::prelude::*;

use crate::waiting::place;

/// What a call waits for.
pub(crate) trait Pending: Send + Sync {
    /// As `FrontCall::poll`. The work may also have failed in Python.
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled>;

    /// Gives it up. Returns true if it goes on nevertheless, and its outcome is to be waited for.
    fn give_up(&mut self) -> bool;

    /// The number of the database on which it is about to begin, if it begins behind others.
    fn begins_on(&mut self, _: Python<'_>) -> Option<usize> {
        None
    }
}

impl Pending for FrontCall {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if let Some(call) = self.unbegun() {
            place::begin(py, call)?;
        }
        Ok(Self::poll(self, address))
    }

    fn give_up(&mut self) -> bool {
        Self::give_up(self)
    }

    fn begins_on(&mut self, _: Python<'_>) -> Option<usize> {
        self.unbegun().map(|call| call.open_database())
    }
}
