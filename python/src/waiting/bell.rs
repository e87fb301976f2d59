//! What wakes an event loop from another thread.
//!
//! Owns: the descriptors. Workers ring it, the loop's thread hears it. Invariant: ringing does not block. Leaves out: what
//! the loop is woken for (`inbox`).

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

pub(crate) struct Bell {
    heard: UnixStream,
    rung: UnixStream,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (heard, rung) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        Ok(Self { heard, rung })
    }

    /// What the loop watches for reading.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// Wakes the loop. It fails if it was rung often and not heard: then the loop is woken already.
    pub(crate) fn ring(&self) {
        let _ = (&self.rung).write(&[0]);
    }

    /// Makes it silent, unless it is rung later. What is left in the socket wakes the loop once more.
    pub(crate) fn hear(&self) {
        let _ = (&self.heard).read(&mut [0; 64]);
    }
}
