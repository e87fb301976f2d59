//! A transaction that is kept open for its caller: on the writer's connection, or on a server.
//!
//! Owns: its inbox, its idle limit, and the rule for a step: on its caller's thread if it is short and nothing else is to be done,
//! otherwise by a thread. Runs on callers' threads, on the timer's, and on the one that serves it. Invariants: messages are served
//! in the order in which they were sent; a transaction without messages occupies no thread; however a step on its caller's thread
//! ends, nothing else runs on the connection before what that step demands. One lock guards the inbox. No SQLite, no code of the
//! program and no waker runs while it is held. Leaves out: what a step does, and who serves the messages (`Side`).
//!
//! ```text
//! a caller                                 another thread
//! takes the connection for a short step
//!                                          sends a message: somebody has the connection, so nobody is called
//! the step ends: puts the connection back,
//! sees the message, and calls a thread
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::Origin;

use crate::events;
use crate::options::Options;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::kept::inbox::{self, End, Inbox, Posted};
use crate::workers::open_transaction::{OpenTransaction, Savepoints, ended};
use crate::workers::request::{Request, Tried};
use crate::workers::shared_errors::fault;
use crate::workers::work::{Unsettled, Work};
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{InlineRun, NotTried};
use flatwater_base::thread::lock;
use flatwater_base::time::later;

/// A transaction that is idle for this long is reported as an event, once.
const REPORTED_AFTER: Duration = if events::ARE_BUILT { Duration::from_secs(1) } else { Duration::MAX };

/// Sent besides requests: undo the last of these savepoints, because its handle was dropped.
pub(crate) struct Undo(pub(crate) Savepoints);

pub(crate) type Message = inbox::Message<Savepoints, Undo>;

/// What a step on its caller's thread made of the transaction.
pub(crate) enum Step {
    Stays,
    /// SQLite rolled it back because of this error.
    Lost(Error),
    /// It was committed or rolled back.
    Ends,
    /// Its COMMIT failed, and may be in the WAL. The side finds out, whatever its caller does meanwhile.
    Unsettled(Unsettled),
}

/// Where a transaction is open.
pub(crate) trait Side: Send + Sync + Sized + 'static {
    /// What rests in the inbox between two steps.
    type Connection: Send;

    /// Runs the work on this thread now, if it is known to be short and the transaction is at these savepoints.
    fn run_inline(
        &self,
        connection: &mut Self::Connection,
        work: &Work,
        savepoints: &Savepoints,
        permit: &Permit<'_>,
    ) -> (InlineRun<Result<Answer>>, Step);

    /// Called when a step panicked, which only a bug in this crate or a function of the program can cause: nothing runs on the
    /// connection any more.
    fn give_up(&self, connection: &mut Self::Connection);

    /// Called without a lock after a step that ended the transaction: what it has is free, and what waits is refused.
    fn leave(&self, connection: Self::Connection, refused: Vec<Request>, end: &End);

    /// Has a thread serve the messages.
    fn call(&self, transaction: Arc<KeptTransaction<Self>>);
}

pub(crate) struct KeptTransaction<S: Side> {
    this: Weak<Self>,
    origin: Origin,
    at: Mutex<At<S::Connection>>,
    path: PathBuf,
    idle_limit: Duration,
    savepoints: AtomicU64,
    side: S,
}

struct At<C> {
    inbox: Inbox<C, Savepoints, Undo>,
    /// The idle event was sent.
    is_reported: bool,
}

