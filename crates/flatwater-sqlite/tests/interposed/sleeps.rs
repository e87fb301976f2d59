//! `usleep` in the place of the C library's, for a test program that has `naps()` at its root: it is called before each.
//! SQLite sleeps with it; Rust's standard library does not.

use std::ffi::c_int;

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
extern "C" fn usleep(microseconds: u32) -> c_int {
    crate::naps();
    std::thread::sleep(std::time::Duration::from_micros(microseconds.into()));
    0
}
