//! Small results of calls that return no rows. Plain data.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::given::reading::Reading;
use crate::results::rows::Rows;
use crate::told::errors::unknown_attribute;

/// What one statement changed.
#[pyclass(frozen, eq, hash, get_all, module = "flatwater")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ExecuteResult {
    /// Rows that the statement itself inserted, updated or deleted.
    changes: u64,
    /// The rowid of the last row that it inserted, or None.
    last_insert_rowid: Option<i64>,
}

impl From<flatwater::values::ExecuteResult> for ExecuteResult {
    fn from(executed: flatwater::values::ExecuteResult) -> Self {
        Self { changes: executed.changes, last_insert_rowid: executed.last_insert_rowid }
    }
}

#[pymethods]
impl ExecuteResult {
    #[new]
    #[pyo3(signature = (changes, last_insert_rowid=None))]
    fn new(changes: u64, last_insert_rowid: Option<i64>) -> Self {
        Self { changes, last_insert_rowid }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (py.get_type::<Self>(), (self.changes, self.last_insert_rowid)).into_pyobject(py)
    }

    /// Called for what it does not have.
    fn __getattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        Err(unknown_attribute("of_result", this.as_any(), name))
    }

    fn __repr__(&self) -> String {
        let rowid = self.last_insert_rowid.map_or("None".into(), |rowid| rowid.to_string());
        format!("ExecuteResult(changes={}, last_insert_rowid={rowid})", self.changes)
    }
}

/// What one statement did, whatever it is.
#[pyclass(frozen, get_all, module = "flatwater")]
pub(crate) struct RunResult {
    /// Rows that the statement itself inserted, updated or deleted.
    changes: u64,
    /// The rowid of the last row that it inserted, or None.
    last_insert_rowid: Option<i64>,
    /// The rows of a statement that returns rows, or None.
    rows: Option<Py<Rows>>,
}

impl RunResult {
    pub(crate) fn new(
        py: Python<'_>,
        result: flatwater::values::RunResult,
        reading: Option<&Reading>,
    ) -> PyResult<Self> {
        let rows = result.rows.map(|rows| Rows::new(py, rows.into(), reading)).transpose()?.map(Bound::unbind);
        Ok(Self { changes: result.changes, last_insert_rowid: result.last_insert_rowid, rows })
    }
}

#[pymethods]
impl RunResult {
    #[new]
    #[pyo3(signature = (changes, last_insert_rowid=None, rows=None))]
    fn restored(changes: u64, last_insert_rowid: Option<i64>, rows: Option<Py<Rows>>) -> Self {
        Self { changes, last_insert_rowid, rows }
    }

    /// The names of the columns; there are none if the statement returns no rows.
    #[getter]
    fn columns(&self, py: Python<'_>) -> Py<PyTuple> {
        self.rows.as_ref().map_or_else(|| PyTuple::empty(py).unbind(), |rows| rows.get().columns.clone_ref(py))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (py.get_type::<Self>(), (self.changes, self.last_insert_rowid, &self.rows)).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        format!("RunResult(changes={})", self.changes)
    }
}

/// What a checkpoint did.
#[pyclass(frozen, get_all, module = "flatwater")]
pub(crate) struct CheckpointInfo {
    /// Frames in the WAL.
    frames: u32,
    /// How many of them are in the database.
    copied: u32,
}

impl From<flatwater::calls::CheckpointInfo> for CheckpointInfo {
    fn from(done: flatwater::calls::CheckpointInfo) -> Self {
        Self { frames: done.frames, copied: done.copied }
    }
}

/// How far a backup is.
#[pyclass(frozen, eq, get_all, module = "flatwater")]
#[derive(PartialEq, Eq)]
pub(crate) struct BackupProgress {
    /// Pages of the database.
    total_pages: u64,
    /// Pages that are not copied yet.
    remaining_pages: u64,
}

impl BackupProgress {
    /// Reads the part of a backup, which is a row of two numbers.
    pub(crate) fn of(part: &flatwater::Rows) -> flatwater::Result<Self> {
        let (total_pages, remaining_pages) = part.read_one()?;
        Ok(Self { total_pages, remaining_pages })
    }
}

#[pymethods]
impl BackupProgress {
    fn __repr__(&self) -> String {
        format!("BackupProgress(total_pages={}, remaining_pages={})", self.total_pages, self.remaining_pages)
    }
}
