//! What is made of the values of a column instead of what SQLite stored.
//!
//! Owns: converting a value. Runs on the thread that touches it. Invariant: a value is what its column's type says, or an error
//! that names column and row and has no value in it. Leaves out: which columns have what (`reading`), and values of all other
//! columns (`cells`).

use chrono::{Datelike, Timelike};
use flatwater::bindings::cell;
use flatwater::{Rows, ValueRef};
use flatwater_bridge::{Meaning, Meant, unreadable};
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyString, PyTime, PyTuple, PyTzInfo};

use crate::given::converters::convert;
use crate::told::errors::raised;

/// What a column has.
pub(crate) enum Cast {
    /// A function of the program.
    Converter(Py<PyAny>),
    /// A standard type.
    Meaning(Meaning),
}

/// What is known of the columns of one result: what each has, and their names without types.
pub(crate) struct Casts {
    pub(crate) by_column: Box<[Option<Cast>]>,
    pub(crate) names: Option<Py<PyTuple>>,
}

/// A value of a result: its row and its column, and how many rows were returned before the result's own.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) before: usize,
}

impl Casts {
    /// Returns what is made of a value, unless it is as it was stored.
    #[inline]
    pub(crate) fn value<'py>(&self, py: Python<'py>, rows: &Rows, at: Place) -> Option<PyResult<Bound<'py, PyAny>>> {
        let value = || cell(rows, at.row, at.column);
        match self.by_column.get(at.column)?.as_ref()? {
            Cast::Converter(converter) => Some(convert(converter.bind(py), value())),
            Cast::Meaning(meaning) => Some(meant(py, *meaning, value()).unwrap_or_else(|why| {
                Err(raised(py, &unreadable(rows, (at.row, at.column), at.before, *meaning, why)))
            })),
        }
    }

    /// What `pickle` keeps of them: functions, and the words of types.
    pub(crate) fn kept(&self, py: Python<'_>) -> Vec<Option<Py<PyAny>>> {
        let kept = |cast: &Cast| match cast {
            Cast::Converter(converter) => converter.clone_ref(py),
            Cast::Meaning(meaning) => PyString::intern(py, meaning.word()).into_any().unbind(),
        };
        self.by_column.iter().map(|cast| cast.as_ref().map(kept)).collect()
    }

    /// Makes those that were pickled.
    pub(crate) fn restored(py: Python<'_>, kept: Vec<Option<Py<PyAny>>>) -> PyResult<Self> {
        let cast = |kept: Py<PyAny>| match kept.bind(py).cast::<PyString>() {
            Ok(word) => Ok(Meaning::of_word(word.to_str()?).map_err(PyValueError::new_err)?.map(Cast::Meaning)),
            Err(_) => Ok(Some(Cast::Converter(kept))),
        };
        let by_column = kept.into_iter().map(|kept| kept.map_or(Ok(None), cast)).collect::<PyResult<_>>()?;
        Ok(Self { by_column, names: None })
    }
}

/// Returns a value as its type has it, or why it is none.
fn meant<'py>(
    py: Python<'py>,
    meaning: Meaning,
    value: ValueRef<'_>,
) -> Result<PyResult<Bound<'py, PyAny>>, &'static str> {
    static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static PARSE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let year = |year: i32| if year > 0 { Ok(year) } else { Err("Python has no year 0") };
    Ok(match meaning.read(value)? {
        Meant::Null => Ok(py.None().into_bound(py)),
        Meant::Boolean(truth) => Ok(PyBool::new(py, truth).to_owned().into_any()),
        Meant::Date(date) => {
            PyDate::new(py, year(date.year())?, narrow(date.month()), narrow(date.day())).map(Bound::into_any)
        }
        Meant::Time(time) => {
            let [hour, minute, second] = [time.hour(), time.minute(), time.second()].map(narrow);
            PyTime::new(py, hour, minute, second, time.nanosecond() / 1000, None).map(Bound::into_any)
        }
        Meant::Datetime(at) => {
            let [month, day] = [at.month(), at.day()].map(narrow);
            let [hour, minute, second] = [at.hour(), at.minute(), at.second()].map(narrow);
            let (year, microsecond) = (year(at.year())?, at.nanosecond() / 1000);
            PyTzInfo::utc(py)
                .and_then(|utc| PyDateTime::new(py, year, month, day, hour, minute, second, microsecond, Some(&utc)))
                .map(Bound::into_any)
        }
        Meant::Json(text) => {
            let parsed = PARSE.import(py, "flatwater._given.standard", "parse").and_then(|parse| parse.call1((text,)));
            match parsed {
                Err(error) if error.is_instance_of::<PyValueError>(py) => return Err("it is not JSON"),
                Err(error) if error.is_instance_of::<PyRecursionError>(py) => return Err("it is nested too deeply"),
                parsed => parsed,
            }
        }
        Meant::Integer(number) => Ok(PyInt::new(py, number).into_any()),
        Meant::Real(number) => Ok(PyFloat::new(py, number).into_any()),
        Meant::Uuid(bytes) => {
            let bytes = (py.None(), PyBytes::new(py, &bytes));
            UUID.import(py, "uuid", "UUID").and_then(|class| class.call1(bytes))
        }
        Meant::Decimal(digits) => DECIMAL.import(py, "decimal", "Decimal").and_then(|class| class.call1((digits,))),
    })
}

/// A part of a time or a date.
fn narrow(number: u32) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
