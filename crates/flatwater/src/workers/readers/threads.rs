//! The threads of the pool: starting and waking them, their loop, and their end.
//!
//! Owns: which thread does which job. Runs on the threads `fw-reader-N`, and on every thread that brings work or frees a
//! connection. Invariants: for a job that can be done exactly one thread is on its way, and for nothing else; if none can be
//! started, an alarm tries again; what frees a connection or a thread looks for a job after that, itself or by `freed`; a
//! connection is counted until it is closed, because `close` waits for the counts. Leaves out: the jobs (`serve`, `read_session`).
//!
//! ```text
//! fw-reader-0                              a caller
//! has lingered: takes an idle connection
//! out, closes it without the lock
//!                                          pushes a read: no connection is free, so it wakes no thread
//! lowers the count: there is a job
//! serves it and does not end
//! ```

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Instant;

use super::ReadersShared;
use super::pool::{Job, Pool};
use super::read_session::ReadSession;
use super::reader::Reader;
use super::serve::Served;
use crate::options::Options;
use crate::workers::outbox::Outbox;
use flatwater_base::error::Result;
use flatwater_base::error::cause::no_thread;
use flatwater_base::thread::background::{AGAIN, Linger, start_worker};
use flatwater_base::time::later;

/// Each connection may need a thread: a closure does not give its thread back before it returns.
fn most_threads(options: &Options) -> usize {
    options.readers + options.extra_readers
}

impl ReadersShared {
    /// Wakes or starts a thread if there is a job for it.
    ///
    /// # Errors
    /// No thread can be started, and there is none. An alarm tries again.
    pub(super) fn rouse(self: &Arc<Self>, mut state: MutexGuard<'_, Pool>) -> Result<()> {
        if !state.has_job(&self.context.options) {
            return Ok(());
        }
        if let Some(thread) = state.asleep.pop() {
            state.coming += 1;
            drop(state);
            thread.unpark();
            return Ok(());
        }
        if state.threads >= most_threads(&self.context.options) {
            return Ok(());
        }
        state.threads += 1;
        state.coming += 1;
        let name = format!("fw-reader-{}", state.threads - 1);
        drop(state);
        let shared = self.clone();
        let Err(error) = start_worker(name, move || shared.run()) else { return Ok(()) };
        let mut state = self.lock();
        state.threads -= 1;
        state.coming -= 1;
        let are_others = state.threads > 0;
        drop(state);
        self.closed.notify_all();
        self.rouse_later();
        if are_others { Ok(()) } else { Err(no_thread("a reader's thread", &error)) }
    }

    /// Called by everything that has freed a connection or a thread, or brings a message, and does not look for a job itself:
    /// tells a close, and wakes or starts a thread if there is a job.
    pub(super) fn freed(self: &Arc<Self>, state: MutexGuard<'_, Pool>) {
        self.tell_close(&state);
        // No caller waits for the error here, and an alarm tries again.
        let _ = self.rouse(state);
    }

    /// Closes connections that were taken out, without the lock, and then counts them out.
    #[allow(clippy::vec_box, reason = "as they were idle")]
    pub(super) fn close_idle(&self, idle: Vec<Box<Reader>>) -> MutexGuard<'_, Pool> {
        let closed = idle.len();
        drop(idle);
        let mut state = self.lock();
        state.connections -= closed;
        self.tell_close(&state);
        state
    }

    /// Wakes or starts a thread in a while, because none can be started now.
    fn rouse_later(self: &Arc<Self>) {
        self.again.set(later(Instant::now(), AGAIN), self, |pool| pool.freed(pool.lock()));
    }

    /// Puts a read session that has a message into the list, and wakes or starts a thread for it. If none can be started,
    /// the message waits: what was sent cannot be taken back.
    pub(super) fn make_ready(self: &Arc<Self>, session: Arc<ReadSession>) {
        let mut state = self.lock();
        state.ready.push_back(session);
        self.freed(state);
    }

    /// Does one job on this thread.
    pub(super) fn work(self: &Arc<Self>, job: Job, outbox: &mut Outbox<'_>) {
        match job {
            Job::ReadSession(session) => self.serve_session(&session, outbox),
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
        if let Some(reader) = state.adopt(reader, &self.context.options) {
            drop(state);
            drop(reader);
            state = self.lock();
            state.held -= 1;
        }
        self.tell_close(&state);
    }

    fn tell_close(&self, state: &Pool) {
        if state.closed {
            self.closed.notify_all();
        }
    }

    /// Delivers the answers. A thread that decodes a large result for its caller, which may take long, does not count
    /// meanwhile, so that another one serves the requests that wait.
    fn deliver<'a>(self: &'a Arc<Self>, outbox: &mut Outbox<'_>) -> MutexGuard<'a, Pool> {
        if !outbox.has_large() {
            outbox.deliver();
            return self.lock();
        }
        let mut state = self.lock();
        state.threads -= 1;
        self.freed(state);
        outbox.deliver();
        let mut state = self.lock();
        state.threads += 1;
        state
    }

    /// The loop of a reader's thread.
    fn run(self: &Arc<Self>) {
        let mut outbox = Outbox::decoding(&self.context.recorder);
        let mut state = self.lock();
        state.coming -= 1;
        loop {
            if let Some(job) = state.next_job(&self.context.options) {
                drop(state);
                self.work(job, &mut outbox);
                state = self.deliver(&mut outbox);
                continue;
            }
            if state.closed {
                state.threads -= 1;
                self.tell_close(&state);
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
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, Pool>) -> Option<MutexGuard<'a, Pool>> {
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
                state.coming -= 1;
                return Some(state);
            };
            if Instant::now() < until {
                continue;
            }
            state.asleep.remove(at);
            let may_close = self.writer.is_some() || state.connections + state.held > 1;
            let closes = usize::from(linger.has_place() && may_close).min(state.idle.len());
            let coldest: Vec<_> = state.idle.drain(..closes).collect();
            drop(state);
            return self.end(coldest);
        }
    }

    /// Ends this thread, after closing the connection that it has taken out. Returns the lock, and the thread goes on, if
    /// there is a job: it came meanwhile, and found no connection.
    #[allow(clippy::vec_box, reason = "as they were idle")]
    fn end(&self, coldest: Vec<Box<Reader>>) -> Option<MutexGuard<'_, Pool>> {
        let mut state = self.close_idle(coldest);
        if state.has_job(&self.context.options) {
            return Some(state);
        }
        state.threads -= 1;
        self.tell_close(&state);
        None
    }
}

