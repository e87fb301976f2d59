//! What every request carries, whatever it does: its deadline, cancel flag and options.
//!
//! Owns: `Ticket`, shared by the caller's future, the timer and the worker that runs the request. Runs on all their
//! threads. Invariant: a ticket goes from `WAITING` either to `RUNNING` (a worker took it) or to `GONE` (the caller
//! left, or its deadline passed first). One compare-and-swap decides, so a worker never begins a request whose caller
//! already has its result. A ticket goes back from `RUNNING` only when its group was rolled back, or when the request
//! moves to another queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::Interrupt;

use super::notes::Notes;
use super::sync::{AtomicBool, AtomicU8};
use crate::error::{Applied, Error, Kind};
use crate::time::later;
use crate::values::decoded::Decode;

/// The options of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallOptions {
    /// The request never joins a group.
    pub(crate) alone: bool,
    /// The request may only read.
    pub(crate) read_only: bool,
    /// The request does not run on the thread that polls its call.
    pub(crate) never_inline: bool,
    /// The caller is inside the body of a transaction: a request that waits for the end of that transaction must not be
    /// waited for.
    pub(crate) inside_body: bool,
    /// In a transaction: the nested ones with lower numbers, inside the one of the caller, have lost their handles. Those
    /// with higher numbers may be in use.
    pub(crate) ended_nested: u64,
    /// The time until the deadline, counted from the start of the call.
    pub(crate) timeout: Option<Duration>,
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const GONE: u8 = 2;

/// The state of one request.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) began: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) options: CallOptions,
    /// What makes the rows values of the caller's type, if the caller wants that.
    pub(crate) decode: Option<Decode>,
    /// Present if someone listens to what becomes of the call.
    pub(crate) notes: Option<Arc<Notes>>,
    state: AtomicU8,
    cancelled: AtomicBool,
    cut_off: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(options: CallOptions, now: Instant) -> Self {
        Self {
            began: now,
            deadline: options.timeout.map(|timeout| later(now, timeout)),
            options,
            decode: None,
            notes: None,
            state: AtomicU8::new(WAITING),
            cancelled: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        }
    }

    /// Returns the ticket of a request whose rows become values of the caller's type.
    pub(crate) fn decoding(self, decode: Option<Decode>) -> Self {
        Self { decode, ..self }
    }

    /// Returns the ticket of a request whose run is noted.
    pub(crate) fn noting(self, notes: Option<Arc<Notes>>) -> Self {
        Self { notes, ..self }
    }

    /// Marks the request as taken by a worker. Returns false if its caller no longer waits: then it must not run.
    pub(crate) fn start(&self) -> bool {
        self.leave_waiting(RUNNING)
    }

    /// Marks a request as waiting again, because it goes back into the queue.
    pub(crate) fn put_back(&self) {
        self.state.store(WAITING, Ordering::SeqCst);
    }

    /// Marks the request as waiting in another queue. Returns false if its caller left meanwhile, or its deadline
    /// passed: then it must not be pushed there.
    pub(crate) fn hand_over(&self) -> bool {
        self.put_back();
        !(self.cancelled.load(Ordering::SeqCst) || self.is_past_deadline()) || !self.give_up()
    }

    /// Gives the request up: the caller left or ran out of time. Returns true if the request did not start and never
    /// will.
    pub(crate) fn give_up(&self) -> bool {
        self.leave_waiting(GONE)
    }

    fn leave_waiting(&self, to: u8) -> bool {
        self.state.compare_exchange(WAITING, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Records that the caller left: a running read may end early. Returns true if the request never ran, or will not
    /// run again.
    ///
    /// ```text
    /// caller                                  reader
    /// withdraw: it runs
    ///                                         hand_over: it waits again, its caller has not left
    /// notes that the caller left
    ///                                         pushes it to the writer
    /// gives it up once more: it never runs
    /// ```
    pub(crate) fn withdraw(&self) -> bool {
        self.give_up() || {
            self.cancelled.store(true, Ordering::SeqCst);
            self.give_up()
        }
    }

    /// Returns true if the request was given up before it ran.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == GONE
    }

    /// Records that the caller is gone: a running read may end early.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Ends a read because it prevents a restart of the WAL. Returns false if that was done before.
    pub(crate) fn cut_off(&self) -> bool {
        let before = self.cut_off.swap(true, Ordering::AcqRel);
        self.cancel();
        !before
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Ticket {
    /// The error for a closure that failed: if the deadline passed meanwhile, that is the cause which the caller gets.
    pub(crate) fn closure_failed(&self) -> Result<(), Error> {
        if self.is_past_deadline() {
            return Err(Error::timeout("the deadline of the call passed", Applied::No));
        }
        Ok(())
    }
}

impl Interrupt for Ticket {
    fn should_stop(&self) -> bool {
        self.is_cancelled() || self.is_past_deadline()
    }
}

impl Error {
    /// Turns an interrupted or locked-out request's error into a timeout if the deadline passed, and adds a hint about
    /// locks.
    #[must_use]
    pub(crate) fn timed(self, ticket: &Ticket) -> Self {
        match self.kind() {
            Kind::Cancelled | Kind::Busy if ticket.is_past_deadline() => {
                let timeout = Self::timeout("the deadline of the call passed", Applied::No);
                match self.sql() {
                    Some(sql) => timeout.with_sql(sql),
                    None => timeout,
                }
            }
            Kind::Cancelled if ticket.cut_off.load(Ordering::Acquire) => self
                .with_kind(Kind::SnapshotTooOld)
                .with_message("the read kept the WAL from starting over for too long and was ended".into())
                .with_hint("read less at once, or set `Options::read_limit` higher"),
            Kind::Busy => {
                self.with_hint("another process or connection held the lock for longer than `Options::busy_timeout`")
            }
            _ => self,
        }
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_either_started_or_given_up() {
        let ticket = Ticket::new(CallOptions::default(), Instant::now());
        assert!(ticket.start());
        assert!(!ticket.give_up());
        let ticket = Ticket::new(CallOptions::default(), Instant::now());
        assert!(ticket.give_up());
        assert!(!ticket.start());
    }

    #[test]
    fn a_deadline_counts_from_the_beginning_of_the_call() {
        let now = Instant::now();
        let options = CallOptions { timeout: Some(Duration::ZERO), ..CallOptions::default() };
        assert!(Ticket::new(options, now).should_stop());
        assert!(!Ticket::new(CallOptions::default(), now).should_stop());
    }
}

/// Run by `make loom`.
#[cfg(all(test, flatwater_loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A reader started a request and hands it over while the caller leaves. Either the caller learns that the request
    /// may run, or it does not run.
    #[test]
    fn a_request_that_was_withdrawn_is_not_run_by_the_writer() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
            assert!(ticket.start());
            let handed = ticket.clone();
            let workers = thread::spawn(move || handed.hand_over() && handed.start());
            let is_withdrawn = ticket.withdraw();
            let ran = workers.join().unwrap();
            assert!(!(is_withdrawn && ran), "a withdrawn request ran");
        });
    }

    /// The caller leaves while a worker takes the request: exactly one of them gets it.
    #[test]
    fn a_request_is_begun_or_withdrawn() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
            let begun = ticket.clone();
            let worker = thread::spawn(move || begun.start());
            let is_withdrawn = ticket.withdraw();
            assert!(worker.join().unwrap() != is_withdrawn);
        });
    }
}
