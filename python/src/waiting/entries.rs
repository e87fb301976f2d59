//! In which order the calls of a thread begin on a database: that in which they are made, though one may take long until it has
//! what it was given.
//!
//! Owns: the places of the calls that still take it, and of those that were made meanwhile. Runs on the loop's thread. Invariants:
//! no later call begins before such a one, nor before one that was made meanwhile; where there is none, a call has no place.
//! Leaves out: the order in which they run, which the engine keeps; calls of threads that wait, which make one after the
//! other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use flatwater::bindings::{Mailbox, Polled};
use pyo3::prelude::*;

use crate::waiting::line::{Line, Place};
use crate::waiting::pending::Pending;

thread_local! {
    /// By the number of the database. Those that nobody is in are removed when somebody looks.
    static LINES: RefCell<BTreeMap<usize, Line>> = RefCell::default();
}

/// Returns the place of a call that still takes what it was given.
pub(crate) fn taking(database: usize) -> Place {
    LINES.with_borrow_mut(|lines| lines.entry(database).or_default().join(true))
}

/// Returns false if no call of this thread still takes what it was given.
#[inline]
pub(crate) fn is_any() -> bool {
    LINES.with_borrow(|lines| !lines.is_empty())
}

/// Returns the place of a call that was made while others take what they were given. `None`: there are none.
pub(crate) fn behind(database: usize) -> Option<Place> {
    LINES.with_borrow_mut(|lines| {
        lines.retain(|_, line| !line.is_empty());
        lines.get(&database).map(|line| line.join(false))
    })
}

/// A call that begins when those before it have what they were given.
pub(crate) struct Behind {
    place: Option<Place>,
    work: Box<dyn Pending>,
}

impl Behind {
    pub(crate) fn new(place: Place, work: Box<dyn Pending>) -> Self {
        Self { place: Some(place), work }
    }
}

impl Pending for Behind {
    fn poll(&mut self, py: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        if !begins(&mut self.place, py, address)? {
            return Ok(Polled::Waits);
        }
        self.work.poll(py, address)
    }

    fn give_up(&mut self) -> bool {
        self.place.is_none() && self.work.give_up()
    }
}

/// Returns true if a call with this place begins now. It has none from then on.
pub(crate) fn begins(
    place: &mut Option<Place>,
    py: Python<'_>,
    address: Option<(&Arc<dyn Mailbox>, u64)>,
) -> PyResult<bool> {
    if place.as_ref().map_or(Ok(false), |place| place.waits(py, address))? {
        return Ok(false);
    }
    place.take().map_or(Ok(()), |place| place.leave(py))?;
    Ok(true)
}
