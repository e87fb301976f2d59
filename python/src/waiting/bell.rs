//! What wakes an event loop from another thread.
//!
//! Owns: the choice between a socket that the loop watches and, for a loop that watches none, as Windows' default one, a thread that
//! calls `call_soon_threadsafe`. Workers ring, the loop's thread hears. Invariant: ringing neither blocks nor takes the
//! interpreter's lock. Leaves out: what the loop is woken for (`inbox`).

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::waiting::caller::Caller;
#[cfg(unix)]
use crate::waiting::socket::Socket;

/// Silent until it is hung.
#[derive(Default)]
pub(crate) struct Bell(OnceLock<Way>);

enum Way {
    #[cfg(unix)]
    Watched(Socket),
    Called(Caller),
}

impl Bell {
    /// From now on each ring has the loop call the method `deliver` of `heard`, which this keeps alive only as long as the loop does.
    pub(crate) fn hang(&self, event_loop: &Bound<'_, PyAny>, heard: &Bound<'_, PyAny>) -> PyResult<()> {
        #[cfg(unix)]
        if let Some(socket) = Socket::watched_by(event_loop, heard)? {
            let _ = self.0.set(Way::Watched(socket));
            return Ok(());
        }
        let _ = self.0.set(Way::Called(Caller::new(event_loop, heard)?));
        Ok(())
    }

    /// Wakes the loop.
    pub(crate) fn ring(&self) {
        match self.0.get() {
            #[cfg(unix)]
            Some(Way::Watched(socket)) => socket.ring(),
            Some(Way::Called(caller)) => caller.ring(),
            None => {}
        }
    }

    /// Makes it silent, unless it is rung later.
    pub(crate) fn hear(&self) {
        #[cfg(unix)]
        if let Some(Way::Watched(socket)) = self.0.get() {
            socket.hear();
        }
    }
}
