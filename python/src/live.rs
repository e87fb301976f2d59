//! The results of live queries, and their changes.
//!
//! Owns: the native side of `Live` and `LiveChanges`. Runs on the loop's thread. Invariant: closing leaves the query.
//! Leaves out: blocks and loops, which are in Python (`flatwater._live`).

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use flatwater::front::{Output, place_of, shared_rows};
use flatwater::{Database, LiveChange, LiveChanges, LiveGroup, LiveRows, Params, Result, Row};
use futures_core::Stream;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::call::Body;
use crate::capi::call_type::new_call;
use crate::known_rows::KnownRows;
use crate::polls::{Next, Shared, close};
use crate::rows::{self, Rows};
use crate::shape::Shape;

/// A live query that goes on.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeLive {
    of: Shared<Kind>,
    /// The rows that the program holds, for each query.
    known: Arc<[KnownRows]>,
}

enum Kind {
    /// Of one query, or of a group.
    Results(LiveGroup),
    Changes(LiveChanges),
}

/// How often results are yielded.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) debounce: Duration,
    pub(crate) throttle: Duration,
}

impl NativeLive {
    pub(crate) fn results(database: &Database, queries: Vec<(String, Params)>, pace: Pace) -> Self {
        let known = queries.iter().map(|_| KnownRows::default()).collect();
        let queries = queries.iter().map(|(sql, params)| (&**sql, params.clone()));
        let live = database.live_group(queries).debounce(pace.debounce).throttle(pace.throttle);
        Self { of: Arc::new(Mutex::new(Some(Kind::Results(live)))), known }
    }

    pub(crate) fn changes(database: &Database, sql: &str, params: Params, pace: Pace) -> Self {
        let live = database.live(sql, params).debounce(pace.debounce).throttle(pace.throttle);
        Self { of: Arc::new(Mutex::new(Some(Kind::Changes(live.changes())))), known: Arc::default() }
    }
}

impl Kind {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Output>> {
        fn output<T>(next: Option<Result<T>>, of: fn(T) -> Output) -> Result<Output> {
            next.map_or(Ok(Output::Done), |next| next.map(of))
        }
        match self {
            Self::Results(live) => Pin::new(live).poll_next(context).map(|next| output(next, Output::Live)),
            Self::Changes(live) => Pin::new(live).poll_next(context).map(|next| output(next, Output::LiveChange)),
        }
    }
}

#[pymethods]
impl NativeLive {
    /// Returns the next results, a list with one for each query, or the next change; None when the database is closed.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let next = Box::new(Next::new(&self.of, Kind::poll));
        new_call(py, Body::other("live", Ok(next), Shape::Live(self.known.clone())))
    }

    /// Leaves the query.
    fn close(&self) {
        close(&self.of);
    }
}

/// Returns the results, as objects.
pub(crate) fn results<'py>(py: Python<'py>, all: &[LiveRows], known: &[KnownRows]) -> PyResult<Bound<'py, PyList>> {
    let known = known.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let results = all.iter().zip(known).map(|(one, known)| Rows::with_known(py, shared_rows(one), known));
    PyList::new(py, results.collect::<PyResult<Vec<_>>>()?)
}

/// What has changed in the result of a live query since the change before.
#[pyclass(frozen, get_all, module = "flatwater")]
pub(crate) struct Change {
    /// The whole result, if it replaces what was known before; otherwise None.
    full: Option<Py<Rows>>,
    /// The rows whose key is new.
    inserted: Py<PyList>,
    /// Pairs of a row as it was and as it is.
    updated: Py<PyList>,
    /// The rows whose key is gone.
    deleted: Py<PyList>,
}

impl Change {
    pub(crate) fn new(py: Python<'_>, change: &LiveChange) -> PyResult<Self> {
        let list = |of: Vec<Bound<'_, PyAny>>| PyList::new(py, of).map(Bound::unbind);
        let LiveChange::Rows(changes) = change else {
            let full = if let LiveChange::Full(rows) = change {
                Some(Rows::new(py, shared_rows(rows))?.unbind())
            } else {
                None
            };
            return Ok(Self { full, inserted: list(vec![])?, updated: list(vec![])?, deleted: list(vec![])? });
        };
        let mut objects = Objects { known: Vec::new() };
        let mut inserted = Vec::new();
        for row in changes.inserted() {
            inserted.push(objects.row(py, &row)?);
        }
        let mut updated = Vec::new();
        for row in changes.updated() {
            updated.push(PyTuple::new(py, [objects.row(py, &row.old)?, objects.row(py, &row.new)?])?.into_any());
        }
        let mut deleted = Vec::new();
        for row in changes.deleted() {
            deleted.push(objects.row(py, &row)?);
        }
        Ok(Self { full: None, inserted: list(inserted)?, updated: list(updated)?, deleted: list(deleted)? })
    }
}

/// The objects of the results that rows of a change share: the one before and the newest.
struct Objects<'py> {
    known: Vec<(Arc<flatwater::Rows>, Bound<'py, Rows>)>,
}

impl<'py> Objects<'py> {
    fn row(&mut self, py: Python<'py>, of: &Row<'static>) -> PyResult<Bound<'py, PyAny>> {
        let Some((result, index)) = place_of(of) else {
            return Err(pyo3::exceptions::PyRuntimeError::new_err("a row has no result; please report it"));
        };
        let at = match self.known.iter().position(|(known, _)| Arc::ptr_eq(known, result)) {
            Some(at) => at,
            None => {
                self.known.push((result.clone(), Rows::new(py, result.clone())?));
                self.known.len() - 1
            }
        };
        Ok(rows::row(&self.known[at].1, index)?.into_any())
    }
}

#[pymethods]
impl Change {
    fn __repr__(&self, py: Python<'_>) -> String {
        if self.full.is_some() {
            return "<Change: the full result>".into();
        }
        let [inserted, updated, deleted] =
            [&self.inserted, &self.updated, &self.deleted].map(|list| list.bind(py).len());
        format!("<Change: {inserted} inserted, {updated} updated, {deleted} deleted>")
    }
}
