//! Subscribers to which a result is delivered after a comparison: those that get differences, and those that have not taken
//! the result before.
//!
//! Owns: delivering to them. Runs on the thread that ran the query, without the lock of the live queries. Invariant: until it
//! is done the query does not run again, so a subscriber gets results in their order. Leaves out: the comparison (`diff`).

use std::sync::Arc;
use std::task::Waker;

use super::diff::Delivery;
use super::subscriber::{Put, Subscriber};

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
