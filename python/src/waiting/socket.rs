//! A pair of sockets, of which an event loop watches one.
//!
//! Owns: the descriptors. Workers' threads write, the loop's thread reads. Leaves out: loops that watch no sockets (`caller`).

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;

pub(crate) struct Socket {
    heard: UnixStream,
    rung: UnixStream,
}

impl Socket {
    fn new() -> io::Result<Self> {
        let (heard, rung) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        Ok(Self { heard, rung })
    }

    /// Returns a pair that the loop watches, and calls the method `deliver` for; `None` if it watches no sockets.
    pub(crate) fn watched_by(event_loop: &Bound<'_, PyAny>, heard: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = event_loop.py();
        let socket = Self::new()?;
        let deliver = heard.getattr(intern!(py, "deliver"))?;
        match event_loop.call_method1(intern!(py, "add_reader"), (socket.heard.as_raw_fd(), deliver)) {
            Ok(_) => Ok(Some(socket)),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// It fails if it was rung often and not heard: then the loop is woken already.
    pub(crate) fn ring(&self) {
        let _ = (&self.rung).write(&[0]);
    }

    /// What is left in the socket wakes the loop once more.
    pub(crate) fn hear(&self) {
        let _ = (&self.heard).read(&mut [0; 64]);
    }
}
