//! The options of `connect`.
//!
//! Owns: their values from Python. Leaves out: the names and what they mean (`flatwater-bridge`).

use std::path::PathBuf;

use flatwater::Options;
use flatwater_bridge::{Given, set};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString};

/// Returns the options of a database. An option that is `None` keeps its default.
pub(crate) fn of(path: PathBuf, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new(path);
    for (name, value) in given.into_iter().flatten() {
        if !value.is_none() {
            let name = name.extract::<String>()?;
            options = set(options, &name, form(&name, &value)?).map_err(PyTypeError::new_err)?;
        }
    }
    Ok(options)
}

fn form(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if let Ok(on) = value.cast::<PyBool>() {
        Ok(Given::Bool(on.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        value.extract().map(Given::Integer)
    } else if let Ok(number) = value.cast::<PyFloat>() {
        Ok(Given::Real(number.value()))
    } else if value.is_instance_of::<PyString>() {
        value.extract().map(Given::Text)
    } else if let Ok(seconds) = value.call_method0("total_seconds") {
        seconds.extract().map(Given::Real)
    } else if let Ok(pairs) = value.cast::<PyMapping>() {
        let path = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|_| PyTypeError::new_err("a path is not UTF-8"))
        };
        let pairs = pairs.items()?.extract::<Vec<(String, PathBuf)>>()?.into_iter();
        pairs.map(|(name, file)| Ok((name, path(file)?))).collect::<PyResult<_>>().map(Given::Pairs)
    } else if value.is_instance_of::<PyList>() {
        value.extract().map(Given::Texts)
    } else {
        Err(PyTypeError::new_err(format!("the option {name:?} cannot be {}", value.get_type().name()?)))
    }
}
