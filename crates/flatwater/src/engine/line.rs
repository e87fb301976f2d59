//! The queue in which a call takes its place, by number, for front ends that hold calls back.
//!
//! Owns: the numbers. Runs on the caller's thread. Invariant: calls of one number run in the order in which they are sent. Leaves
//! out: routing a call (`dispatch`), and the order of those that are held (`bindings::held`).

use std::sync::Arc;

use super::dispatch::{Caller, Route};
use crate::workers::work::Work;

impl Caller {
    /// Returns a number of the queue in which work takes its place behind the writes before it: that of the transaction, or of
    /// the writer. `None` for what has no place among them.
    pub(crate) fn line_of(&self, work: &Work) -> Option<usize> {
        match self.route(work) {
            Ok(Route::Transaction(_) | Route::Writer(_)) => self.line(),
            Ok(Route::Server(_)) if !work.describe().only_reads() => self.line(),
            _ => None,
        }
    }

    /// The same for a write.
    pub(crate) fn line(&self) -> Option<usize> {
        match &self.inside {
            Some(inside) => Some(Arc::as_ptr(&inside.transaction).addr()),
            None => self.kept.is_none().then(|| self.handle.id()),
        }
    }
}