// With the engine around it.
#[cfg(all(test, not(flatwater_kernel)))]
mod tests {
    use std::task::Poll;
    use std::time::Duration;

    use super::*;
    use crate::engine::opening::Opening;
    use crate::engine::{Engine, registry};
    use crate::queue::reply::reply;
    use crate::queue::ticket::{CallOptions, Leaves, Ticket};
    use crate::workers::Answer;
    use crate::workers::request::Request;
    use crate::workers::work::Work;
    use flatwater_base::error::ErrorKind;

    /// A request that a reader answers, and its reply.
    fn read(sql: &str) -> (Request, crate::queue::reply::Reply<Result<Answer>>) {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        let (promise, reply) = reply();
        let text = Arc::new(flatwater_sql::statement_info::StatementInfo::new(sql));
        (Request::new(ticket, Work::Prepare(text), promise), reply)
    }

    /// Runs the test with a database that has one idle reader. This thread is one of the pool's.
    fn with_one_reader(test: impl FnOnce(&Engine, &Arc<ReadersShared>, &Options)) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("a.db")).readers(1).resolve().unwrap();
        let engine = registry::open(&options, &Opening::new()).unwrap();
        let readers = engine.readers.as_ref().unwrap();
        readers.open_one(&Arc::new(Ticket::new(CallOptions::default(), Instant::now()))).unwrap();
        readers.0.lock().threads += 1;
        test(&engine, &readers.0, &options);
        readers.0.lock().threads -= 1;
        engine.close(None, registry::leave(&engine, false).unwrap(), Duration::ZERO);
    }

    fn work(pool: &Arc<ReadersShared>, job: Job) {
        let mut outbox = Outbox::decoding(&pool.context.recorder);
        pool.work(job, &mut outbox);
        outbox.deliver();
    }

    #[test]
    fn a_read_that_comes_while_the_last_thread_ends_is_served_by_it() {
        with_one_reader(|engine, pool, options| {
            // The time of this thread is over.
            let coldest = std::mem::take(&mut pool.lock().idle);
            assert_eq!(coldest.len(), 1);
            let (request, reply) = read("SELECT 1");
            engine.readers.as_ref().unwrap().push(request).unwrap();
            assert_eq!(pool.lock().threads, 1, "no connection is free, so no thread is started");
            let mut state = pool.end(coldest).expect("the thread goes on");
            let job = state.next_job(options).expect("the read found no thread");
            drop(state);
            work(pool, job);
            assert!(reply.is_answered());
        });
    }

    #[test]
    fn reads_that_come_while_a_thread_is_on_its_way_rouse_no_other_one_for_its_connection() {
        with_one_reader(|engine, pool, options| {
            // This one is woken, and does not look before the reads are there.
            pool.lock().asleep = vec![thread::current(); 3];
            let replies = ["SELECT 1", "SELECT 2", "SELECT 3"].map(|sql| {
                let (request, reply) = read(sql);
                engine.readers.as_ref().unwrap().push(request).unwrap();
                reply
            });
            let mut state = pool.lock();
            assert_eq!((state.coming, state.asleep.len(), state.threads), (1, 2, 1));
            state.asleep.clear();
            state.coming -= 1;
            while let Some(job) = state.next_job(options) {
                drop(state);
                work(pool, job);
                state = pool.lock();
            }
            assert_eq!((state.coming, state.threads), (0, 1), "a freed connection is for the thread that has it");
            drop(state);
            assert!(replies.iter().all(crate::queue::reply::Reply::is_answered));
        });
    }

    /// What a thread has taken has begun, so its caller is told of the interruption, and waits for the answer.
    #[test]
    fn a_read_whose_caller_leaves_before_it_runs_is_answered() {
        with_one_reader(|engine, pool, options| {
            let (request, reply) = read("SELECT 1");
            let ticket = request.ticket.clone();
            let mut state = pool.lock();
            state.waiting.push(request);
            let job = state.next_job(options).unwrap();
            drop(state);
            assert_eq!(ticket.leave(), Leaves::Interrupted);
            work(pool, job);
            let Poll::Ready(Some(Err(error))) = reply.look() else { panic!("it is not answered") };
            assert_eq!(error.kind(), ErrorKind::Cancelled);
            let counts = engine.stats();
            assert_eq!((counts.abandoned, counts.interrupted), (0, 1));
            assert_eq!(pool.lock().idle.len(), 1);
        });
    }
}
