//! The array of numbers that both sides use.
//!
//! Owns: a `Float64Array` that JavaScript made, through which results and tokens go. Runs on the loop's thread. Invariant: it is
//! used by one side at a time, and neither detached nor freed while there is a host. Leaves out: what is in it.

use std::cell::RefCell;
use std::ptr;

use napi_sys as sys;

use super::value::{Env, Result, Thrown, Value};

#[derive(Default)]
pub(crate) struct Cells(RefCell<Option<(*mut f64, usize)>>);

impl Cells {
    /// Uses this array from now on. The package keeps it for itself and never transfers it.
    pub(crate) fn set(&self, env: Env<'_>, array: Value<'_>) -> Result<()> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        let (mut buffer, mut offset, mut reference) = (ptr::null_mut(), 0, ptr::null_mut());
        // SAFETY: the array is a value of this call, and all results have a place.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                env.raw,
                array.raw,
                &raw mut kind,
                &raw mut length,
                &raw mut data,
                &raw mut buffer,
                &raw mut offset,
            )
        };
        if status != sys::Status::napi_ok || kind != sys::TypedarrayType::float64_array || data.is_null() {
            return Err(env.type_error("the cells must be a Float64Array"));
        }
        // SAFETY: as above. The reference is never deleted, so the array lives as long as the environment.
        if unsafe { sys::napi_create_reference(env.raw, array.raw, 1, &raw mut reference) } != sys::Status::napi_ok {
            return Err(Thrown);
        }
        *self.0.borrow_mut() = Some((data.cast(), length));
        Ok(())
    }

    /// Calls `with` with the cells. It runs no code of JavaScript.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&mut [f64]) -> R) -> R {
        match *self.0.borrow_mut() {
            // SAFETY: the array lives and has so many numbers (`set`); it is borrowed here alone, for the cell is borrowed, and
            // JavaScript does not run meanwhile.
            Some((data, length)) => with(unsafe { std::slice::from_raw_parts_mut(data, length) }),
            None => with(&mut []),
        }
    }
}
