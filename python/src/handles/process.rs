//! What concerns all databases of the process: how many may have connections, and closing all of them.
//!
//! Owns: those calls, and what is done when the interpreter ends. Leaves out: one database (`database`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

use flatwater::Call;
use flatwater::bindings::Output;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::capi::call_type::new_call;
use crate::capi::thread_end;
use crate::given::seconds::Seconds;
use crate::handles::database::NativeDatabase;
use crate::results::shape::Shape;
use crate::told::records;
use crate::waiting::call::Body;
use crate::waiting::pending::Pending;
use crate::waiting::polls::Next;

/// Closes every database file that is open in this process.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>, wait: Seconds) -> PyResult<Bound<'_, PyAny>> {
    let close = |wait| {
        let call = Arc::new(Mutex::new(Some(flatwater::process::close_all(wait))));
        let poll = |call: &mut Call<()>, context: &mut Context<'_>| Pin::new(call).poll(context).map_ok(Output::Done);
        Box::new(Next::new(&call, poll)) as Box<dyn Pending>
    };
    new_call(py, Body::other("close_all", wait.duration().map(close), Shape::Plain))
}

/// Sets how many databases of this process may have connections at a time.
#[pyfunction]
pub(crate) fn set_max_open(databases: usize) {
    flatwater::process::set_max_open(databases);
}

/// Closes all files at the interpreter's end, and what else is open, and waits for that and for the calls of other threads.
/// From then on they are refused with `error`. What cannot be closed is left as after a crash, which the next open recovers.
#[pyfunction]
pub(crate) fn close_at_exit(py: Python<'_>, open: Vec<Bound<'_, NativeDatabase>>, error: Py<PyType>) {
    thread_end::begin_exit(py, error);
    let open: Vec<_> = open.iter().map(|one| one.get().closing()).collect();
    py.detach(|| {
        let _ = flatwater::process::close_all(Duration::MAX).wait();
        open.into_iter().for_each(|close| close());
    });
    thread_end::wait_for_others(py);
    records::deliver(py);
}
