//! What a close leaves behind on the writer, because it does not end.
//!
//! Owns: its name, and leaving it: from then on nothing is committed, what runs in SQLite is interrupted, no lock is waited
//! for, and what waits is answered. Runs on the timer's thread; the names are noted by the thread that holds the token.
//! Invariant: once it is left, a commit that has not begun is refused by the commit hook, whoever makes it. Leaves out:
//! when, and what follows (`engine::closing`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use flatwater_sqlite::Interrupt;

use super::connection::WriterConnection;
use super::{Shared, Writer};
use crate::error::shorten;
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::workers::outbox::refuse_closed;
use crate::workers::request::Work;

/// What runs, or ran last.
#[derive(Default)]
pub(super) enum What {
    #[default]
    Nothing,
    Text(Arc<StatementInfo>),
    Operation(&'static str),
    /// The requests are done.
    Closing,
}

impl What {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::Execute { text, .. } | Work::Query { text, .. } | Work::Many { text, .. } => Self::Text(text.clone()),
            Work::Script(text) | Work::Prepare(text) => Self::Text(text.clone()),
            Work::ReadWith(_) => Self::Operation("a closure of `read_with`"),
            Work::WriteWith(_) => Self::Operation("a closure of `write_with`"),
            Work::WithConnection(_) => Self::Operation("a closure of `with_connection`"),
            Work::Backup(_) => Self::Operation("a backup"),
            Work::Migrate(_) => Self::Operation("a migration"),
            Work::Batch(_) => Self::Operation("a batch"),
            Work::Begin => Self::Operation("the begin of a transaction"),
            Work::Commit => Self::Operation("a commit"),
            Work::Checkpoint(_) => Self::Operation("a checkpoint"),
            _ => Self::Nothing,
        }
    }

    /// Returns the name, or `None` if the writer has nothing to do but to close.
    fn name(&self) -> Option<String> {
        match self {
            Self::Nothing => Some("a request".into()),
            Self::Text(text) => Some(format!("`{}`", shorten(&text.sql))),
            Self::Operation(name) => Some((*name).into()),
            Self::Closing => None,
        }
    }
}

/// What interrupts a running write: its deadline, or a close that leaves it behind. A write whose caller left is finished.
struct WriteEnds {
    deadline: Option<Instant>,
    is_left: Arc<AtomicBool>,
}

impl Interrupt for WriteEnds {
    fn should_stop(&self) -> bool {
        self.is_left.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl WriterConnection {
    /// Returns what interrupts the write of this ticket.
    pub(super) fn ends(&self, ticket: &Ticket) -> Arc<dyn Interrupt> {
        Arc::new(WriteEnds { deadline: ticket.deadline, is_left: self.is_left.clone() })
    }
}

impl Writer {
    /// Called when the time of a close is over and something still runs: from now on nothing is committed. Returns its
    /// name, or `None` if that is not on the writer.
    pub(crate) fn leave_behind(&self) -> Option<String> {
        let shared = &*self.0;
        shared.is_left.store(true, Ordering::SeqCst);
        shared.open.lock().unwrap_or_else(PoisonError::into_inner).what.name()
    }

    /// Answers what waits behind it.
    pub(crate) fn refuse_waiting(&self) {
        let waiting = self.0.queue.take_out(|request| !request.work.is_ours());
        refuse_closed(waiting, &self.0.recorder);
    }
}

impl Shared {
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    pub(super) fn note(&self, what: What) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).what = what;
    }
}
