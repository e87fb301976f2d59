//! Writes on their caller's thread: one short write in plain autocommit, while nobody else writes or waits.
//!
//! Owns: one write in the writer slot, and what makes a write unfit for a stay. Runs on the thread that polls a call.
//! Waits for nobody: neither for the token nor for a lock of the file. Invariants: the write is never interrupted,
//! and ends early only at a page that it would read too late, before its commit; it never pays for a checkpoint, nor,
//! unless the last copy ends in just that moment, for the sync of a WAL that starts over; a failure is a worker's to
//! tell, unless it came from the commit itself. Leaves out: which way is the cheaper one (`inline::router`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::{PageRefusal, WalState, refused};
use rusqlite::ffi;

use super::connection::WriterConnection;
use super::lease::Entered;
use super::perform::run_one;
use super::slot::Slot;
use super::{Shared, Writer};
use crate::connection::execute::Bounds;
use crate::connection::inline::LastRead;
use crate::connection::statements::CachedStatement;
use crate::error::{Error, Result};
use crate::inline::budget;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::options::Durability;
use crate::options::inline::InlineLimits;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::sql::catalogue::StatementInfo;
use crate::time::later;
use crate::values::params::Params;
use crate::workers::request::{Answer, OnItsWay, Request, Unsettled, Work};

/// A write that took longer than so many times the limit counts as if it had taken so long: the machine was busy, or the disk.
const OUTLIER: u32 = 2;

/// What became of a write that was tried.
pub(crate) enum Tried {
    Ran(InlineRun<Result<Answer>>),
    /// It failed in a way that may have come from its commit, after so long. The writer's thread finds out what became of it,
    /// and answers; nobody writes before that.
    Unsettled(Reply<Result<Answer>>, Duration),
}

impl Writer {
    /// Whether short writes go through the queue now.
    pub(crate) fn prefers_the_queue(&self) -> bool {
        self.0.queueing.load(Ordering::Relaxed)
    }

    /// Runs the write here and now, if it is known to be short and the token is free.
    pub(crate) fn run_inline(&self, work: &Work, limits: &InlineLimits, options: CallOptions, began: Instant) -> Tried {
        let shared = &*self.0;
        let (Work::Execute { text, params } | Work::Query { text, params, .. }) = work else { return INELIGIBLE };
        if !shared.is_short(text, params, limits) || !text.backoff.may_try() {
            return INELIGIBLE;
        }
        let _on_its_way = OnItsWay::new(&*shared.on_their_way);
        let Some(mut slot) = Slot::acquire_idle(self) else { return INELIGIBLE };
        let write = Write { text, work, limits, began };
        let Some((ended, took, change)) = slot.run(|writer, _| shared.write_in(writer, &write)) else {
            return INELIGIBLE;
        };
        match ended {
            Ended::Well(answer) => Tried::Ran(InlineRun::Done(Ok(answer), took)),
            Ended::Fallback(why) => Tried::Ran(InlineRun::FellBack(why, took)),
            Ended::Unsettled(error) => {
                let ticket = Arc::new(Ticket::new(options, began));
                let unsettled = Unsettled { error, change, kind: work.kind() };
                let (promise, reply) = reply();
                slot.hand_over(Request::new(ticket, Work::Settle(unsettled), promise));
                Tried::Unsettled(reply, took)
            }
        }
    }
}

const INELIGIBLE: Tried = Tried::Ran(InlineRun::Ineligible);

/// A write that is to run.
struct Write<'a> {
    text: &'a StatementInfo,
    work: &'a Work,
    limits: &'a InlineLimits,
    began: Instant,
}

/// How a write ended.
enum Ended {
    Well(Answer),
    /// Nothing was written, and a worker is to try.
    Fallback(Fallback),
    /// It may have been written.
    Unsettled(Error),
}

impl Shared {
    /// Whether as far as is known the write takes no longer than a stay may.
    fn is_short(&self, text: &StatementInfo, params: &Params, limits: &InlineLimits) -> bool {
        self.options.durability == Durability::Normal
            && text.is_groupable(self.catalogue.epoch(), limits.time)
            && params.heap_bytes() <= limits.bytes
            && self.listener.get().is_none_or(|listener| listener.has_room())
    }

