//! What a query logger is called with: one call of the database that has ended.
//!
//! Owns: the object, and making it of an event of the engine. Runs on the thread that ends the call, with the
//! interpreter's lock. Invariant: it contains no bound value. Leaves out: the loggers, and where they run
//! (`flatwater._told.logging`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flatwater::bindings::Hear;
use flatwater::events::{ExecutedOn, StatementEvent};
use pyo3::prelude::*;

/// One call that has ended.
#[pyclass(frozen, get_all, module = "flatwater._native")]
pub(crate) struct LoggedQuery {
    path: PathBuf,
    operation: &'static str,
    sql: Option<String>,
    in_transaction: bool,
    ran_on: Option<&'static str>,
    queue_us: f64,
    lock_us: f64,
    run_us: f64,
    total_us: f64,
    rows: Option<u64>,
    changes: Option<u64>,
    error: Option<&'static str>,
    is_slow: bool,
}

#[pymethods]
impl LoggedQuery {
    fn __repr__(&self) -> String {
        let Self { operation, total_us, error, .. } = self;
        let sql = self.sql.as_deref().map_or_else(String::new, |sql| format!(" {sql:?}"));
        let failed = error.map_or_else(String::new, |kind| format!(", error: {kind}"));
        format!("<flatwater.LoggedQuery {operation}{sql}: {total_us:.1} us{failed}>")
    }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns what the engine calls with each event, which calls `tell`.
pub(crate) fn listener(tell: Py<PyAny>) -> Hear {
    Arc::new(move |event: &StatementEvent<'_>| {
        // Without an interpreter nobody listens any more.
        Python::try_attach(|py| {
            if let Err(error) = tell.call1(py, (query(event),)) {
                error.write_unraisable(py, Some(tell.bind(py)));
            }
        });
    })
}

fn query(event: &StatementEvent<'_>) -> LoggedQuery {
    LoggedQuery {
        path: event.path.to_owned(),
        operation: event.operation,
        sql: event.sql.map(str::to_owned),
        in_transaction: event.in_transaction,
        ran_on: event.ran_on.map(ExecutedOn::name),
        queue_us: us(event.queue),
        lock_us: us(event.lock),
        run_us: us(event.run),
        total_us: us(event.total),
        rows: event.rows,
        changes: event.changes,
        error: event.error.map(|error| error.kind().name()),
        is_slow: event.is_slow,
    }
}
