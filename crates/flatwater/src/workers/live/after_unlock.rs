//! What is to be done when the lock of the live queries is released.
//!
//! Owns: the list, made under the lock and done without it, on the thread that had the lock, and delivering to subscribers that get
//! a result after a comparison: those that get differences, and those that have not taken the result before. Invariants: it is the
//! place of all that may take long or run other code: starting runs, waking tasks, comparing results, freeing them; until a
//! comparison is done the query does not run again, so a subscriber gets results in their order. Leaves out: doing the rest (`run`),
//! the comparison (`diff`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::diff::Delivery;
use super::entry::Entry;
use super::subscriber::{Put, Replaced, Subscriber};
use crate::connection::learn::live_query::{Derived, LiveQuery};
use crate::queue::ticket::Ticket;
use flatwater_sql::dependencies::index::Id;

/// What is to be done without the lock.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) starts: VecDeque<Start>,
    pub(super) wakers: Vec<Waker>,
    /// A run that has ended, and is in flight until these have its result.
    pub(super) behind: Option<Behind>,
    /// To be freed.
    pub(super) entries: Vec<Entry>,
    pub(super) results: Vec<Delivery>,
    pub(super) replaced: Vec<Replaced>,
}

/// A run that is to be started.
pub(super) struct Start {
    pub(super) id: Id,
    pub(super) query: Arc<LiveQuery>,
    pub(super) known: Box<[Option<Derived>]>,
    pub(super) ticket: Arc<Ticket>,
    /// A small result is compared and delivered in microseconds.
    pub(super) is_small: bool,
}

pub(super) struct Behind {
    pub(super) delivery: Delivery,
    pub(super) places: Vec<Arc<Subscriber>>,
}

impl Behind {
    /// Delivers the result. Returns what that did, and whom to wake.
    pub(super) fn deliver(self) -> (Vec<Put>, Vec<Waker>) {
        let (mut known, mut wakers) = (Vec::new(), Vec::new());
        let puts = self.places.iter().map(|place| {
            let mut put = place.put(&self.delivery, &mut known);
            wakers.extend(put.waker.take());
            put
        });
        (puts.collect(), wakers)
    }
}
