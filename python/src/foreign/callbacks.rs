//! Code of Python that a connection of the caller's own asks and tells: authorizer, progress handler, trace.
//!
//! Owns: their arguments and results. Runs on the threads of the database, inside of SQLite, and takes the
//! interpreter's lock there, as functions of Python do (`calls_python`). Invariant: an exception does what it does in
//! the `sqlite3` module: an authorizer denies, a progress handler ends the statement, a trace is ignored. Leaves out:
//! when they are called.

use std::sync::Arc;

use flatwater::bindings::functions::{AuthEvent, Authorize, Progress, Trace, Verdict};
use pyo3::prelude::*;

use crate::capi::thread_state::called_by_database;

/// The results of an authorizer, as SQLite has them.
const OK: i64 = 0;
const IGNORE: i64 = 2;

pub(crate) fn authorize(code: Py<PyAny>) -> Authorize {
    Arc::new(move |event: &AuthEvent| {
        let AuthEvent { action, first, second, database, accessor } = event;
        let texts = [first, second, database, accessor].map(|text| text.as_deref());
        let verdict = called_by_database(|py| {
            let [first, second, database, accessor] = texts;
            code.bind(py).call1((*action, first, second, database, accessor))?.extract::<i64>()
        });
        match verdict {
            Some(Ok(OK)) => Verdict::Allow,
            Some(Ok(IGNORE)) => Verdict::Ignore,
            _ => Verdict::Deny,
        }
    })
}

pub(crate) fn progress(code: Py<PyAny>) -> Progress {
    Arc::new(move || {
        let ends = called_by_database(|py| code.bind(py).call0()?.is_truthy());
        ends.is_none_or(|ends| ends.unwrap_or(true))
    })
}

pub(crate) fn trace(code: Py<PyAny>) -> Trace {
    Arc::new(move |_: &str, sql: &str| {
        let _ = called_by_database(|py| code.bind(py).call1((sql,)).map(drop));
    })
}
