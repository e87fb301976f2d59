//! The conditions that end the statements which run on a connection.
//!
//! Owns: the interrupt to ask, or the time at which statements end, how often SQLite's progress handler checked, and the limits of
//! what a statement takes.
//! Used by the thread that uses the connection, and by the progress handler on the same thread. Invariant: nothing ends
//! a statement after `disarm`, or once a commit has begun. Leaves out: registering the handler, and the cost of a check.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rusqlite::ffi;

use crate::error::{Error, Limit, Result};
use crate::heap;

/// Checked by the progress handler while a statement runs, and by the commit hook.
pub trait Interrupt: Send + Sync {
    /// Returns true if the statement must end with SQLITE_INTERRUPT. Called about every 1,000 virtual machine steps.
    fn should_stop(&self) -> bool;

    /// Called once, at the last moment before a commit's point of no return. Returns false if the commit must not begin:
    /// SQLite then rolls back.
    fn lets_commit(&self) -> bool {
        true
    }
}

const PROGRESS_STEPS: c_int = 1000;

/// What a function that SQLite calls asks while it waits: whether its statement is to end. Any thread may ask.
#[derive(Clone, Default)]
pub struct Ends(Arc<Mutex<Option<Arc<dyn Interrupt>>>>);

impl Ends {
    fn set(&self, by: Option<Arc<dyn Interrupt>>) {
        let before = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), by);
        drop(before);
    }

    /// Returns true if the statement that runs on the connection must end now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let by = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        by.is_some_and(|by| by.should_stop())
    }
}

/// What ends the statements that run on a connection.
pub struct Interrupts {
    by: RefCell<Option<Arc<dyn Interrupt>>>,
    /// The same for the functions of the connection that wait, once there is one.
    told: RefCell<Option<Ends>>,
    /// Asked before the next commit, and ends no statement.
    asked: RefCell<Option<Arc<dyn Interrupt>>>,
    end: Cell<Option<Instant>>,
    /// Steps of the virtual machine between two checks.
    steps: Cell<c_int>,
    /// The number of checks since the last `arm` or `arm_until`.
    looks: Cell<u32>,
    /// Armed statements end after so many steps.
    most_steps: Cell<Option<u32>>,
    /// SQLite takes so much memory for an armed statement.
    most_memory: Cell<Option<usize>>,
}

impl Interrupts {
    pub(crate) fn new() -> Self {
        #[cfg(feature = "fault")]
        let steps = crate::held_step::steps().unwrap_or(PROGRESS_STEPS);
        #[cfg(not(feature = "fault"))]
        let steps = PROGRESS_STEPS;
        Self {
            by: RefCell::new(None),
            told: RefCell::new(None),
            asked: RefCell::new(None),
            end: Cell::new(None),
            steps: Cell::new(steps),
            looks: Cell::new(0),
            most_steps: Cell::new(None),
            most_memory: Cell::new(None),
        }
    }

    /// Lets `interrupt` end the statements that run from now on, until [`disarm`](Self::disarm) or until a commit
    /// reaches its point of no return.
    pub fn arm(&self, interrupt: Arc<dyn Interrupt>) {
        self.looks.set(0);
        if let Some(most) = self.most_memory.get() {
            heap::limit(Some(most));
        }
        if let Some(told) = &*self.told.borrow() {
            told.set(Some(interrupt.clone()));
        }
        *self.by.borrow_mut() = Some(interrupt);
    }

    /// What functions of this connection that wait ask.
    pub fn ends(&self) -> Ends {
        let mut told = self.told.borrow_mut();
        let told = told.get_or_insert_with(Ends::default);
        told.set(self.by.borrow().clone());
        told.clone()
    }

    /// Takes what ends statements.
    fn take(&self) -> Option<Arc<dyn Interrupt>> {
        if let Some(told) = &*self.told.borrow() {
            told.set(None);
        }
        self.by.borrow_mut().take()
    }

    /// Ends armed statements after about so many steps of the virtual machine, from now on. They may also be looked at while
    /// they are prepared, where what SQLite counts are parts of the text and of the schema.
    pub fn limit_steps(&self, most: u32) {
        self.most_steps.set(Some(most));
    }

