//! The system itself, without the C library's functions, which this library replaces.

use std::ffi::{c_int, c_long};

use libc::c_char;

/// Sets the C library's error number of this thread.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the address of this thread's error number, which lives as long as the thread.
    unsafe { *libc::__errno_location() = number };
}

/// The error number is set, and -1 is the answer.
pub(crate) fn failed<T: From<i8>>(number: c_int) -> T {
    set_errno(number);
    T::from(-1)
}

pub(crate) fn wait_20_ms() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: a time to read; nothing is written back.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null_mut::<libc::timespec>()) };
}

pub(crate) fn complain(line: &[u8]) {
    // SAFETY: the bytes are there for as long as the call lasts.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.as_ptr(), line.len()) };
}

/// # Safety
/// The path ends with a NUL.
pub(crate) unsafe fn open(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: as the caller promises.
    as_int(unsafe { libc::syscall(libc::SYS_openat, at, path, flags, mode) })
}

/// What a call of the system answers where it answers an int.
pub(crate) fn as_int(answer: c_long) -> c_int {
    c_int::try_from(answer).unwrap_or(-1)
}