impl<S: Side> KeptTransaction<S> {
    /// Returns the transaction that has just begun. `None`: the thread that has begun it keeps the connection, and serves it. Who
    /// calls this has somebody [`look`](Self::look) at [`first_look`](Self::first_look).
    pub(crate) fn new(options: &Options, side: S, connection: Option<S::Connection>) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: this.clone(),
            origin: Origin::here(),
            at: Mutex::new(At { inbox: Inbox::new(connection), is_reported: false }),
            path: options.path.clone(),
            idle_limit: options.transaction_idle,
            savepoints: AtomicU64::new(0),
            side,
        })
    }

    /// Returns when it is idle for its limit, or to be reported, if it is not used until then.
    pub(crate) fn first_look(&self) -> Instant {
        later(Instant::now(), self.idle_limit.min(REPORTED_AFTER))
    }

    fn lock(&self) -> MutexGuard<'_, At<S::Connection>> {
        lock(&self.at)
    }

    /// Takes the connection and the first message. Returns `None` if there is none, or somebody else has them.
    pub(crate) fn take(&self) -> Option<(S::Connection, Message)> {
        self.lock().inbox.take()
    }

    /// Returns the next message to who has the connection, or puts that to rest: then there is nothing to do any more.
    pub(crate) fn next(&self, connection: S::Connection) -> Option<(S::Connection, Message)> {
        self.lock().inbox.next(connection)
    }

    /// The transaction is over. Returns why, and the requests that will not be served. Called by who has the connection.
    pub(crate) fn close(&self, end: End) -> (End, Vec<Request>) {
        let (end, messages) = self.lock().inbox.over(end);
        (end, messages.into_iter().filter_map(Message::request).collect())
    }

    fn post(&self, message: Message) -> Result<()> {
        let posted = self.lock().inbox.post(message);
        self.call_if(matches!(posted, Posted::Call));
        if let Posted::Refused(_, end) = posted { Err(ended(&end)) } else { Ok(()) }
    }

    fn call_if(&self, calls: bool) {
        if calls && let Some(this) = self.this.upgrade() {
            self.side.call(this);
        }
    }

    /// Puts the connection back after a step on this thread. `first` is served before anything else, and ends the transaction.
    fn put_back(&self, connection: S::Connection, since: Instant, first: Option<(End, Message)>) {
        let mut at = self.lock();
        if let Some((end, message)) = first {
            at.inbox.post_end_first(end, message);
        }
        let calls = at.inbox.put_back(connection, since);
        drop(at);
        self.call_if(calls);
    }

    /// Ends the transaction if it has been idle for its limit, sends the event if it was idle for `REPORTED_AFTER`, and
    /// returns when to look again: `None` after the end. Runs on the timer's thread.
    pub(crate) fn look(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut at = self.lock();
        if at.inbox.end().is_some() {
            return None;
        }
        let idle = at.inbox.rests_since().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if idle >= self.idle_limit {
            // Under the same lock: a later request is refused with this end as the reason.
            let calls = at.inbox.post_end(End::Idle(self.idle_limit));
            drop(at);
            self.call_if(calls);
            return None;
        }
        let reports = !at.is_reported && idle >= REPORTED_AFTER;
        at.is_reported |= reports;
        let limit = if at.is_reported { self.idle_limit } else { self.idle_limit.min(REPORTED_AFTER) };
        drop(at);
        if reports {
            events::idle_transaction(&self.path, idle);
        }
        Some(later(now, limit.saturating_sub(idle)))
    }
}

impl<S: Side> OpenTransaction for KeptTransaction<S> {
    fn is_inherited(&self) -> bool {
        self.origin.is_inherited()
    }

    fn is_open(&self) -> bool {
        self.lock().inbox.end().is_none()
    }

    fn rests(&self) -> bool {
        let at = self.lock();
        at.inbox.end().is_some() || at.inbox.rests_since().is_some()
    }

    fn send(&self, request: Request, savepoints: &Savepoints) -> Result<()> {
        self.post(Message::Request(Box::new(request), savepoints.clone()))
    }

    fn run_inline(&self, work: &Work, savepoints: &Savepoints, permit: &Permit<'_>) -> Tried {
        let ineligible = Tried::Ran(InlineRun::Ineligible(NotTried::Other));
        let Some(mut connection) = self.lock().inbox.take_short() else { return ineligible };
        let run = AssertUnwindSafe(|| self.side.run_inline(&mut connection, work, savepoints, permit));
        let (run, step) = match catch_unwind(run) {
            Ok(ran) => ran,
            Err(panic) => {
                self.side.give_up(&mut connection);
                self.put_back(connection, permit.began, Some((End::Lost(fault()), Message::End)));
                resume_unwind(panic);
            }
        };
        match step {
            Step::Stays => self.put_back(connection, permit.began + run.took(), None),
            Step::Lost(error) => self.put_back(connection, permit.began, Some((End::Lost(error), Message::End))),
            Step::Ends => {
                let (end, refused) = self.close(End::Finished);
                self.side.leave(connection, refused, &end);
            }
            Step::Unsettled(unsettled) => {
                let (request, outcome) = Request::settling(unsettled, CallOptions::default(), permit.began);
                let first = (End::Finished, Message::Request(Box::new(request), savepoints.clone()));
                self.put_back(connection, permit.began, Some(first));
                return match run {
                    InlineRun::Done(_, held) | InlineRun::FellBack(_, held) => Tried::Unsettled(outcome, held),
                    InlineRun::Ineligible(_) => ineligible,
                };
            }
        }
        Tried::Ran(run)
    }

    fn next_savepoint(&self) -> u64 {
        self.savepoints.fetch_add(1, Ordering::Relaxed)
    }

    fn savepoints_begun(&self) -> u64 {
        self.savepoints.load(Ordering::Relaxed)
    }

    fn undo(&self, savepoints: &Savepoints) {
        // There is nothing to undo if it has ended.
        let _ = self.post(Message::Aside(Undo(savepoints.clone())));
    }

    fn end(&self, end: End) {
        let calls = self.lock().inbox.post_end(end);
        self.call_if(calls);
    }
}
