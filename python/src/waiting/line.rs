//! The order of calls that go one after the other: that in which they are made, from any task, thread or loop.
//!
//! Owns: the line, and who has a turn. Runs with the interpreter's lock, on the threads that call. Invariants: who came first
//! goes first; those that share go together, unless one that does not came between; who leaves, also because nobody has its place
//! any more, keeps nobody waiting, whatever exception comes meanwhile; a thread that would wait for itself is told. A place whose
//! call still takes what it was given has no turn yet; what its thread calls meanwhile goes before it. Leaves out: who uses a line
//! (`logical_turns`, `entries`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use flatwater::bindings::{Mailbox, Output, Polled};
use pyo3::intern;
use pyo3::prelude::*;

use crate::capi::thread_state::is_called_by_database;
use crate::waiting::pending::Pending;
use crate::waiting::running_loop::running_loop;

/// A call that stands in the line.
struct Caller {
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
    waiting: VecDeque<Caller>,
    /// Those that have a turn.
    running: Vec<Caller>,
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
    pub(crate) fn join(&self, taking: bool) -> Place {
        let mut state = self.lock();
        let at = state.waiting.len();
        let number = state.insert(at, false, taking);
        // Nobody else goes because of it.
        let called = state.advance();
        drop((state, called));
        Place { line: self.clone(), number }
    }

    /// Returns a place before those of this thread that still take what they were given, or the last one.
    pub(crate) fn take(&self, py: Python<'_>, shared: bool, taking: bool) -> PyResult<Place> {
        let thread = current().id();
        let (number, called) = {
            let mut state = self.lock();
            let before = |caller: &Caller| caller.is_taking && caller.thread == thread;
            let at = state.waiting.iter().position(before).unwrap_or(state.waiting.len());
            (state.insert(at, shared, taking), state.advance())
        };
        let place = Place { line: self.clone(), number };
        self.call(py, called)?;
        Ok(place)
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
        let Some(caller) = state.waiting(number) else { return Ok(false) };
        caller.waits = address.map(|(mailbox, token)| Waits { mailbox: mailbox.clone(), token, event_loop });
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
        let caller = Caller { number: self.next, shared, thread: current().id(), is_taking, waits: None };
        self.waiting.insert(at, caller);
        self.next
    }

    fn may_go(&self, caller: &Caller) -> bool {
        !caller.is_taking && (self.running.is_empty() || caller.shared && self.running.iter().all(|other| other.shared))
    }

    /// Gives a turn to those that may go. Returns who waits for theirs.
    fn advance(&mut self) -> Vec<(u64, Waits)> {
        let mut called = Vec::new();
        while self.waiting.front().is_some_and(|caller| self.may_go(caller)) {
            let Some(mut caller) = self.waiting.pop_front() else { break };
            called.extend(caller.waits.take().map(|waits| (caller.number, waits)));
            self.running.push(caller);
        }
        called
    }

    fn remove(&mut self, number: u64) -> Option<Caller> {
        if let Some(at) = self.running.iter().position(|caller| caller.number == number) {
            return Some(self.running.swap_remove(at));
        }
        let at = self.waiting.iter().position(|caller| caller.number == number)?;
        self.waiting.remove(at)
    }

    fn has(&self, number: u64) -> bool {
        self.running.iter().chain(&self.waiting).any(|caller| caller.number == number)
    }

    fn waiting(&mut self, number: u64) -> Option<&mut Caller> {
        self.waiting.iter_mut().find(|caller| caller.number == number)
    }

    /// Returns true if this thread has to go on so that the turn comes.
    fn waits_for(&self, thread: ThreadId, number: u64) -> bool {
        let before = self.waiting.iter().take_while(|caller| caller.number != number);
        self.running.iter().chain(before).any(|caller| caller.thread == thread)
    }
}

/// A place in the line. What goes away leaves it.
pub(crate) struct Place {
    line: Line,
    number: u64,
}

impl Place {
    /// Returns true if the turn has come.
    pub(crate) fn has_come(&self) -> bool {
        self.line.lock().running.iter().any(|caller| caller.number == self.number)
    }

    /// Returns true if the turn has not come. Then it is told there.
    pub(crate) fn waits(&self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<bool> {
        self.line.waits(self.number, py, address)
    }

    /// As `waits`, for this thread. `None`: it would wait for itself.
    pub(crate) fn waits_here(&self, (mailbox, token): (&Arc<dyn Mailbox>, u64)) -> Option<bool> {
        let mut state = self.line.lock();
        let waits_for_itself = state.waits_for(current().id(), self.number) || is_called_by_database();
        let Some(caller) = state.waiting(self.number) else { return Some(false) };
        if waits_for_itself {
            return None;
        }
        caller.waits = Some(Waits { mailbox: mailbox.clone(), token, event_loop: None });
        Some(true)
    }

    /// Returns what is over when the turn has come. Who awaits it does not keep the place.
    pub(crate) fn coming(&self) -> impl Pending + use<> {
        Coming(self.line.clone(), self.number)
    }

    /// The call has what it was given.
    pub(crate) fn taken(&self, py: Python<'_>) -> PyResult<()> {
        let called = {
            let mut state = self.line.lock();
            if let Some(caller) = state.waiting(self.number) {
                caller.is_taking = false;
            }
            state.advance()
        };
        self.line.call(py, called)
    }

    /// Gives a shared turn up for one that is not shared, which comes before those of later calls.
    pub(crate) fn alone(&self, py: Python<'_>) -> PyResult<()> {
        let called = {
            let mut state = self.line.lock();
            if let Some(caller) = state.remove(self.number) {
                let later = state.waiting.iter().position(|other| other.number > caller.number);
                let at = later.unwrap_or(state.waiting.len());
                state.waiting.insert(at, Caller { shared: false, ..caller });
            }
            state.advance()
        };
        self.line.call(py, called)
    }

    /// Leaves the line. Leaving it twice does nothing.
    pub(crate) fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.line.leave(py, self.number)
    }
}

impl Drop for Place {
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
        Ok(if self.0.waits(self.1, py, address)? { Polled::Waits } else { Polled::Ready(Ok(Output::Done(()))) })
    }

    fn give_up(&mut self) -> bool {
        false
    }
}
