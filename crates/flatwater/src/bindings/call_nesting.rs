//! Where a call of a front end begins: in which transaction, and inside of whose body.
//!
//! Owns: what a front end says of the flow of the program that begins a call. Runs on that flow's thread. Invariant: a call
//! that has begun is not moved. Leaves out: knowing the flow, which is the host's.

use std::sync::Arc;

use crate::api::transaction::Transaction;
use crate::engine::dispatch::Caller;

/// A call that was not begun yet.
pub struct Unbegun<'a>(pub(crate) &'a mut Caller);

impl Unbegun<'_> {
    /// The number that identifies the open database, for a call that belongs to no transaction, snapshot or cursor.
    #[must_use]
    pub fn database(&self) -> Option<usize> {
        (self.0.inside.is_none() && self.0.kept.is_none()).then(|| self.0.handle.id())
    }

    /// The number that identifies the open database.
    #[must_use]
    pub fn open_database(&self) -> usize {
        self.0.handle.id()
    }

    /// True for a call of a transaction in which nested ones were begun.
    #[must_use]
    pub fn may_be_nested(&self) -> bool {
        self.0.inside.as_ref().is_some_and(|inside| inside.transaction.savepoints_begun() > 0)
    }

    /// The flow that begins the call has a transaction open on the same database. If the call would wait for the end of
    /// that, it is refused.
    pub fn set_inside_body(&mut self) {
        self.0.options.inside_body = true;
    }

    /// The flow that begins the call is inside this nested transaction: a call of one around it runs there too. Returns
    /// false for a nested transaction of another one.
    pub fn set_nested(&mut self, nested: &Transaction<'_>) -> bool {
        let (Some(own), Some(nested)) = (&self.0.inside, &nested.session.0.inside) else { return false };
        if !Arc::ptr_eq(&own.transaction, &nested.transaction) {
            return false;
        }
        if nested.savepoints.starts_with(&own.savepoints) {
            self.0.inside = Some(nested.clone());
        }
        true
    }
}
