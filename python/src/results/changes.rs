//! The changes of a live query's result.
//!
//! Owns: `Change`, and making one, a large one in slices. Runs on the loop's thread. Invariant: a change whose call is given
//! up meanwhile is kept for the next call. Leaves out: the live query.

use std::sync::{Arc, Mutex, PoisonError};

use flatwater::bindings::{ChangedRows, changed_rows, shared_rows};
use flatwater::live::{self, RowChanges};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::capi::untracked;
use crate::given::reading::Reading;
use crate::results::rows::Rows;
use crate::results::rows::row::row;
use flatwater_bridge::Slice;

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

/// The change of a live query that was given up before it was complete.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Option<live::Change>>>);

impl Kept {
    pub(crate) fn take(&self) -> Option<live::Change> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, change: live::Change) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(change);
    }
}

/// A change that is being made.
pub(crate) struct Changing {
    /// `None` if the whole result is new.
    rows: Option<Differing>,
    /// `None` once it is complete.
    change: Option<Change>,
}

struct Differing {
    changes: RowChanges,
    old: Py<Rows>,
    new: Py<Rows>,
    kept: Kept,
}

impl Changing {
    pub(crate) fn new(py: Python<'_>, change: live::Change, kept: Kept, reading: Option<&Reading>) -> PyResult<Self> {
        let [inserted, updated, deleted] = [(); 3].map(|()| PyList::empty(py).unbind());
        let object = |rows: Arc<flatwater::Rows>| Rows::new(py, rows, reading).map(Bound::unbind);
        let (full, rows) = match change {
            live::Change::Full(rows) => (Some(object(shared_rows(&rows))?), None),
            live::Change::Rows(changes) => {
                let ChangedRows { old, new, .. } = changed_rows(&changes);
                let (old, new) = (object(old.clone())?, object(new.clone())?);
                (None, Some(Differing { changes, old, new, kept }))
            }
        };
        Ok(Self { rows, change: Some(Change { full, inserted, updated, deleted }) })
    }

    /// Goes on for a slice. Returns the change if it is complete.
    pub(crate) fn go_on(&mut self, py: Python<'_>) -> PyResult<Option<Py<Change>>> {
        if let (Some(Differing { changes, old, new, .. }), Some(change)) = (&self.rows, &self.change) {
            let mut slice = Slice::begin();
            let (old, new) = (old.bind(py), new.bind(py));
            let changed = changed_rows(changes);
            let Change { inserted, updated, deleted, .. } = change;
            let pair = |(before, now): (usize, usize)| {
                let rows = [row(old, before), row(new, now)];
                untracked::tuple(py, rows.into_iter().map(|row| Ok(row?.into_any())))
            };
            let is_done = append(inserted.bind(py), changed.inserted, &mut slice, |at| row(new, at))?
                && append(updated.bind(py), changed.updated, &mut slice, pair)?
                && append(deleted.bind(py), changed.deleted, &mut slice, |at| row(old, at))?;
            if !is_done {
                return Ok(None);
            }
        }
        self.change.take().map(|change| Py::new(py, change)).transpose()
    }

    /// Gives it up. Returns what there is of it.
    pub(crate) fn into_lists(mut self) -> Vec<Py<PyList>> {
        self.keep();
        self.change.take().map_or_else(Vec::new, |change| vec![change.inserted, change.updated, change.deleted])
    }

    fn keep(&self) {
        if let (Some(Differing { changes, kept, .. }), Some(_)) = (&self.rows, &self.change) {
            kept.put(live::Change::Rows(changes.clone()));
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.keep();
    }
}

/// Appends what is made of the positions that the list does not have yet. Returns false if the slice is over.
fn append<'py, P: Copy, T: PyTypeInfo>(
    list: &Bound<'py, PyList>,
    positions: &[P],
    slice: &mut Slice,
    make: impl Fn(P) -> PyResult<Bound<'py, T>>,
) -> PyResult<bool> {
    for position in &positions[list.len()..] {
        list.append(make(*position)?)?;
        if slice.is_over() {
            return Ok(false);
        }
    }
    Ok(true)
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
