//! The type of calls: a coroutine whose result, if it is there at once, costs no exception.
//!
//! Owns: the object's memory, the slots of the type, and the warning about calls that were never awaited. Everything
//! that a call does is in `Body`. Invariants: the body is used by one caller at a time (`running`); no panic leaves a
//! slot.
//!
//! The slots `am_send` and `tp_iternext` both resume the call: which of them is used depends on the interpreter's
//! version. A call is no iterable, as no coroutine is: a loop over one that was not awaited, its length and its items raise
//! what says so. `__await__` returns an object that is an iterable (`awaiting`).

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::exceptions::{
    PyAttributeError, PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError, PyValueError,
};
use pyo3::ffi::{self, PyObject, PySendResult};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use super::thread_end::{attached, inside};
use crate::waiting::awaiting::Awaiting;
use crate::waiting::call::{Body, Step};

#[repr(C)]
struct CallObject {
    head: PyObject,
    /// The body is in use: what it calls may come back to this object.
    running: bool,
    body: ManuallyDrop<Body>,
}

static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Returns the type, which is made once.
pub(crate) fn type_object(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    TYPE.get_or_try_init(py, || make_type(py)).map(|made| made.bind(py).clone())
}

/// Makes a call.
pub(crate) fn new_call(py: Python<'_>, body: Body) -> PyResult<Bound<'_, PyAny>> {
    let class = type_object(py)?;
    // SAFETY: the type is a heap type made from `SPEC`, so its instances have room for a `CallObject`. The memory is
    // zeroed but for the head, and the body is written before anything else sees the object.
    unsafe {
        let made = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        let object = Bound::from_owned_ptr_or_opt(py, made);
        let object = object.ok_or_else(|| PyErr::fetch(py))?;
        let call = made.cast::<CallObject>();
        (&raw mut (*call).running).write(false);
        (&raw mut (*call).body).write(ManuallyDrop::new(body));
        Ok(object)
    }
}

fn make_type(py: Python<'_>) -> PyResult<Py<PyType>> {
    fn slot(slot: c_int, function: *mut c_void) -> ffi::PyType_Slot {
        ffi::PyType_Slot { slot, pfunc: function }
    }
    fn method(
        name: &'static CStr,
        function: ffi::PyMethodDefPointer,
        flags: c_int,
        doc: &'static CStr,
    ) -> ffi::PyMethodDef {
        ffi::PyMethodDef { ml_name: name.as_ptr(), ml_meth: function, ml_flags: flags, ml_doc: doc.as_ptr() }
    }
    fn getter(name: &'static CStr, get: ffi::getter, doc: &'static CStr) -> ffi::PyGetSetDef {
        ffi::PyGetSetDef { name: name.as_ptr(), get: Some(get), set: None, doc: doc.as_ptr(), closure: null_mut() }
    }
    let c_function = |function: ffi::PyCFunction| ffi::PyMethodDefPointer { PyCFunction: function };
    // The type refers to these tables for as long as it lives, which is until the process ends.
    let methods = Box::leak(Box::new([
        method(c"send", c_function(send_method), ffi::METH_O, c"Resumes the call."),
        method(c"throw", c_function(throw_method), ffi::METH_VARARGS, c"Cancels the call, and raises the exception."),
        method(c"close", c_function(close_method), ffi::METH_NOARGS, c"Cancels the call."),
        method(
            c"__await__",
            c_function(await_method),
            ffi::METH_NOARGS | ffi::METH_COEXIST,
            c"Returns an iterator that resumes the call.",
        ),
        method(c"__aenter__", c_function(enter_method), ffi::METH_NOARGS, c"A call is not a block: it raises."),
        method(c"__aexit__", c_function(enter_method), ffi::METH_VARARGS, c"A call is not a block: it raises."),
        method(c"_wait", c_function(wait_method), ffi::METH_NOARGS, c"Blocks this thread until the call completes."),
        method(
            c"_wait_unless",
            c_function(wait_unless_method),
            ffi::METH_O,
            c"The same, unless the function raises, which is called meanwhile.",
        ),
        ffi::PyMethodDef::zeroed(),
    ]));
    let getters = Box::leak(Box::new([
        getter(c"__name__", get_name, c"The name of the operation."),
        getter(c"__qualname__", get_name, c"The name of the operation."),
        getter(c"cr_running", get_running, c"True while the call is being resumed."),
        getter(c"cr_await", get_none, c"None."),
        getter(c"cr_code", get_none, c"None: a call has no Python code."),
        getter(c"cr_frame", get_none, c"None: a call has no frame."),
        getter(c"cr_origin", get_none, c"None."),
        ffi::PyGetSetDef { name: std::ptr::null(), get: None, set: None, doc: std::ptr::null(), closure: null_mut() },
    ]));
    let mut slots = [
        slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_am_await, itself as *mut c_void),
        slot(ffi::Py_am_send, am_send as *mut c_void),
        slot(ffi::Py_tp_getattro, getattro as *mut c_void),
        slot(ffi::Py_tp_iternext, iternext as *mut c_void),
        slot(ffi::Py_tp_iter, iter as *mut c_void),
        slot(ffi::Py_am_aiter, aiter as *mut c_void),
        slot(ffi::Py_mp_subscript, subscript as *mut c_void),
        slot(ffi::Py_sq_contains, contains as *mut c_void),
        slot(ffi::Py_mp_length, length as *mut c_void),
        slot(ffi::Py_nb_bool, truth as *mut c_void),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getters.as_mut_ptr().cast()),
        slot(
            ffi::Py_tp_doc,
            c"One call of the database: a coroutine, which begins when it is awaited.".as_ptr() as *mut c_void,
        ),
        slot(0, null_mut()),
    ];
    let flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION | ffi::Py_TPFLAGS_IMMUTABLETYPE;
    let mut spec = ffi::PyType_Spec {
        name: c"flatwater.Call".as_ptr(),
        basicsize: c_int::try_from(size_of::<CallObject>())?,
        itemsize: 0,
        flags: u32::try_from(flags)?,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification and its slots live during the call, the tables for ever; each slot has the signature
    // that its number stands for; the result is a new reference to a type, or null with an exception set.
    unsafe {
        let made = Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))?;
        Ok(made.cast_into_unchecked::<PyType>().unbind())
    }
}

