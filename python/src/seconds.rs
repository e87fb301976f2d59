//! Times as a program gives them: a number of seconds, or a `timedelta`.
//!
//! Owns: reading one. Leaves out: what it is for.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// A time that was not checked yet.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(f64);

impl Seconds {
    pub(crate) fn duration(self) -> PyResult<Duration> {
        let wrong = |_| PyValueError::new_err("a time is a number of seconds, which is not negative, or a timedelta");
        Duration::try_from_secs_f64(self.0).map_err(wrong)
    }
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(seconds) = given.extract::<f64>() {
            return Ok(Self(seconds));
        }
        let wrong = || PyTypeError::new_err("a time is a number of seconds or a timedelta");
        let seconds = given.call_method0(intern!(given.py(), "total_seconds")).map_err(|_| wrong())?;
        seconds.extract().map(Self).map_err(|_: PyErr| wrong())
    }
}
