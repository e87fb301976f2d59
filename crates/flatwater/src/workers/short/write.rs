//! Inline runs of writes: one short write in plain autocommit, while no other write runs or waits.
//!
//! Owns: one write in the writer slot. Runs on the thread that polls a
//! call. Never waits, neither for the slot nor for a lock of the file. Invariants: the write ends early only before its
//! commit, in a loop that takes too long; it never pays for a checkpoint, nor,
//! unless the last checkpoint ends in just that moment, for the sync of a WAL that starts over; a write that fails runs again
//! on a worker, which reports the failure, unless the failure may have come from the commit itself. Leaves out: which
//! writes are short (`gate`), whether an inline run or the queue is cheaper (`inline::router`).

use std::time::{Duration, Instant};

use flatwater_sqlite::WalState;
use rusqlite::ffi;

use super::gate::{self, Place};
use crate::connection::run::execute::Bounds;
use crate::connection::run::statement_cache::CachedStatement;
use crate::queue::metrics::PendingWrite;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::perform::statements::run_one;
use crate::workers::request::{Request, Tried};
use crate::workers::work::{Unsettled, Work};
use crate::workers::writer::inline_access::{let_go, run_inline};
use crate::workers::writer::slot::Slot;
use crate::workers::writer::writer_connection::WriterConnection;
use crate::workers::writer::writer_lease::{Entered, enter_lease, leave_lease};
use crate::workers::writer::{Writer, WriterShared};
use flatwater_base::error::Error;
use flatwater_base::error::kind::is_damage;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{Fallback, Held, InlineRun, NotTried};
use flatwater_base::time::later;
use flatwater_sql::statement_info::StatementInfo;

impl Writer {
    /// Runs the write on this thread, if it is known to be short and the token is free.
    pub(crate) fn run_inline(&self, work: &Work, permit: &Permit<'_>, options: CallOptions) -> Tried {
        let shared = &*self.0;
        let Some((text, _)) = work.statement() else { return INELIGIBLE };
        let is_short = text.is_groupable(shared.context.catalogue.epoch(), permit.limits.time);
        if !is_short || !gate::may_write(shared, permit) {
            return INELIGIBLE;
        }
        let _pending = PendingWrite::new(&*shared.pending_writes);
        let Some(mut slot) = Slot::acquire_idle(self) else { return INELIGIBLE };
        let write = Write { text, work, permit };
        let Some((ended, took, change)) = slot.run(|writer, _| shared.write_in(writer, &write)) else {
            return INELIGIBLE;
        };
        tell(slot, ended, permit.held(took), change, work, options, permit.began)
    }
}

/// Releases the slot after a write that ended like this. If it may have been written, the writer's thread finds out before
/// anything else runs.
pub(crate) fn tell(
    slot: Slot<'_>,
    ended: Ended,
    held: Held,
    change: u32,
    work: &Work,
    options: CallOptions,
    began: Instant,
) -> Tried {
    match ended {
        Ended::Well(answer) => Tried::Ran(InlineRun::Done(Ok(answer), held)),
        Ended::Fallback(why) => Tried::Ran(InlineRun::FellBack(why, held)),
        Ended::Unsettled(error) => {
            let unsettled = Unsettled { error, change, kind: work.describe().kind };
            let (request, reply) = Request::settling(unsettled, options, began);
            slot.hand_over(request);
            Tried::Unsettled(reply, held)
        }
    }
}

pub(crate) const INELIGIBLE: Tried = Tried::Ran(InlineRun::Ineligible(NotTried::Other));

/// A write to run.
pub(crate) struct Write<'a> {
    pub(crate) text: &'a StatementInfo,
    pub(crate) work: &'a Work,
    pub(crate) permit: &'a Permit<'a>,
}

/// How a write ended.
pub(crate) enum Ended {
    Well(Answer),
    /// Nothing was written, and a worker must run the write.
    Fallback(Fallback),
    /// It may have been written.
    Unsettled(Error),
}

impl WriterShared {
    /// Runs the write, and leaves the slot as it is to be released. Returns how the write ended, how long it took, and
    /// the change counter from before it; `None` if the write did not begin.
    fn write_in(&self, writer: &mut WriterConnection, write: &Write<'_>) -> Option<(Ended, Duration, u32)> {
        let Write { text, permit, .. } = *write;
        let (state, _) = gate::commit(writer)?;
        let ready = gate::write(writer, text, Place::Alone, permit.limits)?;
        self.record(writer);
        let ended = self.write(writer, write, &ready, &state)?;
        let now = Instant::now();
        let took = now.saturating_duration_since(permit.began);
        let left = writer.wal_now();
        leave_lease(writer, left.as_ref().map(|(_, header)| header), now);
        self.leave(writer, left.as_ref(), now);
        self.context.policy.wrote(&mut writer.router, permit.began, now);
        Some((ended, took, state.change()))
    }

    /// Runs the write, and records how long it took. `state` is the state of the WAL before it, when the WAL was
    /// consistent. Returns `None` if this connection is not capable of inline runs.
    pub(crate) fn write(
        &self,
        writer: &mut WriterConnection,
        write: &Write<'_>,
        ready: &CachedStatement,
        state: &WalState,
    ) -> Option<Ended> {
        let ended = run_write(self, writer, write, ready, state)?;
        // What other connections did, or which rows the table held, does not show how long the text takes.
        if !matches!(ended, Ended::Fallback(why) if !why.tells_its_time()) {
            write.text.took(write.permit.limits.counted(write.permit.began.elapsed()));
        }
        Some(ended)
    }
}

/// Runs the write, without noting its time.
fn run_write(
    shared: &WriterShared,
    writer: &mut WriterConnection,
    write: &Write<'_>,
    ready: &CachedStatement,
    state: &WalState,
) -> Option<Ended> {
    let Write { work, permit, .. } = *write;
    let (limits, began) = (permit.limits, permit.began);
    let ran = run_inline(writer, permit, |writer| {
        let entered = enter_lease(writer, state, &shared.context.catalogue.left, began)?;
        let bounds = Bounds::Inline { end: Some(later(began, limits.time)), rows: usize::MAX, bytes: limits.bytes };
        let ran = run_one(writer, ready, work, bounds);
        match (entered, &ran) {
            (Entered::ForThisWrite, _) => let_go(writer),
            (Entered::Continued, Ok(_)) => shared.context.recorder.leases.reused_by_writes.count(),
            _ => {}
        }
        Ok(ran)
    })?;
    permit.note_steps(writer.connection.as_ref().map_or(0, |connection| connection.steps_of(ready)));
    let error = match ran {
        Ok(Ok(answer)) => return Some(Ended::Well(answer)),
        Err(why) => return Some(Ended::Fallback(why)),
        Ok(Err(error)) => error,
    };
    // After SQLITE_SCHEMA, SQLite keeps the write lock for as long as a read is open.
    writer.end_lease();
    let why = Fallback::after(error.sqlite_code());
    Some(if is_from_commit(&error) { Ended::Unsettled(error) } else { Ended::Fallback(why) })
}

/// Returns true if the file system failed, so that the write may have been committed. Every other failure came before
/// the commit, or, if the disk is full, left no commit, and the write was rolled back.
pub(crate) fn is_from_commit(error: &Error) -> bool {
    let code = error.sqlite_code().unwrap_or(ffi::SQLITE_ERROR);
    matches!(code & 0xff, ffi::SQLITE_IOERR | ffi::SQLITE_NOMEM) || is_damage(code)
}
