//! What wakes an event loop from another thread.
//!
//! Owns: the descriptors. Workers ring it, the loop's thread hears it. Invariant: ringing does not block. Leaves out: what
//! the loop is woken for (`inbox`).
//!
//! A write to a socket or a pipe tells Linux that the writer is about to sleep: the thread that is woken runs on the
//! writer's processor, without one that sleeps being woken for it. A worker that goes on would be in the loop's way there;
//! it rings an `eventfd`, which tells nothing.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use flatwater::bindings::Afterwards;

pub(crate) struct Bell {
    heard: UnixStream,
    rung: UnixStream,
    #[cfg(target_os = "linux")]
    of_busy: std::os::fd::OwnedFd,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (heard, rung) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        Ok(Self {
            heard,
            rung,
            #[cfg(target_os = "linux")]
            of_busy: linux::eventfd()?,
        })
    }

    /// Returns what the loop watches for reading, each with what `hear` is to be told when it is readable.
    pub(crate) fn descriptors(&self) -> Vec<(RawFd, bool)> {
        let descriptors = vec![(self.heard.as_raw_fd(), false)];
        #[cfg(target_os = "linux")]
        let descriptors = [descriptors, vec![(self.of_busy.as_raw_fd(), true)]].concat();
        descriptors
    }

    /// Wakes the loop. It fails if it was rung often and not heard: then the loop is woken already.
    pub(crate) fn ring(&self, afterwards: Afterwards) {
        match afterwards {
            #[cfg(target_os = "linux")]
            Afterwards::GoesOn => linux::add_one(&self.of_busy),
            _ => _ = (&self.rung).write(&[0]),
        }
    }

    /// Makes it silent, unless it is rung later. What is left in the socket wakes the loop once more.
    pub(crate) fn hear(&self, _of_busy: bool) {
        #[cfg(target_os = "linux")]
        if _of_busy {
            return linux::set_to_zero(&self.of_busy);
        }
        let _ = (&self.heard).read(&mut [0; 64]);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::event::EventfdFlags;

    pub(super) fn eventfd() -> io::Result<OwnedFd> {
        Ok(rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
    }

    pub(super) fn add_one(descriptor: &OwnedFd) {
        let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
    }

    pub(super) fn set_to_zero(descriptor: &OwnedFd) {
        let _ = rustix::io::read(descriptor, &mut [0; 8]);
    }
}
