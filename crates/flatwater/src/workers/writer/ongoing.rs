//! What runs on the writer when the database closes, and what a close leaves behind there because it does not end.
//!
//! Owns: ending it, its name, and leaving it: from then on nothing is committed, what runs in SQLite is interrupted, no lock is
//! waited for, and what waits is answered. Runs on the timer's thread; the names are noted by the thread that holds the slot.
//! Invariant: once it is left, a commit that has not begun is refused by the commit hook, whoever makes it. Leaves out:
//! when, and what follows (`engine::closing`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use super::open_state::WriterTransaction;
use super::{Writer, WriterShared};
use crate::queue::ticket::Ticket;
use crate::workers::kept::inbox::End;
use crate::workers::open_transaction::OpenTransaction;
use crate::workers::outbox::refuse_closed;
use crate::workers::work::Work;
use crate::workers::work_kinds::Name;
use flatwater_base::thread::lock;

/// The open transaction and the running request, so that a close can end them.
#[derive(Default)]
pub(crate) struct Ongoing(Mutex<OngoingWork>);

#[derive(Default)]
struct OngoingWork {
    transaction: Weak<WriterTransaction>,
    /// Set when the time of a close is over: no transaction may stay open any more.
    ended: bool,
    /// The single request that is running.
    running: Weak<Ticket>,
    /// Of what runs, or ran last.
    name: Name,
    /// The requests are done.
    is_closing: bool,
}

impl Ongoing {
    fn lock(&self) -> MutexGuard<'_, OngoingWork> {
        lock(&self.0)
    }

    pub(crate) fn note(&self, name: &'static str) {
        self.lock().name = Name::Words(name);
    }

    /// Notes that nothing is left to do but to close.
    pub(crate) fn note_closing(&self) {
        self.lock().is_closing = true;
    }

    /// Lets a close find the running request. A read that begins after the time of a close is over ends at its next check; a
    /// write has a moment more, so that short ones which wait are done.
    pub(crate) fn note_running(&self, ticket: &Arc<Ticket>, work: &Work) {
        let mut ongoing = self.lock();
        ongoing.running = Arc::downgrade(ticket);
        ongoing.name = Name::of(work);
        if ongoing.ended && work.describe().only_reads() {
            ticket.end();
        }
    }

    /// Looks whether the open transaction is idle, and returns when to look again, if there is one.
    fn look(&self) -> Option<Instant> {
        let transaction = self.lock().transaction.upgrade();
        transaction?.look()
    }

    /// Called when the time of a close is over: what runs is interrupted, unless it is a group. An open transaction ends as
    /// soon as its earlier requests are served, and so does every transaction that begins from now on.
    pub(crate) fn end(&self) {
        let mut ongoing = self.lock();
        ongoing.ended = true;
        let transaction = ongoing.transaction.upgrade();
        ongoing.running.upgrade().inspect(|ticket| ticket.end());
        drop(ongoing);
        if let Some(transaction) = transaction {
            transaction.end(End::Closed);
        }
    }

    /// Returns true while a caller has a transaction open.
    pub(crate) fn has_transaction(&self) -> bool {
        let transaction = self.lock().transaction.upgrade();
        transaction.is_some_and(|transaction| transaction.is_open())
    }

    /// Returns the name of what runs, or `None` if that is not on the writer.
    pub(crate) fn name(&self) -> Option<String> {
        let ongoing = self.lock();
        (!ongoing.is_closing).then(|| ongoing.name.to_string())
    }
}

impl Writer {
    /// Called when a close waits no longer for what it has ended: from now on nothing is committed, whatever runs is
    /// interrupted, and the writer answers what waits.
    pub(crate) fn leave_behind(&self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }

    /// Returns what runs.
    pub(crate) fn ongoing(&self) -> &Ongoing {
        &self.0.ongoing
    }

    /// Answers what waits behind it.
    pub(crate) fn refuse_waiting(&self) {
        let waiting = self.0.queue.take_out(|request| !request.work.describe().is_ours());
        refuse_closed(waiting, &self.0.context.recorder);
    }
}

impl WriterShared {
    /// Lets a close find the open transaction, and the timer, which looks whether it is idle. A transaction that ends before that
    /// leaves the look to the next one.
    pub(crate) fn note_open(&self, transaction: &Arc<WriterTransaction>) {
        let mut ongoing = self.ongoing.lock();
        ongoing.transaction = Arc::downgrade(transaction);
        let ended = ongoing.ended;
        drop(ongoing);
        if ended {
            transaction.end(End::Closed);
        }
        // A look that runs, and has not found the transaction, is followed by one at this time.
        let this = self.this.clone();
        self.looks.by(transaction.first_look(), move || this.upgrade()?.ongoing.look());
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }
}
