//! The counters of a database, as dictionaries.
//!
//! Owns: their values as Python's, of which `flatwater._told.stats` has the types. Runs on the caller's thread. Leaves out: their names,
//! which are those of the API (`flatwater-bridge`, `test_stats_have_the_names_of_rust`), and what is counted.

use flatwater::stats::Stats;
use flatwater_bridge::{Counter, counters};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) fn of<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    dictionary(py, counters(stats))
}

fn dictionary<'py>(py: Python<'py>, all: Vec<(&str, Counter<'_>)>) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (name, counter) in all {
        match counter {
            Counter::Number(number) => dictionary.set_item(name, number)?,
            Counter::Truth(is_so) => dictionary.set_item(name, is_so)?,
            Counter::Text(text) => dictionary.set_item(name, text)?,
            Counter::Time(time) => dictionary.set_item(name, time)?,
            Counter::Nothing => dictionary.set_item(name, py.None())?,
            Counter::Group(group) => dictionary.set_item(name, self::dictionary(py, group)?)?,
        }
    }
    Ok(dictionary)
}
