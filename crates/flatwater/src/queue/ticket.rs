//! What every request carries, whatever it does: its deadline, cancel flag and options.
//!
//! Owns: `Ticket`, shared by the caller's future, the timer and the worker that runs the request. Runs on all their
//! threads. Invariants: one compare-and-swap decides each step, so a worker never begins a request whose caller already
//! has its result, and who leaves knows whether what runs is finished. A ticket goes back to `WAITING` only when its
//! group was rolled back, or when the request moves to another queue.
//!
//! ```text
//!          a worker takes it       it becomes a member of a group, or its commit begins
//! WAITING ------------------> RUNNING ------------------> FINISHING
//!    | the caller leaves         | the caller leaves          | the caller leaves
//!    v (or it is too late)       v                            v
//!  GONE: it never runs     INTERRUPTED: it is undone     LEFT: it is finished
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::Interrupt;
use rusqlite::ffi;

use super::metrics::CallRecord;
use super::sync::{AtomicBool, AtomicU8};
use crate::events::statement_event::ExecutedOn;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, TimeoutEffect, timed_out};
use flatwater_base::time::limit::TimeLimit;
use flatwater_base::values::outcome::Decode;

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
    /// How long the call may take.
    pub(crate) time: TimeLimit,
    /// Of an `execute_many` or a batch that fails, what is before the row or the statement that failed stays. For one in a
    /// transaction, or on a connection of a caller.
    pub(crate) keeps_rows: bool,
    /// A COMMIT that fails leaves its transaction open, where SQLite does.
    pub(crate) keeps_open: bool,
    /// What a server knows the calls of this session by.
    pub(crate) way: u16,
}

impl CallOptions {
    /// Those of a call that may take so long.
    pub(crate) fn within(timeout: Option<Duration>) -> Self {
        Self { time: TimeLimit::default().with_timeout(timeout), ..Self::default() }
    }

    /// Sets how long the call may take from its beginning.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.time = self.time.with_timeout(Some(timeout));
    }

    /// Sets when the call must have ended.
    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.time = self.time.with_deadline(deadline);
    }
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const GONE: u8 = 2;
const FINISHING: u8 = 3;
const INTERRUPTED: u8 = 4;
const LEFT: u8 = 5;

/// What becomes of a request whose caller leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// It did not run and never will.
    Withdrawn,
    /// It runs and is ended. Of a write nothing is kept.
    Interrupted,
    /// It runs, and is finished.
    Finishing,
}

