//! What a call does: from the first await to its result.
//!
//! Owns: the states of one call, and what happens if its task is cancelled in any of them. Runs on the loop's thread,
//! with the interpreter's lock, and never waits there. Invariants: nothing begins before the first await, nor, but for what
//! `running_loop` says, without a loop; a result is returned once; a write that runs is waited for, also by a task that was
//! cancelled, so that its outcome is known when the task goes on: it was interrupted and undone, or it could not be any more.
//! Leaves out: the object around it (`capi::call_type`), what becomes of a result (`shape`).

use std::sync::Arc;

use flatwater::Rows;
use flatwater::bindings::{FrontCall, Output, Polled, turn_is_due, turn_was_given};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::given::reading::Reading;
use crate::results::shape::{Shape, Shaping};
use crate::told::errors::{raised, raised_blocking};
use crate::told::records;
use crate::waiting::blocked::Blocked;
use crate::waiting::entries::{self, Behind};
use crate::waiting::inbox::Waiting;
use crate::waiting::pending::Pending;
use crate::waiting::running_loop::needs_loop;
use flatwater_bridge::Slice;

/// What a call yields to its task, or returns.
pub(crate) enum Step {
    Yield(Py<PyAny>),
    Return(Py<PyAny>),
}

/// One call.
pub(crate) struct Body {
    name: &'static str,
    state: State,
    /// `None` once the result is being made.
    shape: Option<Shape>,
    reading: Option<Arc<Reading>>,
    was_begun: bool,
    /// What ends the call instead of its result, once its write has ended or its result is freed.
    cancelled: Option<PyErr>,
}

enum State {
    /// The parameters are wrong. It is raised by the await.
    Refused(PyErr),
    /// It is resumed as soon as other tasks had their turn.
    Next(Work),
    Waiting(Work, Waiting),
    Shaping(Shaping),
    Over,
}

/// A call of the engine is not boxed, because that is what most calls are.
#[allow(clippy::large_enum_variant)]
enum Work {
    Call(FrontCall),
    Other(Box<dyn Pending>),
}

impl Work {
    fn as_pending(&mut self) -> &mut dyn Pending {
        match self {
            Self::Call(call) => call,
            Self::Other(other) => &mut **other,
        }
    }

    /// The same, behind the calls that still take what they were given.
    fn in_order(mut self, py: Python<'_>) -> Self {
        let behind = || entries::behind(self.as_pending().begins_on(py)?);
        match entries::is_any().then(behind).flatten() {
            Some(place) => Self::Other(Box::new(Behind::new(place, self.boxed()))),
            None => self,
        }
    }

    fn boxed(self) -> Box<dyn Pending> {
        match self {
            Self::Call(call) => Box::new(call),
            Self::Other(other) => other,
        }
    }
}

impl Body {
    fn new(name: &'static str, state: State, shape: Shape) -> Self {
        Self { name, state, shape: Some(shape), reading: None, was_begun: false, cancelled: None }
    }

    /// A call of the engine, unless its parameters could not be converted.
    pub(crate) fn call(name: &'static str, call: PyResult<FrontCall>, shape: Shape) -> Self {
        let state = call.map_or_else(State::Refused, |call| State::Next(Work::Call(call)));
        Self::new(name, state, shape)
    }

    /// Anything else that is polled.
    pub(crate) fn other(name: &'static str, other: PyResult<Box<dyn Pending>>, shape: Shape) -> Self {
        let state = other.map_or_else(State::Refused, |other| State::Next(Work::Other(other)));
        Self::new(name, state, shape)
    }

