//! Arguments of which there may be many: the rows of parameters of `executemany`, and the statements of `batch`.
//!
//! Owns: taking them in slices, between which other tasks run. Runs on the loop's thread. Invariants: what is given is used on
//! that thread only; a list is that of the moment when the call is made, also the rows in it and the buffers in these, and no later
//! call begins before it; of another iterable the call takes its place in the queue when it has the last one. Leaves out: the call.

use std::sync::Arc;

use flatwater::bindings::{
    BatchStatements, FrontCall, Mailbox, ParamRows, Polled, add_row, number_from, rows_added, rows_of_next, take_row,
};
use flatwater::{ErrorCode, Params};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString, PyTuple};

use crate::given::forms::Written;
use crate::given::params;
use crate::given::statement::{Statement, statement};
use crate::given::table::Table;
use crate::told::errors::refused;
use crate::waiting::entries;
use crate::waiting::line::Place;
use crate::waiting::pending::Pending;
use crate::waiting::running_loop::running_loop;
use flatwater_bridge::Slice;

/// What is taken from an iterable, one by one.
pub(crate) trait Collection: Default + Send + Sync {
    /// What a program is told that gives a string, and the hint.
    const IS_STRING: (&'static str, &'static str);

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()>;

    /// Takes the table that is given, if this is made of tables.
    fn table(&self, _: &Bound<'_, PyAny>) -> PyResult<Option<Table>> {
        Ok(None)
    }

    /// Adds the next row of a table. Returns false after the last.
    fn add_row_of(&mut self, _: Python<'_>, _: &mut Table) -> PyResult<bool> {
        Ok(false)
    }

    /// Returns what is added later instead, because the program may change it meanwhile.
    fn kept<'py>(given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>;
}

/// Rows of parameters of one text, and an empty one, whose memory is used again.
#[derive(Default)]
pub(crate) struct ManyRows {
    pub(crate) sql: String,
    pub(crate) rows: ParamRows,
    row: Params,
    written: Written,
    /// The number of the first row, in errors.
    first: usize,
}

impl ManyRows {
    pub(crate) fn new(sql: String, written: Written, first: usize) -> Self {
        let mut rows = ParamRows::default();
        number_from(&mut rows, first);
        Self { sql, rows, row: Params::default(), written, first }
    }
}

impl Collection for ManyRows {
    const IS_STRING: (&'static str, &'static str) =
        ("the rows of parameters must not be a string", "pass a list of tuples: [(value,), ...]");

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let Self { sql, rows, row, written, first } = self;
        let filled = params::fill(row, given, sql, *written);
        filled.map_err(|error| in_row(given.py(), error, *first + rows_added(rows)))?;
        add_row(rows, row);
        Ok(())
    }

    fn table(&self, given: &Bound<'_, PyAny>) -> PyResult<Option<Table>> {
        Table::of(given, &self.sql, self.written)
    }

    fn add_row_of(&mut self, py: Python<'_>, table: &mut Table) -> PyResult<bool> {
        let Self { rows, row, first, .. } = self;
        let is_row = table.fill(py, row).map_err(|error| in_row(py, error, *first + rows_added(rows)))?;
        if is_row {
            add_row(rows, row);
        }
        Ok(is_row)
    }

    fn kept<'py>(given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        params::kept(given)
    }
}

/// The statements of a batch with their parameters.
#[derive(Default)]
pub(crate) struct Statements {
    pub(crate) all: BatchStatements,
    written: Written,
}

impl Statements {
    pub(crate) fn new(written: Written) -> Self {
        Self { all: BatchStatements::default(), written }
    }
}

impl Collection for Statements {
    const IS_STRING: (&'static str, &'static str) =
        ("the statements must not be a string", "pass a list: [(sql, params), sql, ...]; or use `executescript`");

    fn add(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let (sql, params) = of_pair(given)?;
        let Statement { sql, params } = statement(&sql, params.as_ref(), self.written)?;
        take_row(rows_of_next(&mut self.all, &sql), params);
        Ok(())
    }

    fn kept<'py>(given: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match of_pair(&given)? {
            (sql, Some(params)) => Ok((sql, params::kept(params)?).into_pyobject(given.py())?.into_any()),
            _ => Ok(given),
        }
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

/// A call that is made of what it takes.
pub(crate) struct Collecting<C> {
    /// The number of the database.
    database: usize,
    place: Option<Place>,
    /// What was taken before one that cannot be had is used, and then the error is raised.
    keeps: bool,
    failed: Option<PyErr>,
    state: State<C>,
}

/// Not boxed within, because it is boxed as a whole.
#[allow(clippy::large_enum_variant)]
enum State<C> {
    Taking { given: Given, collected: C, make: Option<Make<C>> },
    Call(FrontCall),
}

