//! The structs of Arrow's C interface, and releasing them.
//!
//! Owns: their layout, and when what one points to is freed. Runs on any thread. Invariants: a struct keeps what it points to,
//! also when it was moved out of the one around it; releasing it frees that, once. Leaves out: what is in them (`arrow`,
//! `arrow_tables`).
//!
//! The layout is that of <https://arrow.apache.org/docs/format/CDataInterface.html>. A struct whose `release` is null is
//! empty: it was released, or its content was moved elsewhere.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// The callback that frees what a struct keeps; null if the struct is empty.
pub(super) type Release<T> = Option<unsafe extern "C" fn(*mut T)>;

#[repr(C)]
pub(super) struct ArrowSchema {
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut ArrowSchema,
    pub(super) dictionary: *mut ArrowSchema,
    pub(super) release: Release<ArrowSchema>,
    pub(super) private_data: *mut c_void,
}

#[repr(C)]
pub(super) struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Release<ArrowArray>,
    pub(super) private_data: *mut c_void,
}

#[repr(C)]
pub(super) struct ArrowArrayStream {
    pub(super) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub(super) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(super) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(super) release: Release<ArrowArrayStream>,
    pub(super) private_data: *mut c_void,
}

impl ArrowSchema {
    pub(super) const EMPTY: Self = Self {
        format: null(),
        name: null(),
        metadata: null(),
        flags: 0,
        n_children: 0,
        children: null_mut(),
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    };
}

impl ArrowArrayStream {
    pub(super) const EMPTY: Self =
        Self { get_schema: None, get_next: None, get_last_error: None, release: None, private_data: null_mut() };
}

impl ArrowArray {
    pub(super) const EMPTY: Self = Self {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: null_mut(),
        children: null_mut(),
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    };
}

/// A struct that has memory of its own.
pub(super) trait Released {
    /// What its `private_data` points to, which came from a box.
    type Memory;

    fn release(&mut self) -> &mut Release<Self>;
    fn memory(&self) -> *mut c_void;
}

/// The callback that frees what a struct keeps, and leaves it empty.
pub(super) unsafe extern "C" fn release<T: Released>(of: *mut T) {
    // SAFETY: the caller passes a struct that was made here and is not empty, so nobody has freed its memory.
    unsafe {
        *(*of).release() = None;
        drop(Box::from_raw((*of).memory().cast::<T::Memory>()));
    }
}

fn release_unless_empty<T: Released>(of: &mut T) {
    if let Some(release) = *of.release() {
        // SAFETY: the callback of the struct, which is not empty.
        unsafe { release(of) };
    }
}

/// Structs that belong to the one around them. One that was moved out is empty.
pub(super) struct Children<T>(pub(super) Vec<*mut T>);

impl<T> FromIterator<T> for Children<T> {
    fn from_iter<I: IntoIterator<Item = T>>(children: I) -> Self {
        Self(children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect())
    }
}

impl<T> Drop for Children<T> {
    fn drop(&mut self) {
        for child in self.0.drain(..) {
            // SAFETY: it came from a box, and is dropped once.
            drop(unsafe { Box::from_raw(child) });
        }
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        release_unless_empty(self);
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        release_unless_empty(self);
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        release_unless_empty(self);
    }
}