/// Runs `work` on the body. Its result is `None` if an exception was set.
///
/// # Safety
/// `object` is an instance of the type, and the interpreter is attached.
unsafe fn with_body<T>(object: *mut PyObject, work: impl FnOnce(Python<'_>, &mut Body) -> PyResult<T>) -> Option<T> {
    let call = object.cast::<CallObject>();
    let run = || {
        attached(|py| {
            // SAFETY: the object lives during the slot, and only `running` is touched without the mark.
            let running = unsafe { &mut (*call).running };
            if std::mem::replace(running, true) {
                return Err((PyValueError::new_err("coroutine already executing"), false));
            }
            // SAFETY: the mark keeps others from the body until it is taken back.
            let body = unsafe { &mut *(*call).body };
            work(py, body).map_err(|error| (error, true))
        })
    };
    let done = catch_unwind(AssertUnwindSafe(run));
    let (error, was_marked) = match done {
        Ok(Ok(value)) => {
            // SAFETY: as above; the body is not in use any more.
            unsafe { (&raw mut (*call).running).write(false) };
            return Some(value);
        }
        Ok(Err((error, was_marked))) => (error, was_marked),
        Err(_) => (PyRuntimeError::new_err("a call of flatwater panicked; please report it"), true),
    };
    if was_marked {
        // SAFETY: as above.
        unsafe { (&raw mut (*call).running).write(false) };
    }
    attached(|py| error.restore(py));
    None
}

/// Goes on with a call. When the interpreter ends, a call of another thread is refused and counts as awaited; a close is
/// not refused, because everything is closed.
fn step<T>(py: Python<'_>, body: &mut Body, work: impl FnOnce(&mut Body, Python<'_>) -> PyResult<T>) -> PyResult<T> {
    if body.name() == "close" {
        return work(body, py);
    }
    let done = inside(py, || work(body, py));
    body.set_begun();
    done
}

/// Returns what a slot that yields or returns an object returns: null with `StopIteration` for a result.
fn as_generator(step: Option<Step>) -> *mut PyObject {
    match step {
        Some(Step::Yield(object)) => object.into_ptr(),
        Some(Step::Return(result)) => {
            attached(|py| PyStopIteration::new_err((result,)).restore(py));
            null_mut()
        }
        None => null_mut(),
    }
}

