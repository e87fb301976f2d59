//! A statement as a program gives it: its SQL and its parameters, or an object that has both.
//!
//! Owns: taking it apart, the tokens of its SQL, and the statements of a script. Runs on the loop's thread, when the call is
//! made. Invariant: a plain string is not copied. Leaves out: how values are bound (`params`), and what an
//! `Sql` or a t-string means (`flatwater._sql`).

use std::borrow::Cow;

use flatwater::Params;
use flatwater::bindings::{parameter_names, statements, tokens};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::given::forms::Written;
use crate::given::params;

/// A statement with its parameters, taken apart.
pub(crate) struct Statement<'a> {
    pub(crate) sql: Cow<'a, str>,
    pub(crate) params: Params,
}

pub(crate) fn statement<'a>(
    sql: &'a Bound<'_, PyAny>,
    given: Option<&Bound<'_, PyAny>>,
    written: Written,
) -> PyResult<Statement<'a>> {
    static TAKE_APART: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Ok(sql) = sql.cast::<PyString>() {
        let sql = sql.to_str()?;
        let params = given.map_or_else(|| Ok(Params::default()), |given| params::of(given, sql, written))?;
        return Ok(Statement { sql: sql.into(), params });
    }
    let parts = TAKE_APART.import(sql.py(), "flatwater._sql", "take_apart")?.call1((sql, given))?;
    let (sql, given) = parts.extract::<(String, Bound<'_, PyAny>)>()?;
    let params = params::of(&given, &sql, written)?;
    Ok(Statement { sql: sql.into(), params })
}

/// Returns the names of the parameters in a text, without their sign.
#[pyfunction]
pub(crate) fn parameters_of<'py>(py: Python<'py>, sql: &str) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, parameter_names(sql).collect::<Vec<_>>())
}

/// An iterator over the tokens of a text as SQLite reads them: what each is, the token, and the white space and comments
/// before it. The last one is empty.
#[pyclass(module = "flatwater._native")]
pub(crate) struct Tokens {
    sql: Py<PyString>,
    /// Where the next one begins, in bytes. `None` behind the last one.
    at: Option<usize>,
}

#[pymethods]
impl Tokens {
    #[new]
    fn new(sql: Py<PyString>) -> Self {
        Self { sql, at: Some(0) }
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(at) = self.at.take() else { return Ok(None) };
        let sql = self.sql.bind(py).to_str()?;
        let Some((kind, token, gap)) = sql.get(at..).and_then(|rest| tokens(rest).next()) else { return Ok(None) };
        self.at = (!token.is_empty()).then_some(at + gap.len() + token.len());
        (kind, token, gap).into_pyobject(py).map(Some)
    }
}

/// An iterator over the statements of a script, each with its semicolon, and the white space and comments before it.
#[pyclass(module = "flatwater._native")]
pub(crate) struct Statements {
    script: Py<PyString>,
    /// Where the next one begins, in bytes.
    at: usize,
}

#[pymethods]
impl Statements {
    #[new]
    fn new(script: Py<PyString>) -> Self {
        Self { script, at: 0 }
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let rest = &self.script.bind(py).to_str()?[self.at..];
        let empty = tokens(rest).take_while(|(_, token, _)| *token == ";");
        let begin = empty.map(|(_, token, gap)| gap.len() + token.len()).sum();
        let Some((sql, ..)) = statements(&rest[begin..]).next() else { return Ok(None) };
        let end = sql.as_ptr().addr() + sql.len() - rest.as_ptr().addr();
        // Its semicolon, or the end of the script.
        let (_, token, gap) = tokens(&rest[end..]).next().unwrap_or_default();
        let end = end + gap.len() + token.len();
        self.at += end;
        Ok(Some(PyString::new(py, &rest[begin..end])))
    }
}
