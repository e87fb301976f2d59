//! Results as the `sqlite3` module has them: rows as tuples, texts as the program wants them, converters.
//!
//! Owns: making these of a result. Runs on any thread of the interpreter. Invariant: without a factory of texts a tuple is that of
//! its `Row`. Leaves out: which converters there are (`converters`), and factories of rows (`flatwater._logical`).

use flatwater::ValueRef;
use flatwater::bindings::cells;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMapping, PyTuple};

use crate::capi::untracked;
use crate::given::converters::{Converters, convert};
use crate::given::reading::Reading;
use crate::results::cells::value_to_python;
use crate::results::rows::Rows;

/// The names of columns, and the converter of each that has one.
type Columns<'py> = (Bound<'py, PyTuple>, Option<Vec<Option<Py<PyAny>>>>);

/// Returns the rows from `first` until before `end` as tuples. `text` makes what stands for a text of its bytes; without it a text
/// is a `str`. `converters` are those of the columns.
#[pyfunction]
#[pyo3(signature = (rows, first, end, text, converters=None))]
pub(crate) fn tuples<'py>(
    rows: &Bound<'py, Rows>,
    first: usize,
    end: usize,
    text: Option<&Bound<'py, PyAny>>,
    converters: Option<Vec<Option<Bound<'py, PyAny>>>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = rows.py();
    let all = &rows.get().rows;
    let list = PyList::empty(py);
    let of = |column: usize| converters.as_ref().and_then(|converters| converters.get(column)?.as_ref());
    for row in first..end.min(all.len()) {
        let name = |column| move || all.columns().nth(column).unwrap_or_default();
        let values = cells(all, row).enumerate().map(|(column, value)| match (value, of(column), text) {
            (value, Some(converter), _) => convert(converter, value),
            (ValueRef::Text(bytes), None, Some(text)) => text.call1((PyBytes::new(py, bytes),)),
            _ => value_to_python(py, value, name(column)),
        });
        // What a program makes may refer to anything, also to the tuple.
        let made = match (text, &converters) {
            (None, None) => untracked::tuple(py, values)?,
            _ => PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?,
        };
        list.append(made)?;
    }
    Ok(list)
}

/// Returns the names of the columns, without types if these are taken from them, and the converter of each, if any has one.
#[pyfunction]
pub(crate) fn converters_of<'py>(
    rows: &Bound<'py, Rows>,
    by_type: Py<PyMapping>,
    from_declared: bool,
    from_name: bool,
) -> PyResult<Columns<'py>> {
    let (py, rows) = (rows.py(), rows.get());
    let reading = Reading::new(Some(Converters::new(by_type, from_declared, from_name)), None);
    let casts = reading.map_or(Ok(None), |reading| reading.casts(py, &rows.rows))?;
    let names = casts.as_ref().and_then(|casts| casts.names.as_ref()).unwrap_or(&rows.columns).bind(py).clone();
    let converters = casts.map(|casts| casts.kept(py)).filter(|all| all.iter().any(Option::is_some));
    Ok((names, converters))
}
