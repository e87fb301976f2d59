//! An opening, as its caller and the thread that opens share it; and what giving up an opening, or any other call, did.
//!
//! Owns: whether anybody waits for the opening, and ending what it waits for. Runs on both threads. Invariant: once it is given up,
//! none of its waits lasts: the thread ends with an error, or it closes again what it has opened. Leaves out: the steps
//! of an opening (`open`, `engine`), and giving up a request (`awaited`).

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::file_table;
use crate::queue::ticket::{CallOptions, Leaves, Ticket};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;

/// Wakes the thread that opens.
type Nudge = Box<dyn FnOnce() + Send>;

pub(crate) struct Opening {
    /// What waits for a lock asks it.
    pub(crate) ticket: Arc<Ticket>,
    /// The request that the thread waits for.
    request: Mutex<Option<(Arc<Ticket>, Nudge)>>,
}

impl Opening {
    pub(crate) fn new() -> Arc<Self> {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        Arc::new(Self { ticket, request: Mutex::new(None) })
    }

    /// Called by the thread that opens. Returns an error if nobody waits any more.
    pub(crate) fn begin(&self) -> Result<()> {
        if self.ticket.start() { Ok(()) } else { Err(given_up()) }
    }

    /// Returns an error once nobody waits any more.
    pub(super) fn is_wanted(&self) -> Result<()> {
        if self.ticket.is_interrupted() { Err(given_up()) } else { Ok(()) }
    }

    /// Notes that the thread waits for this request: who gives the opening up gives it up too.
    ///
    /// ```text
    /// thread                        caller
    /// notes the request
    ///                               leaves
    /// looks whether it has left     gives the request up, if it is noted
    /// ```
    pub(super) fn waits_for(&self, ticket: &Arc<Ticket>, nudge: Nudge) {
        *lock(&self.request) = Some((ticket.clone(), nudge));
        if self.ticket.is_interrupted() {
            self.end_request();
        }
    }

    /// The caller leaves. Returns the effect.
    pub(crate) fn give_up(&self) -> CancelOutcome {
        if self.ticket.leave() == Leaves::Withdrawn {
            return CancelOutcome::Withdrawn;
        }
        file_table::look_again();
        self.end_request();
        CancelOutcome::WriteInterrupted
    }

    fn end_request(&self) {
        let request = lock(&self.request).take();
        if let Some((ticket, nudge)) = request
            && ticket.leave() == Leaves::Withdrawn
        {
            nudge();
        }
    }
}

fn given_up() -> Error {
    Error::new(ErrorCode::GivenUp, "the caller cancelled the opening")
}

/// What [`Call::cancel`](crate::Call::cancel) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelOutcome {
    /// The request did not begin and never will: it changed nothing.
    Withdrawn,
    /// The request runs and only reads. It is interrupted.
    ReadInterrupted,
    /// The request runs and may write. It is interrupted and rolled back: nothing of it is kept. The same for what has not
    /// got its lock or its connection yet, such as `begin`, `checkpoint` and `open`. Inside a transaction this may end the
    /// whole transaction. What `migrate` and `with_connection` committed before stays.
    WriteInterrupted,
    /// The request writes and is finished, and its result is discarded: its commit has begun, or it shares a commit with
    /// other writes; or it ends a transaction or a savepoint, or closes the database.
    WriteRunning,
    /// The result was already there, and is discarded.
    Answered,
}
