//! The order of the calls of one logical connection: that in which they are made, from any task, thread or loop.
//!
//! Owns: the line, and who has a turn. Runs with the interpreter's lock, on the threads that call. Invariants: who came first
//! goes first; those that share go together, unless one that does not came between; who leaves, also because nobody has its turn
//! any more, keeps nobody waiting, whatever exception comes meanwhile; a thread that would wait for itself is refused. A place
//! whose call still takes what it was given has no turn yet; what its thread calls meanwhile goes before it. Leaves out: what is
//! done in a turn, which is in Python (`flatwater._logical`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use flatwater::bindings::{Mailbox, Output, Polled};
use pyo3::intern;
use pyo3::prelude::*;

use crate::awaiting::Awaiting;
use crate::blocked::Blocked;
use crate::call::{Body, Pending};
use crate::capi::call_type::new_call;
use crate::capi::thread_state::is_called_by_database;
use crate::errors::misuse;
use crate::running_loop::running_loop;
use crate::shape::Shape;

struct Place {
    /// Those of later calls are greater.
    number: u64,
    shared: bool,
    /// Whose call it is. A task's is that of its loop.
    thread: ThreadId,
    is_taking: bool,
    waits: Option<Waits>,
}

/// Who is told when the turn has come, and its loop.
struct Waits {
    mailbox: Arc<dyn Mailbox>,
    token: u64,
    event_loop: Option<Py<PyAny>>,
}

#[derive(Default)]
struct State {
    next: u64,
    waiting: VecDeque<Place>,
    /// Those that have a turn.
    running: Vec<Place>,
}

/// A line of calls.
#[derive(Clone, Default)]
pub(crate) struct Line(Arc<Mutex<State>>);

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.running.is_empty() && state.waiting.is_empty()
    }

    /// Returns the last place.
    pub(crate) fn join(&self, taking: bool) -> Turn {
        let mut state = self.lock();
        let at = state.waiting.len();
        let number = state.insert(at, false, taking);
        // Nobody else goes because of it.
        let called = state.advance();
        drop((state, called));
        Turn { line: self.clone(), number }
    }

    /// Ends a turn, or leaves the line. Raises what a loop raised that was asked whether it is closed, when everybody is told.
    fn leave(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let (left, called) = {
            let mut state = self.lock();
            (state.remove(number), state.advance())
        };
        drop(left);
        self.call(py, called)
    }

    fn waits(&self, number: u64, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<bool> {
        let event_loop = address.map(|_| running_loop(py)).transpose()?.map(Bound::unbind);
        let mut state = self.lock();
        let Some(place) = state.waiting(number) else { return Ok(false) };
        place.waits = address.map(|(mailbox, token)| Waits { mailbox: mailbox.clone(), token, event_loop });
        Ok(true)
    }

    fn call(&self, py: Python<'_>, called: Vec<(u64, Waits)>) -> PyResult<()> {
        let mut done = Ok(());
        for (number, Waits { mailbox, token, event_loop }) in called {
            mailbox.ready(token);
            mailbox.flush();
            let is_closed = event_loop.map_or(Ok(false), |event_loop| {
                event_loop.bind(py).call_method0(intern!(py, "is_closed"))?.is_truthy()
            });
            // The task of a closed loop never leaves.
            done = done.and(is_closed.and_then(|is_closed| if is_closed { self.leave(py, number) } else { Ok(()) }));
        }
        done
    }
}

impl State {
    fn insert(&mut self, at: usize, shared: bool, is_taking: bool) -> u64 {
        self.next += 1;
        let place = Place { number: self.next, shared, thread: current().id(), is_taking, waits: None };
        self.waiting.insert(at, place);
        self.next
    }

    fn may_go(&self, place: &Place) -> bool {
        !place.is_taking && (self.running.is_empty() || place.shared && self.running.iter().all(|other| other.shared))
    }

    /// Gives a turn to those that may go. Returns who waits for theirs.
    fn advance(&mut self) -> Vec<(u64, Waits)> {
        let mut called = Vec::new();
        while self.waiting.front().is_some_and(|place| self.may_go(place)) {
            let Some(mut place) = self.waiting.pop_front() else { break };
            called.extend(place.waits.take().map(|waits| (place.number, waits)));
            self.running.push(place);
        }
        called
    }

    fn remove(&mut self, number: u64) -> Option<Place> {
        if let Some(at) = self.running.iter().position(|place| place.number == number) {
            return Some(self.running.swap_remove(at));
        }
        let at = self.waiting.iter().position(|place| place.number == number)?;
        self.waiting.remove(at)
    }

