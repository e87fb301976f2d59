//! How the values of results become Python's: the converters of a program, and standard types.
//!
//! Owns: which columns of a result are special, decided once per result, and taking `types` as a program gives it. Runs on the
//! thread that makes the result. Invariants: a converter comes before a type; a result without special columns is as one of a
//! database that said nothing. Leaves out: converting a value (`casts`), what types mean (`flatwater-bridge`).

use std::sync::Arc;

use flatwater::bindings::is_of_write;
use flatwater::{ErrorCode, Rows};
use flatwater_bridge::Types;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString, PyTuple};

use crate::given::casts::{Cast, Casts};
use crate::given::converters::Converters;
use crate::told::errors::refused;

/// How results are read.
pub(crate) struct Reading {
    converters: Option<Arc<Converters>>,
    /// Those of the call before those of the database.
    types: Option<Types>,
    /// Those that the call named, each of which a column must have.
    asked: Option<Types>,
}

impl Reading {
    /// Returns how results of a database are read, if that is special.
    pub(crate) fn new(converters: Option<Converters>, types: Option<Types>) -> Option<Arc<Self>> {
        let is_special = converters.is_some() || types.is_some();
        is_special.then(|| Arc::new(Self { converters: converters.map(Arc::new), types, asked: None }))
    }

    /// The same for a call with types of its own; without types if it asked for values as they are stored.
    pub(crate) fn of_call(database: Option<&Self>, asked: Option<Types>) -> Option<Arc<Self>> {
        let converters = database.and_then(|database| database.converters.clone());
        let known = database.and_then(|database| database.types.as_ref());
        let types = asked.clone().map(|asked| known.map_or(asked.clone(), |known| asked.or(known)));
        let is_special = converters.is_some() || types.is_some();
        is_special.then(|| Arc::new(Self { converters, types, asked }))
    }

    /// Returns what is special about the columns of a result, if anything is.
    pub(crate) fn casts(&self, py: Python<'_>, rows: &Rows) -> PyResult<Option<Casts>> {
        if let Some(name) = self.asked.as_ref().and_then(|asked| asked.unused(rows)) {
            return Err(no_such_column(py, name, rows));
        }
        let cast = |column| {
            let Ok(column) = rows.column(column) else { return Ok(None) };
            if let Some(converter) = self.converters.as_ref().map_or(Ok(None), |all| all.of(py, column))? {
                return Ok(Some(Cast::Converter(converter)));
            }
            Ok(self.types.as_ref().and_then(|types| types.of(column)).map(Cast::Meaning))
        };
        let by_column = (0..rows.columns().len()).map(cast).collect::<PyResult<Box<[_]>>>()?;
        let names = self.converters.as_ref().and_then(|converters| converters.names(rows));
        let names =
            names.map(|names| PyTuple::new(py, names.map(|name| PyString::intern(py, name)).collect::<Vec<_>>()));
        let is_special = names.is_some() || by_column.iter().any(Option::is_some);
        Ok(is_special.then_some(Casts { by_column, names: names.transpose()?.map(Bound::unbind) }))
    }
}

#[cold]
fn no_such_column(py: Python<'_>, name: &str, rows: &Rows) -> PyErr {
    let done = if is_of_write(rows) { "; the call was executed" } else { "" };
    let names = rows.columns().collect::<Vec<_>>().join(", ");
    let message = format!("`types` has {name:?}, and the result has {names}{done}");
    refused(py, ErrorCode::NoSuchColumn, &message, Some("name a column of the result, or \"table.column\""))
}

/// Returns the types that a program gives: "standard", names of columns with words, or none for "stored".
pub(crate) fn types_of(given: &Bound<'_, PyAny>) -> PyResult<Option<Types>> {
    let wrong = || PyTypeError::new_err("`types` must be \"standard\", \"stored\" or a dict of columns and types");
    if let Ok(word) = given.cast::<PyString>() {
        return match word.to_str()? {
            "standard" => Ok(Some(Types::default())),
            "stored" => Ok(None),
            _ => Err(wrong()),
        };
    }
    let mut types = Types::default();
    for pair in given.cast::<PyMapping>().map_err(|_| wrong())?.items()? {
        let (name, word) = pair.extract::<(String, String)>().map_err(|_| wrong())?;
        types.name(&name, &word).map_err(PyTypeError::new_err)?;
    }
    Ok(Some(types))
}

/// Refuses what is no value of the option `types`.
#[pyfunction]
pub(crate) fn check_types(given: &Bound<'_, PyAny>) -> PyResult<()> {
    types_of(given).map(drop)
}
