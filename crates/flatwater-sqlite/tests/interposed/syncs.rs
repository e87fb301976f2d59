//! `fsync` and `fdatasync` in the place of the C library's, for a test program that has `sync(number, fd)` at its root.

use std::ffi::c_int;

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
extern "C" fn fsync(fd: c_int) -> c_int {
    crate::sync(libc::SYS_fsync, fd)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(fd: c_int) -> c_int {
    crate::sync(libc::SYS_fdatasync, fd)
}
