//! The options of `connect`.
//!
//! Owns: their values from Python, and what is said of one in the wrong place. Leaves out: the names, their tiers and what
//! they mean (`flatwater-bridge`).

use std::path::PathBuf;

use flatwater::{ErrorCode, Migrations, Options};
use flatwater_bridge::{Given, OPTIONS, TUNING, nearest, set, unknown};
use flatwater_remote::Remote;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString};

use crate::given::keys::AnyKey;
use crate::given::paths::AnyPath;
use crate::given::seconds::Seconds;
use crate::told::errors::{raised, refused};

/// The options that are Python's own, or have a form of their own here.
const OWN: &[&str] =
    &["converters", "datetimes", "functions", "into", "key", "load_extension", "migrations", "tuning", "types"];

/// The keywords of `connect`.
pub(crate) fn keywords() -> impl Iterator<Item = &'static str> + Clone {
    OPTIONS.iter().map(|(name, _)| *name).chain(OWN.iter().copied())
}

/// The keys of `tuning`.
pub(crate) fn tuning() -> impl Iterator<Item = &'static str> + Clone {
    TUNING.iter().map(|(name, _)| *name)
}

/// Returns the options of a database. An option that is `None` keeps its default.
pub(crate) fn of(path: PathBuf, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new(path);
    for (name, value) in given.into_iter().flatten() {
        let name = name.extract::<String>()?;
        match name.as_str() {
            name if !keywords().any(|known| known == name) => return Err(PyTypeError::new_err(no_keyword(name))),
            _ if value.is_none() => {}
            "key" => options = options.key(value.extract::<AnyKey>()?.0),
            "load_extension" => options = with_extensions(options, &value)?,
            "migrations" => options = options.migrations(migrations(&value)?),
            "tuning" => options = tuned(options, &value)?,
            name => options = set_to(options, name, &value)?,
        }
    }
    Ok(options)
}

/// Gives the connection to a server the options that it may have. The others are those of files, or are in its address.
pub(crate) fn of_server(
    py: Python<'_>,
    remote: Remote,
    given: Option<&Bound<'_, PyDict>>,
    functions: usize,
) -> PyResult<Remote> {
    let mut remote = remote;
    for (name, value) in given.into_iter().flatten() {
        let name = name.extract::<String>()?;
        match name.as_str() {
            name if !keywords().any(|known| known == name) => return Err(PyTypeError::new_err(no_keyword(name))),
            _ if value.is_none() => {}
            "timeout" => remote = remote.with_timeout(value.extract::<Seconds>()?.duration()?),
            name => return Err(not_of_server(py, &format!("the option {name:?}"))),
        }
    }
    if functions > 0 { Err(not_of_server(py, "a function")) } else { Ok(remote) }
}

fn not_of_server(py: Python<'_>, what: &str) -> PyErr {
    let hint = "a server has `timeout`, and what is in its address";
    refused(
        py,
        ErrorCode::Unsupported,
        &format!("{what} needs a database of this process, and this one is on a server"),
        Some(hint),
    )
}

/// Sets the options of the keys of `tuning`.
fn tuned(mut options: Options, given: &Bound<'_, PyAny>) -> PyResult<Options> {
    let Ok(given) = given.cast::<PyMapping>() else {
        return Err(PyTypeError::new_err("the option \"tuning\" must be a dict"));
    };
    for pair in given.items()? {
        let (name, value) = pair.extract::<(String, Bound<'_, PyAny>)>()?;
        if !tuning().any(|known| known == name) {
            return Err(PyTypeError::new_err(no_key(&name)));
        }
        if !value.is_none() {
            options = set_to(options, &name, &value)?;
        }
    }
    Ok(options)
}

fn set_to(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    set(options, name, form(name, value)?).map_err(PyTypeError::new_err)
}

/// Loads one extension: its path, or its path and entry point; or those of a list.
fn with_extensions(options: Options, given: &Bound<'_, PyAny>) -> PyResult<Options> {
    if let Ok(all) = given.cast::<PyList>() {
        return all.iter().try_fold(options, |options, one| with_extensions(options, &one));
    }
    let one = given.extract::<(AnyPath, Option<String>)>().or_else(|_| given.extract().map(|path| (path, None)));
    let wrong = |_| {
        PyTypeError::new_err(
            "the option \"load_extension\" must be a path, a path with an entry point, or a list of these",
        )
    };
    let (path, entry): (AnyPath, Option<String>) = one.map_err(wrong)?;
    Ok(options.load_extension(path.0, entry.as_deref()))
}

/// Says what to write instead of a keyword that there is not.
#[cold]
fn no_keyword(name: &str) -> String {
    if tuning().any(|key| key == name) {
        return format!("the option {name:?} is not a keyword: pass it as tuning={{{name:?}: ...}}");
    }
    match (nearest(name, keywords()), nearest(name, tuning())) {
        (None, Some(key)) => format!("there is no option {name:?}; did you mean tuning={{{key:?}: ...}}?"),
        _ => unknown("option", name, keywords()),
    }
}

/// Says what to write instead of a key of `tuning` that there is not.
#[cold]
fn no_key(name: &str) -> String {
    if keywords().any(|known| known == name) {
        return format!("the option {name:?} is not a key of `tuning`: pass it as the keyword {name}=...");
    }
    unknown("key of `tuning`", name, tuning())
}

/// Returns migrations: pairs of a name and SQL, or the path of a folder.
pub(crate) fn migrations(given: &Bound<'_, PyAny>) -> PyResult<Migrations> {
    match given.extract::<AnyPath>() {
        Ok(folder) => Migrations::from_dir(folder.0).map_err(|error| raised(given.py(), &error)),
        Err(_) => {
            let refused =
                |_| PyTypeError::new_err("migrations are pairs of a name and its SQL, or the path of a folder");
            let pairs =
                given.try_iter().map_err(refused)?.map(|pair| pair?.extract::<(String, String)>().map_err(refused));
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
    } else if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        value.extract().map(Given::Bytes)
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
