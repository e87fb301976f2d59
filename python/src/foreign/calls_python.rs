//! Code of Python that SQLite calls: scalar functions and collations, and what both have in common with aggregates.
//!
//! Owns: the arguments and results, and what becomes of an exception. Runs inside of SQLite: on the threads of the database,
//! where it takes the interpreter's lock, and if it is deterministic also on the thread that polls a call, which has the lock
//! (`docs/design/bridge.md`). Invariants: a thread that waits for the lock in here holds none that a thread with the lock waits
//! for; an exception, also one that is no `Exception`, is the cause of the error of the statement, whose text has no value in it.
//! Leaves out: the methods of aggregates (`aggregates`), and threads of the database when the interpreter ends
//! (`capi::thread_end`).

use std::cmp::Ordering;

use flatwater::ValueRef;
use flatwater::bindings::functions::OwnError;
use flatwater::rusqlite::functions::Context;
use flatwater::rusqlite::{self, types::Value};
use pyo3::exceptions::{PyTypeError, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyTuple};

use crate::capi::texts::short_text;
use crate::capi::thread_state::called_by_database;
use crate::foreign::own_exceptions::Raised;
use crate::given::forms::Written;
use crate::given::params;

/// The code of a function or a collation.
pub(crate) struct Code {
    /// As an error names it.
    said: Box<str>,
    pub(crate) code: Py<PyAny>,
    written: Written,
}

impl Code {
    pub(crate) fn new(kind: &str, name: &str, code: Py<PyAny>, written: Written) -> Self {
        Self { said: format!("the {kind} {name}").into(), code, written }
    }

    /// Runs `work` with the interpreter's lock.
    pub(crate) fn run<T>(&self, work: impl FnOnce(Python<'_>) -> Result<T, Raised>) -> rusqlite::Result<T> {
        self.run_or(work).map_err(rusqlite::Error::UserFunctionError)
    }

    fn run_or<T>(&self, work: impl FnOnce(Python<'_>) -> Result<T, Raised>) -> Result<T, OwnError> {
        match called_by_database(work) {
            Some(done) => done.map_err(OwnError::from),
            None => Err(format!("{} was not called: the interpreter ends", self.said).into()),
        }
    }

    /// Says that the code raised an exception.
    #[cold]
    pub(crate) fn raised(&self, py: Python<'_>, error: PyErr) -> Raised {
        let class = error.get_type(py).qualname();
        let class = class.map_or_else(|_| "an exception".into(), |class| class.to_string());
        Raised { said: format!("{} raised {class}", self.said).into(), error }
    }

    /// Calls the function with the arguments of SQLite.
    pub(crate) fn scalar(&self, context: &Context<'_>) -> rusqlite::Result<Value> {
        self.run(|py| {
            let code = self.code.bind(py);
            let result = match context.len() {
                0 => code.call0(),
                1 => code.call1((self.argument(py, context, 0)?,)),
                _ => code.call1(self.arguments(py, context)?),
            };
            self.stored(&result.map_err(|error| self.raised(py, error))?)
        })
    }

    pub(crate) fn arguments<'py>(&self, py: Python<'py>, context: &Context<'_>) -> Result<Bound<'py, PyTuple>, Raised> {
        let all = (0..context.len()).map(|at| self.argument(py, context, at)).collect::<Result<Vec<_>, _>>()?;
        PyTuple::new(py, all).map_err(|error| self.raised(py, error))
    }

    fn argument<'py>(&self, py: Python<'py>, context: &Context<'_>, at: usize) -> Result<Bound<'py, PyAny>, Raised> {
        Ok(match context.get_raw(at) {
            ValueRef::Null => py.None().into_bound(py),
            ValueRef::Integer(value) => PyInt::new(py, value).into_any(),
            ValueRef::Real(value) => PyFloat::new(py, value).into_any(),
            ValueRef::Text(text) => match short_text(py, text) {
                Ok(text) => text.into_any(),
                Err(error) => return Err(self.not_utf8(py, at, error)),
            },
            ValueRef::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
        })
    }

    #[cold]
    fn not_utf8(&self, py: Python<'_>, at: usize, error: PyErr) -> Raised {
        if !error.is_instance_of::<PyUnicodeDecodeError>(py) {
            return self.raised(py, error);
        }
        Raised { said: format!("{} was not called: its argument {} is not UTF-8", self.said, at + 1).into(), error }
    }

    /// Returns a result as SQLite stores it: what is a parameter is a result.
    pub(crate) fn stored(&self, result: &Bound<'_, PyAny>) -> Result<Value, Raised> {
        params::owned(result, self.written)
            .map_err(|error| Raised { said: format!("the result of {} cannot be stored", self.said).into(), error })
    }

    /// Calls the collation.
    pub(crate) fn compare(&self, one: &str, other: &str) -> Result<Ordering, OwnError> {
        self.run_or(|py| {
            let order = || {
                let order = self.code.bind(py).call1((one, other))?;
                if !order.is_instance_of::<PyInt>() {
                    let class = order.get_type().fully_qualified_name()?;
                    return Err(PyTypeError::new_err(format!("a collation returns an int, not {class}")));
                }
                Ok(if order.lt(0)? {
                    Ordering::Less
                } else if order.gt(0)? {
                    Ordering::Greater
                } else {
                    Ordering::Equal
                })
            };
            order().map_err(|error| self.raised(py, error))
        })
    }
}
