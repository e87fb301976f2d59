//! The readers: a pool of read-only connections, served by threads `fw-reader-N`.
//!
//! Owns: the queue of reads, the idle connections, and the threads. A connection is borrowed for one request, by a
//! reader's thread or by the thread of a blocking caller. The connection and the thread used last are taken first, so
//! that their caches are warm and the others can end. Invariants, all under one lock: there are never more connections
//! than the options allow; for a request that waits while a connection is free, exactly one thread is woken or started;
//! each read begins its own read transaction, or continues one since whose beginning no connection committed, so that
//! it sees every commit that was acknowledged before the read began (<https://sqlite.org/isolation.html>). Leaves out:
//! writes. A statement that turns out to be a write is handed over to the writer (`serve`).

mod close;
mod holder;
mod inline;
mod leases;
mod reader;
mod running;
mod serve;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

use holder::ReleaseRequests;
pub(crate) use inline::Tried;
use reader::Reader;
use running::Running;

use crate::error::{Error, Kind, Result};
use crate::file::watch::Watch;
use crate::inline::policy::InlinePolicy;
use crate::options::Options;
use crate::queue::bounded::{Bounded, Place};
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::Catalogue;
use crate::stats::Recorder;
use crate::stats::reader_counters::ReaderCounters;
use crate::thread::linger::Linger;
use crate::thread::park::start_own;
use crate::workers::outbox::Outbox;
use crate::workers::request::{Request, TakesOver};

/// A handle to the pool. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Shared>);

struct Shared {
    options: Arc<Options>,
    catalogue: Arc<Catalogue>,
    recorder: Arc<Recorder>,
    policy: Arc<InlinePolicy>,
    watch: Option<Arc<Watch>>,
    /// Takes over the requests that turn out to be writes. `None` if there is no writer.
    writer: Option<Arc<dyn TakesOver>>,
    requests: Arc<ReleaseRequests>,
    state: Mutex<State>,
    /// Signalled when a connection was given back or closed. `close` waits for it.
    closed: Condvar,
}

struct State {
    waiting: Bounded<Request>,
    /// The idle connections, in the order of their last use; the last one was used last.
    #[allow(clippy::vec_box, reason = "a reader is moved at each borrow")]
    idle: Vec<Box<Reader>>,
    /// The number of connections, in use or idle.
    connections: usize,
    /// The sleeping threads; the last one fell asleep last.
    asleep: Vec<Thread>,
    threads: usize,
    /// The running requests, with their SQL.
    running: Vec<Running>,
    leases: leases::Watch,
    tally: ReaderCounters,
    closed: bool,
}

impl Readers {
    pub(crate) fn new(
        options: Arc<Options>,
        catalogue: Arc<Catalogue>,
        recorder: Arc<Recorder>,
        policy: Arc<InlinePolicy>,
        watch: Option<Arc<Watch>>,
        writer: Option<Arc<dyn TakesOver>>,
    ) -> Self {
        Self(Arc::new_cyclic(|pool| {
            let state = State {
                waiting: Bounded::new(options.queue),
                idle: Vec::new(),
                connections: 0,
                asleep: Vec::new(),
                threads: 0,
                running: Vec::new(),
                leases: leases::Watch::new(pool.clone()),
                tally: ReaderCounters::new(),
                closed: false,
            };
            let (state, closed, requests) = (Mutex::new(state), Condvar::new(), Arc::default());
            Shared { options, catalogue, recorder, policy, watch, writer, requests, state, closed }
        }))
    }

    /// Opens the first connection now, to check that the database can be opened, and returns its journal mode. Blocks.
    pub(crate) fn open_one(&self) -> Result<String> {
        // A database that is being opened is not parked.
        let reader = self.0.open(None)?.ok_or_else(Error::closed)?;
        let journal = reader.journal().to_owned();
        let mut state = self.0.lock();
        state.connections += 1;
        state.idle.push(reader);
        Ok(journal)
    }

