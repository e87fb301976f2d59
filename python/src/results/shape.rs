//! What a call returns of the engine's result.
//!
//! Owns: making Python objects of a result, a large one in slices, and freeing those that nobody gets, in slices too.
//! Runs on the loop's thread. Leaves out: single values (`cells`), rows (`rows`), and lists of what is
//! made of them (`listing`), columns (`columns`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flatwater::bindings::{Output, shared_rows};
use flatwater::live::LiveRows;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString, PyTuple};

use crate::capi::texts::LongText;
use crate::given::reading::Reading;
use crate::results::cells::to_python;
use crate::results::changes::{Changing, Kept};
use crate::results::columns::Gathering;
use crate::results::known_rows::KnownRows;
use crate::results::listing::{Into, Listing};
use crate::results::rows::Rows;
use crate::results::small::{BackupProgress, CheckpointInfo, ExecuteResult, RunResult};
use crate::told::errors::{raised, unexpected};
use flatwater_bridge::Slice;

/// A text of fewer bytes becomes a string at once.
const SHORT: usize = 128 << 10;
/// So many objects are freed at once.
const FEW: usize = 32;

/// Makes an object of an output.
type Make = dyn FnOnce(Python<'_>, Output) -> PyResult<Py<PyAny>> + Send + Sync;

/// What a call returns.
pub(crate) enum Shape {
    /// What the output is by itself.
    Plain,
    /// What this makes of the output, such as the handle of a database that was opened.
    Handle(Box<Make>),
    Rows(Into),
    /// The next rows of a result, of which so many were returned before.
    Batch(Arc<AtomicUsize>),
    /// A list, of which parts are there.
    Begun(Box<Listing>),
    /// Columns, of which parts may be there.
    Columns(Box<Gathering>),
    /// `None`, after the callback was told how far a backup is, by its parts.
    Told(Py<PyAny>, Option<BackupProgress>),
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
    Listing(Box<Listing>),
    Columns(Box<Gathering>),
    Text(LongText),
    Change(Changing),
    /// The call was given up: nobody gets these.
    Freeing(Vec<Py<PyList>>),
}

impl Shape {
    /// Adds a part of the result, whose other rows follow.
    pub(crate) fn add(&mut self, py: Python<'_>, rows: flatwater::Rows, reading: Option<&Reading>) -> PyResult<()> {
        if let Self::Rows(into) = self {
            *self = Self::Begun(Box::new(Listing::new(py, std::mem::replace(into, Into::Row))));
        }
        match self {
            Self::Begun(listing) => listing.add(py, rows, reading),
            Self::Columns(columns) => columns.add(py, rows),
            Self::Told(_, newest) => {
                *newest = Some(BackupProgress::of(&rows).map_err(|error| raised(py, &error))?);
                Ok(())
            }
            _ => Err(unexpected()),
        }
    }

    /// Returns true if all rows that were added are in the result.
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Begun(listing) => listing.is_complete(),
            Self::Columns(columns) => columns.is_complete(),
            Self::Told(_, newest) => newest.is_none(),
            _ => true,
        }
    }

    /// Goes on until the slice is over. Returns true if all rows that were added are in the result.
    pub(crate) fn go_on(&mut self, py: Python<'_>, slice: &mut Slice) -> PyResult<bool> {
        match self {
            Self::Begun(listing) => listing.go_on(py, slice),
            Self::Columns(columns) => columns.go_on(py, slice),
            // There may be another one by now, and other tasks have their turn first.
            Self::Told(progress, newest) => match newest.take() {
                Some(newest) => progress.call1(py, (newest,)).map(|_| false),
                None => Ok(true),
            },
            _ => Ok(true),
        }
    }

    /// Begins to make the result.
    pub(crate) fn begin(self, py: Python<'_>, output: Output, reading: Option<&Reading>) -> PyResult<Shaping> {
        if let Self::Handle(make) = self {
            return make(py, output).map(Shaping::Done);
        }
        let rows = match output {
            Output::Rows(rows) => rows,
            Output::Json(json) if json.len() >= SHORT => return Ok(Shaping::Text(LongText::new(json))),
            Output::Change(change) => {
                let kept = if let Self::Live(_, kept) = self { kept } else { Kept::default() };
                return Changing::new(py, change, kept, reading).map(Shaping::Change);
            }
            Output::Live(all) => {
                let known = if let Self::Live(known, _) = &self { &**known } else { &[] };
                return Ok(Shaping::Done(results(py, &all, known, reading)?.into_any().unbind()));
            }
            output => return plain(py, output, reading).map(Shaping::Done),
        };
        let rows_object = |rows: flatwater::Rows| Rows::new(py, rows.into(), reading);
        let done = match self {
            Self::Rows(Into::Row) | Self::Plain | Self::Live(..) | Self::Handle(_) | Self::Told(..) => {
                rows_object(rows)?.into_any().unbind()
            }
            Self::Batch(returned) => {
                let before = returned.fetch_add(rows.len(), Ordering::Relaxed);
                Rows::part(py, rows.into(), reading, before)?.into_any().unbind()
            }
            Self::Rows(into) => return Listing::of(py, into, rows, reading).map(Shaping::Listing),
            Self::Begun(mut listing) => {
                listing.add(py, rows, reading)?;
                return Ok(Shaping::Listing(listing));
            }
            Self::Columns(mut columns) => {
                columns.add(py, rows)?;
                return Ok(Shaping::Columns(columns));
            }
            Self::First(into) => {
                let rows = rows_object(rows)?;
                into.check(&rows)?;
                if rows.get().rows.is_empty() { py.None() } else { into.make(&rows, 0)?.unbind() }
            }
            Self::Value if rows.is_empty() => py.None(),
            Self::Value if reading.is_some() => rows_object(rows)?.get().value(py, 0, 0)?.unbind(),
            Self::Value => to_python(py, &rows, 0, 0)?.unbind(),
        };
        Ok(Shaping::Done(done))
    }
}

