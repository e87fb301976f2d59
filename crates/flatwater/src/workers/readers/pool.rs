//! The pool's state: which requests wait, which connections are free, and what a thread does next.
//!
//! Owns: the counts of connections and threads. Every method runs under the pool's lock. Invariants: the pool has at most
//! `Options::readers` connections, and at most `Tuning::extra_readers` more are held for closures, snapshots and cursors;
//! a request that may hold a reader never stands in the way of one that does not. Leaves out: the threads, and SQLite.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Thread;

use super::due_leases;
use super::read_session::ReadSession;
use super::reader::Reader;
use super::running_reads::Running;
use crate::options::Options;
use crate::queue::bounded::Bounded;
use crate::queue::ticket::Ticket;
use crate::stats::query_counters::ReaderCounters;
use crate::workers::request::Request;

pub(super) struct Pool {
    /// The requests that give their reader back by themselves.
    pub(super) waiting: Bounded<Request>,
    /// The requests that may hold a reader for as long as their caller wants.
    pub(super) holding: Bounded<Request>,
    /// The read sessions with a message, each once.
    pub(super) ready: VecDeque<Arc<ReadSession>>,
    /// The idle connections, in the order of their last use; the last one was used last.
    #[allow(clippy::vec_box, reason = "a reader is moved at each borrow")]
    pub(super) idle: Vec<Box<Reader>>,
    /// The number of connections of the pool, in use or idle.
    pub(super) connections: usize,
    /// The number of connections that are held.
    pub(super) held: usize,
    /// The sleeping threads; the last one fell asleep last.
    pub(super) asleep: Vec<Thread>,
    pub(super) threads: usize,
    /// The threads that were woken or started and have not looked for a job yet.
    pub(super) coming: usize,
    /// The running requests and the open read sessions, with their SQL.
    pub(super) running: Vec<Running>,
    pub(super) leases: due_leases::Watch,
    pub(super) tally: ReaderCounters,
    pub(super) closed: bool,
    /// The time of a close is over: reads that were interrupted were interrupted by it.
    pub(super) ended: bool,
}

/// What a thread of the pool does next.
pub(super) enum Job {
    /// The connection is `None` if one must be opened.
    Read(Option<Box<Reader>>, Request),
    /// The same on a held connection.
    Hold(Option<Box<Reader>>, Request),
    ReadSession(Arc<ReadSession>),
}

impl Pool {
    pub(super) fn new(options: &Options, leases: due_leases::Watch) -> Self {
        Self {
            waiting: Bounded::new(options.queue),
            holding: Bounded::new(options.queue),
            ready: VecDeque::new(),
            idle: Vec::new(),
            connections: 0,
            held: 0,
            asleep: Vec::new(),
            threads: 0,
            coming: 0,
            running: Vec::new(),
            leases,
            tally: ReaderCounters::default(),
            closed: false,
            ended: false,
        }
    }

    /// The queue for this request.
    pub(super) fn queue(&mut self, holds: bool) -> &mut Bounded<Request> {
        if holds { &mut self.holding } else { &mut self.waiting }
    }

    /// Returns true if there is more to do than the threads that are on their way will find.
    pub(super) fn has_job(&self, options: &Options) -> bool {
        let free = self.idle.len() + options.readers.saturating_sub(self.connections);
        let may_hold = options.extra_readers.saturating_sub(self.held);
        self.ready.len() + self.waiting.len().min(free) + self.holding.len().min(may_hold) > self.coming
    }

    /// Takes the next job. Threads that are held up in one kind of job do not count for the others, so the order only
    /// decides which of them waits for a wake-up.
    pub(super) fn next_job(&mut self, options: &Options) -> Option<Job> {
        if let Some(session) = self.ready.pop_front() {
            return Some(Job::ReadSession(session));
        }
        if !self.waiting.is_empty()
            && let Some(reader) = self.borrow(options)
            && let Some(request) = self.waiting.pop()
        {
            self.running.push(Running::start(&request));
            return Some(Job::Read(reader, request));
        }
        if !self.holding.is_empty()
            && let Some(reader) = self.hold(options)
            && let Some(request) = self.holding.pop()
        {
            self.running.push(Running::start(&request));
            return Some(Job::Hold(reader, request));
        }
        None
    }

    /// Borrows a free connection. `Some(None)` is the right to open another one; `None` means that no connection is
    /// free.
    #[allow(clippy::option_option)]
    pub(super) fn borrow(&mut self, options: &Options) -> Option<Option<Box<Reader>>> {
        if let Some(reader) = self.idle.pop() {
            return Some(Some(reader));
        }
        if self.connections >= options.readers {
            return None;
        }
        self.connections += 1;
        Some(None)
    }

    /// Holds a connection: an idle one, which leaves the pool, or `Some(None)`, the right to open one.
    #[allow(clippy::option_option)]
    pub(super) fn hold(&mut self, options: &Options) -> Option<Option<Box<Reader>>> {
        if self.held >= options.extra_readers {
            return None;
        }
        self.held += 1;
        let reader = self.idle.pop();
        if reader.is_some() {
            self.connections -= 1;
        }
        Some(reader)
    }

    /// Puts a held connection into the pool, if that has a place. Otherwise returns it: it must be closed, and then
    /// `held` goes down.
    pub(super) fn adopt(&mut self, reader: Option<Box<Reader>>, options: &Options) -> Option<Box<Reader>> {
        if reader.is_some() && (self.closed || self.connections >= options.readers) {
            return reader;
        }
        self.held -= 1;
        if reader.is_some() {
            self.connections += 1;
            self.take_back(reader);
        }
        None
    }

    /// The request or the read session of this ticket is over.
    pub(super) fn is_over(&mut self, ticket: &Arc<Ticket>) {
        self.running.retain(|running| !Arc::ptr_eq(&running.ticket, ticket));
    }

    /// Puts the reader among the idle ones. `None`: its connection was closed or never opened.
    pub(super) fn take_back(&mut self, reader: Option<Box<Reader>>) {
        match reader {
            Some(mut reader) => {
                self.tally.reused(reader.take_reused());
                self.leases.given_back(&reader);
                self.idle.push(reader);
            }
            None => self.connections -= 1,
        }
    }
}
