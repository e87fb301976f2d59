//! The options of `connect`.
//!
//! Owns: their values from Python. Leaves out: the names and what they mean (`flatwater-bridge`).

use std::path::PathBuf;

use crate::errors::raised;
use crate::paths::AnyPath;
use flatwater::{Migrations, Options};
use flatwater_bridge::{Given, check, set};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString};

/// Returns the options of a database. An option that is `None` keeps its default.
pub(crate) fn of(path: PathBuf, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new(path);
    for (name, value) in given.into_iter().flatten() {
        let name = name.extract::<String>()?;
        match name.as_str() {
            "migrations" if value.is_none() => {}
            "migrations" => options = options.migrations(migrations(&value)?),
            name if value.is_none() => check(name).map_err(PyTypeError::new_err)?,
            name => options = set(options, name, form(name, &value)?).map_err(PyTypeError::new_err)?,
        }
    }
    Ok(options)
}

/// Returns migrations: pairs of a name and SQL, or the path of a folder.
pub(crate) fn migrations(given: &Bound<'_, PyAny>) -> PyResult<Migrations> {
    match given.extract::<AnyPath>() {
        Ok(folder) => Migrations::from_dir(folder.0).map_err(|error| raised(given.py(), &error)),
        Err(_) => {
            let pairs = given.try_iter()?.map(|pair| pair?.extract::<(String, String)>());
            Ok(Migrations::new(pairs.collect::<PyResult<Vec<_>>>()?))
        }
    }
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
        let path = |path: AnyPath| {
            path.0.into_os_string().into_string().map_err(|_| PyTypeError::new_err("a path is not UTF-8"))
        };
        let pairs = pairs.items()?.extract::<Vec<(String, AnyPath)>>()?.into_iter();
        pairs.map(|(name, file)| Ok((name, path(file)?))).collect::<PyResult<_>>().map(Given::Pairs)
    } else if value.is_instance_of::<PyList>() {
        value.extract().map(Given::Texts)
    } else {
        Err(PyTypeError::new_err(format!("the option {name:?} cannot be {}", value.get_type().fully_qualified_name()?)))
    }
}
