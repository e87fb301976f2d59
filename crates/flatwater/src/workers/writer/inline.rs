//! Writes on their caller's thread: one short write in plain autocommit, while nobody else writes or waits.
//!
//! Owns: borrowing the token for a stay, and what makes a write unfit for one. Runs on the thread that polls a call.
//! Waits for nobody: neither for the token nor for a lock of the file. Invariants: the write is never interrupted,
//! and ends early only at a page that it would read too late, before its commit; it never pays for a checkpoint, nor,
//! unless the last copy ends in just that moment, for the sync of a WAL that starts over; a failure is a worker's to
//! tell, unless it came from the commit itself. Leaves out: which way is the cheaper one (`ways`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flatwater_sqlite::{Refusal, is_refusal};
use rusqlite::ffi;

use super::commit::settle;
use super::perform::perform_known;
use super::seat::Seat;
use super::{Shared, Writer};
use crate::connection::catalogue::Text;
use crate::connection::statements::Ready;
use crate::connection::stay::LastRead;
use crate::types::error::{Error, Result};
use crate::types::inline::{InlineLimits, Moved, Stay};
use crate::types::options::Durability;
use crate::types::params::Params;
use crate::types::time::later;
use crate::waiting::fairness;
use crate::workers::request::{Answer, OnItsWay, Work};

impl Writer {
    /// Whether short writes go through the queue now.
    pub(crate) fn prefers_the_queue(&self) -> bool {
        self.0.queueing.load(Ordering::Relaxed)
    }

    /// Runs the write here and now, if it is known to be short and the token is free.
    pub(crate) fn stay(&self, work: &Work, limits: &InlineLimits, began: Instant) -> Stay<Result<Answer>> {
        let shared = &*self.0;
        let (Work::Execute { text, params } | Work::Query { text, params, .. }) = work else { return Stay::Unfit };
        if !shared.is_short(text, params, limits) || !text.may_stay() {
            return Stay::Unfit;
        }
        let _on_its_way = OnItsWay::new(&*shared.on_their_way);
        let Some(mut lent) = Lent::borrow(self) else { return Stay::Unfit };
        let Some(seat) = &mut lent.seat else { return Stay::Unfit };
        let Some(ready) = seat.fit(text, limits) else { return Stay::Unfit };
        lent.is_sound = false;
        let continues = seat.enter_lease(began);
        let answer = shared.write(seat, &ready, work, limits, LastRead(later(began, limits.time), Refusal::Failure));
        let now = Instant::now();
        let took = now.saturating_duration_since(began);
        text.took(took);
        if continues && answer.is_ok() {
            shared.recorder.leases.written.count();
        }
        seat.leave_lease(now);
        shared.tell_growth(seat, now);
        seat.ways.stayed(took, fairness::is_spent_with(took), now);
        shared.queueing.store(seat.ways.queues(), Ordering::Relaxed);
        lent.is_sound = true;
        answer.map_or_else(|moved| Stay::Moved(moved, took), |answer| Stay::Done(answer, took))
    }
}

/// The token on loan. It comes back however the stay ends; after a panic its connection is another one.
pub(super) struct Lent<'a> {
    writer: &'a Writer,
    pub(super) seat: Option<Box<Seat>>,
    /// It neither runs nor panicked.
    is_sound: bool,
}

impl<'a> Lent<'a> {
    /// The token, if it is free and nobody waits for it.
    pub(super) fn borrow(writer: &'a Writer) -> Option<Self> {
        let seat = writer.0.queue.borrow_idle()?;
        Some(Self { writer, seat: Some(seat), is_sound: true })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(mut seat) = self.seat.take() else { return };
        if !self.is_sound {
            seat.replace();
        }
        self.writer.watch_lease(&mut seat);
        let start = self.writer.0.queue.give_back(seat);
        // Without a thread the requests that came meanwhile stay; the next push tries again.
        let _ = self.writer.start(start);
    }
}

impl Shared {
    /// Whether as far as is known the write takes no longer than a stay may.
    fn is_short(&self, text: &Text, params: &Params, limits: &InlineLimits) -> bool {
        self.options.durability == Durability::Normal
            && text.is_groupable(self.catalogue.epoch(), limits.time)
            && params.heap_bytes() <= limits.bytes
            && self.growth.get().is_none_or(|growth| growth.has_room())
    }

    /// The answer, or why nothing was written and a worker is to try.
    fn write(
        &self,
        seat: &mut Seat,
        ready: &Ready,
        work: &Work,
        limits: &InlineLimits,
        last_read: LastRead,
    ) -> Result<Result<Answer>, Moved> {
        let before = seat.change();
        match seat.stay(limits.bytes, Some(last_read), |seat| perform_known(seat, ready, work)) {
            Ok(answer) => Ok(Ok(answer)),
            Err(error) => {
                // After SQLITE_SCHEMA SQLite keeps the write lock for as long as something is being read.
                seat.end_lease();
                if !is_from_commit(&error) {
                    return Err(Moved::after(error.sqlite_code()));
                }
                Ok(Err(settle(seat, &self.recorder, error, before)))
            }
        }
    }
}

/// Whether the file system failed, so that it has to be found out what became of the write. Everything else failed
/// before the commit, and was rolled back.
fn is_from_commit(error: &Error) -> bool {
    let code = error.sqlite_code().unwrap_or(ffi::SQLITE_ERROR);
    !is_refusal(code)
        && matches!(code & 0xff, ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOMEM)
}

impl Seat {
    /// The statement of `text`, if it is prepared here and short, and nothing is in the way of writing now.
    fn fit(&mut self, text: &Text, limits: &InlineLimits) -> Option<Arc<Ready>> {
        if self.refusal().is_some() {
            return None;
        }
        // Whoever writes first into a WAL that starts over writes its header and syncs it. In memory there is none.
        let would_start_over = !self.is_in_memory() && self.wal_header().is_none_or(|wal| wal.copied >= wal.max_frame);
        if would_start_over { None } else { self.short_write(text, limits) }
    }

    /// The statement of `text`, if it is prepared here and known to write shortly. A row that is there may be a long one
    /// to free, which only a history tells.
    pub(super) fn short_write(&mut self, text: &Text, limits: &InlineLimits) -> Option<Arc<Ready>> {
        let ready = self.known(text)?;
        let write = ready.inline_write()?;
        (!write.changes_existing_rows || text.has_short_history(limits.time)).then(|| ready.clone())
    }
}
