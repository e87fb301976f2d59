//! `nanosleep` and `usleep` in the place of the C library's, for a test program that has `naps()` at its root: it is called
//! before each. SQLite sleeps with one of them, as it was built; Rust's standard library does not.

use std::ffi::c_int;
use std::time::Duration;

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
extern "C" fn usleep(microseconds: u32) -> c_int {
    crate::naps();
    std::thread::sleep(Duration::from_micros(microseconds.into()));
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const libc::timespec, _left: *mut libc::timespec) -> c_int {
    crate::naps();
    // SAFETY: the caller's time is a valid one.
    let libc::timespec { tv_sec, tv_nsec } = unsafe { *time };
    let (seconds, nanoseconds) = (u64::try_from(tv_sec), u32::try_from(tv_nsec));
    std::thread::sleep(Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0)));
    0
}
