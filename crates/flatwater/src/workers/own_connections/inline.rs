//! Short statements of a connection of a caller, on the thread that polls their call: the inbox around them.
//!
//! Owns: when the connection is free for one, and what follows. Runs on callers' threads, for no longer than an inline run in an
//! open transaction. Invariants: nothing waits that was sent before; no lock is held while SQLite runs, since code of the program
//! may drop the connection's handle in it; the slot is given back without the lock; a commit whose outcome is not known is the
//! first thing that a helper thread finds. Leaves out: which statements are short, and running them (`short`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::runner::Runner;
use super::serve_inbox::lose;
use super::short::{Ran, ShortRun};
use super::{Message, OwnConnection, ends_now};
use crate::queue::ticket::CallOptions;
use crate::workers::request::{Request, Tried};
use crate::workers::work::{Unsettled, Work};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{InlineRun, NotTried};

const INELIGIBLE: Tried = Tried::Ran(InlineRun::Ineligible(NotTried::Other));

impl OwnConnection {
    /// Runs the work on this thread now, if it is known to be short and the connection is at rest.
    pub(super) fn run_here(&self, work: &Work, permit: &Permit<'_>, options: CallOptions) -> Tried {
        let Some(writer) = &self.given.writer else { return INELIGIBLE };
        let mut at = self.lock();
        // Its caller has nothing to be told or asked.
        if at.closes || at.ended.is_some() || self.has_callbacks.load(Ordering::Acquire) {
            return INELIGIBLE;
        }
        let Some(mut runner) = at.inbox.take_short() else { return INELIGIBLE };
        drop(at);
        let ran = catch_unwind(AssertUnwindSafe(|| ShortRun { runner: &mut runner, writer, permit }.run(work)));
        let took = permit.began.elapsed();
        match ran {
            Ok(Some(Ran::Unsettled(error, change))) => {
                let unsettled = Unsettled { error, change, kind: work.describe().kind };
                let (request, reply) = Request::settling(unsettled, options, permit.began);
                let mut at = self.lock();
                at.inbox.post_first(Message::Request(Box::new(request), ()));
                let calls = at.inbox.put_back(runner, Instant::now());
                self.call(at, calls);
                Tried::Unsettled(reply, permit.held(took))
            }
            Ok(ran) => {
                self.put_back(runner, ran.is_some());
                Tried::Ran(match ran {
                    Some(Ran::Done(answer)) => InlineRun::Done(answer, permit.held(took)),
                    Some(Ran::FellBack(why)) => InlineRun::FellBack(why, permit.held(took)),
                    _ => InlineRun::Ineligible(NotTried::Other),
                })
            }
            Err(_) => {
                drop(runner);
                Tried::Ran(InlineRun::Done(Err(lose(self)), permit.held(took)))
            }
        }
    }

    /// Puts the connection to rest, or has a thread serve what was sent meanwhile. `ran`: what it says of itself may have
    /// changed.
    fn put_back(&self, mut runner: Box<Runner>, ran: bool) {
        let was_in_transaction = self.in_transaction.load(Ordering::Relaxed);
        if ran || runner.slot.is_some() {
            // Live queries start, and threads and callers are woken.
            self.note(runner.rest());
        }
        let mut at = self.lock();
        let _ = ends_now(self, &mut at);
        let calls = at.inbox.put_back(runner, Instant::now());
        self.call(at, calls);
        // Who looked while it had no rest looks again.
        if !was_in_transaction && self.in_transaction.load(Ordering::Relaxed) {
            self.look_later();
        }
    }
}
