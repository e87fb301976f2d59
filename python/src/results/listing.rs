//! Lists that are made of rows.
//!
//! Owns: what becomes of each row, and a list while it grows. Runs on the loop's thread. Invariant: the rows are in the list
//! in the order in which they were added, each once. Leaves out: how long it may go on (`slice`), and freeing a list that
//! nobody gets (`shape`).

use flatwater::ErrorCode;
use std::collections::HashSet;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::capi::untracked;
use crate::given::reading::Reading;
use crate::results::rows::Rows;
use crate::results::rows::row::{self, row};
use crate::told::errors::refused;
use flatwater_bridge::Slice;

/// What becomes of a row.
pub(crate) enum Into {
    /// A row of `Rows`, which a result is as a whole.
    Row,
    /// The same in a list.
    EachRow,
    Tuple,
    Dict,
    /// The value of the first column.
    Value,
    /// Called with the columns by name.
    Class(Py<PyAny>),
}

impl Into {
    /// Returns the form that a caller asked for.
    pub(crate) fn of(given: Option<&Bound<'_, PyAny>>) -> Self {
        let Some(given) = given else { return Self::Row };
        let py = given.py();
        if given.is(py.get_type::<row::Row>()) {
            Self::EachRow
        } else if given.is(py.get_type::<PyDict>()) {
            Self::Dict
        } else if given.is(py.get_type::<PyTuple>()) {
            Self::Tuple
        } else {
            Self::Class(given.clone().unbind())
        }
    }

    /// Refuses two columns of one name if rows become something with names.
    pub(crate) fn check(&self, rows: &Bound<'_, Rows>) -> PyResult<()> {
        match self {
            Self::Dict | Self::Class(_) => refuse_same_names(rows.py(), rows.get().names(rows.py())?.into_iter()),
            _ => Ok(()),
        }
    }

    pub(crate) fn make<'py>(&self, rows: &Bound<'py, Rows>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let py = rows.py();
        let by_name = || -> PyResult<Bound<'py, PyDict>> {
            let dict = PyDict::new(py);
            for (column, name) in rows.get().columns.bind(py).iter_borrowed().enumerate() {
                dict.set_item(name, rows.get().value(py, index, column)?)?;
            }
            Ok(dict)
        };
        match self {
            Self::Row | Self::EachRow => Ok(row(rows, index)?.into_any()),
            Self::Tuple => Ok(rows.get().tuple(py, index)?.into_any()),
            Self::Dict => Ok(by_name()?.into_any()),
            Self::Value => rows.get().value(py, index, 0),
            Self::Class(class) => {
                let made = class.bind(py).call((), Some(&by_name()?));
                made.map_err(|error| in_row_of_result(error, rows, index))
            }
        }
    }
}

/// Adds, to the error of a program's class, the row that it was called with.
#[cold]
fn in_row_of_result(error: PyErr, rows: &Bound<'_, Rows>, index: usize) -> PyErr {
    let py = rows.py();
    let say = || -> PyResult<()> {
        let of_row = (error.value(py), rows.get().before + index, rows.get().columns.clone_ref(py));
        py.import("flatwater._errors")?.getattr("in_row_of_result")?.call1(of_row).map(drop)
    };
    say().map_or_else(|failed| failed, |()| error)
}

/// Refuses two columns of one name, where one of them would be lost.
pub(crate) fn refuse_same_names<'a>(py: Python<'_>, mut names: impl Iterator<Item = &'a str>) -> PyResult<()> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(name) => {
            let hint = "name one of them with AS";
            Err(refused(py, ErrorCode::DuplicateColumn, &format!("two columns are named {name:?}"), Some(hint)))
        }
        None => Ok(()),
    }
}

/// A list that grows.
pub(crate) struct Listing {
    into: Into,
    /// The rows that are being added.
    rows: Option<Py<Rows>>,
    /// The number of these that are in the list.
    next: usize,
    is_checked: bool,
    list: Py<PyList>,
}

impl Listing {
    pub(crate) fn new(py: Python<'_>, into: Into) -> Self {
        let list = PyList::empty(py);
        // As long as nobody has it. It may be long, and a collection would visit what is in it.
        untracked::untrack(&list);
        Self { into, rows: None, next: 0, is_checked: false, list: list.unbind() }
    }

    /// A list of these rows.
    pub(crate) fn of(
        py: Python<'_>,
        into: Into,
        rows: flatwater::Rows,
        reading: Option<&Reading>,
    ) -> PyResult<Box<Self>> {
        let mut listing = Box::new(Self::new(py, into));
        listing.add(py, rows, reading)?;
        Ok(listing)
    }

    /// Adds rows of the same columns as those before, which are all in the list.
    pub(crate) fn add(&mut self, py: Python<'_>, rows: flatwater::Rows, reading: Option<&Reading>) -> PyResult<()> {
        let rows = Rows::part(py, rows.into(), reading, self.list.bind(py).len())?;
        if !std::mem::replace(&mut self.is_checked, true) {
            self.into.check(&rows)?;
        }
        (self.rows, self.next) = (Some(rows.unbind()), 0);
        Ok(())
    }

    /// Returns true if all rows that were added are in the list.
    pub(crate) fn is_complete(&self) -> bool {
        self.rows.is_none()
    }

    /// Goes on until the slice is over. Returns true if all rows that were added are in the list.
    pub(crate) fn go_on(&mut self, py: Python<'_>, slice: &mut Slice) -> PyResult<bool> {
        let list = self.list.bind(py);
        if let Some(rows) = self.rows.as_ref().map(|rows| rows.bind(py)) {
            while self.next < rows.get().rows.len() {
                list.append(self.into.make(rows, self.next)?)?;
                self.next += 1;
                if slice.is_over() {
                    return Ok(false);
                }
            }
        }
        self.rows = None;
        Ok(true)
    }

    /// Returns the list, which is complete.
    pub(crate) fn list(&self, py: Python<'_>) -> Py<PyAny> {
        untracked::track(self.list.bind(py));
        self.list.clone_ref(py).into_any()
    }

    /// Returns what there is of the list, which nobody has seen.
    pub(crate) fn into_list(self) -> Py<PyList> {
        self.list
    }
}