unsafe extern "C" fn am_send(object: *mut PyObject, _: *mut PyObject, result: *mut *mut PyObject) -> PySendResult {
    // SAFETY: a slot of the type.
    let step = unsafe { with_body(object, |py, body| step(py, body, Body::resume)) };
    let (object, sent) = match step {
        Some(Step::Yield(object)) => (object.into_ptr(), PySendResult::PYGEN_NEXT),
        Some(Step::Return(object)) => (object.into_ptr(), PySendResult::PYGEN_RETURN),
        None => (null_mut(), PySendResult::PYGEN_ERROR),
    };
    // SAFETY: the caller gives a place for the result.
    unsafe { result.write(object) };
    sent
}

unsafe extern "C" fn iternext(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of the type.
    as_generator(unsafe { with_body(object, |py, body| step(py, body, Body::resume)) })
}

unsafe extern "C" fn itself(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of the type; the result is a new reference.
    unsafe { ffi::Py_NewRef(object) }
}

/// Raises the error of a call that is used in the place of its result.
fn not_awaited(use_of_it: &str) {
    let raise = |py: Python<'_>| {
        PyTypeError::new_err(format!("{use_of_it}: it was not awaited; its result is what `await` returns"))
            .restore(py);
    };
    // A panic has nowhere to go.
    let _ = catch_unwind(AssertUnwindSafe(|| attached(raise)));
}

unsafe extern "C" fn iter(_: *mut PyObject) -> *mut PyObject {
    not_awaited("'flatwater.Call' object is not iterable");
    null_mut()
}

unsafe extern "C" fn aiter(_: *mut PyObject) -> *mut PyObject {
    not_awaited("'flatwater.Call' object is not an asynchronous iterable; use `db.stream(sql)`");
    null_mut()
}

unsafe extern "C" fn subscript(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    not_awaited("'flatwater.Call' object is not subscriptable");
    null_mut()
}

unsafe extern "C" fn contains(_: *mut PyObject, _: *mut PyObject) -> c_int {
    not_awaited("argument of type 'flatwater.Call' is not iterable");
    -1
}

unsafe extern "C" fn length(_: *mut PyObject) -> ffi::Py_ssize_t {
    not_awaited("object of type 'flatwater.Call' has no len()");
    -1
}

/// True, as of any object that has no length.
unsafe extern "C" fn truth(_: *mut PyObject) -> c_int {
    1
}

/// Attributes of the type; an unknown one is told what the result may have it.
unsafe extern "C" fn getattro(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: a slot of the type, with its arguments.
    let found = unsafe { ffi::PyObject_GenericGetAttr(object, name) };
    if found.is_null() {
        let explain = || {
            attached(|py| {
                let Some(error) = PyErr::take(py) else { return };
                // SAFETY: the interpreter passes a name, which lives during the slot.
                let name = unsafe { Bound::from_borrowed_ptr(py, name) };
                unknown_attribute(py, &name, error).restore(py);
            });
        };
        let _ = catch_unwind(AssertUnwindSafe(explain));
    }
    found
}

/// Adds a hint to the error of an attribute that a call does not have.
#[cold]
fn unknown_attribute(py: Python<'_>, name: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyAttributeError>(py) {
        return error;
    }
    let hint = || -> PyResult<Option<String>> {
        py.import("flatwater._told.names")?.getattr("of_call")?.call1((name,))?.extract()
    };
    match hint() {
        Ok(Some(hint)) => PyAttributeError::new_err(hint),
        _ => error,
    }
}

unsafe extern "C" fn await_method(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let awaiting = || {
        attached(|py| {
            // SAFETY: a method of the type.
            let call = unsafe { Bound::from_borrowed_ptr(py, object) };
            Bound::new(py, Awaiting::new(call.unbind())).map_or_else(
                |error| {
                    error.restore(py);
                    null_mut()
                },
                Bound::into_ptr,
            )
        })
    };
    catch_unwind(AssertUnwindSafe(awaiting)).unwrap_or(null_mut())
}

unsafe extern "C" fn enter_method(_: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let text = "a call is awaited, not entered: `rows = await db.query(sql)`; `async with` is for `db.stream(sql)`, \
                `db.batches(sql)` and `db.transaction()`";
    attached(|py| PyTypeError::new_err(text).restore(py));
    null_mut()
}

unsafe extern "C" fn send_method(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: a method of the type.
    as_generator(unsafe { with_body(object, |py, body| step(py, body, Body::resume)) })
}

