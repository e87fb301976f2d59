//! A thread that waits for one call, for code without an event loop.
//!
//! Owns: the wait, and the pauses of long work. Runs on the caller's thread, without the interpreter's lock while it waits.
//! Invariant: signals are looked for in both, so that a program can be interrupted. Leaves out: the call.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use flatwater::bindings::Mailbox;
use pyo3::prelude::*;

/// How long a thread waits until it looks for signals.
const SIGNALS: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Mailbox for Bell {
    fn ready(&self, _: u64) {}

    fn flush(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }
}

/// A mailbox that wakes this thread.
pub(crate) struct Blocked {
    bell: Arc<Bell>,
    mailbox: Arc<dyn Mailbox>,
}

impl Blocked {
    pub(crate) fn new() -> Self {
        let bell = Arc::<Bell>::default();
        Self { mailbox: bell.clone(), bell }
    }

    /// Where the reply is to be told.
    pub(crate) fn address(&self) -> (&Arc<dyn Mailbox>, u64) {
        (&self.mailbox, 0)
    }

    /// Waits until the call is to be polled again, or for a while. Raises what the handler of a signal raised.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let rung = self.bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.bell.heard.wait_timeout_while(rung, SIGNALS, |rung| !*rung);
            *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
        });
        py.check_signals()
    }

    /// Lets other threads run Python code between two slices of work. Raises what the handler of a signal raised.
    pub(crate) fn pause(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {});
        py.check_signals()
    }
}
