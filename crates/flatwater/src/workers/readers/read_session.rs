//! A read session: a reader that is kept for one snapshot or one cursor, and the inbox of its requests.
//!
//! Owns: the order of the requests, the reader between two of them, and how the session ends. One lock guards the inbox;
//! it is never held while a waker runs, nor while SQLite does. Runs on callers' threads, on the timer's, and on the pool's.
//! Invariants: a session with a message is in the pool's list of ready sessions once, so that one thread at a time has its
//! reader; after the end no request is accepted, and every request that waits gets the reason. Leaves out: what the requests do.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ReadersShared;
use super::reader::Reader;
use crate::error::hint::hint;
use crate::error::{Error, ErrorKind, Result, TimeoutEffect};
use crate::queue::ticket::Ticket;
use crate::time::later;
use crate::time::recurring::Recurring;
use crate::workers::request::Request;

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Ends with its cursor.
    Cursor,
    Snapshot,
}

/// How a session ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// Its handle was dropped, or its result has no more rows.
    Finished,
    /// No row was fetched for this long.
    Idle(Duration),
    /// It was open for this long.
    Old(Duration),
    /// It kept the WAL from starting over.
    CutOff,
    /// This error ended its transaction.
    Lost(Error),
    /// The database was closed.
    Closed,
}

impl End {
    pub(super) fn is_finished(&self) -> bool {
        matches!(self, Self::Finished)
    }

    /// The error for a request that comes afterwards.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Finished => Error::misuse("the snapshot or the stream is finished"),
            Self::Idle(limit) => Error::timeout(
                format!("the stream was ended because no rows were fetched for {limit:?}"),
                TimeoutEffect::No,
            )
            .with_hint(hint![
                "fetch faster, read less at once, or raise " StreamIdle
                "; if its task waited for another stream or a snapshot meanwhile, raise " ExtraReaders
            ]),
            Self::Old(limit) => Error::new(
                ErrorKind::SnapshotTooOld,
                format!("the snapshot was ended because it was open for {limit:?}"),
            )
            .with_hint(hint!["open another one, or raise " SnapshotAge]),
            Self::CutOff => Error::new(
                ErrorKind::SnapshotTooOld,
                "the read blocked a restart of the WAL for too long and was ended",
            )
            .with_hint(hint!["read less at once, or raise " ReadLimit]),
            Self::Lost(error) => {
                Error::misuse(format!("the snapshot was lost to an earlier error: {}", error.message()))
                    .with_hint("open another one")
            }
            Self::Closed => Error::closed(),
        }
    }
}

/// A message in the inbox.
pub(super) enum Message {
    Request(Box<Request>),
    EndCursor(u64),
    /// Take the end that the inbox notes.
    End,
}

pub(super) struct ReadSession {
    pool: Arc<ReadersShared>,
    pub(super) purpose: Purpose,
    /// Given up to interrupt what runs.
    pub(super) ticket: Arc<Ticket>,
    began: Instant,
    inbox: Mutex<Inbox>,
    /// Looks whether it is at its limit.
    looks: Recurring,
}

struct Inbox {
    messages: VecDeque<Message>,
    end: Option<End>,
    /// The reader between two messages.
    resting: Option<Box<Reader>>,
    /// `None` while the session is in the pool's list, or a thread serves it.
    idle_since: Option<Instant>,
}

impl Inbox {
    /// Returns the reader, if the session is open, and no message is served or waits.
    fn at_rest(&mut self) -> Option<&mut Box<Reader>> {
        let is_at_rest = self.end.is_none() && self.idle_since.is_some();
        self.resting.as_mut().filter(|_| is_at_rest)
    }
}

pub(super) fn ended_by_statement() -> Error {
    Error::misuse("a statement ended it")
}

impl ReadSession {
    /// Creates the session of a request that began then. `begin` sets its limit.
    pub(super) fn new(
        pool: &Arc<ReadersShared>,
        purpose: Purpose,
        ticket: Arc<Ticket>,
        reader: Box<Reader>,
        began: Instant,
    ) -> Arc<Self> {
        let inbox =
            Inbox { messages: VecDeque::new(), end: None, resting: Some(reader), idle_since: Some(Instant::now()) };
        let (pool, inbox, looks) = (pool.clone(), Mutex::new(inbox), Recurring::default());
        Arc::new(Self { pool, purpose, ticket, began, inbox, looks })
    }

    /// The session can be found by others from here on: its limit counts.
    pub(super) fn begin(self: &Arc<Self>) {
        let inbox = self.lock();
        if inbox.end.is_none() {
            let of = Arc::downgrade(self);
            self.looks.by(later(Instant::now(), self.limit()), move || of.upgrade()?.look());
        }
    }

