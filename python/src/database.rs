//! The handle of an open database.
//!
//! Owns: opening, closing, and the operations that only a database has. Runs on the loop's thread. Leaves out: those that it
//! shares with transactions (`executor`).

use std::path::PathBuf;

use flatwater::front::{FrontCall, Target, close, open};
use flatwater::{CheckpointMode, Migrations};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::Body;
use crate::capi::call_type::new_call;
use crate::errors::raised;
use crate::shape::Shape;

/// An open database.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeDatabase {
    database: flatwater::Database,
}

impl NativeDatabase {
    pub(crate) fn new(database: flatwater::Database) -> Self {
        Self { database }
    }

    pub(crate) fn target(&self) -> Target {
        Target::of(&self.database)
    }

    fn call<'py>(&self, py: Python<'py>, name: &'static str, call: PyResult<FrontCall>) -> PyResult<Bound<'py, PyAny>> {
        new_call(py, Body::call(name, call, Shape::Plain))
    }
}

/// Opens a database.
#[pyfunction]
#[pyo3(signature = (path, options=None))]
pub(crate) fn connect<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    new_call(py, Body::call("connect", crate::options::of(path, options).map(open), Shape::Plain))
}

/// The names of all options.
#[pyfunction]
pub(crate) fn options() -> Vec<&'static str> {
    flatwater_bridge::OPTIONS.iter().map(|(name, _)| *name).collect()
}

#[pymethods]
impl NativeDatabase {
    /// Closes the database.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "close", Ok(close(&self.database)))
    }

    /// Closes the database and waits for that, at the interpreter's end. What cannot be closed is left as after a crash, which
    /// the next open recovers.
    fn close_at_exit(&self, py: Python<'_>) {
        let _ = py.detach(|| close(&self.database).wait());
    }

    /// Applies migrations: pairs of a name and SQL, or the path of a folder.
    #[pyo3(signature = (migrations, ignore_missing))]
    fn migrate<'py>(&self, migrations: &Bound<'py, PyAny>, ignore_missing: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = migrations.py();
        let read = || {
            let list = match migrations.extract::<PathBuf>() {
                Ok(folder) => Migrations::from_dir(folder).map_err(|error| raised(py, &error))?,
                Err(_) => Migrations::new(migrations.extract::<Vec<(String, String)>>()?),
            };
            Ok(self.target().migrate(list.ignore_missing(ignore_missing)))
        };
        self.call(py, "migrate", read())
    }

    /// Runs a checkpoint.
    fn checkpoint<'py>(&self, py: Python<'py>, mode: &str) -> PyResult<Bound<'py, PyAny>> {
        let mode = match mode {
            "passive" => Ok(CheckpointMode::Passive),
            "full" => Ok(CheckpointMode::Full),
            "restart" => Ok(CheckpointMode::Restart),
            "truncate" => Ok(CheckpointMode::Truncate),
            _ => Err(PyValueError::new_err("the mode is \"passive\", \"full\", \"restart\" or \"truncate\"")),
        };
        self.call(py, "checkpoint", mode.map(|mode| self.target().checkpoint(mode)))
    }
}
