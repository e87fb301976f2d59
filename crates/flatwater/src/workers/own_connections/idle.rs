//! The idle limit of a transaction on a connection of a caller.
//!
//! Owns: looking at it. Runs on the timer's thread. Invariant: a transaction that is used for nothing holds the slot,
//! and keeps the WAL from starting over, for no longer than its limit. Leaves out: rolling it back (`serve_inbox`).

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Aside, Message, OwnConnection};
use crate::time::later;
use crate::workers::kept::inbox::{End, Posted};
use crate::workers::open_transaction;

impl OwnConnection {
    /// Called when the connection rests in a transaction.
    pub(super) fn look_later(&self) {
        let this = self.this.clone();
        self.looks.by(later(Instant::now(), self.given.options.transaction_idle), move || this.upgrade()?.look());
    }

    /// Ends the transaction if it is at its limit, or returns when to look again.
    fn look(&self) -> Option<Instant> {
        let limit = self.given.options.transaction_idle;
        let mut at = self.lock();
        if !self.in_transaction.load(Ordering::Relaxed) {
            // Who begins one asks for a look.
            return None;
        }
        let now = Instant::now();
        // It is used now, maybe on its caller's thread, which asks for no look when it rests again.
        let since = at.inbox.rests_since().unwrap_or(now);
        let until = later(since, limit);
        if now < until {
            return Some(until);
        }
        at.ended = Some(open_transaction::ended(&End::Idle(limit)));
        // From here on there is none, for who asks.
        self.in_transaction.store(false, Ordering::Relaxed);
        let calls = matches!(at.inbox.post(Message::Aside(Aside::Idle)), Posted::Call);
        self.call(at, calls);
        None
    }
}
