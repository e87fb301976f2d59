//! An open transaction as its two sides see it: the caller's handle and the writer's thread, which serves it.
//!
//! Owns: the inbox of an open transaction and how it ended. Invariants: what is sent is served in order; after the end
//! nothing is accepted, and everybody who still waits is told how it ended; when the last handle is dropped the
//! transaction is rolled back. Guarded by one lock that is never held while a waker runs, nor while SQLite does, except
//! for a stay: whoever sends meanwhile comes after it, and waits no longer than a stay may take. Leaves out: what the
//! messages do.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::is_stranded;

use crate::error::{Applied, Error, Result};
use crate::events;
use crate::inline::outcome::InlineRun;
use crate::options::Options;
use crate::options::inline::InlineLimits;
use crate::time::later;
use crate::time::timer::{self, Alarm};
use crate::workers::request::{Answer, Request, Work};

/// A transaction that is not used for this long is told of, once.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// `commit` or `rollback` was called.
    Finished,
    /// It was not used for this long.
    Idle(Duration),
    /// SQLite rolled it back because of this.
    Lost(Error),
    /// The database was closed.
    Closed,
}

impl End {
    /// The error for whoever uses the transaction afterwards.
    pub(crate) fn error(&self) -> Error {
        match self {
            Self::Finished => Error::misuse("the transaction is finished").with_hint("begin another one"),
            Self::Idle(limit) => Error::timeout(
                format!("the transaction was rolled back because it was not used for {limit:?}"),
                Applied::No,
            )
            .with_hint("it holds the writer: keep waits for others out of it, or set `Options::transaction_idle`"),
            Self::Lost(error) => Error::misuse(format!(
                "the transaction was rolled back by SQLite because of an earlier error: {}",
                error.message()
            ))
            .with_hint("begin another one"),
            Self::Closed => Error::closed(),
        }
    }
}

/// The savepoints a handle stands in, outermost first; none for the transaction itself. Each has a number of its own, so
/// that a request of one that is over is never taken for its successor's.
pub(crate) type Savepoints = Vec<u64>;

/// Where inside an open transaction a handle stands.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) session: Arc<Session>,
    pub(crate) savepoints: Savepoints,
}

/// What can run short statements of an open transaction on their caller's thread.
pub(crate) trait Desk: Send + Sync {
    /// Runs the work here and now, if it is known to be short and the transaction stands at these savepoints. An error
    /// beside the answer says that the transaction is lost.
    fn stay(
        &self,
        work: &Work,
        savepoints: &Savepoints,
        limits: &InlineLimits,
        began: Instant,
    ) -> (InlineRun<Result<Answer>>, Option<Error>);
}

/// What the writer's thread finds in the inbox.
pub(crate) enum Message {
    Request(Box<Request>, Savepoints),
    /// Undo the last of these savepoints; its handle was dropped.
    Undo(Savepoints),
    /// The transaction is over without a request: its handle was dropped, or time ran out.
    End(End),
}

pub(crate) struct Session {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    path: PathBuf,
    idle_limit: Duration,
    savepoints: AtomicU64,
    /// Set when the transaction begins to be served.
    desk: OnceLock<Arc<dyn Desk>>,
}

struct Inbox {
    messages: VecDeque<Message>,
    end: Option<End>,
    /// Since when the writer's thread has found nothing to do; `None` while it works.
    idle_since: Option<Instant>,
    /// It was told that nobody uses it, or need not be.
    told: bool,
    alarm: Option<Alarm>,
}

