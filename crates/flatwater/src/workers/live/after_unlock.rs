//! What is to be done when the lock of the live queries is released.
//!
//! Owns: the list, made under the lock and done without it, on the thread that had the lock. Invariant: it is the place of all
//! that may take long or run other code: starting runs, waking tasks, comparing results, freeing them. Leaves out: doing it
//! (`run`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use super::compared::Behind;
use super::diff::Delivery;
use super::entry::Entry;
use super::subscriber::Replaced;
use crate::connection::learn::live_query::Derived;
use crate::dependencies::index::Id;
use crate::queue::ticket::Ticket;
use crate::workers::work::LiveQuery;

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
