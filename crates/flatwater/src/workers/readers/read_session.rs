//! A read session: a reader that is kept for one snapshot or one cursor, as it is shared by its caller and the pool.
//!
//! Owns: the session's inbox, its limit, and what its end means for a request. One lock guards the inbox;
//! it is never held while a waker runs, nor while SQLite does. Runs on callers' threads, on the timer's, and on the pool's.
//! Invariants: a session with a message is in the pool's list of ready sessions once, so that one thread at a time has its
//! reader; after the end no request is accepted, and every request that waits gets the reason. Leaves out: what the requests do
//! (`serve_session`), and the order of messages (`kept::inbox`).

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::ReadersShared;
use super::reader::Reader;
use crate::queue::ticket::{Ticket, blocked_restart};
use crate::workers::kept::inbox::{self, End, Inbox, Posted};
use crate::workers::request::Request;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;
use flatwater_base::time::later;

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Ends with its cursor.
    Cursor,
    Snapshot,
}

/// What is sent to a session besides requests: a cursor of it is dropped.
pub(super) struct EndCursor(pub(super) u64);

pub(super) type Message = inbox::Message<(), EndCursor>;

type SessionInbox = Inbox<Box<Reader>, (), EndCursor>;

/// The error for a request that comes after this end.
pub(super) fn ended(end: &End) -> Error {
    match end {
        End::Finished => Error::new(ErrorCode::Finished, "the snapshot or the stream is finished"),
        End::Idle(limit) => Error::new(
            ErrorCode::StreamIdle,
            format!("the stream was ended because no rows were fetched for {limit:?}"),
        )
        .with_hint(hint![
            "fetch faster, read less at once, or raise " StreamIdle
            "; if its task waited for another stream or a snapshot meanwhile, raise " ExtraReaders
        ]),
        End::Old(limit) => {
            Error::new(ErrorCode::SnapshotAge, format!("the snapshot was ended because it was open for {limit:?}"))
                .with_hint(hint!["open another one, or raise " SnapshotAge])
        }
        End::CutOff => blocked_restart(),
        End::Lost(error) => {
            Error::new(ErrorCode::Lost, format!("the snapshot was lost to an earlier error: {}", error.message()))
                .with_hint("open another one")
        }
        End::Gone(error) => error.clone(),
        End::Closed => Error::closed(),
    }
}

pub(super) struct ReadSession {
    pool: Arc<ReadersShared>,
    pub(super) purpose: Purpose,
    /// Given up to interrupt what runs.
    pub(super) ticket: Arc<Ticket>,
    began: Instant,
    inbox: Mutex<SessionInbox>,
}

pub(super) fn ended_by_statement() -> Error {
    Error::new(ErrorCode::EndedTransaction, "a statement ended it")
}

impl ReadSession {
    /// Creates the session of a request that began then.
    pub(super) fn new(
        pool: &Arc<ReadersShared>,
        purpose: Purpose,
        ticket: Arc<Ticket>,
        reader: Box<Reader>,
        began: Instant,
    ) -> Arc<Self> {
        let inbox = Mutex::new(Inbox::new(Some(reader)));
        Arc::new(Self { pool: pool.clone(), purpose, ticket, began, inbox })
    }

    /// A cursor may be idle for this long; a snapshot may be this old.
    pub(super) fn limit(&self) -> Duration {
        match self.purpose {
            Purpose::Cursor => self.pool.context.options.stream_idle,
            Purpose::Snapshot => self.pool.context.options.snapshot_age,
        }
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    pub(super) fn pool(&self) -> &Arc<ReadersShared> {
        &self.pool
    }

    fn lock(&self) -> MutexGuard<'_, SessionInbox> {
        lock(&self.inbox)
    }

    /// Sends a message, or returns an error if the session has ended.
    pub(super) fn post(self: &Arc<Self>, message: Message) -> Result<()> {
        let posted = self.lock().post(message);
        self.call(matches!(posted, Posted::Call));
        if let Posted::Refused(_, end) = posted { Err(ended(&end)) } else { Ok(()) }
    }

    /// Ends the session, after what was sent before.
    pub(super) fn finish(self: &Arc<Self>, end: End) {
        self.finish_in(self.lock(), end);
    }

    fn finish_in(self: &Arc<Self>, mut inbox: MutexGuard<'_, SessionInbox>, end: End) {
        let calls = inbox.post_end(end);
        drop(inbox);
        self.call(calls);
    }

    fn call(self: &Arc<Self>, calls: bool) {
        if calls {
            self.pool.make_ready(self.clone());
        }
    }

    /// Its rows are used: it is not idle.
    pub(super) fn touch(&self) {
        self.lock().touch(Instant::now());
    }

    /// Returns the end, if there is one.
    pub(super) fn noted_end(&self) -> Option<End> {
        self.lock().end().cloned()
    }

    /// Takes the reader and the next message. Returns `None` if the session has ended.
    pub(super) fn take(&self) -> Option<(Box<Reader>, Message)> {
        self.lock().take()
    }

    /// Puts the reader back after a message. Returns true if there is another message.
    pub(super) fn rest(&self, reader: Box<Reader>) -> bool {
        self.lock().put_back(reader, Instant::now())
    }

    /// Calls `f` with the reader, on the thread of a caller, if nobody else uses the session now, and no message is served or
    /// waits. What is sent meanwhile comes after it. `f` returns the end, if it ended the session.
    pub(super) fn at_rest<T>(self: &Arc<Self>, f: impl FnOnce(&mut Reader) -> (T, Option<End>)) -> Option<T> {
        let mut reader = self.lock().take_short()?;
        let (result, end) = f(&mut reader);
        let mut inbox = self.lock();
        if let Some(end) = end {
            inbox.post_end_first(end, Message::End);
        }
        let calls = inbox.put_back(reader, Instant::now());
        drop(inbox);
        self.call(calls);
        Some(result)
    }

    /// Ends the session, and takes its reader, if no message is served or waits, and no cursor is open. A call that was made
    /// of it, and begins now, is refused.
    pub(super) fn take_to_end(&self) -> Option<Box<Reader>> {
        let mut inbox = self.lock();
        inbox.at_rest().filter(|reader| !reader.cursors.are_open())?;
        let reader = inbox.take_short()?;
        // This thread has the reader, so nobody is called.
        let _ = inbox.post_end(End::Finished);
        Some(reader)
    }

    /// Has a thread of the pool end the session that was to be ended, and close its reader.
    pub(super) fn put_back_to_end(self: &Arc<Self>, reader: Box<Reader>) {
        let calls = self.lock().put_back(reader, Instant::now());
        self.call(calls);
    }

    /// The session is over. Returns the end, which may have been noted before, and the requests that will not be served.
    pub(super) fn close(&self, end: End) -> (End, Vec<Request>) {
        let (end, messages) = self.lock().over(end);
        (end, messages.into_iter().filter_map(Message::request).collect())
    }

    /// Ends the session if it is at its limit, or returns when to look again. Runs on the timer's thread.
    pub(super) fn look(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        let limit = self.limit();
        let inbox = self.lock();
        let (since, end) = match self.purpose {
            Purpose::Snapshot => (self.began, End::Old(limit)),
            Purpose::Cursor => (inbox.rests_since().unwrap_or(now), End::Idle(limit)),
        };
        let until = later(since, limit);
        if now < until {
            return inbox.end().is_none().then_some(until);
        }
        // Under the same lock: a fetch that comes later is refused with this reason.
        self.finish_in(inbox, end);
        self.ticket.end();
        None
    }
}
