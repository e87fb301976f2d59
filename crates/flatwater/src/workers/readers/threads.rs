//! The threads of the pool: starting and waking them, their loop, and their end.
//!
//! Owns: which thread does which job. Runs on the threads `fw-reader-N`, and on every thread that brings work. Invariants:
//! for a job that can be done exactly one thread is woken or started; a connection is counted until it is closed, because
//! `close` waits for the counts. Leaves out: the jobs (`serve`, `session`).

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Instant;

use super::reader::Reader;
use super::serve::Served;
use super::session::ReadSession;
use super::state::{Job, State};
use super::{Readers, Shared};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::thread::linger::Linger;
use crate::thread::park::start_own;
use crate::workers::outbox::Outbox;

/// Each connection may need a thread: a closure does not give its thread back before it returns.
fn most_threads(options: &Options) -> usize {
    options.readers + options.extra_readers
}

impl Readers {
    /// Wakes or starts a thread if there is a job for it.
    pub(super) fn rouse(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        if !state.has_job(&self.0.options) {
            return Ok(());
        }
        if let Some(thread) = state.asleep.pop() {
            drop(state);
            thread.unpark();
            return Ok(());
        }
        if state.threads >= most_threads(&self.0.options) {
            return Ok(());
        }
        state.threads += 1;
        let name = format!("fw-reader-{}", state.threads - 1);
        drop(state);
        let shared = self.0.clone();
        start_own(name, move || shared.run()).map(drop).map_err(|error| {
            self.0.lock().threads -= 1;
            Error::no_thread("a reader's thread", &error)
        })
    }
}

impl Shared {
    /// Puts a read session that has a message into the list, and wakes or starts a thread for it.
    pub(super) fn make_ready(self: &Arc<Self>, session: Arc<ReadSession>) -> Result<()> {
        let mut state = self.lock();
        state.ready.push_back(session);
        Readers(self.clone()).rouse(state)
    }

    /// Does one job on this thread.
    pub(super) fn work(self: &Arc<Self>, job: Job, outbox: &mut Outbox<'_>) {
        match job {
            Job::Session(session) => self.serve_session(&session, outbox),
            Job::Read(reader, request) => {
                let ticket = request.ticket.clone();
                let Served::Returned(reader) = self.serve(reader, request, outbox) else { return };
                let mut state = self.lock();
                state.is_over(&ticket);
                state.take_back(reader);
                self.tell_close(&state);
            }
            Job::Hold(reader, request) => {
                let ticket = request.ticket.clone();
                let served = self.serve(reader, request, outbox);
                self.lock().is_over(&ticket);
                if let Served::Returned(reader) = served {
                    self.release(reader);
                }
            }
        }
    }

    /// Gives a held connection to the pool, or closes it. `None`: it was closed or never opened.
    pub(super) fn release(&self, reader: Option<Box<Reader>>) {
        let mut state = self.lock();
        if let Some(reader) = state.adopt(reader, &self.options) {
            drop(state);
            drop(reader);
            state = self.lock();
            state.held -= 1;
        }
        self.tell_close(&state);
    }

    fn tell_close(&self, state: &State) {
        if state.closed {
            self.closed.notify_all();
        }
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
            if let Some(job) = state.next_job(&self.options) {
                drop(state);
                self.work(job, &mut outbox);
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
    /// it lingered. A thread that had a place for that closes one idle connection, but not the last one of a database without
    /// a writer, which would then see no commit of others.
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
            let may_close = self.writer.is_some() || state.connections + state.held > 1;
            if linger.has_place() && may_close && !state.idle.is_empty() {
                let coldest = state.idle.remove(0);
                drop(state);
                drop(coldest);
                self.lock().connections -= 1;
                self.closed.notify_all();
            }
            return None;
        }
    }
}
