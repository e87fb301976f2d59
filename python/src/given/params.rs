//! Python values as the parameters of statements.
//!
//! Owns: which types are bound, and in which form. Runs on the loop's thread, when the call is made. Invariants: a
//! value is stored unchanged or refused; nothing of Python is kept. Leaves out: dates, times, UUIDs and adapters, which
//! are rare enough for Python (`flatwater._given.values`), as are bytes in another form and numbers of other libraries.

use std::collections::BTreeSet;

use flatwater::bindings::{parameter_names, shown};
use flatwater::rusqlite::types::ToSqlOutput;
use flatwater::{ErrorCode, Params, Value, ValueRef};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView, PySequence};
use pyo3::types::{PyString, PyTuple, PyType};

use crate::given::forms::Written;
use crate::told::errors::{raised, refused};

/// Returns the parameters for a text: a sequence of values, a mapping of names to values, or nothing for `None`.
pub(crate) fn of(given: &Bound<'_, PyAny>, sql: &str, written: Written) -> PyResult<Params> {
    let mut params = Params::default();
    fill(&mut params, given, sql, written)?;
    Ok(params)
}

/// Fills parameters that are empty.
pub(crate) fn fill(params: &mut Params, given: &Bound<'_, PyAny>, sql: &str, written: Written) -> PyResult<()> {
    if let Ok(values) = given.cast_exact::<PyTuple>() {
        for (at, value) in values.iter_borrowed().enumerate() {
            add(params, at, &value, sql, written)?;
        }
        return Ok(());
    }
    fill_any(params, given, sql, written)
}

fn fill_any(params: &mut Params, given: &Bound<'_, PyAny>, sql: &str, written: Written) -> PyResult<()> {
    let py = given.py();
    if let Ok(values) = given.cast::<PyList>() {
        for (at, value) in values.iter().enumerate() {
            add(params, at, &value, sql, written)?;
        }
    } else if given.is_none() {
    } else if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        let hint = "one value needs the comma of a tuple: (value,)";
        return Err(refused(
            py,
            ErrorCode::InvalidArgument,
            "parameters must be a sequence or a mapping, not one value",
            Some(hint),
        ));
    } else if given.is_instance_of::<PyDict>() || given.cast::<PyMapping>().is_ok() {
        *params = named(given.cast::<PyMapping>()?, sql, written)?;
    } else if given.cast::<PySequence>().is_ok() || is_sequence(given) {
        for (at, value) in given.try_iter()?.enumerate() {
            add(params, at, &value?, sql, written)?;
        }
    } else {
        let kind = given.get_type().fully_qualified_name()?;
        let hint = "pass a tuple or a list for `?`, a dict for `:name`";
        return Err(refused(
            py,
            ErrorCode::InvalidArgument,
            &format!("parameters must be a sequence or a mapping, not {kind}"),
            Some(hint),
        ));
    }
    Ok(())
}

/// Returns the row, or a copy if the program may change it: a list, a dict, or one of these or a tuple with bytes that can be
/// changed.
pub(crate) fn kept(row: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = row.py();
    if let Ok(values) = row.cast_exact::<PyTuple>() {
        if !values.iter_borrowed().any(|value| is_changeable(&value)) {
            return Ok(row);
        }
        let values: PyResult<Vec<_>> = values.iter().map(kept_value).collect();
        return Ok(PyTuple::new(py, values?)?.into_any());
    }
    if let Ok(values) = row.cast::<PyList>() {
        let values: PyResult<Vec<_>> = values.iter().map(kept_value).collect();
        return Ok(PyTuple::new(py, values?)?.into_any());
    }
    if let Ok(named) = row.cast_exact::<PyDict>() {
        let copy = named.copy()?;
        for (name, value) in named.iter().filter(|(_, value)| is_changeable(value)) {
            copy.set_item(name, kept_value(value)?)?;
        }
        return Ok(copy.into_any());
    }
    Ok(row)
}

/// Returns true for bytes that a program can change.
fn is_changeable(value: &Bound<'_, PyAny>) -> bool {
    static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if value.cast_exact::<PyString>().is_ok() || value.cast_exact::<PyInt>().is_ok() || value.is_none() {
        return false;
    }
    value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
        || ARRAY.import(value.py(), "array", "array").is_ok_and(|array| value.is_instance(array).unwrap_or(false))
}

fn kept_value(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    if !is_changeable(&value) {
        return Ok(value);
    }
    PyMemoryView::from(&value)?.call_method0(intern!(value.py(), "tobytes"))
}

/// As `sqlite3` finds out: an array of another library has no class that says so.
fn is_sequence(given: &Bound<'_, PyAny>) -> bool {
    let class = given.get_type();
    ["__len__", "__getitem__", "__iter__"].iter().all(|name| class.hasattr(*name).unwrap_or(false))
        && !class.hasattr("keys").unwrap_or(false)
}

