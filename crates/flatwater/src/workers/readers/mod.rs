//! The readers: a pool of read-only connections, served by threads `fw-reader-N`.
//!
//! Owns: the queues of reads, the idle connections, and the threads. A connection is borrowed for one request, by a
//! reader's thread or by the thread of a blocking caller, or it is held for a closure, a snapshot or a cursor. The
//! connection and the thread used last are taken first, so that their caches are warm and the others can end.
//! Invariants: one lock guards the state; each read begins its own read transaction, or continues one since whose beginning no connection committed, so that
//! it sees every commit that was acknowledged before the read began (<https://sqlite.org/isolation.html>). Leaves out:
//! writes. A statement that turns out to be a write is handed over to the writer (`serve`).

mod close_pool;
mod due_leases;
mod external_commits;
mod inline_read;
mod inline_snapshot;
mod perform_read;
mod pool;
mod read_session;
mod reader;
mod reader_lease;
mod run_query;
mod running_reads;
mod serve;
mod serve_session;
mod threads;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

pub(crate) use external_commits::{Look, Stamps};
pub(crate) use inline_read::InlineQuery;
use pool::{Job, Pool};
use reader_lease::ReleaseRequests;
use running_reads::Running;

use crate::queue::bounded::LinePlace;
use crate::queue::ticket::Ticket;
use crate::stats::query_counters::ReaderCounters;
use crate::workers::context::Context;
use crate::workers::interfaces::TakesOver;
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::lock;
use flatwater_base::time::recurring::Recurring;
use flatwater_base::time::timer::Deadline;

/// A handle to the pool. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Readers(Arc<ReadersShared>);

struct ReadersShared {
    context: Arc<Context>,
    /// Takes over the requests that turn out to be writes. `None` if there is no writer.
    writer: Option<Arc<dyn TakesOver>>,
    requests: Arc<ReleaseRequests>,
    state: Mutex<Pool>,
    /// Goes off when a thread is to be started that could not be started before.
    again: Deadline,
    /// Looks whether read sessions are at their limits.
    looks: Recurring,
    /// Signalled when a connection was given back or closed. `close` waits for it.
    closed: Condvar,
}

/// The place of a request in the line of a full queue.
#[derive(Clone, Copy)]
pub(crate) struct InLine {
    place: LinePlace,
    /// It is the queue of requests that may hold a reader.
    holds: bool,
}

/// The readers, for those whom the writer keeps alive: the readers keep the writer alive.
#[derive(Clone)]
pub(crate) struct WeakReaders(Weak<ReadersShared>);

impl WeakReaders {
    pub(crate) fn upgrade(&self) -> Option<Readers> {
        self.0.upgrade().map(Readers)
    }
}

impl Readers {
    pub(crate) fn downgrade(&self) -> WeakReaders {
        WeakReaders(Arc::downgrade(&self.0))
    }

    pub(crate) fn new(context: Arc<Context>, writer: Option<Arc<dyn TakesOver>>) -> Self {
        Self(Arc::new_cyclic(|pool| {
            let state = Pool::new(&context.options, due_leases::Watch::new(pool.clone()));
            let (state, again, closed) = (Mutex::new(state), Deadline::default(), Condvar::new());
            let looks = Recurring::default();
            ReadersShared { context, writer, requests: Arc::default(), state, again, looks, closed }
        }))
    }

    /// Opens the first connection now, to check that the database can be opened, and returns its journal mode. Blocks,
    /// until `ticket` is given up.
    pub(crate) fn open_one(&self, ticket: &Arc<Ticket>) -> Result<String> {
        // A database that is being opened is not parked.
        let reader = self.0.open(ticket)?.ok_or_else(Error::closed)?;
        let journal = reader.journal().to_owned();
        let mut state = self.0.lock();
        state.connections += 1;
        state.idle.push(reader);
        Ok(journal)
    }

    /// Pushes the request. If the queue is full, the request waits in line for a place.
    ///
    /// # Errors
    /// `Closed`; or no thread can be started for the request: then it is not in the queue any more.
    pub(crate) fn push(&self, request: Request) -> Result<InLine> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(Error::closed());
        }
        let holds = request.work.describe().holds_reader;
        let ticket = request.ticket.clone();
        let place = state.queue(holds).push(request);
        let at = InLine { place, holds };
        let Err(error) = self.0.rouse(state) else { return Ok(at) };
        // Dropped without the lock. Another thread may have taken it meanwhile.
        let taken = self.take_back(at, &ticket);
        if taken.is_some() { Err(error) } else { Ok(at) }
    }

    fn take_back(&self, at: InLine, ticket: &Arc<Ticket>) -> Option<Request> {
        let mut state = self.0.lock();
        let queue = state.queue(at.holds);
        queue.leave(at.place).or_else(|| queue.take_out(|request| Arc::ptr_eq(&request.ticket, ticket)).pop())
    }

    /// Removes the request at `at`, whose caller gave it up.
    pub(crate) fn leave(&self, at: InLine) {
        let left = at.place.and_then(|_| self.0.lock().queue(at.holds).leave(at.place));
        drop(left);
    }

    /// Runs the request on this thread, which may block, if a connection is free. Otherwise returns the request.
    pub(crate) fn run_here(&self, request: Request) -> Option<Request> {
        let mut state = self.0.lock();
        let holds = request.work.describe().holds_reader;
        if state.closed || !state.queue(holds).is_empty() {
            return Some(request);
        }
        let options = &self.0.context.options;
        let Some(reader) = (if holds { state.hold(options) } else { state.borrow(options) }) else {
            return Some(request);
        };
        state.running.push(Running::start(&request));
        drop(state);
        let mut outbox = Outbox::decoding(&self.0.context.recorder);
        let job = if holds { Job::Hold(reader, request) } else { Job::Read(reader, request) };
        self.0.work(job, &mut outbox);
        self.0.freed(self.0.lock());
        outbox.deliver();
        None
    }

    /// Returns a copy of the counters, made under the lock.
    pub(crate) fn tally(&self) -> ReaderCounters {
        self.0.lock().tally.clone()
    }

    /// Returns true if a request is served or waits.
    pub(crate) fn are_in_use(&self) -> bool {
        let state = self.0.lock();
        state.connections != state.idle.len()
            || state.held > 0
            || !state.waiting.is_empty()
            || !state.holding.is_empty()
    }

    /// Returns the number of connections: in use, held, or idle.
    pub(crate) fn connections(&self) -> usize {
        let state = self.0.lock();
        state.connections + state.held
    }

    /// Notes which commits there are, as an idle connection sees them in the headers of the WALs. Makes no system call.
    pub(crate) fn look(&self, seen: &mut Stamps) -> Look {
        let state = self.0.lock();
        match state.idle.last() {
            Some(reader) => seen.note(reader.stamps()),
            None if state.connections + state.held == 0 => Look::Blind,
            None => Look::Nothing,
        }
    }

    /// Returns the number of connections that closures, snapshots and cursors hold.
    pub(crate) fn held(&self) -> usize {
        self.0.lock().held
    }

    /// Returns the number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.0.lock();
        state.waiting.len() + state.holding.len()
    }
}

impl ReadersShared {
    fn lock(&self) -> MutexGuard<'_, Pool> {
        lock(&self.state)
    }
}
