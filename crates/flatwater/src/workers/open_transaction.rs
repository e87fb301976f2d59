//! An open transaction, shared by its two sides: the caller's handle and the writer's thread, which serves its messages.
//!
//! Owns: the inbox of an open transaction and how the transaction ended. Invariants: messages are served in the order
//! in which they were sent; a transaction without messages occupies no thread, and the first message has the writer's thread
//! serve it; after the end no message is accepted, and every waiting caller gets the reason for the end. One lock guards the
//! inbox. It is never held while a waker runs, nor while SQLite runs, except for an inline COMMIT or ROLLBACK: what is sent
//! meanwhile is sent when it is over. A message sent during another inline run comes after that; the code of the program that
//! runs in it may send one, by the drop of a handle. Leaves out: what the messages do, and the rights of
//! callers (`nesting`).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::Origin;

use crate::error::hint::hint;
use crate::error::{Error, Result, TimeoutEffect};
use crate::events;
use crate::inline::outcome::{InlineRun, NotTried};
use crate::inline::permit::Permit;
use crate::options::Options;
use crate::queue::reply::reply;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::time::later;
use crate::time::recurring::Recurring;
use crate::workers::Answer;
use crate::workers::request::Request;
use crate::workers::tried::Tried;
use crate::workers::work::Work;

/// A transaction that is idle for this long is reported as an event, once.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// `commit` or `rollback` was called.
    Finished,
    /// It was idle for this long.
    Idle(Duration),
    /// SQLite rolled it back because of this error.
    Lost(Error),
    /// The server that had it is not reached any more, or has ended it. The error says what that means.
    Gone(Error),
    /// The database was closed.
    Closed,
}

impl End {
    /// The answer to a request that comes afterwards: what is to be undone is undone.
    pub(crate) fn answer(&self, work: &Work) -> Result<Answer> {
        if work.describe().undoes() { Ok(Answer::Done) } else { Err(self.error()) }
    }

    /// The error for a call that uses the transaction afterwards.
    pub(crate) fn error(&self) -> Error {
        match self {
            Self::Finished => Error::misuse("the transaction is finished").with_hint("begin another one"),
            Self::Idle(limit) => Error::timeout(
                format!("the transaction was rolled back because it was not used for {limit:?}"),
                TimeoutEffect::No,
            )
            .with_hint(hint![
                "a transaction holds the writer: wait for nothing else inside it, or raise " TransactionIdle
            ]),
            Self::Lost(error) => Error::misuse(format!(
                "SQLite rolled back the transaction because of an earlier error: {}",
                error.message()
            ))
            .with_hint("begin another one"),
            Self::Gone(error) => error.clone(),
            Self::Closed => Error::closed(),
        }
    }
}

/// The savepoints of a handle, outermost first; empty for the transaction itself. Each savepoint has its own number, so
/// that a request for a savepoint that ended is never applied to a later one.
pub(crate) type Savepoints = Vec<u64>;

/// Keeps the connection of an open transaction between its steps.
pub(crate) trait WriterSide: Send + Sync {
    /// Runs the work on this thread now, if it is known to be short and the transaction is at these savepoints.
    fn run_inline(
        &self,
        transaction: &OpenTransaction,
        work: &Work,
        savepoints: &Savepoints,
        permit: &Permit<'_>,
    ) -> (InlineRun<Result<Answer>>, Step);

    /// Called after a step that ended the transaction, without a lock: the connection is free.
    fn leave(&self);

    /// Has the writer's thread serve the messages.
    fn hand_over(&self);
}

/// What a step on its caller's thread made of the transaction.
pub(crate) enum Step {
    Stays,
    /// SQLite rolled it back because of this error.
    Lost(Error),
    /// It was committed or rolled back.
    Ends,
    /// Its COMMIT failed, and may be in the WAL. The writer's thread finds out, whatever its caller does meanwhile.
    Unsettled,
}

