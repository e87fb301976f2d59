//! Short statements of a connection of a caller, on the thread that polls their call: the inbox around them.
//!
//! Owns: when the connection is free for one, and what follows. Runs on callers' threads, for no longer than an inline run in an
//! open transaction. Invariants: nothing waits that was sent before; no lock is held while SQLite runs, since code of the program
//! may drop the connection's handle in it; the slot is given back without the lock; a commit whose outcome is not known is the
//! first thing that a helper thread finds. Leaves out: which statements are short, and running them (`short`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use super::runner::Runner;
use super::serve_inbox::{come_to_rest, lose};
use super::short::{Ran, ShortRun};
use super::{Inbox, Message, OwnConnection};
use crate::inline::outcome::{InlineRun, NotTried};
use crate::inline::permit::Permit;
use crate::queue::reply::reply;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::request::Request;
use crate::workers::tried::Tried;
use crate::workers::work::{Unsettled, Work};

const INELIGIBLE: Tried = Tried::Ran(InlineRun::Ineligible(NotTried::Other));

impl OwnConnection {
    /// Runs the work on this thread now, if it is known to be short and the connection is at rest.
    pub(super) fn run_here(&self, work: &Work, permit: &Permit<'_>, options: CallOptions) -> Tried {
        let Some(writer) = &self.given.writer else { return INELIGIBLE };
        let mut inbox = self.lock();
        if inbox.end.is_some() || inbox.closes || inbox.ended.is_some() || self.has_callbacks.load(Ordering::Acquire) {
            return INELIGIBLE;
        }
        let Some(mut runner) = inbox.resting.take() else { return INELIGIBLE };
        drop(inbox);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let ran = ShortRun { runner: &mut runner, writer, permit }.run(work);
            (ran, runner)
        }));
        let took = permit.began.elapsed();
        let mut inbox = self.lock();
        match ran {
            Ok((Some(Ran::Unsettled(error, change)), runner)) => {
                let unsettled = Unsettled { error, change, kind: work.describe().kind };
                let (promise, reply) = reply();
                let request =
                    Request::new(Arc::new(Ticket::new(options, permit.began)), Work::Settle(unsettled), promise);
                inbox.messages.push_front(Message::Request(Box::new(request)));
                drop(inbox);
                self.serve_on_a_thread(runner, None);
                Tried::Unsettled(reply, permit.held(took))
            }
            Ok((ran, runner)) => {
                self.rest_after(inbox, runner, ran.is_some());
                Tried::Ran(match ran {
                    Some(Ran::Done(answer)) => InlineRun::Done(answer, permit.held(took)),
                    Some(Ran::FellBack(why)) => InlineRun::FellBack(permit.reason(why, took), permit.held(took)),
                    _ => InlineRun::Ineligible(NotTried::Other),
                })
            }
            Err(_) => {
                drop(inbox);
                Tried::Ran(InlineRun::Done(Err(lose(self)), permit.held(took)))
            }
        }
    }

    /// Puts the connection to rest, or has a thread serve what was sent meanwhile. `ran`: what it says of itself may have
    /// changed.
    fn rest_after<'a>(&'a self, mut inbox: MutexGuard<'a, Inbox>, mut runner: Box<Runner>, ran: bool) {
        // Who looked while it had no rest has to look again.
        let mut looks = !self.in_transaction.load(Ordering::Relaxed);
        if runner.has_slot_for_nothing() {
            // Live queries start, and threads and callers are woken.
            drop(inbox);
            self.note(runner.rest());
            looks = true;
            inbox = self.lock();
        } else if ran {
            self.note(runner.rest());
        }
        if !inbox.messages.is_empty() || inbox.closes && !self.in_transaction.load(Ordering::Relaxed) {
            drop(inbox);
            return self.serve_on_a_thread(runner, None);
        }
        come_to_rest(self, inbox, runner, looks);
    }
}
