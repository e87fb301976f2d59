//! System calls that do not use the C library's functions, which this library replaces.

use std::ffi::{c_int, c_long};

use libc::c_char;

/// Sets this thread's errno.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the address of this thread's errno, which is valid as long as the thread runs.
    unsafe { *libc::__errno_location() = number };
}

/// Sets errno and returns -1.
pub(crate) fn failed<T: From<i8>>(number: c_int) -> T {
    set_errno(number);
    T::from(-1)
}

pub(crate) fn wait_20_ms() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: the kernel reads the time, and writes nothing back.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null_mut::<libc::timespec>()) };
}

pub(crate) fn complain(line: &[u8]) {
    // SAFETY: the bytes are valid during the call.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.as_ptr(), line.len()) };
}

/// # Safety
/// The path ends with a NUL.
pub(crate) unsafe fn open(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: as the caller promises.
    as_int(unsafe { libc::syscall(libc::SYS_openat, at, path, flags, mode) })
}

/// Converts the result of a system call that returns an int.
pub(crate) fn as_int(answer: c_long) -> c_int {
    c_int::try_from(answer).unwrap_or(-1)
}