unsafe extern "C" fn throw_method(object: *mut PyObject, arguments: *mut PyObject) -> *mut PyObject {
    let throw = |py: Python<'_>, body: &mut Body| {
        // SAFETY: the interpreter passes a tuple, which lives during the call.
        let arguments = unsafe { Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>() };
        step(py, body, |body, py| body.throw(py, exception(&arguments)?))
    };
    // SAFETY: a method of the type.
    as_generator(unsafe { with_body(object, throw) })
}

unsafe extern "C" fn close_method(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    let close = |py: Python<'_>, body: &mut Body| {
        body.close(py);
        Ok(py.None())
    };
    // SAFETY: a method of the type.
    unsafe { with_body(object, close) }.map_or(null_mut(), Py::into_ptr)
}

unsafe extern "C" fn wait_method(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: a method of the type.
    unsafe { with_body(object, |py, body| step(py, body, |body, py| body.wait(py, None))) }
        .map_or(null_mut(), Py::into_ptr)
}

unsafe extern "C" fn wait_unless_method(object: *mut PyObject, raises: *mut PyObject) -> *mut PyObject {
    // SAFETY: a method of the type; the argument lives during the call.
    let waited = unsafe {
        with_body(object, |py, body| {
            let raises = Bound::from_borrowed_ptr(py, raises);
            step(py, body, |body, py| body.wait(py, Some(&raises)))
        })
    };
    waited.map_or(null_mut(), Py::into_ptr)
}

/// Returns the exception of `throw(exception)` or of the old form `throw(type, value, traceback)`.
fn exception(arguments: &Bound<'_, PyTuple>) -> PyResult<PyErr> {
    let first = arguments.get_item(0).map_err(|_| PyTypeError::new_err("throw expected at least 1 argument, got 0"))?;
    let value = arguments.get_item(1).ok().filter(|value| !value.is_none());
    match (first.cast::<PyType>(), value) {
        (Ok(_), Some(value)) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => {
            Ok(PyErr::from_value(value))
        }
        (Ok(class), Some(value)) => Ok(PyErr::from_value(class.call1((value,))?)),
        _ => Ok(PyErr::from_value(first)),
    }
}

unsafe extern "C" fn get_name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    let name = |py: Python<'_>, body: &mut Body| Ok(pyo3::types::PyString::intern(py, body.name()).into_any().unbind());
    // SAFETY: a getter of the type.
    unsafe { with_body(object, name) }.map_or(null_mut(), Py::into_ptr)
}

unsafe extern "C" fn get_running(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: a getter of the type, with the interpreter attached; reading the mark does not touch the body.
    unsafe { ffi::PyBool_FromLong((*object.cast::<CallObject>()).running.into()) }
}

unsafe extern "C" fn get_none(_: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: the interpreter is attached; the result is a new reference.
    unsafe { ffi::Py_NewRef(ffi::Py_None()) }
}

unsafe extern "C" fn repr(object: *mut PyObject) -> *mut PyObject {
    let text = |py: Python<'_>, body: &mut Body| {
        let text = format!("<flatwater.Call {} at {object:p}>", body.name());
        Ok(pyo3::types::PyString::new(py, &text).into_any().unbind())
    };
    // SAFETY: a slot of the type.
    unsafe { with_body(object, text) }.map_or(null_mut(), Py::into_ptr)
}

unsafe extern "C" fn dealloc(object: *mut PyObject) {
    let drop_body = || {
        attached(|py| {
            // An object may be freed while an exception is on its way.
            let before = PyErr::take(py);
            // SAFETY: nobody refers to the object any more, and its body is dropped once.
            let body = unsafe { ManuallyDrop::take(&mut (*object.cast::<CallObject>()).body) };
            if !body.was_begun() {
                warn_never_awaited(py, &body);
            }
            drop(body);
            if let Some(before) = before {
                before.restore(py);
            }
        });
    };
    // A panic has nowhere to go.
    let _ = catch_unwind(AssertUnwindSafe(drop_body));
    // SAFETY: the memory came from `PyType_GenericAlloc` of a type without garbage collection, which also took a
    // reference to the type.
    unsafe {
        let class = ffi::Py_TYPE(object);
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

fn warn_never_awaited(py: Python<'_>, body: &Body) {
    let text = format!("coroutine 'flatwater.{}' was never awaited", body.name());
    let Ok(text) = std::ffi::CString::new(text) else { return };
    if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
        error.write_unraisable(py, None);
    }
}
