//! `pwrite` and `pwrite64` in the place of the C library's, for a test program that has `writes(fd)` at its root: it is
//! called before each, and false fails it.

use std::ffi::{c_int, c_void};

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    if !crate::writes(fd) {
        return -1;
    }
    // SAFETY: the system call that the replaced function makes, with its arguments.
    unsafe { libc::syscall(libc::SYS_pwrite64, fd, data, bytes, offset) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    // SAFETY: the caller's arguments.
    unsafe { pwrite(fd, data, bytes, offset) }
}
