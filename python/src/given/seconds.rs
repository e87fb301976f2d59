//! Times as a program gives them: a number of seconds, or a `timedelta`.
//!
//! Owns: reading one, and setting the deadline of a call. Leaves out: what else it is for.

use std::time::Duration;

use flatwater::bindings::FrontCall;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// A time that was not checked yet.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(f64);

impl Seconds {
    pub(crate) fn duration(self) -> PyResult<Duration> {
        let wrong = |_| PyValueError::new_err("a time must be a non-negative number of seconds or a timedelta");
        Duration::try_from_secs_f64(self.0).map_err(wrong)
    }
}

/// Sets the deadline of a call.
pub(crate) fn timed(call: FrontCall, timeout: Option<Seconds>) -> PyResult<FrontCall> {
    Ok(match timeout.map(Seconds::duration).transpose()? {
        Some(timeout) => call.timeout(timeout),
        None => call,
    })
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(seconds) = given.extract::<f64>() {
            return Ok(Self(seconds));
        }
        let wrong = || PyTypeError::new_err("a time must be a number of seconds or a timedelta");
        let seconds = given.call_method0(intern!(given.py(), "total_seconds")).map_err(|_| wrong())?;
        seconds.extract().map(Self).map_err(|_: PyErr| wrong())
    }
}
