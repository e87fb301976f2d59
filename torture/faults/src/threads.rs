//! The function that starts a thread. A start that the plan selects fails with its error number, or is made 20 ms later.
//!
//! Runs on the thread that starts another one. Invariant: the C library's function is looked up once, at the first start.
//! The look-up may allocate and take the loader's lock, which is harmless here: neither does so while it starts a thread.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::files::PROCESS;
use crate::plan::{Fate, Kind, fate};
use crate::system::wait_20_ms;

type Body = extern "C" fn(*mut c_void) -> *mut c_void;
type Start = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Body, *mut c_void) -> c_int;

/// The C library's function, once it is known.
static START: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

// SAFETY: the C library's signature; no other item in this library defines the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    match fate(Kind::Thread, Some(PROCESS)) {
        // This function returns the error number, and leaves errno alone.
        Fate::Fails(errno) => return errno,
        Fate::Late => wait_20_ms(),
        Fate::Made | Fate::Short => {}
    }
    let Some(start) = start() else { return libc::EAGAIN };
    // SAFETY: the caller's arguments.
    unsafe { start(thread, attributes, body, argument) }
}

fn start() -> Option<Start> {
    let mut found = START.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the name ends with a NUL.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
        START.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        return None;
    }
    // SAFETY: the loader's address of the function with this name, which has this signature.
    Some(unsafe { std::mem::transmute::<*mut c_void, Start>(found) })
}
