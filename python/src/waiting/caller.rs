//! A thread that wakes an event loop by `call_soon_threadsafe`.
//!
//! Owns: the thread, which waits to be rung and then takes the interpreter's lock, so that who rings takes none. It ends with the
//! loop or with this. Invariants: a ring is followed by a call, which is one for all rings before it; the thread keeps neither the loop nor
//! what is called alive. Leaves out: loops that watch sockets (`socket`).

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::capi::thread_end::attached_unless_gone;

pub(crate) struct Caller(SyncSender<()>);

impl Caller {
    /// Starts the thread. Each ring has the loop call the method `deliver` of `heard`.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>, heard: &Bound<'_, PyAny>) -> PyResult<Self> {
        let event_loop = PyWeakrefReference::new(event_loop)?.unbind();
        let heard = PyWeakrefReference::new(heard)?.unbind();
        let (ring, rung) = sync_channel(1);
        let wake = move || {
            let call = |py: Python<'_>| call(event_loop.bind(py), heard.bind(py));
            while rung.recv().is_ok() && attached_unless_gone(call) == Some(true) {}
            // Objects are released with the interpreter's lock, if there still is an interpreter.
            attached_unless_gone(|_| drop((event_loop, heard)));
        };
        thread::Builder::new().name("flatwater-bell".to_owned()).spawn(wake)?;
        Ok(Self(ring))
    }

    /// It fails if a ring was not followed by a call yet, or if the loop is gone.
    pub(crate) fn ring(&self) {
        let _ = self.0.try_send(());
    }
}

/// Returns false if there is nobody to wake any more.
fn call(event_loop: &Bound<'_, PyWeakrefReference>, heard: &Bound<'_, PyWeakrefReference>) -> bool {
    let (Some(event_loop), Some(heard)) = (event_loop.upgrade(), heard.upgrade()) else { return false };
    let py = heard.py();
    let called = heard
        .getattr(intern!(py, "deliver"))
        .and_then(|deliver| event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (deliver,)));
    match called {
        Ok(_) => true,
        // It is closed.
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => false,
        Err(error) => {
            error.write_unraisable(py, Some(&event_loop));
            true
        }
    }
}
