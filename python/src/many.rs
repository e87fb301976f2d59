//! The rows of parameters of `executemany`.
//!
//! Owns: taking them from an iterable in slices, between which other tasks run. Runs on the loop's thread. Invariants:
//! the iterable is used on that thread only; the call takes its place in the queue when it has the last row. Leaves
//! out: the call.

use std::sync::Arc;

use flatwater::Params;
use flatwater::front::{FrontCall, Mailbox, ParamRows, Polled, add_row, rows_added};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};

use crate::call::Pending;
use crate::errors::misuse;
use crate::params;
use crate::slice::Slice;

type Make = Box<dyn FnOnce(ParamRows) -> PyResult<FrontCall> + Send + Sync>;

pub(crate) struct Collecting {
    state: State,
    is_inside_body: bool,
}

enum State {
    Collecting { rows: Py<PyIterator>, collected: ParamRows, row: Params, make: Option<Make> },
    Call(FrontCall),
}

impl Collecting {
    pub(crate) fn new(rows: &Bound<'_, PyAny>, make: Make) -> PyResult<Self> {
        if rows.is_instance_of::<PyString>() {
            let hint = "give a list of tuples: [(value,), ...]";
            return Err(misuse(rows.py(), "the rows of parameters are a string", Some(hint)));
        }
        let rows = rows.try_iter()?.unbind();
        let state =
            State::Collecting { rows, collected: ParamRows::default(), row: Params::default(), make: Some(make) };
        Ok(Self { state, is_inside_body: false })
    }
}

impl Pending for Collecting {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if let State::Collecting { rows, collected, row, make } = &mut self.state {
            let mut slice = Slice::begin();
            for given in rows.bind(py).clone() {
                params::fill(row, &given?).map_err(|error| in_row(py, error, rows_added(collected)))?;
                add_row(collected, row);
                if slice.is_over() {
                    return Ok(Polled::Yields);
                }
            }
            if let Some(make) = make.take() {
                let mut call = make(std::mem::take(collected))?;
                if self.is_inside_body {
                    call.set_inside_body();
                }
                self.state = State::Call(call);
            }
        }
        match &mut self.state {
            State::Call(call) => Pending::poll(call, py, address),
            State::Collecting { .. } => Ok(Polled::Waits),
        }
    }

    fn set_inside_body(&mut self) {
        self.is_inside_body = true;
    }

    fn give_up(&mut self) -> bool {
        match &mut self.state {
            State::Call(call) => Pending::give_up(call),
            State::Collecting { .. } => false,
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
