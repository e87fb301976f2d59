//! Locks of a descriptor ("open file description locks", <https://man7.org/linux/man-pages/man2/fcntl_locking.2.html>).
//!
//! Owns: the calls. They conflict between any two descriptors that were opened by themselves, also within a process, and
//! end with the last copy of the descriptor, whatever becomes of the process. Runs on any thread; never waits for a lock.
//! Linux only. Leaves out: which bytes are locked, and why.

use std::fs::File;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Shared,
    Alone,
    None,
}

/// Locks so many bytes from the first one on, or unlocks them. Returns false if another descriptor holds a lock that
/// conflicts.
#[cfg(target_os = "linux")]
pub(crate) fn set(file: &File, kind: Kind, range: (i64, i64)) -> io::Result<bool> {
    let mut lock = describe(kind, range);
    match call(file, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true if another descriptor holds a lock on one of the bytes that conflicts with this kind.
#[cfg(target_os = "linux")]
pub(crate) fn is_held(file: &File, kind: Kind, range: (i64, i64)) -> io::Result<bool> {
    let mut lock = describe(kind, range);
    call(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

#[cfg(target_os = "linux")]
fn describe(kind: Kind, (first, length): (i64, i64)) -> libc::flock {
    let kind = match kind {
        Kind::Shared => libc::F_RDLCK,
        Kind::Alone => libc::F_WRLCK,
        Kind::None => libc::F_UNLCK,
    };
    // SAFETY: `flock` is plain data, and zero is a value of each of its fields.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind.try_into().expect("a lock type fits");
    lock.l_whence = libc::SEEK_SET.try_into().expect("SEEK_SET fits");
    // The fields are 32 bits wide on some targets; the values stay below 2^31.
    #[allow(clippy::useless_conversion)]
    {
        lock.l_start = first.try_into().expect("a lock byte fits");
        lock.l_len = length.try_into().expect("a length fits");
    }
    lock
}

#[cfg(target_os = "linux")]
fn call(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open, and `lock` lives for the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *lock) } == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn set(_: &File, _: Kind, _: (i64, i64)) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