    /// The same, whose rows are read so.
    pub(crate) fn with(mut self, reading: Option<Arc<Reading>>) -> Self {
        self.reading = reading;
        self
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn was_begun(&self) -> bool {
        self.was_begun
    }

    pub(crate) fn set_begun(&mut self) {
        self.was_begun = true;
    }

    /// Goes on, until the call has its result or has to wait.
    pub(crate) fn resume(&mut self, py: Python<'_>) -> PyResult<Step> {
        let was_begun = std::mem::replace(&mut self.was_begun, true);
        match std::mem::replace(&mut self.state, State::Over) {
            State::Next(mut work) => {
                if !was_begun {
                    work = work.in_order(py);
                }
                if !was_begun {
                    needs_loop(py)?;
                }
                self.advance(py, work)
            }
            State::Waiting(work, waiting) if !waiting.is_over(py)? => {
                self.state = State::Waiting(work, waiting);
                Err(PyRuntimeError::new_err("coroutine is being awaited already"))
            }
            State::Waiting(work, waiting) => {
                drop(waiting);
                self.advance(py, work)
            }
            State::Shaping(shaping) => self.shape(py, shaping),
            State::Refused(error) if !was_begun && turn_is_due() => {
                // A loop of calls that fail at once lets other tasks run too.
                self.state = State::Refused(error);
                Ok(Step::Yield(py.None()))
            }
            State::Refused(error) => {
                if was_begun {
                    turn_was_given();
                }
                Err(error)
            }
            State::Over => Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine")),
        }
    }

    /// Goes on until the call has its result, on a thread that may wait. Signals are handled meanwhile: an exception of
    /// their handlers, such as `KeyboardInterrupt`, gives the call up. So does one of `raises`, which is called now and then.
    pub(crate) fn wait(&mut self, py: Python<'_>, raises: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let result = self.wait_for_result(py, raises);
        records::deliver(py);
        result
    }

    fn wait_for_result(&mut self, py: Python<'_>, raises: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        self.was_begun = true;
        let mut work = match std::mem::replace(&mut self.state, State::Over) {
            State::Next(work) => work,
            State::Refused(error) => return Err(error),
            _ => return Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine")),
        };
        let thread = Blocked::new();
        let output = loop {
            let mut polled = work.as_pending().poll(py, None)?;
            if matches!(polled, Polled::Waits) {
                polled = work.as_pending().poll(py, Some(thread.address()))?;
            }
            match polled {
                Polled::Ready(_) if self.cancelled.is_some() => break Output::Done(()),
                Polled::Ready(result) => break result.map_err(|error| raised_blocking(py, &error))?,
                Polled::Part(rows) => {
                    self.add(py, rows)?;
                    while !self.take_rows(py, &mut Slice::begin())? {
                        thread.pause(py)?;
                    }
                    thread.pause(py)?;
                }
                Polled::Yields => {}
                Polled::Waits => {
                    let asked = raises.filter(|_| self.cancelled.is_none());
                    let waited = thread.wait(py).and_then(|()| asked.map_or(Ok(()), |raises| raises.call0().map(drop)));
                    if let Err(error) = waited {
                        self.cancelled = Some(error);
                        if !work.as_pending().give_up() {
                            break Output::Done(());
                        }
                    }
                }
            }
        };
        if let Some(cancelled) = self.cancelled.take() {
            return Err(cancelled);
        }
        let mut shaping = self.begin(py, output)?;
        loop {
            if let Some(result) = shaping.go_on(py)? {
                return Ok(result);
            }
            thread.pause(py)?;
        }
    }

    /// Goes on until the call has its result or has to wait. What is made of each part is made before the next one is taken, in
    /// slices: a worker that is ahead keeps its parts, and no poll takes many of them.
    fn advance(&mut self, py: Python<'_>, mut work: Work) -> PyResult<Step> {
        let mut slice = None;
        loop {
            if self.has_rows_to_take() {
                match self.take_rows(py, slice.get_or_insert_with(Slice::begin)) {
                    Ok(true) => {}
                    Ok(false) => return Ok(self.resume_next(py, work)),
                    Err(error) => return self.fail(py, Some(work), error),
                }
            }
            let polled = match work.as_pending().poll(py, None)? {
                Polled::Waits => {
                    let waiting = Waiting::new(py)?;
                    let polled = work.as_pending().poll(py, Some(waiting.address()))?;
                    if matches!(polled, Polled::Waits) {
                        let future = waiting.to_yield(py)?;
                        self.state = State::Waiting(work, waiting);
                        return Ok(Step::Yield(future));
                    }
                    polled
                }
                polled => polled,
            };
            match polled {
                Polled::Ready(result) => return self.finish(py, result),
                Polled::Part(rows) => {
                    if let Err(error) = self.add(py, rows) {
                        return self.fail(py, Some(work), error);
                    }
                }
                Polled::Yields | Polled::Waits => return Ok(self.resume_next(py, work)),
            }
        }
    }

    /// Suspends the task until other tasks had their turn.
    fn resume_next(&mut self, py: Python<'_>, work: Work) -> Step {
        self.state = State::Next(work);
        Step::Yield(py.None())
    }

    /// Keeps rows for the result, unless nobody gets it.
    fn add(&mut self, py: Python<'_>, rows: Rows) -> PyResult<()> {
        match &mut self.shape {
            Some(shape) if self.cancelled.is_none() => shape.add(py, rows, self.reading.as_deref()),
            _ => Ok(()),
        }
    }

    fn has_rows_to_take(&self) -> bool {
        self.shape.as_ref().is_some_and(|shape| !shape.is_complete())
    }

    /// Goes on with the result until the slice is over. Returns true if it has all rows that are there.
    fn take_rows(&mut self, py: Python<'_>, slice: &mut Slice) -> PyResult<bool> {
        self.shape.as_mut().map_or(Ok(true), |shape| shape.go_on(py, slice))
    }

    fn finish(&mut self, py: Python<'_>, result: flatwater::Result<Output>) -> PyResult<Step> {
        if let Some(cancelled) = self.cancelled.take() {
            return self.fail(py, None, cancelled);
        }
        let output = match result {
            Ok(output) => output,
            Err(error) => return self.fail(py, None, raised(py, &error)),
        };
        let shaping = self.begin(py, output)?;
        self.shape(py, shaping)
    }

    fn begin(&mut self, py: Python<'_>, output: Output) -> PyResult<Shaping> {
        self.shape.take().unwrap_or(Shape::Plain).begin(py, output, self.reading.as_deref())
    }

    /// Gives the work up, if it is not over, and raises the exception when what there is of a list is freed.
    #[cold]
    fn fail(&mut self, py: Python<'_>, work: Option<Work>, error: PyErr) -> PyResult<Step> {
        if let Some(mut work) = work {
            work.as_pending().give_up();
        }
        match self.shape.take() {
            Some(Shape::Begun(listing)) => self.abandon(py, Shaping::Listing(listing), error),
            _ => Err(error),
        }
    }

    fn shape(&mut self, py: Python<'_>, mut shaping: Shaping) -> PyResult<Step> {
        match shaping.go_on(py) {
            Ok(Some(result)) => self.cancelled.take().map_or(Ok(Step::Return(result)), Err),
            Ok(None) => {
                self.state = State::Shaping(shaping);
                Ok(Step::Yield(py.None()))
            }
            Err(error) => self.abandon(py, shaping, error),
        }
    }

    /// Raises the exception when what there is of the result is freed.
    fn abandon(&mut self, py: Python<'_>, shaping: Shaping, error: PyErr) -> PyResult<Step> {
        self.cancelled.get_or_insert(error);
        self.shape(py, shaping.give_up())
    }

    /// Gives the call up because of an exception, such as that of a task that is cancelled.
    pub(crate) fn throw(&mut self, py: Python<'_>, error: PyErr) -> PyResult<Step> {
        self.was_begun = true;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting(mut work, waiting) => {
                drop(waiting);
                if work.as_pending().give_up() {
                    self.cancelled.get_or_insert(error);
                    return self.advance(py, work);
                }
                let error = self.cancelled.take().unwrap_or(error);
                self.fail(py, None, error)
            }
            State::Next(work) => self.fail(py, Some(work), error),
            State::Shaping(shaping) => self.abandon(py, shaping, error),
            _ => Err(error),
        }
    }

    /// Gives the call up without waiting for anything: nobody learns the outcome of a write.
    pub(crate) fn close(&mut self, _: Python<'_>) {
        self.was_begun = true;
        if let State::Waiting(mut work, waiting) = std::mem::replace(&mut self.state, State::Over) {
            drop(waiting);
            work.as_pending().give_up();
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let State::Waiting(work, _) = &mut self.state {
            work.as_pending().give_up();
        }
    }
}
