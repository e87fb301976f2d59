//! What a listener of statements is called with: one call of the database that has ended.
//!
//! Owns: the object, and making it of an event of the engine. Runs on the thread that ends the call, with the
//! interpreter's lock. Invariant: it contains no bound value. Leaves out: the listeners, and where they run
//! (`flatwater._told.logging`).

use std::path::PathBuf;
use std::sync::Arc;

use flatwater::bindings::Hear;
use flatwater::events::{self, ExecutedOn};
use flatwater::{Error, ErrorCode};
use pyo3::prelude::*;

/// One call that has ended.
#[pyclass(frozen, get_all, module = "flatwater._native")]
pub(crate) struct StatementEvent {
    path: PathBuf,
    operation: &'static str,
    sql: Option<String>,
    in_transaction: bool,
    ran_on: Option<&'static str>,
    queue: f64,
    lock: f64,
    run: f64,
    total: f64,
    rows: Option<u64>,
    changes: Option<u64>,
    error: Option<&'static str>,
    error_code: Option<&'static str>,
    is_slow: bool,
}

#[pymethods]
impl StatementEvent {
    fn __repr__(&self) -> String {
        let Self { operation, total, error, .. } = self;
        let sql = self.sql.as_deref().map_or_else(String::new, |sql| format!(" {sql:?}"));
        let failed = error.map_or_else(String::new, |kind| format!(", error: {kind}"));
        format!("<flatwater.StatementEvent {operation}{sql}: {:.1} us{failed}>", total * 1e6)
    }
}

/// Returns what the engine calls with each event, which calls `tell`.
pub(crate) fn listener(tell: Py<PyAny>) -> Hear {
    Arc::new(move |event: &events::StatementEvent<'_>| {
        // Without an interpreter nobody listens any more.
        Python::try_attach(|py| {
            if let Err(error) = tell.call1(py, (of(event),)) {
                error.write_unraisable(py, Some(tell.bind(py)));
            }
        });
    })
}

/// Returns SQLite's name of the error, or its code.
fn code_of(error: &Error) -> Option<&'static str> {
    error.sqlite_name().or_else(|| error.code().map(ErrorCode::name))
}

fn of(event: &events::StatementEvent<'_>) -> StatementEvent {
    StatementEvent {
        path: event.path.to_owned(),
        operation: event.operation,
        sql: event.sql.map(str::to_owned),
        in_transaction: event.in_transaction,
        ran_on: event.ran_on.map(ExecutedOn::name),
        queue: event.queue.as_secs_f64(),
        lock: event.lock.as_secs_f64(),
        run: event.run.as_secs_f64(),
        total: event.total.as_secs_f64(),
        rows: event.rows,
        changes: event.changes,
        error: event.error.map(|error| error.kind().name()),
        error_code: event.error.and_then(code_of),
        is_slow: event.is_slow,
    }
}
