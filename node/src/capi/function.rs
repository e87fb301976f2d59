//! Functions that JavaScript calls, and what belongs to one environment.
//!
//! Owns: the module's exports, the arguments of a call, and the host: the state of an environment, dropped when that ends.
//! Runs on the loop's thread. Invariant: a panic in a function becomes an exception. Leaves out: the functions.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi_sys as sys;

use super::value::{Env, Result, Value};

const ARGUMENTS: usize = 8;

/// A function of the module.
pub(crate) struct Function<H: 'static> {
    pub(crate) name: &'static str,
    pub(crate) run: for<'e> fn(&Call<'e, H>) -> Result<Value<'e>>,
}

/// A call of JavaScript.
pub(crate) struct Call<'e, H> {
    pub(crate) env: Env<'e>,
    pub(crate) host: &'e H,
    arguments: [sys::napi_value; ARGUMENTS],
}

impl<'e, H> Call<'e, H> {
    /// The argument at this position; the undefined value if it was not given.
    pub(crate) fn argument<const AT: usize>(&self) -> Value<'e> {
        const { assert!(AT < ARGUMENTS) }
        Value { raw: self.arguments[AT], of: PhantomData }
    }

    pub(crate) fn number<const AT: usize>(&self) -> Result<f64> {
        self.env.as_f64(self.argument::<AT>())
    }

    pub(crate) fn text<const AT: usize>(&self) -> Result<String> {
        self.env.with_text(self.argument::<AT>(), str::to_owned)
    }
}

/// Makes the functions properties of `exports`, and gives the environment its host.
///
/// # Safety
/// It is called with what Node passes to the function that registers a module.
pub(crate) unsafe fn register<H: 'static>(
    env: sys::napi_env,
    exports: sys::napi_value,
    functions: &'static [Function<H>],
    host: impl FnOnce() -> H,
) -> sys::napi_value {
    let register = || {
        let host = Box::into_raw(Box::new(host()));
        // SAFETY: the environment is that which loads the module; the host is freed by the finalizer and nowhere else.
        unsafe { sys::napi_set_instance_data(env, host.cast(), Some(drop_host::<H>), ptr::null_mut()) };
        for function in functions {
            let name = function.name.as_ptr().cast();
            let length = function.name.len().cast_signed();
            let data = ptr::from_ref(function).cast_mut().cast();
            let mut made = ptr::null_mut();
            // SAFETY: the name is a slice, the data is `'static` and of the type that the callback takes it for.
            unsafe {
                sys::napi_create_function(env, name, length, Some(called::<H>), data, &raw mut made);
                let mut property = ptr::null_mut();
                sys::napi_create_string_utf8(env, name, length, &raw mut property);
                sys::napi_set_property(env, exports, property, made);
            }
        }
    };
    let _ = catch_unwind(AssertUnwindSafe(register));
    exports
}

unsafe extern "C" fn called<H: 'static>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); ARGUMENTS];
    let (mut count, mut data, mut host) = (ARGUMENTS, ptr::null_mut(), ptr::null_mut::<c_void>());
    // SAFETY: Node calls this with the environment and the call that runs; missing arguments become undefined.
    unsafe {
        sys::napi_get_cb_info(env, info, &raw mut count, arguments.as_mut_ptr(), ptr::null_mut(), &raw mut data);
        sys::napi_get_instance_data(env, &raw mut host);
    }
    if data.is_null() || host.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: `register` passed a function of this type as data and a host of this type, which lives as long as the
    // environment.
    let (function, host) = unsafe { (&*data.cast::<Function<H>>(), &*host.cast::<H>()) };
    let env = Env { raw: env, of: PhantomData };
    let call = Call { env, host, arguments };
    match catch_unwind(AssertUnwindSafe(|| (function.run)(&call))) {
        Ok(Ok(value)) => value.raw,
        Ok(Err(_)) => {
            env.error("Node refused a value");
            ptr::null_mut()
        }
        Err(_) => {
            env.error("a panic inside Flatwater ended the call; please report it");
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn drop_host<H>(_: sys::napi_env, host: *mut c_void, _: *mut c_void) {
    // SAFETY: it is the box that `register` made, and Node calls the finalizer once.
    let host = unsafe { Box::from_raw(host.cast::<H>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(host)));
}
