//! Writes on their caller's thread: one short write in plain autocommit, while nobody else writes or waits.
//!
//! Owns: borrowing the token for a stay, and what makes a write unfit for one. Runs on the thread that polls a call.
//! Waits for nobody: neither for the token nor for a lock of the file. Invariants: the write is never interrupted,
//! and ends early only at a page that it would read too late, before its commit; it never pays for a checkpoint, nor,
//! unless the last copy ends in just that moment, for the sync of a WAL that starts over; a failure is a worker's to
//! tell, unless it came from the commit itself. Leaves out: which way is the cheaper one (`ways`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::{PageRefusal, WalState, refused};
use rusqlite::ffi;

use super::lease::Entered;
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
use crate::types::request::{CallOptions, Ticket};
use crate::types::time::later;
use crate::waiting::fairness;
use crate::waiting::reply::{Reply, reply};
use crate::workers::request::{Answer, OnItsWay, Request, Unsettled, Work};

/// A write that took longer than so many times the limit counts as if it had taken so long: the machine was busy, or the disk.
const OUTLIER: u32 = 2;

/// What became of a write that was tried.
pub(crate) enum Tried {
    Stay(Stay<Result<Answer>>),
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
    pub(crate) fn stay(&self, work: &Work, limits: &InlineLimits, options: CallOptions, began: Instant) -> Tried {
        let shared = &*self.0;
        let (Work::Execute { text, params } | Work::Query { text, params, .. }) = work else { return UNFIT };
        if !shared.is_short(text, params, limits) || !text.may_stay() {
            return UNFIT;
        }
        let _on_its_way = OnItsWay::new(&*shared.on_their_way);
        let Some(mut lent) = Lent::borrow(self) else { return UNFIT };
        let Some(seat) = &mut lent.seat else { return UNFIT };
        let Some((ready, state)) = seat.fit(text, limits) else { return UNFIT };
        lent.is_sound = false;
        let Some(ended) = shared.write(seat, Write { ready: &ready, work, limits, began, state: &state }) else {
            lent.is_sound = true;
            return UNFIT;
        };
        let now = Instant::now();
        let took = now.saturating_duration_since(began);
        // What others did, and what was in the table, says nothing of how long the text takes.
        if !matches!(ended, Ended::Moved(Moved::Other)) {
            text.took(took.min(limits.time.saturating_mul(OUTLIER)));
        }
        let after = seat.wal_now();
        let header = after.map(|(_, header)| header);
        seat.leave_lease(header.as_ref(), now);
        shared.tell_growth(header.as_ref(), now);
        if let Some((state, _)) = &after {
            seat.leave_at(state, &shared.catalogue.left);
        }
        seat.ways.stayed(took, fairness::is_spent_with(took), now);
        shared.queueing.store(seat.ways.queues(), Ordering::Relaxed);
        lent.is_sound = true;
        match ended {
            Ended::Well(answer) => Tried::Stay(Stay::Done(Ok(answer), took)),
            Ended::Moved(why) => Tried::Stay(Stay::Moved(why, took)),
            Ended::Unsettled(error) => {
                let ticket = Arc::new(Ticket::new(options, began));
                let unsettled = Unsettled { error, change: state.change(), kind: work.kind() };
                let (promise, reply) = reply();
                lent.hand_over(Request::new(ticket, Work::Settle(unsettled), promise));
                Tried::Unsettled(reply, took)
            }
        }
    }
}

const UNFIT: Tried = Tried::Stay(Stay::Unfit);

/// A write that is about to run.
struct Write<'a> {
    ready: &'a Ready,
    work: &'a Work,
    limits: &'a InlineLimits,
    began: Instant,
    /// The state of the WAL, which was whole.
    state: &'a WalState,
}

/// How a write ended.
enum Ended {
    Well(Answer),
    /// Nothing was written, and a worker is to try.
    Moved(Moved),
    /// It may have been written.
    Unsettled(Error),
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

impl Lent<'_> {
    /// Gives the token back together with what its next holder does first.
    fn hand_over(mut self, request: Request) {
        let Some(mut seat) = self.seat.take() else { return };
        seat.end_lease();
        let start = self.writer.0.queue.hand_over(seat, request);
        // Without a thread the request waits for the next push, as others do.
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

    /// Runs the write. `None` if this connection cannot have a stay.
    fn write(&self, seat: &mut Seat, Write { ready, work, limits, began, state }: Write<'_>) -> Option<Ended> {
        let last_read = LastRead(later(began, limits.time), PageRefusal::Failure);
        let (ran, reads) = seat.stay(limits.bytes, Some(last_read), |seat| {
            let entered = seat.enter_lease(state, &self.catalogue.left, began)?;
            let ran = seat.only_known(|seat| perform_known(seat, ready, work));
            match (entered, &ran) {
                (Entered::ForThisWrite, _) => seat.let_go(),
                (Entered::Continued, Ok(_)) => self.recorder.leases.written.count(),
                _ => {}
            }
            Ok(ran)
        })?;
        let error = match ran {
            Ok(Ok(answer)) => return Some(Ended::Well(answer)),
            Err(why) => return Some(Ended::Moved(why)),
            Ok(Err(error)) => error,
        };
        // After SQLITE_SCHEMA SQLite keeps the write lock for as long as something is being read.
        seat.end_lease();
        let why = Moved::after(error.sqlite_code());
        if reads.refused && why != Moved::LateRead {
            seat.suspect();
        }
        Some(if is_from_commit(&error) { Ended::Unsettled(error) } else { Ended::Moved(why) })
    }
}

/// Whether the file system failed, so that it has to be found out what became of the write. Everything else failed
/// before the commit, and was rolled back.
fn is_from_commit(error: &Error) -> bool {
    let code = error.sqlite_code().unwrap_or(ffi::SQLITE_ERROR);
    refused(code).is_none()
        && matches!(code & 0xff, ffi::SQLITE_IOERR | ffi::SQLITE_FULL | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOMEM)
}

impl Seat {
    /// The statement of `text`, if it is prepared here and short, and nothing is in the way of writing now; and the state of
    /// the WAL.
    fn fit(&mut self, text: &Text, limits: &InlineLimits) -> Option<(Arc<Ready>, WalState)> {
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
    pub(super) fn short_write(&mut self, text: &Text, limits: &InlineLimits) -> Option<Arc<Ready>> {
        let ready = self.known(text)?;
        let write = ready.inline_write()?;
        (!write.changes_existing_rows || text.has_short_history(limits.time)).then(|| ready.clone())
    }
}