fn named(given: &Bound<'_, PyMapping>, sql: &str, written: Written) -> PyResult<Params> {
    let py = given.py();
    let makes_missing = given.get_type().hasattr(intern!(py, "__missing__"))?;
    let mut pairs = Vec::with_capacity(given.len()?);
    let mut add = |name: &str, value: &Bound<'_, PyAny>| {
        let owned = owned(value, written).map_err(|error| of_parameter(py, error, Some(&format!("{name:?}")), sql))?;
        pairs.push((name.to_owned(), ToSqlOutput::Owned(owned)));
        PyResult::Ok(())
    };
    if makes_missing {
        // Such as a `defaultdict`: it is asked for the names of the text.
        let names: BTreeSet<&str> = parameter_names(sql).collect();
        names.into_iter().try_for_each(|name| add(name, &given.as_any().get_item(name)?))?;
    } else {
        for pair in given.items()? {
            let (name, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let name =
                name.cast::<PyString>().map_err(|_| PyTypeError::new_err("the names of parameters must be strings"))?;
            add(name.to_str()?, &value)?;
        }
        // For the engine, no values are neither named nor in order.
        if pairs.is_empty()
            && let Some(name) = parameter_names(sql).next()
        {
            return Err(refused(
                py,
                ErrorCode::ParameterName,
                &format!("no value was given for the parameter {name}"),
                None,
            ));
        }
    }
    let named = Params::named(pairs.iter().map(|(name, value)| (&**name, value)));
    named.map_err(|error| of_parameter(py, raised(py, &error), None, sql))
}

/// Adds the value behind so many others.
#[inline]
fn add(params: &mut Params, at: usize, value: &Bound<'_, PyAny>, sql: &str, written: Written) -> PyResult<()> {
    let mut pushed = Ok(());
    let bound = bind(value, written, &mut |value| {
        pushed = params.push(ToSqlOutput::Borrowed(value));
        Ok(())
    });
    let py = value.py();
    bound.map_err(|error| of_parameter(py, error, Some(&(at + 1).to_string()), sql))?;
    pushed.map_err(|error| of_parameter(py, raised(py, &error), None, sql))
}

/// Says in the error which parameter of which text was refused. Without a place it is said there.
#[cold]
fn of_parameter(py: Python<'_>, error: PyErr, place: Option<&str>, sql: &str) -> PyErr {
    let say = || py.import("flatwater._errors")?.getattr("at_parameter")?.call1((error.value(py), place, shown(sql)));
    match say() {
        Ok(_) => error,
        Err(failed) => failed,
    }
}

/// Returns the form in which the value is stored.
pub(crate) fn owned(value: &Bound<'_, PyAny>, written: Written) -> PyResult<Value> {
    let mut owned = Value::Null;
    bind(value, written, &mut |value| {
        owned = value.try_into().map_err(|_| PyTypeError::new_err("a text is not UTF-8"))?;
        Ok(())
    })?;
    Ok(owned)
}

/// Calls `bound` with the form in which the value is stored.
fn bind(
    value: &Bound<'_, PyAny>,
    written: Written,
    bound: &mut dyn FnMut(ValueRef<'_>) -> PyResult<()>,
) -> PyResult<()> {
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
        bind_other(value, written, bound)
    }
}

fn integer(number: &Bound<'_, PyInt>) -> PyResult<i64> {
    let beyond = |_| PyOverflowError::new_err("an int beyond 64 bits cannot be stored; store it as text");
    number.extract::<i64>().map_err(beyond)
}

/// Binds what an adapter makes of the value, bytes in another form, or a value of a derived class.
fn bind_other(
    value: &Bound<'_, PyAny>,
    written: Written,
    bound: &mut dyn FnMut(ValueRef<'_>) -> PyResult<()>,
) -> PyResult<()> {
    static ADAPT: [PyOnceLock<Py<PyAny>>; 4] = [const { PyOnceLock::new() }; 4];
    let (adapt, name) = match (written.sqlite3_datetimes, written.standard) {
        (false, false) => (&ADAPT[0], "adapt"),
        (true, false) => (&ADAPT[1], "adapt_as_sqlite3"),
        (false, true) => (&ADAPT[2], "adapt_standard"),
        (true, true) => (&ADAPT[3], "adapt_standard_as_sqlite3"),
    };
    let adapted = adapt.import(value.py(), "flatwater._given.values", name)?.call1((value,))?;
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
        let class = adapted.get_type().fully_qualified_name()?;
        Err(PyTypeError::new_err(format!("an adapter returned {class}, which cannot be stored")))
    }
}