impl Shaping {
    /// Goes on for a slice. Returns the result if it is complete.
    pub(crate) fn go_on(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self {
            Self::Done(result) => Ok(Some(result.clone_ref(py))),
            Self::Listing(listing) => {
                let is_complete = listing.go_on(py, &mut Slice::begin())?;
                Ok(is_complete.then(|| listing.list(py)))
            }
            Self::Columns(columns) => columns.finish(py),
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
            Self::Listing(listing) => Self::Freeing(vec![listing.into_list()]),
            Self::Change(change) => Self::Freeing(change.into_lists()),
            Self::Done(_) | Self::Columns(_) | Self::Text(_) => Self::Freeing(Vec::new()),
            Self::Freeing(lists) => Self::Freeing(lists),
        }
    }
}

fn plain(py: Python<'_>, output: Output, reading: Option<&Reading>) -> PyResult<Py<PyAny>> {
    fn object<T>(py: Python<'_>, value: T) -> PyResult<Py<PyAny>>
    where
        T: pyo3::PyClass + std::convert::Into<PyClassInitializer<T>>,
    {
        Bound::new(py, value).map(|object| object.into_any().unbind())
    }
    match output {
        Output::Executed(executed) => object(py, ExecuteResult::from(executed)),
        Output::Changes(changes) => Ok(changes.into_pyobject(py)?.into_any().unbind()),
        Output::Flag(flag) => Ok(PyBool::new(py, flag).to_owned().into_any().unbind()),
        Output::Json(json) => Ok(PyString::new(py, &json).into_any().unbind()),
        Output::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
        Output::Batch(results) => {
            let results = results.into_iter().map(|result| Bound::new(py, RunResult::new(py, result, reading)?));
            Ok(PyList::new(py, results.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
        }
        Output::Ran(result) => object(py, RunResult::new(py, result, reading)?),
        Output::Done(()) => Ok(py.None()),
        Output::Checkpointed(done) => object(py, CheckpointInfo::from(done)),
        Output::Migrated(names) => Ok(PyList::new(py, names)?.into_any().unbind()),
        _ => Err(unexpected()),
    }
}

/// Returns the results of live queries, as objects.
fn results<'py>(
    py: Python<'py>,
    all: &[LiveRows],
    known: &[KnownRows],
    reading: Option<&Reading>,
) -> PyResult<Bound<'py, PyTuple>> {
    let known = known.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let results = all.iter().zip(known).map(|(one, known)| Rows::with_known(py, shared_rows(one), known, reading));
    PyTuple::new(py, results.collect::<PyResult<Vec<_>>>()?)
}
