//! The writer's rounds: take requests, run them, answer them.
//!
//! Owns: the loop of `fw-writer`, and what one round does with its requests, on whichever thread it runs. Invariant:
//! after a panic no caller waits for ever. Leaves out: what comes before and after a round (`slot`), and what the round
//! runs (`alone`, `group`, `perform`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::precise_pauses;

use super::choice::{Candidate, Choice};
use super::{alone, group, taken};
use crate::events::statement_event::ExecutedOn;
use crate::queue::metrics::PendingWrite;
use crate::queue::ticket::Ticket;
use crate::workers::outbox::Outbox;
use crate::workers::own_connections::lent_slot::LentSlot;
use crate::workers::perform::transaction;
use crate::workers::request::Request;
use crate::workers::shared_errors::may_come_of_a_close;
use crate::workers::work::{Ours, Work};
use crate::workers::writer::close_connection::{close, renew_if_spoilt};
use crate::workers::writer::demanded_checkpoint::append_or_cut;
use crate::workers::writer::known_schema::see_schema;
use crate::workers::writer::slot::{HeldConnection, Slot, enter};
use crate::workers::writer::writer_connection::WriterConnection;
use crate::workers::writer::{Writer, WriterShared, commit};
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::thread::current::mark_closure;
use flatwater_base::time::{SpinWait, later};
use flatwater_sql::statement_info::StatementInfo;

/// An `execute_many` or `batch` of more statements than this is not grouped.
const MEMBER_STATEMENTS: usize = 32;

/// A checkpoint waits no longer for the turn of this process.
const FOR_A_CHECKPOINT: Duration = Duration::from_millis(100);

impl Writer {
    /// Runs the request on this thread, which may block, if the token is free and no request waits. Otherwise returns
    /// the request. It waits for the turn of this process here, so that no other thread has to wake this one. A `Begin` or a
    /// `Close` is always returned, and so is a write that has to wait because the WAL grows too fast.
    pub(crate) fn run_here(&self, mut request: Request) -> Option<Request> {
        if matches!(request.work, Work::Begin(_) | Work::Snapshot | Work::Ours(Ours::Close(..)))
            || self.0.delays_writes(Instant::now())
        {
            return Some(request);
        }
        let Some(mut slot) = Slot::acquire_idle(self) else { return Some(request) };
        request.pending = Some(PendingWrite::new(self.0.pending_writes.clone()));
        let mut batch = vec![request];
        self.0.round_in(&mut slot, &mut batch, &mut Choice::made());
        None
    }

    /// Runs the loop of the writer's thread.
    pub(crate) fn run(&self) {
        if self.0.context.turnstile.is_some() {
            precise_pauses();
        }
        let mut batch = Vec::new();
        let mut spin = SpinWait::new();
        let mut free_since = Instant::now();
        while let Some(mut slot) = Slot::wait(self) {
            spin.waited(free_since.elapsed());
            let mut choice = Choice::new(self.0.context.options.group);
            taken::take(&self.0, &mut batch, &mut choice);
            if self.0.round_in(&mut slot, &mut batch, &mut choice) {
                // Nothing runs after the last request.
                return slot.close();
            }
            drop(slot);
            free_since = Instant::now();
            spin.look(|| self.0.pending_writes.load(Ordering::Relaxed) != 0);
        }
    }
}

impl WriterShared {
    /// Runs one round; returns true if it was the last. More requests may join while `choice` takes them. A panic, which only
    /// a bug in this crate can cause, costs the requests of this round: their callers get an error, and the connection is
    /// replaced.
    pub(crate) fn round_in(&self, slot: &mut Slot<'_>, batch: &mut Vec<Request>, choice: &mut Choice) -> bool {
        let writes = batch.len();
        slot.run(|writer, outbox| {
            let ran = catch_unwind(AssertUnwindSafe(|| mark_closure(|| self.round(writer, batch, choice, outbox))));
            if writer.is_lent() {
                return false;
            }
            let left = writer.wal_now();
            self.leave(writer, left.as_ref(), Instant::now());
            if self.context.policy.limits().is_some() {
                see_schema(writer, &self.context.catalogue.left);
            }
            let was_last = ran.unwrap_or_else(|_| {
                batch.clear();
                writer.replace();
                self.context.recorder.replaced_connection();
                false
            });
            // A trial of the queue ends only with rounds, on whichever thread they run.
            self.context.policy.ran_round(&mut writer.router, writes, Instant::now());
            was_last
        })
    }

    /// Runs `f`, and once more if that may help: on another connection if a file could only be opened for reading, or
    /// when there is room again if the disk was full. In these cases `f` must have done nothing.
    pub(crate) fn twice<T>(
        &self,
        writer: &mut WriterConnection,
        mut f: impl FnMut(&mut WriterConnection) -> Result<T>,
    ) -> Result<T> {
        writer.room.begin();
        match f(writer) {
            Err(error) if writer.reopens_after(&error) => {
                self.context.recorder.replaced_connection();
                f(writer)
            }
            Err(full) if full.kind() == ErrorKind::Full && self.has_room_again(writer, &full) => match f(writer) {
                // The first error tells more, unless the second attempt may have written.
                Err(again) if again.kind() != ErrorKind::CommitUnknown => Err(full),
                done => done,
            },
            done => done,
        }
    }

