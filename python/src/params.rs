//! Python values as the parameters of statements.
//!
//! Owns: which types are bound, and in which form. Runs on the loop's thread, when the call is made. Invariants: a
//! value is stored unchanged or refused; nothing of Python is kept. Leaves out: dates, times, UUIDs and adapters, which
//! are rare enough for Python (`flatwater._values`).

use flatwater::rusqlite::types::ToSqlOutput;
use flatwater::{Params, ValueRef};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView, PySequence};
use pyo3::types::{PyString, PyTuple};

use crate::errors::{misuse, raised};

/// Returns parameters: a sequence of values, a mapping of names to values, or nothing for `None`.
pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Params> {
    let mut params = Params::default();
    fill(&mut params, given)?;
    Ok(params)
}

/// Fills parameters that are empty.
pub(crate) fn fill(params: &mut Params, given: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(values) = given.cast_exact::<PyTuple>() {
        for value in values.iter_borrowed() {
            bind(&value, &mut |value| add(given.py(), params, value))?;
        }
        return Ok(());
    }
    fill_any(params, given)
}

fn fill_any(params: &mut Params, given: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = given.py();
    if let Ok(values) = given.cast::<PyList>() {
        for value in values {
            bind(&value, &mut |value| add(py, params, value))?;
        }
    } else if given.is_none() {
    } else if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        let hint = "one value needs the comma of a tuple: (value,)";
        return Err(misuse(py, "parameters are a sequence or a mapping, not one value", Some(hint)));
    } else if given.is_instance_of::<PyDict>() || given.cast::<PyMapping>().is_ok() {
        *params = named(given.cast::<PyMapping>()?)?;
    } else if let Ok(values) = given.cast::<PySequence>() {
        for value in values.try_iter()? {
            bind(&value?, &mut |value| add(py, params, value))?;
        }
    } else {
        let kind = given.get_type().name()?;
        let hint = "give a tuple or a list for `?`, a dict for `:name`";
        return Err(misuse(py, &format!("parameters are a sequence or a mapping, not {kind}"), Some(hint)));
    }
    Ok(())
}

fn named(given: &Bound<'_, PyMapping>) -> PyResult<Params> {
    let py = given.py();
    let mut pairs = Vec::with_capacity(given.len()?);
    for pair in given.items()? {
        let (name, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let name = name.cast::<PyString>().map_err(|_| PyTypeError::new_err("the names of parameters are strings"))?;
        let mut owned = ToSqlOutput::from(0);
        bind(&value, &mut |value| {
            owned = ToSqlOutput::Owned(value.try_into().map_err(|_| PyTypeError::new_err("a text is not UTF-8"))?);
            Ok(())
        })?;
        pairs.push((name.to_str()?.to_owned(), owned));
    }
    let named = Params::named(pairs.iter().map(|(name, value)| (&**name, value)));
    named.map_err(|error| raised(py, &error))
}

fn add(py: Python<'_>, params: &mut Params, value: ValueRef<'_>) -> PyResult<()> {
    params.push(ToSqlOutput::Borrowed(value)).map_err(|error| raised(py, &error))
}

/// Calls `bound` with the form in which the value is stored.
fn bind(value: &Bound<'_, PyAny>, bound: &mut dyn FnMut(ValueRef<'_>) -> PyResult<()>) -> PyResult<()> {
    if let Ok(number) = value.cast_exact::<PyInt>() {
        bound(ValueRef::Integer(integer(number)?))
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        bound(ValueRef::Text(text.to_str()?.as_bytes()))
    } else if value.is_none() {
        bound(ValueRef::Null)
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        bound(ValueRef::Real(number.value()))
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        bound(ValueRef::Blob(bytes.as_bytes()))
    } else if let Ok(truth) = value.cast_exact::<PyBool>() {
        bound(ValueRef::Integer(truth.is_true().into()))
    } else {
        bind_other(value, bound)
    }
}

fn integer(number: &Bound<'_, PyInt>) -> PyResult<i64> {
    let beyond = |_| PyOverflowError::new_err("an int beyond 64 bits cannot be stored; store it as text");
    number.extract::<i64>().map_err(beyond)
}

/// Binds what an adapter makes of the value, bytes in another form, or a value of a derived class.
fn bind_other(value: &Bound<'_, PyAny>, bound: &mut dyn FnMut(ValueRef<'_>) -> PyResult<()>) -> PyResult<()> {
    static ADAPT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        return bound(ValueRef::Blob(&PyBuffer::<u8>::get(value)?.to_vec(value.py())?));
    }
    let adapted = ADAPT.import(value.py(), "flatwater._values", "adapt")?.call1((value,))?;
    if let Ok(number) = adapted.cast::<PyInt>() {
        bound(ValueRef::Integer(integer(number)?))
    } else if let Ok(text) = adapted.cast::<PyString>() {
        bound(ValueRef::Text(text.to_str()?.as_bytes()))
    } else if let Ok(number) = adapted.cast::<PyFloat>() {
        bound(ValueRef::Real(number.value()))
    } else if let Ok(bytes) = adapted.cast::<PyBytes>() {
        bound(ValueRef::Blob(bytes.as_bytes()))
    } else if adapted.is_none() {
        bound(ValueRef::Null)
    } else {
        let class = adapted.get_type().name()?;
        Err(PyTypeError::new_err(format!("an adapter returned {class}, which cannot be stored")))
    }
}