impl Session {
    fn new(options: &Options) -> Arc<Self> {
        let now = Instant::now();
        let idle_limit = options.transaction_idle;
        let told = !events::ARE_BUILT || idle_limit <= TOLD_AFTER;
        let inbox = Inbox { messages: VecDeque::new(), end: None, idle_since: None, told, alarm: None };
        let session = Arc::new(Self {
            inbox: Mutex::new(inbox),
            arrived: Condvar::new(),
            path: options.path.clone(),
            idle_limit,
            savepoints: AtomicU64::new(0),
            desk: OnceLock::new(),
        });
        watch(&session, later(now, if told { idle_limit } else { TOLD_AFTER }));
        session
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, unless the transaction is over.
    pub(crate) fn send(&self, request: Request, savepoints: &Savepoints) -> Result<()> {
        self.post(Message::Request(Box::new(request), savepoints.clone()))
    }

    /// From now on short statements can run at `desk`.
    pub(crate) fn open(&self, desk: Arc<dyn Desk>) {
        // It is opened once, by the one thread that serves it.
        let _ = self.desk.set(desk);
    }

    /// Runs the work on this thread, if it is short and nothing that was sent before waits.
    pub(crate) fn stay(
        &self,
        work: &Work,
        savepoints: &Savepoints,
        limits: &InlineLimits,
        began: Instant,
    ) -> InlineRun<Result<Answer>> {
        let mut inbox = self.lock();
        // Without an idle time the writer's thread is at work.
        if inbox.end.is_some() || !inbox.messages.is_empty() || inbox.idle_since.is_none() {
            return InlineRun::Ineligible;
        }
        let Some(desk) = self.desk.get() else { return InlineRun::Ineligible };
        let (stay, lost) = desk.stay(work, savepoints, limits, began);
        inbox.idle_since = Some(Instant::now());
        if let Some(error) = lost {
            inbox.messages.push_back(Message::End(End::Lost(error.clone())));
            inbox.end = Some(End::Lost(error));
            drop(inbox);
            self.arrived.notify_one();
        }
        stay
    }

    /// A number for another savepoint.
    pub(crate) fn next_savepoint(&self) -> u64 {
        self.savepoints.fetch_add(1, Ordering::Relaxed)
    }

    /// The savepoint's handle was dropped.
    pub(crate) fn undo(&self, savepoints: &Savepoints) {
        let _ = self.post(Message::Undo(savepoints.clone()));
    }

    fn post(&self, message: Message) -> Result<()> {
        let mut inbox = self.lock();
        if let Some(end) = &inbox.end {
            return Err(end.error());
        }
        inbox.messages.push_back(message);
        inbox.idle_since = None;
        drop(inbox);
        self.arrived.notify_one();
        Ok(())
    }

    /// Ends the transaction as soon as what was sent before is served, unless it has ended.
    pub(crate) fn end(&self, end: End) {
        let _ = self.post(Message::End(end));
    }

    /// For the writer's thread: waits for the next message.
    pub(crate) fn next(&self) -> Message {
        let mut inbox = self.lock();
        loop {
            if let Some(message) = inbox.messages.pop_front() {
                inbox.idle_since = None;
                return message;
            }
            if inbox.idle_since.is_none() {
                inbox.idle_since = Some(Instant::now());
            }
            inbox = self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// For the writer's thread: the transaction is over. Answers the requests that will not be served.
    pub(crate) fn close(&self, end: End) -> Vec<Request> {
        let mut inbox = self.lock();
        inbox.end.get_or_insert(end);
        let alarm = inbox.alarm.take();
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        drop(alarm);
        messages
            .into_iter()
            .filter_map(|message| match message {
                Message::Request(request, _) => Some(*request),
                Message::Undo(_) | Message::End(_) => None,
            })
            .collect()
    }

    /// On the timer's thread: ends the transaction if it has been idle for its limit, tells if it was for a while, or
    /// looks again when it could be.
    fn look(self: &Arc<Self>) {
        let now = Instant::now();
        let mut inbox = self.lock();
        let idle = inbox.idle_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if idle >= self.idle_limit {
            // Under the same lock: a request that comes now comes too late, and is told so.
            inbox.messages.push_back(Message::End(End::Idle(self.idle_limit)));
            inbox.end.get_or_insert(End::Idle(self.idle_limit));
            drop(inbox);
            self.arrived.notify_one();
            return;
        }
        let tells = !inbox.told && idle >= TOLD_AFTER;
        inbox.told |= tells;
        let limit = if inbox.told { self.idle_limit } else { TOLD_AFTER };
        drop(inbox);
        if tells {
            events::idle_transaction(&self.path, idle);
        }
        watch(self, later(now, limit.saturating_sub(idle)));
    }
}

/// Without a timer thread, which only a machine out of threads lacks, the limit does not hold.
fn watch(session: &Arc<Session>, when: Instant) {
    let weak: Weak<Session> = Arc::downgrade(session);
    let alarm = timer::at(when, move || {
        if let Some(session) = weak.upgrade() {
            session.look();
        }
    });
    let mut inbox = session.lock();
    let before = if inbox.end.is_none() { std::mem::replace(&mut inbox.alarm, alarm.ok()) } else { alarm.ok() };
    drop(inbox);
    drop(before);
}

/// The right of a caller to an open transaction. Dropping it rolls back what is not committed.
pub(crate) struct TransactionGuard(pub(crate) Arc<Session>);

impl TransactionGuard {
    pub(crate) fn new(options: &Options) -> Self {
        Self(Session::new(options))
    }
}

/// The right of a caller to a level of an open transaction. Dropping it rolls back what the level did, unless it ended.
pub(crate) enum Level {
    Outermost(#[allow(dead_code, reason = "its drop ends the transaction")] TransactionGuard),
    Savepoint(Arc<Inside>),
    Ended,
}

impl Level {
    /// It was kept or undone: nothing is left to do for a savepoint. The transaction itself knows.
    pub(crate) fn ended(&mut self) {
        if matches!(self, Self::Savepoint(_)) {
            *self = Self::Ended;
        }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        if let Self::Savepoint(inside) = self
            && !is_stranded()
        {
            inside.session.undo(&inside.savepoints);
        }
    }
}

impl Drop for TransactionGuard {
    fn drop(&mut self) {
        if is_stranded() {
            return;
        }
        self.0.end(End::Finished);
    }
}
