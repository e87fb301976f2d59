//! What ends what runs on the writer, and what a close leaves behind there because it does not end.
//!
//! Owns: its name, and leaving it: from then on nothing is committed, what runs in SQLite is interrupted, no lock is waited
//! for, and what waits is answered. Runs on the timer's thread; the names are noted by the thread that holds the token.
//! Invariant: once it is left, a commit that has not begun is refused by the commit hook, whoever makes it. Leaves out:
//! when, and what follows (`engine::closing`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use flatwater_sqlite::Interrupt;

use super::connection::WriterConnection;
use super::state::EndsWhenLeft;
use super::{Writer, WriterShared};
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

impl Interrupt for EndsWhenLeft {
    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What interrupts one request besides: its caller, its deadline, and a close.
struct Ends(Arc<Ticket>, Arc<AtomicBool>);

impl Interrupt for Ends {
    fn should_stop(&self) -> bool {
        self.1.load(Ordering::Relaxed) || self.0.should_stop()
    }

    fn lets_commit(&self) -> bool {
        self.0.lets_commit()
    }
}

impl WriterConnection {
    /// Returns what interrupts the request of this ticket.
    pub(super) fn ends(&self, ticket: &Arc<Ticket>) -> Arc<dyn Interrupt> {
        Arc::new(Ends(ticket.clone(), self.is_left.clone()))
    }

    /// Lets the caller of `ticket`, its deadline, or a close interrupt what runs from now on, up to the next commit's point
    /// of no return.
    pub(super) fn arm(&mut self, ticket: &Arc<Ticket>) {
        if let Some(connection) = &self.connection {
            connection.sqlite.arm(self.ends(ticket));
        }
    }

    /// Lets a close that leaves it behind interrupt what runs from now on for several callers.
    pub(super) fn arm_for_all(&mut self) {
        if let Some(connection) = &self.connection {
            connection.sqlite.arm(self.left.clone());
        }
    }

    pub(super) fn disarm(&mut self) {
        if let Some(connection) = &self.connection {
            connection.sqlite.disarm();
        }
    }
}

impl Writer {
    /// Called when a close waits no longer for what it has ended: from now on nothing is committed, whatever runs is
    /// interrupted, and the writer answers what waits.
    pub(crate) fn leave_behind(&self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }

    /// Returns the name of what runs, or `None` if that is not on the writer.
    pub(crate) fn running(&self) -> Option<String> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner).what.name()
    }

    /// Answers what waits behind it.
    pub(crate) fn refuse_waiting(&self) {
        let waiting = self.0.queue.take_out(|request| !request.work.is_ours());
        refuse_closed(waiting, &self.0.recorder);
    }
}

impl WriterShared {
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    pub(super) fn note(&self, what: What) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).what = what;
    }
}