/// A message in the inbox, for the writer's thread.
pub(crate) enum Message {
    Request(Box<Request>, Savepoints),
    /// Undo the last of these savepoints, because its handle was dropped.
    Undo(Savepoints),
    /// End the transaction without a request: its handle was dropped, or time ran out.
    End(End),
}

pub(crate) struct OpenTransaction {
    origin: Origin,
    inbox: Mutex<Inbox>,
    path: PathBuf,
    idle_limit: Duration,
    savepoints: AtomicU64,
    /// Looks whether it is idle.
    looks: Recurring,
    writer: Arc<dyn WriterSide>,
}

struct Inbox {
    messages: VecDeque<Message>,
    end: Option<End>,
    /// The time since which the transaction has had nothing to do. `None` while the writer's thread serves it, or is about to.
    idle_since: Option<Instant>,
    /// The idle event was sent, or is not needed.
    told: bool,
}

impl OpenTransaction {
    /// Returns the transaction that has just begun: on the writer's thread, which serves it, or inline.
    pub(crate) fn new(options: &Options, writer: Arc<dyn WriterSide>, is_inline: bool) -> Arc<Self> {
        let now = Instant::now();
        let idle_limit = options.transaction_idle;
        let told = !events::ARE_BUILT || idle_limit <= TOLD_AFTER;
        let inbox = Inbox { messages: VecDeque::new(), end: None, idle_since: is_inline.then_some(now), told };
        let transaction = Arc::new(Self {
            origin: Origin::here(),
            inbox: Mutex::new(inbox),
            path: options.path.clone(),
            idle_limit,
            savepoints: AtomicU64::new(0),
            looks: Recurring::default(),
            writer,
        });
        let of = Arc::downgrade(&transaction);
        let first = later(now, if told { idle_limit } else { TOLD_AFTER });
        transaction.looks.by(first, move || of.upgrade()?.look());
        transaction
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if this process was forked since the transaction began.
    pub(crate) fn is_inherited(&self) -> bool {
        self.origin.is_inherited()
    }

    /// Sends a request, or returns an error if the transaction has ended.
    pub(crate) fn send(&self, request: Request, savepoints: &Savepoints) -> Result<()> {
        let inbox = self.lock();
        if let Some(end) = &inbox.end {
            let error = end.error();
            // Before the request, whose promise wakes its caller.
            drop(inbox);
            return Err(error);
        }
        self.push(inbox, Message::Request(Box::new(request), savepoints.clone()));
        Ok(())
    }

    /// Runs the work on this thread, if the work is short and no earlier message waits.
    pub(crate) fn run_inline(&self, work: &Work, savepoints: &Savepoints, permit: &Permit<'_>) -> Tried {
        let mut inbox = self.lock();
        if inbox.end.is_some() || inbox.idle_since.is_none() {
            return Tried::Ran(InlineRun::Ineligible(NotTried::Other));
        }
        let held = if work.describe().ends() {
            Some(inbox)
        } else {
            inbox.idle_since = None;
            drop(inbox);
            None
        };
        let run = AssertUnwindSafe(|| self.writer.run_inline(self, work, savepoints, permit));
        let ran = catch_unwind(run);
        let mut inbox = held.unwrap_or_else(|| self.lock());
        let (run, step) = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                self.rest(inbox, Instant::now());
                resume_unwind(panic);
            }
        };
        match step {
            Step::Stays => self.rest(inbox, permit.began + run.took()),
            Step::Lost(error) => {
                inbox.end.get_or_insert(End::Lost(error.clone()));
                inbox.messages.push_front(Message::End(End::Lost(error)));
                self.rest(inbox, permit.began);
            }
            Step::Ends => {
                (inbox.end, inbox.idle_since) = (Some(End::Finished), None);
                drop(inbox);
                self.looks.end();
                self.writer.leave();
            }
            Step::Unsettled => {
                // In the same critical section, so that nothing comes before it.
                inbox.end = Some(End::Finished);
                let (promise, outcome) = reply();
                let ticket = Arc::new(Ticket::new(CallOptions::default(), permit.began));
                let request = Request::new(ticket, Work::Commit, promise);
                self.push(inbox, Message::Request(Box::new(request), savepoints.clone()));
                return match run {
                    InlineRun::Done(_, held) | InlineRun::FellBack(_, held) => Tried::Unsettled(outcome, held),
                    InlineRun::Ineligible(why) => Tried::Ran(InlineRun::Ineligible(why)),
                };
            }
        }
        Tried::Ran(run)
    }

    /// Called when nothing runs on this thread any more: has the writer's thread serve what was sent meanwhile.
    fn rest(&self, mut inbox: MutexGuard<'_, Inbox>, since: Instant) {
        inbox.idle_since = inbox.messages.is_empty().then_some(since);
        let is_idle = inbox.idle_since.is_some();
        drop(inbox);
        if !is_idle {
            self.writer.hand_over();
        }
    }

    /// Returns the number for a new savepoint.
    pub(crate) fn next_savepoint(&self) -> u64 {
        self.savepoints.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number that the next savepoint will have.
    pub(crate) fn savepoints_begun(&self) -> u64 {
        self.savepoints.load(Ordering::Relaxed)
    }

    /// Returns true until the transaction has ended.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().end.is_none()
    }

    /// Undoes a savepoint whose handle was dropped.
    pub(crate) fn undo(&self, savepoints: &Savepoints) {
        self.post_unless_ended(|| Message::Undo(savepoints.clone()));
    }

    /// Nobody is told if it has ended: the drop of each handle comes here, also after a COMMIT.
    fn post_unless_ended(&self, message: impl FnOnce() -> Message) {
        let inbox = self.lock();
        if inbox.end.is_none() {
            self.push(inbox, message());
        }
    }

    fn push(&self, mut inbox: MutexGuard<'_, Inbox>, message: Message) {
        inbox.messages.push_back(message);
        let was_idle = inbox.idle_since.take().is_some();
        drop(inbox);
        if was_idle {
            self.writer.hand_over();
        }
    }

    /// Ends the transaction after all earlier messages are served, unless it has ended already.
    pub(crate) fn end(&self, end: End) {
        self.post_unless_ended(|| Message::End(end));
    }

    /// Returns the next message. Without one, the writer's thread, which calls this, has nothing to do with the transaction any
    /// more.
    pub(crate) fn next(&self) -> Option<Message> {
        let mut inbox = self.lock();
        let message = inbox.messages.pop_front();
        if message.is_none() {
            inbox.idle_since = Some(Instant::now());
        }
        message
    }

    /// Closes the inbox, because the transaction is over. Returns the requests that will not be served. Called by the
    /// writer's thread.
    pub(crate) fn close(&self, end: End) -> Vec<Request> {
        let mut inbox = self.lock();
        inbox.end.get_or_insert(end);
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        self.looks.end();
        messages
            .into_iter()
            .filter_map(|message| match message {
                Message::Request(request, _) => Some(*request),
                Message::Undo(_) | Message::End(_) => None,
            })
            .collect()
    }

    /// Ends the transaction if it has been idle for its limit, sends the event if it was idle for `TOLD_AFTER`, and
    /// returns when to look again. Runs on the timer's thread.
    fn look(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut inbox = self.lock();
        if inbox.end.is_some() {
            return None;
        }
        let idle = inbox.idle_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if idle >= self.idle_limit {
            // Under the same lock: a later request is refused with this end as the reason.
            inbox.end = Some(End::Idle(self.idle_limit));
            self.push(inbox, Message::End(End::Idle(self.idle_limit)));
            return None;
        }
        let tells = !inbox.told && idle >= TOLD_AFTER;
        inbox.told |= tells;
        let limit = if inbox.told { self.idle_limit } else { TOLD_AFTER };
        drop(inbox);
        if tells {
            events::idle_transaction(&self.path, idle);
        }
        Some(later(now, limit.saturating_sub(idle)))
    }
}