    fn has(&self, number: u64) -> bool {
        self.running.iter().chain(&self.waiting).any(|place| place.number == number)
    }

    fn waiting(&mut self, number: u64) -> Option<&mut Place> {
        self.waiting.iter_mut().find(|place| place.number == number)
    }

    /// Returns true if this thread has to go on so that the turn comes.
    fn waits_for(&self, thread: ThreadId, number: u64) -> bool {
        let before = self.waiting.iter().take_while(|place| place.number != number);
        self.running.iter().chain(before).any(|place| place.thread == thread)
    }
}

/// The line of one connection.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct Turns(Line);

#[pymethods]
impl Turns {
    #[new]
    fn new() -> Self {
        Self(Line::default())
    }

    /// True if nobody has a turn, or waits for one.
    fn empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a place in the line. `taking`: the call still takes what it was given, until `taken`.
    #[pyo3(signature = (*, shared, taking=false))]
    fn take(&self, py: Python<'_>, shared: bool, taking: bool) -> PyResult<Turn> {
        let thread = current().id();
        let (number, called) = {
            let mut state = self.0.lock();
            let before = |place: &Place| place.is_taking && place.thread == thread;
            let at = state.waiting.iter().position(before).unwrap_or(state.waiting.len());
            (state.insert(at, shared, taking), state.advance())
        };
        let turn = Turn { line: self.0.clone(), number };
        self.0.call(py, called)?;
        Ok(turn)
    }
}

/// A place in the line: a step that is over when the turn has come. What goes away leaves it.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct Turn {
    line: Line,
    number: u64,
}

impl Turn {
    /// Returns true if the turn has not come. Then it is told there.
    pub(crate) fn waits(&self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<bool> {
        self.line.waits(self.number, py, address)
    }
}

#[pymethods]
impl Turn {
    #[getter]
    fn has_come(&self) -> bool {
        self.line.lock().running.iter().any(|place| place.number == self.number)
    }

    /// The call has what it was given.
    pub(crate) fn taken(&self, py: Python<'_>) -> PyResult<()> {
        let called = {
            let mut line = self.line.lock();
            if let Some(place) = line.waiting(self.number) {
                place.is_taking = false;
            }
            line.advance()
        };
        self.line.call(py, called)
    }

    /// Gives a shared turn up for one that is not shared, which comes before those of later calls.
    fn alone(&self, py: Python<'_>) -> PyResult<()> {
        let called = {
            let mut line = self.line.lock();
            if let Some(place) = line.remove(self.number) {
                let later = line.waiting.iter().position(|other| other.number > place.number);
                let at = later.unwrap_or(line.waiting.len());
                line.waiting.insert(at, Place { shared: false, ..place });
            }
            line.advance()
        };
        self.line.call(py, called)
    }

    /// Ends it. Ending it twice does nothing.
    pub(crate) fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.line.leave(py, self.number)
    }

    /// Blocks this thread until the turn has come. Raises if that would be for ever.
    fn _wait(&self, py: Python<'_>) -> PyResult<()> {
        let (thread, bell) = (current().id(), Blocked::new());
        loop {
            {
                let mut line = self.line.lock();
                let waits_for_itself = line.waits_for(thread, self.number) || is_called_by_database();
                let Some(place) = line.waiting(self.number) else { return Ok(()) };
                if waits_for_itself {
                    break;
                }
                let (mailbox, token) = bell.address();
                place.waits = Some(Waits { mailbox: mailbox.clone(), token, event_loop: None });
            }
            bell.wait(py)?;
        }
        let hint = "make it when the call before it has returned";
        Err(misuse(py, "this call would wait for itself: a call before it needs this thread to go on", Some(hint)))
    }

    fn __await__(&self, py: Python<'_>) -> PyResult<Awaiting> {
        let coming = Coming(self.line.clone(), self.number);
        new_call(py, Body::other("turn", Ok(Box::new(coming)), Shape::Plain)).map(|call| Awaiting::new(call.unbind()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.line.lock().has(self.number) {
            return;
        }
        Python::try_attach(|py| {
            // That of the code that goes away.
            let raised = PyErr::take(py);
            if let Err(error) = self.line.leave(py, self.number) {
                error.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

/// Awaits a turn, which is another's to end.
struct Coming(Line, u64);

impl Pending for Coming {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        Ok(if self.0.waits(self.1, py, address)? { Polled::Waits } else { Polled::Ready(Ok(Output::Done)) })
    }

    fn give_up(&mut self) -> bool {
        false
    }
}
