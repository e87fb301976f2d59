//! Arrays of numbers that both sides use.
//!
//! Owns: reading a `Float64Array` that JavaScript made, and the one through which results and tokens go. Runs on the loop's thread.
//! Invariant: that one is used by one side at a time, and neither detached nor freed while there is a host. Leaves out: what is in it.

use std::cell::RefCell;
use std::ptr;

use napi_sys as sys;

use super::value::{Env, Result, Thrown, Value};

#[derive(Default)]
pub(crate) struct Cells(RefCell<Option<(*mut f64, usize)>>);

impl Cells {
    /// Uses this array from now on. The package keeps it for itself and never transfers it.
    pub(crate) fn set(&self, env: Env<'_>, array: Value<'_>) -> Result<()> {
        let (data, length) = numbers(env, array)?;
        let mut reference = ptr::null_mut();
        // SAFETY: the array is a value of this call. The reference is never deleted, so the array lives as long as the environment.
        if unsafe { sys::napi_create_reference(env.raw, array.raw, 1, &raw mut reference) } != sys::Status::napi_ok {
            return Err(Thrown);
        }
        *self.0.borrow_mut() = Some((data, length));
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

impl<'e> Env<'e> {
    /// Calls `with` with the numbers of a `Float64Array`. `with` runs no code of JavaScript.
    pub(crate) fn with_numbers<R>(self, array: Value<'e>, with: impl FnOnce(&[f64]) -> R) -> Result<R> {
        let (data, length) = numbers(self, array)?;
        // SAFETY: so many numbers are there (`numbers`), and stay while no code of JavaScript runs; `with` runs none.
        Ok(with(unsafe { std::slice::from_raw_parts(data, length) }))
    }
}

/// Where the numbers of a `Float64Array` are, and how many: aligned, and not null.
fn numbers(env: Env<'_>, array: Value<'_>) -> Result<(*mut f64, usize)> {
    let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
    // SAFETY: the array is a value of this call; Node fills the places that are not null.
    let status = unsafe {
        sys::napi_get_typedarray_info(
            env.raw,
            array.raw,
            &raw mut kind,
            &raw mut length,
            &raw mut data,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if status != sys::Status::napi_ok || kind != sys::TypedarrayType::float64_array || data.is_null() {
        return Err(env.type_error("the numbers must be a Float64Array"));
    }
    Ok((data.cast(), length))
}