    /// Runs the write, and leaves the slot as it is to be released. Answers how it ended, how long it took, and the change
    /// counter before it; `None` if it did not begin.
    fn write_in(&self, writer: &mut WriterConnection, write: &Write<'_>) -> Option<(Ended, Duration, u32)> {
        let Write { text, limits, began, .. } = *write;
        let (ready, state) = writer.eligible(text, limits)?;
        let ended = self.write(writer, write, &ready, &state)?;
        let now = Instant::now();
        let took = now.saturating_duration_since(began);
        // What others did, and what was in the table, says nothing of how long the text takes.
        if !matches!(ended, Ended::Fallback(why) if !why.tells_its_time()) {
            text.took(took.min(limits.time.saturating_mul(OUTLIER)));
        }
        let left = writer.wal_now();
        writer.leave_lease(left.as_ref().map(|(_, header)| header), now);
        self.leave(writer, left.as_ref(), now);
        writer.router.ran_inline(took, budget::is_spent_with(took), now);
        self.queueing.store(writer.router.queues(), Ordering::Relaxed);
        Some((ended, took, state.change()))
    }

    /// Runs the write, before which the WAL was whole and in this state. `None` if this connection cannot have a stay.
    fn write(
        &self,
        writer: &mut WriterConnection,
        write: &Write<'_>,
        ready: &CachedStatement,
        state: &WalState,
    ) -> Option<Ended> {
        let Write { work, limits, began, .. } = *write;
        let last_read = LastRead(later(began, limits.time), PageRefusal::Failure);
        let (ran, reads) = writer.run_inline(limits.bytes, Some(last_read), |writer| {
            let entered = writer.enter_lease(state, &self.catalogue.left, began)?;
            let ran = run_one(writer, ready, work, Bounds::Inline { end: last_read.0, rows: usize::MAX });
            match (entered, &ran) {
                (Entered::ForThisWrite, _) => writer.let_go(),
                (Entered::Continued, Ok(_)) => self.recorder.leases.reused_by_writes.count(),
                _ => {}
            }
            Ok(ran)
        })?;
        let error = match ran {
            Ok(Ok(answer)) => return Some(Ended::Well(answer)),
            Err(why) => return Some(Ended::Fallback(why)),
            Ok(Err(error)) => error,
        };
        // After SQLITE_SCHEMA SQLite keeps the write lock for as long as something is being read.
        writer.end_lease();
        let why = Fallback::after(error.sqlite_code());
        if reads.refused && why != Fallback::LateRead {
            writer.suspect();
        }
        Some(if is_from_commit(&error) { Ended::Unsettled(error) } else { Ended::Fallback(why) })
    }
}

/// Whether the file system failed, so that it has to be found out what became of the write. Everything else failed
/// before the commit, and was rolled back.
fn is_from_commit(error: &Error) -> bool {
    let code = error.sqlite_code().unwrap_or(ffi::SQLITE_ERROR);
    refused(code).is_none()
        && matches!(code & 0xff, ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOMEM)
}

impl WriterConnection {
    /// The statement of `text`, if it is prepared here and short, and nothing is in the way of writing now; and the state of
    /// the WAL.
    fn eligible(&mut self, text: &StatementInfo, limits: &InlineLimits) -> Option<(Arc<CachedStatement>, WalState)> {
        if self.refusal().is_some() || self.is_suspect() {
            return None;
        }
        let (state, wal) = self.wal_now()?;
        // Whoever writes first into a WAL that starts over writes its header and syncs it.
        let would_start_over = wal.copied >= wal.max_frame;
        if would_start_over { None } else { Some((self.short_write(text, limits)?, state)) }
    }

    /// The statement of `text`, if it is prepared here and known to write shortly. A row that is there may be a long one
    /// to free, which only a history tells.
    pub(super) fn short_write(&mut self, text: &StatementInfo, limits: &InlineLimits) -> Option<Arc<CachedStatement>> {
        let ready = self.known(text)?;
        let write = ready.inline_write()?;
        (!write.changes_existing_rows || text.has_short_history(limits.time)).then(|| ready.clone())
    }
}