    /// Pushes the request. If the queue is full, the request waits in line for a place.
    pub(crate) fn push(&self, request: Request) -> Result<Place> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(Error::closed());
        }
        let place = state.waiting.push(request);
        self.rouse(state).map(|()| place)
    }

    /// Removes the request at `place`, whose caller gave it up.
    pub(crate) fn leave(&self, place: Place) {
        let left = place.and_then(|_| self.0.lock().waiting.leave(place));
        drop(left);
    }

    /// Runs the request on this thread, which may block, if a connection is free. Otherwise returns the request.
    pub(crate) fn run_here(&self, request: Request) -> Option<Request> {
        let mut state = self.0.lock();
        if state.closed || !state.waiting.is_empty() {
            return Some(request);
        }
        let Some(reader) = state.borrow(&self.0.options) else { return Some(request) };
        state.running.push(Running::new(&request));
        drop(state);
        let mut outbox = Outbox::decoding(&self.0.recorder);
        let ticket = request.ticket.clone();
        let reader = self.0.serve(reader, request, &mut outbox);
        let mut state = self.0.lock();
        state.give_back(reader, &ticket);
        self.0.closed.notify_all();
        // If no thread can be started, the requests that arrived meanwhile wait for the next push.
        let _ = self.rouse(state);
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
        state.connections != state.idle.len() || !state.waiting.is_empty()
    }

    /// Returns the number of connections, in use or idle.
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().connections
    }

    /// Returns the number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// Wakes or starts a thread if a request waits while a connection is free.
    fn rouse(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        if state.waiting.is_empty() || !state.has_free_connection(&self.0.options) {
            return Ok(());
        }
        if let Some(thread) = state.asleep.pop() {
            drop(state);
            thread.unpark();
            return Ok(());
        }
        if state.threads >= self.0.options.readers {
            return Ok(());
        }
        state.threads += 1;
        let name = format!("fw-reader-{}", state.threads - 1);
        drop(state);
        let shared = self.0.clone();
        start_own(name, move || shared.run()).map(drop).map_err(|error| {
            self.0.lock().threads -= 1;
            Error::new(Kind::Io, format!("a reader's thread cannot be started: {error}"))
        })
    }
}

impl State {
    fn has_free_connection(&self, options: &Options) -> bool {
        !self.idle.is_empty() || self.connections < options.readers
    }

    /// Borrows a free connection. `Some(None)` is the right to open another one; `None` means that no connection is
    /// free.
    #[allow(clippy::option_option)]
    fn borrow(&mut self, options: &Options) -> Option<Option<Box<Reader>>> {
        if let Some(reader) = self.idle.pop() {
            return Some(Some(reader));
        }
        if self.connections >= options.readers {
            return None;
        }
        self.connections += 1;
        Some(None)
    }

    fn give_back(&mut self, reader: Option<Box<Reader>>, ticket: &Arc<Ticket>) {
        self.running.retain(|running| !Arc::ptr_eq(&running.ticket, ticket));
        self.take_back(reader);
    }

    /// Puts the reader among the idle ones. `None`: its connection was closed or never opened.
    fn take_back(&mut self, reader: Option<Box<Reader>>) {
        match reader {
            Some(mut reader) => {
                self.tally.reused(reader.take_reused());
                self.watch_lease(&reader);
                self.idle.push(reader);
            }
            None => self.connections -= 1,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the answers. A thread that decodes a large result for its caller, which may take long, does not count
    /// meanwhile, so that another one serves the requests that wait.
    fn deliver<'a>(self: &'a Arc<Self>, outbox: &mut Outbox<'_>) -> MutexGuard<'a, State> {
        if !outbox.has_large() {
            outbox.deliver();
            return self.lock();
        }
        let mut state = self.lock();
        state.threads -= 1;
        // If no thread can be started, the requests that arrived meanwhile wait for the next push, or for this thread.
        let _ = Readers(self.clone()).rouse(state);
        outbox.deliver();
        let mut state = self.lock();
        state.threads += 1;
        state
    }

    /// The loop of a reader's thread.
    fn run(self: &Arc<Self>) {
        let mut outbox = Outbox::decoding(&self.recorder);
        let mut state = self.lock();
        loop {
            if !state.waiting.is_empty()
                && let Some(reader) = state.borrow(&self.options)
                && let Some(request) = state.waiting.pop()
            {
                let ticket = request.ticket.clone();
                state.running.push(Running::new(&request));
                drop(state);
                let reader = self.serve(reader, request, &mut outbox);
                state = self.lock();
                state.give_back(reader, &ticket);
                if state.closed {
                    self.closed.notify_all();
                }
                drop(state);
                state = self.deliver(&mut outbox);
                continue;
            }
            if state.closed {
                state.threads -= 1;
                return;
            }
            match self.sleep(state) {
                Some(awake) => state = awake,
                None => return,
            }
        }
    }

    /// Sleeps until another thread wakes this one. Returns `None` if the thread must end, because there was no work while
    /// it lingered. A thread that had a place for that closes one idle connection.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
        let me = thread::current();
        state.asleep.push(me.clone());
        drop(state);
        let linger = Linger::begin();
        let until = Instant::now() + linger.time();
        loop {
            let now = Instant::now();
            thread::park_timeout(until.saturating_duration_since(now));
            let mut state = self.lock();
            let Some(at) = state.asleep.iter().position(|thread| thread.id() == me.id()) else {
                return Some(state);
            };
            if Instant::now() < until {
                continue;
            }
            state.asleep.remove(at);
            state.threads -= 1;
            if linger.has_place() && !state.idle.is_empty() {
                let coldest = state.idle.remove(0);
                drop(state);
                drop(coldest);
                // The count goes down only after the connection is closed, because `close` waits for it.
                self.lock().connections -= 1;
                self.closed.notify_all();
            }
            return None;
        }
    }
}
