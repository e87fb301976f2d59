//! `pthread_create` in the place of the C library's, for a test program that has `may_start()` at its root: it is called
//! before each, and false fails it as if the system had no thread left.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> c_int;

// SAFETY: the C library's signature; nothing else in the program defines the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    if !crate::may_start() {
        return libc::EAGAIN;
    }
    // SAFETY: the name ends with a NUL, and the next definition of it is the C library's, which has this type.
    let create =
        unsafe { transmute::<*mut c_void, Option<Create>>(libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr())) };
    match create {
        // SAFETY: the caller's arguments.
        Some(create) => unsafe { create(thread, attributes, body, argument) },
        None => libc::ENOSYS,
    }
}
