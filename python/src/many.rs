//! Arguments of which there may be many: the rows of parameters of `executemany`, and the statements of `batch`.
//!
//! Owns: taking them from an iterable in slices, between which other tasks run. Runs on the loop's thread. Invariants:
//! the iterable is used on that thread only; the call takes its place in the queue when it has the last one. Leaves
//! out: the call.

use std::sync::Arc;

use flatwater::Params;
use flatwater::bindings::{
    BatchStatements, FrontCall, Mailbox, ParamRows, Polled, add_row, number_from, rows_added, rows_of_next, take_row,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString, PyTuple};

use crate::call::Pending;
use crate::errors::misuse;
use crate::forms::Datetimes;
use crate::params;
use crate::statement::{Statement, statement};
use flatwater_bridge::Slice;

/// What is taken from an iterable, one by one.
pub(crate) trait Collection: Default + Send + Sync {
    /// What a program is told that gives a string, and the hint.
    const IS_STRING: (&'static str, &'static str);

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()>;
}

/// Rows of parameters of one text, and an empty one, whose memory is used again.
#[derive(Default)]
pub(crate) struct ManyRows {
    pub(crate) sql: String,
    pub(crate) rows: ParamRows,
    row: Params,
    datetimes: Datetimes,
    /// The number of the first row, in errors.
    first: usize,
}

impl ManyRows {
    pub(crate) fn new(sql: String, datetimes: Datetimes, first: usize) -> Self {
        let mut rows = ParamRows::default();
        number_from(&mut rows, first);
        Self { sql, rows, row: Params::default(), datetimes, first }
    }
}

impl Collection for ManyRows {
    const IS_STRING: (&'static str, &'static str) =
        ("the rows of parameters must not be a string", "pass a list of tuples: [(value,), ...]");

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let Self { sql, rows, row, datetimes, first } = self;
        let filled = params::fill(row, given, sql, *datetimes);
        filled.map_err(|error| in_row(given.py(), error, *first + rows_added(rows)))?;
        add_row(rows, row);
        Ok(())
    }
}

/// The statements of a batch with their parameters.
#[derive(Default)]
pub(crate) struct Statements {
    pub(crate) all: BatchStatements,
    datetimes: Datetimes,
}

impl Statements {
    pub(crate) fn new(datetimes: Datetimes) -> Self {
        Self { all: BatchStatements::default(), datetimes }
    }
}

impl Collection for Statements {
    const IS_STRING: (&'static str, &'static str) =
        ("the statements must not be a string", "pass a list: [(sql, params), sql, ...]; or use `executescript`");

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let (sql, params) = of_pair(given)?;
        let Statement { sql, params } = statement(&sql, params.as_ref(), self.datetimes)?;
        take_row(rows_of_next(&mut self.all, &sql), params);
        Ok(())
    }
}

/// Returns the SQL of a statement and its parameters, as a program gives both or the first alone.
pub(crate) fn of_pair<'py>(given: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
    match given.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => Ok((pair.get_item(0)?, Some(pair.get_item(1)?))),
        Ok(alone) if alone.len() == 1 => Ok((alone.get_item(0)?, None)),
        Ok(_) => Err(PyTypeError::new_err("a statement is (sql, params) or sql")),
        Err(_) => Ok((given.clone(), None)),
    }
}

type Make<C> = Box<dyn FnOnce(C) -> PyResult<FrontCall> + Send + Sync>;

/// Not boxed within, because it is boxed as a whole.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Collecting<C> {
    Collecting {
        given: Py<PyIterator>,
        collected: C,
        make: Option<Make<C>>,
        /// What was taken before one that cannot be had is used, and then the error is raised.
        keeps: bool,
    },
    Call(FrontCall, Option<PyErr>),
}

impl<C: Collection> Collecting<C> {
    pub(crate) fn new(given: &Bound<'_, PyAny>, collected: C, keeps: bool, make: Make<C>) -> PyResult<Self> {
        if given.is_instance_of::<PyString>() {
            let (message, hint) = C::IS_STRING;
            return Err(misuse(given.py(), message, Some(hint)));
        }
        let given = given.try_iter()?.unbind();
        Ok(Self::Collecting { given, collected, make: Some(make), keeps })
    }
}

impl<C: Collection> Pending for Collecting<C> {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if let Self::Collecting { given, collected, make, keeps } = self {
            let (mut slice, mut failed) = (Slice::begin(), None);
            for one in given.bind(py).clone() {
                match one.and_then(|one| collected.add(&one)) {
                    Ok(()) if slice.is_over() => return Ok(Polled::Yields),
                    Ok(()) => {}
                    Err(error) if *keeps => {
                        failed = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(make) = make.take() {
                *self = Self::Call(make(std::mem::take(collected))?, failed);
            }
        }
        match self {
            Self::Call(call, failed) => match (Pending::poll(call, py, address)?, failed.take()) {
                (Polled::Ready(Ok(_)), Some(failed)) => Err(failed),
                (polled, still) => {
                    *failed = still;
                    Ok(polled)
                }
            },
            Self::Collecting { .. } => Ok(Polled::Waits),
        }
    }

    fn give_up(&mut self) -> bool {
        match self {
            Self::Call(call, _) => Pending::give_up(call),
            Self::Collecting { .. } => false,
        }
    }
}

/// Says in which row of parameters a value was refused.
#[cold]
fn in_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    let say = || py.import("flatwater._errors")?.getattr("in_row")?.call1((error.value(py), row));
    match say() {
        Ok(_) => error,
        Err(failed) => failed,
    }
}