    /// Lets SQLite take so many bytes of memory for what runs from one `arm` to its `disarm`, from now on. Beyond that a
    /// statement ends as if there was no memory left, and with it a transaction. Has no effect where the program used SQLite
    /// before this crate.
    pub fn limit_memory(&self, most: usize) {
        self.most_memory.set(Some(most));
    }

    /// Returns true if armed statements have a limit of what they take.
    #[must_use]
    pub fn has_limits(&self) -> bool {
        self.most_steps.get().is_some() || self.most_memory.get().is_some()
    }

    /// Returns true if armed statements end because of their steps.
    fn is_beyond_steps(&self) -> bool {
        self.most_steps.get().is_some_and(|most| self.steps_seen() > most) && self.by.borrow().is_some()
    }

    /// Says why a statement was ended, if it was because of a limit.
    pub(crate) fn explain<T>(&self, result: Result<T>) -> Result<T> {
        let Err(Error::Sqlite(error)) = &result else { return result };
        let limit = match error.code & 0xff {
            _ if error.code == ffi::SQLITE_INTERRUPT && self.is_beyond_steps() => {
                self.most_steps.get().map(Limit::Steps)
            }
            ffi::SQLITE_NOMEM if heap::has_refused() => self.most_memory.get().map(Limit::Memory),
            _ => None,
        };
        limit.map_or(result, |limit| Err(Error::Limit(limit)))
    }

    /// Lets SQLite take any amount of memory again.
    fn end_limit(&self) {
        if self.most_memory.get().is_some() {
            heap::limit(None);
        }
    }

    /// Makes statements end at `end`.
    pub(crate) fn arm_until(&self, end: Instant) {
        self.looks.set(0);
        self.end.set(Some(end));
    }

    /// Asks `asked` before the next commit.
    pub(crate) fn ask_before_commit(&self, asked: Arc<dyn Interrupt>) {
        *self.asked.borrow_mut() = Some(asked);
    }

    /// Undoes [`arm`](Self::arm) and [`Statement::arm_until`](crate::Statement::arm_until).
    pub fn disarm(&self) {
        self.end.set(None);
        self.end_limit();
        drop(self.asked.borrow_mut().take());
        drop(self.take());
    }

    /// Called when a commit is about to begin: from here on nothing ends the statement. Returns false if the commit must
    /// not begin.
    pub(crate) fn lets_commit(&self) -> bool {
        self.end.set(None);
        self.end_limit();
        let (by, asked) = (self.take(), self.asked.borrow_mut().take());
        by.or(asked).is_none_or(|interrupt| interrupt.lets_commit())
    }

    /// Counts a check. Returns true if statements must end now.
    pub(crate) fn ends_now(&self) -> bool {
        self.looks.set(self.looks.get().saturating_add(1));
        self.is_over()
    }

    /// Returns true if statements must end now.
    pub(crate) fn is_over(&self) -> bool {
        self.is_beyond_steps()
            || self.end.get().is_some_and(|end| Instant::now() >= end)
            || self.by.borrow().as_ref().is_some_and(|interrupt| interrupt.should_stop())
    }

    pub(crate) fn steps(&self) -> c_int {
        self.steps.get()
    }

    /// Returns true while something may end the statements that run.
    pub(crate) fn is_armed(&self) -> bool {
        self.by.borrow().is_some()
    }

    /// Checks after so many steps, if that is more often than before; 0: as often as ever.
    pub(crate) fn look_at_least_after(&self, steps: c_int) {
        self.look_after(if steps > 0 { steps.min(PROGRESS_STEPS) } else { PROGRESS_STEPS });
    }

    pub(crate) fn look_after(&self, steps: c_int) {
        self.steps.set(steps.max(1));
    }

    /// Steps of the virtual machine since the last [`arm`](Self::arm) or
    /// [`Statement::arm_until`](crate::Statement::arm_until), in thousands.
    #[must_use]
    pub fn steps_seen(&self) -> u32 {
        self.looks.get().saturating_mul(self.steps.get().unsigned_abs())
    }
}