/// The state of one request.
pub(crate) struct Ticket {
    pub(crate) began: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) options: CallOptions,
    /// What makes the rows values of the caller's type, if the caller wants that.
    pub(crate) decode: Option<Decode>,
    /// Present if someone listens to what becomes of the call.
    pub(crate) record: Option<Arc<CallRecord>>,
    state: AtomicU8,
    ended: AtomicBool,
    cut_off: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(options: CallOptions, now: Instant) -> Self {
        Self {
            began: now,
            deadline: options.time.ends(now),
            options,
            decode: None,
            record: None,
            state: AtomicU8::new(WAITING),
            ended: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        }
    }

    /// Marks the request as taken by a worker, which may ask again before it runs it. Returns false if its caller no longer
    /// waits: then it must not run. One that is finished without its caller runs.
    pub(crate) fn start(&self) -> bool {
        self.moves(WAITING, RUNNING) || matches!(self.state(), RUNNING | LEFT)
    }

    /// Called before the request is finished whatever its caller does: before a grouped write runs, and before the point of
    /// no return of a commit. Returns false if its caller has left: then nothing of it must be kept.
    pub(crate) fn finishes(&self) -> bool {
        self.moves(RUNNING, FINISHING) || matches!(self.state(), FINISHING | LEFT)
    }

    /// Called after one of several commits: the rest of the request is not finished whatever its caller does.
    pub(crate) fn goes_on(&self) {
        self.moves(FINISHING, RUNNING);
    }

    /// Returns true if the caller left in a commit, which is finished: nothing interrupts what follows, so it must not begin.
    pub(crate) fn has_left_in_commit(&self) -> bool {
        self.state() == LEFT
    }

    /// Marks a request as waiting again, because it goes back into the queue. Returns false if its caller has left.
    pub(crate) fn put_back(&self) -> bool {
        self.moves(RUNNING, WAITING) || self.moves(FINISHING, WAITING)
    }

    /// Marks the request as waiting in another queue. Returns false if its caller left meanwhile, or its deadline
    /// passed: then it must not be pushed there.
    ///
    /// ```text
    /// caller                                  reader
    ///                                         hand_over: it waits again
    /// leave: it never runs
    ///                                         pushes it to the writer, which does not start it
    /// ```
    pub(crate) fn hand_over(&self) -> bool {
        self.put_back() && !((self.is_ended() || self.is_past_deadline()) && self.give_up())
    }

    /// Gives the request up, if it waits: its caller ran out of time. Returns true if it did not start and never will.
    pub(crate) fn give_up(&self) -> bool {
        self.moves(WAITING, GONE)
    }

    /// The caller leaves.
    pub(crate) fn leave(&self) -> Leaves {
        loop {
            match self.state() {
                WAITING if self.moves(WAITING, GONE) => return Leaves::Withdrawn,
                RUNNING if self.moves(RUNNING, INTERRUPTED) => return Leaves::Interrupted,
                FINISHING if self.moves(FINISHING, LEFT) => return Leaves::Finishing,
                GONE => return Leaves::Withdrawn,
                INTERRUPTED => return Leaves::Interrupted,
                LEFT => return Leaves::Finishing,
                _ => {}
            }
        }
    }

    fn moves(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::SeqCst)
    }

    /// Returns true if the request was given up before it ran.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) == GONE
    }

    /// Ends what runs, because the database closes.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Returns true if what runs is ended, though its caller waits for it.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends a read because it prevents a restart of the WAL. Returns false if that was done before.
    pub(crate) fn cut_off(&self) -> bool {
        let before = self.cut_off.swap(true, Ordering::AcqRel);
        self.end();
        !before
    }

    /// Returns true if the caller left while the request ran, and it is undone.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.state.load(Ordering::Acquire) == INTERRUPTED
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The error for a closure that failed: if the deadline passed meanwhile, that is the cause which the caller gets.
    pub(crate) fn closure_failed(&self) -> Result<(), Error> {
        if self.is_past_deadline() {
            return Err(late(TimeoutEffect::No));
        }
        Ok(())
    }

    /// Notes that the request begins to run now. `waited` returns how long its connection has waited for locks so far, which is
    /// for `note_end`; `None` if nobody listens.
    #[must_use]
    pub(crate) fn note_start(&self, ran_on: ExecutedOn, waited: impl FnOnce() -> Duration) -> Option<Duration> {
        self.record.as_ref().map(|record| {
            record.runs(ran_on, Instant::now(), Duration::ZERO, None);
            waited()
        })
    }

    /// Notes that the run ended.
    pub(crate) fn note_end(&self, before: Option<Duration>, waited: impl FnOnce() -> Duration) {
        if let (Some(record), Some(before)) = (&self.record, before) {
            record.ends(waited().saturating_sub(before));
        }
    }

    /// Notes the run of a grouped write, which began after the group had waited for locks.
    pub(crate) fn note_member(&self, lock: Duration, began: Instant, run: Duration) {
        if let Some(record) = &self.record {
            record.runs(ExecutedOn::Group, began.checked_sub(lock).unwrap_or(began), lock, Some(run));
        }
    }
}

impl Interrupt for Ticket {
    fn should_stop(&self) -> bool {
        self.is_interrupted() || self.is_ended() || self.is_past_deadline()
    }

    fn lets_commit(&self) -> bool {
        self.finishes()
    }
}

/// The error of a request that its caller left, and that is undone.
pub(crate) fn left_request() -> Error {
    Error::new(ErrorCode::GivenUp, "the caller cancelled the call, and it was rolled back")
}

