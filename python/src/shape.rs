//! What a call returns of the engine's result.
//!
//! Owns: making Python objects of a result, a large one in slices, and freeing those that nobody gets, in slices too.
//! Runs on the loop's thread. Leaves out: single values (`cells`) and rows (`rows`).

use std::collections::HashSet;
use std::sync::Arc;

use flatwater::front::Output;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::capi::texts::LongText;
use crate::changes::{Changing, Kept};
use crate::database::NativeDatabase;
use crate::errors::misuse;
use crate::guards::{SnapshotGuard, TransactionGuard};
use crate::known_rows::KnownRows;
use crate::live;
use crate::results::{BatchResult, Checkpointed, Executed};
use crate::rows::{self, Rows};
use crate::slice::Slice;

/// A text of fewer bytes becomes a string at once.
const SHORT: usize = 128 << 10;
/// So many objects are freed at once.
const FEW: usize = 32;

/// What becomes of rows.
pub(crate) enum Into {
    Row,
    Tuple,
    Dict,
    /// The value of the first column.
    Value,
    /// Called with the columns by name.
    Class(Py<PyAny>),
}

/// What a call returns.
pub(crate) enum Shape {
    /// What the output is by itself.
    Plain,
    Rows(Into),
    /// The first row, or `None`.
    First(Into),
    /// The first value of the first row, or `None`.
    Value,
    /// The results of a live query, with the rows that the program holds; or a change of them.
    Live(Arc<[KnownRows]>, Kept),
}

/// A result that is being made.
pub(crate) enum Shaping {
    Done(Py<PyAny>),
    Listing {
        rows: Py<Rows>,
        into: Into,
        next: usize,
        list: Py<PyList>,
    },
    Text(LongText),
    Change(Changing),
    /// The call was given up: nobody gets these.
    Freeing(Vec<Py<PyList>>),
}

impl Into {
    /// Returns the form that a caller asked for.
    pub(crate) fn of(given: Option<&Bound<'_, PyAny>>) -> Self {
        let Some(given) = given else { return Self::Row };
        let py = given.py();
        if given.is(py.get_type::<PyDict>()) {
            Self::Dict
        } else if given.is(py.get_type::<pyo3::types::PyTuple>()) {
            Self::Tuple
        } else {
            Self::Class(given.clone().unbind())
        }
    }

    fn make<'py>(&self, rows: &Bound<'py, Rows>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = rows.py();
        let by_name = || -> PyResult<Bound<'py, PyDict>> {
            let dict = PyDict::new(py);
            for (column, name) in rows.get().columns.bind(py).iter_borrowed().enumerate() {
                dict.set_item(name, crate::cells::to_python(py, &rows.get().rows, index, column)?)?;
            }
            Ok(dict)
        };
        match self {
            Self::Row => Ok(rows::row(rows, index)?.into_any()),
            Self::Tuple => Ok(rows.get().tuple(py, index)?.into_any()),
            Self::Dict => Ok(by_name()?.into_any()),
            Self::Value => crate::cells::to_python(py, &rows.get().rows, index, 0),
            Self::Class(class) => class.bind(py).call((), Some(&by_name()?)),
        }
    }
}

impl Shape {
    /// Refuses two columns of one name if rows become something with names: one of the values would be lost.
    fn check(&self, rows: &Bound<'_, Rows>) -> PyResult<()> {
        let (Self::Rows(into) | Self::First(into)) = self else { return Ok(()) };
        if !matches!(into, Into::Dict | Into::Class(_)) {
            return Ok(());
        }
        let mut names = HashSet::new();
        match rows.get().rows.columns().find(|name| !names.insert(*name)) {
            Some(name) => {
                let hint = "name one of them with AS";
                Err(misuse(rows.py(), &format!("two columns are named {name:?}"), Some(hint)))
            }
            None => Ok(()),
        }
    }

