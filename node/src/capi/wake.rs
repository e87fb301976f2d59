//! Waking the event loop from another thread.
//!
//! Owns: a threadsafe function (<https://nodejs.org/api/n-api.html#asynchronous-thread-safe-function-calls>). Called on any thread,
//! made and kept on the loop's. Invariants: after the environment has ended, waking does nothing; the loop is kept alive only
//! while something waits. Leaves out: what the loop does when it is woken.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use napi_sys as sys;

use super::value::{Env, Result, Thrown, Value};

/// Wakes one event loop.
#[derive(Clone, Default)]
pub(crate) struct Wake(Arc<Mutex<Slot>>);

/// `None` before the function is made, and after the environment has ended.
#[derive(Default)]
struct Slot(Option<sys::napi_threadsafe_function>);

// SAFETY: Node-API says of the functions that are called with it here which thread may call them: any calls, the loop's keeps.
unsafe impl Send for Slot {}

impl Wake {
    /// Calls `function` on the loop's thread whenever it is rung.
    pub(crate) fn begin(&self, env: Env<'_>, function: Value<'_>) -> Result<()> {
        let name = env.text("flatwater")?;
        let own = Arc::into_raw(self.0.clone()).cast_mut().cast();
        let mut made = ptr::null_mut();
        // SAFETY: the function and the name are values of this call; the finalizer takes the slot back.
        let status = unsafe {
            sys::napi_create_threadsafe_function(
                env.raw,
                function.raw,
                ptr::null_mut(),
                name.raw,
                0,
                1,
                own,
                Some(ended),
                ptr::null_mut(),
                None,
                &raw mut made,
            )
        };
        if status != sys::Status::napi_ok {
            return Err(Thrown);
        }
        // SAFETY: it was made above. From here on it keeps nothing alive.
        unsafe { sys::napi_unref_threadsafe_function(env.raw, made) };
        self.lock().0 = Some(made);
        Ok(())
    }

    /// True from its beginning to the end of the environment.
    pub(crate) fn is_begun(&self) -> bool {
        self.lock().0.is_some()
    }

    /// True for two that wake one loop in one way.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Wakes the loop. Does not block.
    pub(crate) fn ring(&self) {
        if let Some(function) = self.lock().0 {
            let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
            // SAFETY: the function is there until `ended` has emptied the slot, which needs its lock.
            unsafe { sys::napi_call_threadsafe_function(function, ptr::null_mut(), mode) };
        }
    }

    /// Keeps the process alive, or does not any more.
    pub(crate) fn keep_alive(&self, env: Env<'_>, on: bool) {
        if let Some(function) = self.lock().0 {
            // SAFETY: as above, and this is the loop's thread.
            unsafe {
                if on {
                    sys::napi_ref_threadsafe_function(env.raw, function);
                } else {
                    sys::napi_unref_threadsafe_function(env.raw, function);
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

unsafe extern "C" fn ended(_: sys::napi_env, own: *mut c_void, _: *mut c_void) {
    // SAFETY: `begin` passed an `Arc` of this type, and Node calls the finalizer once.
    let slot = unsafe { Arc::from_raw(own.cast::<Mutex<Slot>>()) };
    slot.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
}