    /// A cursor may be idle for this long; a snapshot may be this old.
    fn limit(&self) -> Duration {
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

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn post(self: &Arc<Self>, message: Message, end: Option<End>) -> Result<()> {
        self.post_into(self.lock(), message, end)
    }

    fn post_into(self: &Arc<Self>, mut inbox: MutexGuard<'_, Inbox>, message: Message, end: Option<End>) -> Result<()> {
        if let Some(noted) = &inbox.end {
            let error = noted.error();
            // What runs is ended for this reason now, and not because its handle was dropped.
            if let (End::Finished, Some(end)) = (noted, end) {
                inbox.end = Some(end);
            }
            // Before the message, whose promise wakes its caller.
            drop(inbox);
            return Err(error);
        }
        inbox.messages.push_back(message);
        inbox.end = end;
        let was_idle = inbox.idle_since.take().is_some();
        drop(inbox);
        if was_idle {
            self.pool.make_ready(self.clone());
        }
        Ok(())
    }

    /// Its rows are used: it is not idle.
    pub(super) fn touch(&self) {
        if let Some(since) = &mut self.lock().idle_since {
            *since = Instant::now();
        }
    }

    /// Ends the session, after what was sent before.
    pub(super) fn finish(self: &Arc<Self>, end: End) {
        let _ = self.post(Message::End, Some(end));
    }

    /// Returns the end, if there is one.
    pub(super) fn noted_end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Takes the reader and the next message. Returns `None` if the session has ended.
    pub(super) fn take(&self) -> Option<(Box<Reader>, Message)> {
        let mut inbox = self.lock();
        let reader = inbox.resting.take()?;
        match inbox.messages.pop_front() {
            Some(message) => Some((reader, message)),
            None => {
                inbox.resting = Some(reader);
                None
            }
        }
    }

    /// Puts the reader back after a message. Returns true if there is another message.
    pub(super) fn rest(&self, reader: Box<Reader>) -> bool {
        let mut inbox = self.lock();
        inbox.resting = Some(reader);
        inbox.idle_since = inbox.messages.is_empty().then(Instant::now);
        inbox.idle_since.is_none()
    }

    /// Calls `f` with the reader, on the thread of a caller, if nobody else uses the session now, and no message is served or
    /// waits. What is sent meanwhile comes after it. `f` returns the end, if it ended the session.
    pub(super) fn at_rest<T>(self: &Arc<Self>, f: impl FnOnce(&mut Reader) -> (T, Option<End>)) -> Option<T> {
        let mut inbox = self.lock();
        inbox.at_rest()?;
        let mut reader = inbox.resting.take()?;
        inbox.idle_since = None;
        drop(inbox);
        let (result, end) = f(&mut reader);
        let mut inbox = self.lock();
        inbox.resting = Some(reader);
        if let Some(end) = end {
            inbox.messages.push_front(Message::End);
            // It has ended for this reason, and not because its handle was dropped meanwhile.
            if inbox.end.as_ref().is_none_or(End::is_finished) {
                inbox.end = Some(end);
            }
        }
        inbox.idle_since = inbox.messages.is_empty().then(Instant::now);
        let has_message = inbox.idle_since.is_none();
        drop(inbox);
        if has_message {
            self.pool.make_ready(self.clone());
        }
        Some(result)
    }

    /// Ends the session, and takes its reader, if no message is served or waits, and no cursor is open.
    pub(super) fn take_to_end(&self) -> Option<Box<Reader>> {
        let mut inbox = self.lock();
        inbox.at_rest().filter(|reader| !reader.cursors.are_open())?;
        (inbox.end, inbox.idle_since) = (Some(End::Finished), None);
        inbox.resting.take()
    }

    /// Has a thread of the pool close the reader of a session that has ended.
    pub(super) fn put_back_to_end(self: &Arc<Self>, reader: Box<Reader>) {
        let mut inbox = self.lock();
        inbox.resting = Some(reader);
        inbox.messages.push_back(Message::End);
        drop(inbox);
        self.pool.make_ready(self.clone());
    }

    /// Closes the inbox. Returns the end, which may have been noted before, and the requests that will not be served.
    pub(super) fn close(&self, end: End) -> (End, Vec<Request>) {
        let mut inbox = self.lock();
        let end = inbox.end.get_or_insert(end).clone();
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        self.looks.end();
        let requests = messages.into_iter().filter_map(|message| match message {
            Message::Request(request) => Some(*request),
            Message::EndCursor(_) | Message::End => None,
        });
        (end, requests.collect())
    }

    /// Ends the session if it is at its limit, or returns when to look again. Runs on the timer's thread.
    fn look(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        let limit = self.limit();
        let inbox = self.lock();
        let since = match self.purpose {
            Purpose::Snapshot => self.began,
            Purpose::Cursor => inbox.idle_since.unwrap_or(now),
        };
        let until = later(since, limit);
        if now < until {
            return inbox.end.is_none().then_some(until);
        }
        let end = match self.purpose {
            Purpose::Cursor => End::Idle(limit),
            Purpose::Snapshot => End::Old(limit),
        };
        // Under the same lock: a fetch that comes later is refused with this reason.
        let _ = self.post_into(inbox, Message::End, Some(end));
        self.ticket.end();
        None
    }
}