    /// Begins to make the result.
    pub(crate) fn begin(self, py: Python<'_>, output: Output) -> PyResult<Shaping> {
        let rows = match output {
            Output::Rows(rows) => Rows::new(py, rows.into())?,
            Output::Json(json) if json.len() >= SHORT => return Ok(Shaping::Text(LongText::new(json))),
            Output::LiveChange(change) => {
                let kept = if let Self::Live(_, kept) = self { kept } else { Kept::default() };
                return Changing::new(py, change, kept).map(Shaping::Change);
            }
            Output::Live(all) => {
                let known = if let Self::Live(known, _) = &self { &**known } else { &[] };
                return Ok(Shaping::Done(live::results(py, &all, known)?.into_any().unbind()));
            }
            output => return plain(py, output).map(Shaping::Done),
        };
        self.check(&rows)?;
        let is_empty = rows.get().rows.is_empty();
        let done = match self {
            Self::Rows(Into::Row) | Self::Plain | Self::Live(..) => rows.into_any().unbind(),
            Self::Rows(into) => {
                let list = PyList::empty(py).unbind();
                return Ok(Shaping::Listing { rows: rows.unbind(), into, next: 0, list });
            }
            Self::First(_) | Self::Value if is_empty => py.None(),
            Self::First(into) => into.make(&rows, 0)?.unbind(),
            Self::Value => crate::cells::to_python(py, &rows.get().rows, 0, 0)?.unbind(),
        };
        Ok(Shaping::Done(done))
    }
}

impl Shaping {
    /// Goes on for a slice. Returns the result if it is complete.
    pub(crate) fn go_on(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Done(result) => Ok(Some(result.clone_ref(py))),
            Self::Listing { rows, into, next, list } => {
                let mut slice = Slice::begin();
                let (rows, list) = (rows.bind(py), list.bind(py));
                while *next < rows.get().rows.len() {
                    list.append(into.make(rows, *next)?)?;
                    *next += 1;
                    if slice.is_over() {
                        return Ok(None);
                    }
                }
                Ok(Some(list.clone().into_any().unbind()))
            }
            Self::Text(text) => Ok(text.go_on(py)?.map(Py::into_any)),
            Self::Change(change) => Ok(change.go_on(py)?.map(Py::into_any)),
            Self::Freeing(lists) => {
                let mut slice = Slice::begin();
                while let Some(list) = lists.last().map(|list| list.bind(py)) {
                    let length = list.len();
                    if list.del_slice(length.saturating_sub(FEW), length).is_err() || length <= FEW {
                        lists.pop();
                    }
                    if slice.is_over() {
                        return Ok(None);
                    }
                }
                Ok(Some(py.None()))
            }
        }
    }

    /// Gives it up. What there is of it may be large.
    pub(crate) fn give_up(self) -> Self {
        match self {
            Self::Listing { list, .. } => Self::Freeing(vec![list]),
            Self::Change(change) => Self::Freeing(change.into_lists()),
            Self::Done(_) | Self::Text(_) => Self::Freeing(Vec::new()),
            Self::Freeing(lists) => Self::Freeing(lists),
        }
    }
}

fn plain(py: Python<'_>, output: Output) -> PyResult<Py<PyAny>> {
    fn object<T>(py: Python<'_>, value: T) -> PyResult<Py<PyAny>>
    where
        T: pyo3::PyClass + std::convert::Into<PyClassInitializer<T>>,
    {
        Bound::new(py, value).map(|object| object.into_any().unbind())
    }
    match output {
        Output::Executed(executed) => object(py, Executed::from(executed)),
        Output::Changes(changes) => Ok(changes.into_pyobject(py)?.into_any().unbind()),
        Output::Json(json) => Ok(PyString::new(py, &json).into_any().unbind()),
        Output::Batch(results) => {
            let results = results.into_iter().map(|result| Bound::new(py, BatchResult::new(py, result)?));
            Ok(PyList::new(py, results.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        }
        Output::Done => Ok(py.None()),
        Output::Database(database) => object(py, NativeDatabase::new(database)),
        Output::Transaction(transaction) => object(py, TransactionGuard::new(transaction)),
        Output::Snapshot(snapshot) => object(py, SnapshotGuard::new(snapshot)),
        Output::Checkpointed(done) => object(py, Checkpointed::from(done)),
        Output::Migrated(names) => Ok(PyList::new(py, names)?.into_any().unbind()),
        Output::Rows(_) | Output::Live(_) | Output::LiveChange(_) => {
            Err(PyRuntimeError::new_err("rows are no plain output; please report it"))
        }
    }
}