/// The error of a request whose deadline passed while it ran, or between two of its steps.
pub(crate) fn late(applied: TimeoutEffect) -> Error {
    timed_out("the deadline of the call passed", applied)
}

/// The error of a read that was cut off.
pub(crate) fn blocked_restart() -> Error {
    Error::new(ErrorCode::ReadLimit, "the read blocked a restart of the WAL for too long and was ended")
        .with_hint(hint!["read less at once, or raise " ReadLimit])
}

impl Ticket {
    /// Turns an interrupted or locked-out request's error into that of a caller who left, or into a timeout if the deadline
    /// passed, and adds a hint about locks.
    #[must_use]
    pub(crate) fn timed(&self, error: Error) -> Error {
        let of_same_text = |new: Error| match error.sql() {
            Some(sql) => new.with_sql(sql),
            None => new,
        };
        let was_prevented = error.sqlite_code() == Some(ffi::SQLITE_CONSTRAINT_COMMITHOOK);
        match error.kind() {
            kind if self.is_interrupted()
                && (was_prevented || matches!(kind, ErrorKind::Cancelled | ErrorKind::Busy)) =>
            {
                of_same_text(left_request())
            }
            ErrorKind::Cancelled | ErrorKind::Busy if self.is_past_deadline() => of_same_text(late(TimeoutEffect::No)),
            ErrorKind::Cancelled if self.cut_off.load(Ordering::Acquire) => of_same_text(blocked_restart()),
            ErrorKind::Busy => {
                error.with_hint(hint!["another process or connection held the lock for longer than " BusyTimeout])
            }
            _ => error,
        }
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_either_started_or_given_up() {
        let ticket = Ticket::new(CallOptions::default(), Instant::now());
        assert!(ticket.start() && ticket.start());
        assert!(!ticket.give_up());
        let ticket = Ticket::new(CallOptions::default(), Instant::now());
        assert!(ticket.give_up());
        assert!(!ticket.start());
    }

    #[test]
    fn who_leaves_ends_what_runs_until_it_is_to_be_finished() {
        let started = || {
            let ticket = Ticket::new(CallOptions::default(), Instant::now());
            assert!(ticket.start());
            ticket
        };
        let ticket = started();
        assert_eq!((ticket.leave(), ticket.leave()), (Leaves::Interrupted, Leaves::Interrupted));
        assert!(ticket.should_stop() && !ticket.finishes());
        assert!(!ticket.put_back() && !ticket.start(), "it is not tried again");
        let ticket = started();
        assert!(ticket.finishes());
        assert_eq!(ticket.leave(), Leaves::Finishing);
        assert!(!ticket.should_stop() && !ticket.put_back());
        assert!(ticket.start() && ticket.finishes(), "what is finished may be tried again");
        let ticket = started();
        assert!(ticket.finishes());
        ticket.goes_on();
        assert_eq!(ticket.leave(), Leaves::Interrupted);
        let ticket = started();
        assert!(ticket.finishes());
        assert_eq!(ticket.leave(), Leaves::Finishing);
        ticket.goes_on();
        assert!(ticket.has_left_in_commit() && ticket.finishes(), "what belongs to that commit is finished");
    }

    #[test]
    fn a_deadline_counts_from_the_beginning_of_the_call() {
        let now = Instant::now();
        let options = CallOptions::within(Some(Duration::ZERO));
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
            let is_withdrawn = ticket.leave() == Leaves::Withdrawn;
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
            let is_withdrawn = ticket.leave() == Leaves::Withdrawn;
            assert!(worker.join().unwrap() != is_withdrawn);
        });
    }

    /// The caller leaves while the commit begins: either it is told that nothing is kept, or the commit goes on.
    #[test]
    fn a_commit_begins_or_nothing_is_kept() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
            assert!(ticket.start());
            let committing = ticket.clone();
            let worker = thread::spawn(move || committing.finishes());
            let is_undone = ticket.leave() == Leaves::Interrupted;
            assert!(worker.join().unwrap() != is_undone);
        });
    }
}