    fn round(
        &self,
        writer: &mut HeldConnection,
        batch: &mut Vec<Request>,
        choice: &mut Choice,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        if matches!(&**batch, [Request { work: Work::Ours(Ours::GoOn), .. }]) {
            // The transaction has the connection.
            transaction::go_on(writer, self, outbox);
            batch.clear();
            return false;
        }
        enter(self, writer);
        taken::start_from(self, 0, batch, outbox);
        if let Some(refusal) = writer.refusal().or_else(|| self.is_left().then(Error::closed)) {
            self.refuse_writes(batch, outbox, &refusal);
        }
        self.take_turn(writer, batch);
        match (batch.len(), self.context.options.group) {
            (0, _) => {}
            (count, Some(limits)) if count > 1 || choice.is_open() && writer.gathering.expects_others() => {
                self.ongoing.note("a group of writes");
                group::run_group(writer, self, limits, batch, choice, outbox);
            }
            _ => {
                for request in batch.drain(..) {
                    if self.single(writer, request, outbox) {
                        return true;
                    }
                }
                if !writer.is_lent() && writer.gathering.goes_on() {
                    writer.gathering.committed_alone(self.queue.len());
                }
            }
        }
        false
    }

    /// Waits for the turn of this process, if others are in line, for as long as the requests want to wait for the lock.
    fn take_turn(&self, writer: &HeldConnection, batch: &mut [Request]) {
        let Some(turnstile) = &self.context.turnstile else { return };
        if !batch.iter().any(|request| request.work.describe().takes_turn()) {
            return;
        }
        turnstile.before_write(|| {
            match batch {
                [Request { work: Work::Ours(Ours::InSlot(_)), .. }] => {
                    writer.busy_timeout.until_for_all(later(Instant::now(), FOR_A_CHECKPOINT));
                }
                [one] => writer.wait_for_locks(*one.lock_since.get_or_insert_with(Instant::now), &one.ticket),
                _ => group::wait_for_lock(writer, self, batch),
            }
            &writer.busy_timeout
        });
    }

    fn single(&self, writer: &mut HeldConnection, request: Request, outbox: &mut Outbox<'_>) -> bool {
        if matches!(request.work, Work::Begin(_) | Work::Snapshot) {
            transaction::serve(writer, self, request, outbox);
            return false;
        }
        if matches!(request.work, Work::Slot) {
            self.ongoing.note("a transaction of a connection");
            let lent = LentSlot::lent(self, writer);
            outbox.finish(request, lent.ok_or_else(Error::closed).map(LentSlot::answer));
            return false;
        }
        let Request { ticket, work, reply_to, lock_since, pending, .. } = request;
        if let Work::Ours(Ours::Close(before, after)) = work {
            self.ongoing.note_closing();
            let wait = before();
            close(writer, wait);
            after();
            return true;
        }
        if let Work::Ours(Ours::Settle(unsettled)) = work {
            writer.wait_for_locks(Instant::now(), &ticket);

            let error = commit::settle_unsettled(writer, self, &unsettled);
            outbox.answer(unsettled.kind, &ticket, reply_to, Err(error));
            return false;
        }
        if let Work::Ours(Ours::InSlot(closure)) = work {
            self.ongoing.note("a checkpoint");
            writer.busy_timeout.until_for_all(Instant::now());
            closure(&mut || commit::smallest(writer));
            // The checkpointer has looked for the tables before it came here.
            if self.context.is_beside_litestream() {
                append_or_cut(writer);
            }
            return false;
        }
        let kind = work.describe().kind;
        let since = lock_since.unwrap_or_else(Instant::now);
        self.ongoing.note_running(&ticket, &work);
        let started = ticket.note_start(ExecutedOn::Writer, || writer.busy_timeout.waited());
        let result = alone::run_alone(writer, self, work, &ticket, since).map_err(|error| self.ended(error, &ticket));
        ticket.note_end(started, || writer.busy_timeout.waited());
        drop(pending);
        if result.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io)) {
            renew_if_spoilt(writer, true);
        }
        outbox.answer(kind, &ticket, reply_to, result);
        false
    }

    fn refuse_writes(&self, batch: &mut Vec<Request>, outbox: &mut Outbox<'_>, refusal: &Error) {
        let refused: Vec<_> = batch
            .extract_if(.., |request| {
                let is = request.work.describe();
                !(is.only_reads() || is.is_ours())
            })
            .collect();
        for request in refused {
            outbox.finish(request, Err(refusal.clone()));
        }
    }

    /// Returns the error for the caller: what was interrupted because the database closes, waited for a lock no longer, or
    /// had its commit refused for that reason, gets the error of a closed database.
    pub(crate) fn ended(&self, error: Error, ticket: &Ticket) -> Error {
        if may_come_of_a_close(&error) && (ticket.is_ended() || self.is_left()) { Error::closed() } else { error }
    }

    /// Returns the properties of a request that matter for the choice of a group.
    pub(crate) fn candidate(&self, request: &Request) -> Candidate {
        let epoch = self.context.catalogue.epoch();
        let options = request.ticket.options;
        let may_share = !request.must_be_alone && !options.alone && !options.read_only;
        // A grouped write is not interrupted, so what was never run is not grouped if it has a deadline.
        let may_be_tried = request.ticket.deadline.is_none();
        let short = self.context.options.group.map_or(Duration::ZERO, |limits| limits.time);
        let may_be_member = |text: &StatementInfo| {
            if may_be_tried { text.may_be_member(epoch, short) } else { text.is_groupable(epoch, short) }
        };
        let work = &request.work;
        let Some((_, bytes)) = work.runs().filter(|(runs, _)| *runs <= MEMBER_STATEMENTS) else {
            return Candidate { groupable: false, bytes: 0 };
        };
        Candidate { groupable: may_share && work.texts().all(|text| may_be_member(text)), bytes }
    }
}