enum Given {
    Iterator(Py<PyIterator>),
    /// A list or a tuple as it was, and which is next.
    Rows(Py<PyTuple>, usize),
    Table(Box<Table>),
}

impl Given {
    /// Adds the next one. Returns false after the last.
    fn add_next<C: Collection>(&mut self, py: Python<'_>, collected: &mut C) -> PyResult<bool> {
        let one = match self {
            Self::Iterator(iterator) => iterator.bind(py).clone().next().transpose()?,
            Self::Rows(rows, next) => {
                *next += 1;
                rows.bind(py).get_item(*next - 1).ok()
            }
            Self::Table(table) => return collected.add_row_of(py, table),
        };
        one.map_or(Ok(false), |one| collected.add(&one).map(|()| true))
    }

    /// True if what there is to take is known when the call is made.
    fn is_there(&self) -> bool {
        matches!(self, Self::Rows(..) | Self::Table(_))
    }
}

impl<C: Collection> Collecting<C> {
    pub(crate) fn new(
        given: &Bound<'_, PyAny>,
        database: usize,
        collected: C,
        keeps: bool,
        make: Make<C>,
    ) -> PyResult<Self> {
        let py = given.py();
        if given.is_instance_of::<PyString>() {
            let (message, hint) = C::IS_STRING;
            return Err(refused(py, ErrorCode::InvalidArgument, message, Some(hint)));
        }
        let rows = match given.cast::<PyList>() {
            Ok(list) => Some(list.to_tuple()),
            Err(_) => given.cast::<PyTuple>().ok().cloned(),
        };
        let given = match &rows {
            Some(rows) => Given::Rows(rows.clone().unbind(), 0),
            None => match collected.table(given)? {
                Some(table) => Given::Table(Box::new(table)),
                None => Given::Iterator(given.try_iter()?.unbind()),
            },
        };
        let is_there = given.is_there();
        let state = State::Taking { given, collected, make: Some(make) };
        let mut taking = Self { database, place: None, keeps, failed: None, state };
        if is_there && running_loop(py).is_ok() && !taking.take(py) {
            taking.keep(py)?;
        }
        Ok(taking)
    }

    /// Takes what is there until the slice is over. Returns true if it has the last one, or one that cannot be had.
    fn take(&mut self, py: Python<'_>) -> bool {
        let State::Taking { given, collected, .. } = &mut self.state else { return true };
        if self.failed.is_some() {
            return true;
        }
        let mut slice = Slice::begin();
        loop {
            match given.add_next(py, collected) {
                Ok(true) if slice.is_over() => return false,
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    self.failed = Some(error);
                    return true;
                }
            }
        }
    }

    /// Keeps what is left of a list as it is now.
    fn keep(&mut self, py: Python<'_>) -> PyResult<()> {
        if let State::Taking { given: Given::Rows(rows, next), .. } = &mut self.state {
            let left: PyResult<Vec<_>> = rows.bind(py).iter().skip(*next).map(C::kept).collect();
            (*rows, *next) = (PyTuple::new(py, left?)?.unbind(), 0);
        }
        Ok(())
    }
}

impl<C: Collection> Pending for Collecting<C> {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if matches!(&self.state, State::Taking { make: Some(_), .. }) {
            let is_there = matches!(&self.state, State::Taking { given, .. } if given.is_there());
            if !self.take(py) {
                if is_there && self.place.is_none() {
                    self.place = Some(entries::taking(self.database));
                }
                return Ok(Polled::Yields);
            }
            if let Some(failed) = self.failed.take_if(|_| !self.keeps) {
                return Err(failed);
            }
            match &self.place {
                Some(place) => place.taken(py)?,
                None => self.place = entries::behind(self.database),
            }
            let State::Taking { collected, make, .. } = &mut self.state else { return Ok(Polled::Waits) };
            if let Some(make) = make.take() {
                self.state = State::Call(make(std::mem::take(collected))?);
            }
        }
        if !entries::begins(&mut self.place, py, address)? {
            return Ok(Polled::Waits);
        }
        let State::Call(call) = &mut self.state else { return Ok(Polled::Waits) };
        match (Pending::poll(call, py, address)?, self.failed.take()) {
            (Polled::Ready(Ok(_)), Some(failed)) => Err(failed),
            (polled, still) => {
                self.failed = still;
                Ok(polled)
            }
        }
    }

    fn give_up(&mut self) -> bool {
        match &mut self.state {
            State::Call(call) => self.place.is_none() && Pending::give_up(call),
            State::Taking { .. } => false,
        }
    }
}

/// Says in which row of parameters a value was refused.
#[cold]
fn in_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    let say = || py.import("flatwater._errors")?.getattr("in_row")?.call1((error.value(py), row));
    say().map_or_else(|failed| failed, |_| error)
}
