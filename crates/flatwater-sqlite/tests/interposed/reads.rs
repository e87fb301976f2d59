//! `pread` and `pread64` in the place of the C library's, for a test program that has `reads(fd)` at its root: it is
//! called before each.

use std::ffi::{c_int, c_void};

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn pread(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize {
    crate::reads(fd);
    // SAFETY: the system call that the replaced function makes, with its arguments.
    unsafe { libc::syscall(libc::SYS_pread64, fd, data, bytes, offset) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize {
    // SAFETY: the caller's arguments.
    unsafe { pread(fd, data, bytes, offset) }
}
