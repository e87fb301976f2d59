//! A snapshot on its caller's thread: beginning it, its short reads, and its end.
//!
//! Owns: these steps, on an idle connection that is held for the snapshot. Runs on the thread that polls a call, and on the one
//! that drops the handle. Waits for nothing but the pool's lock. Invariants: a snapshot begins here only with the schema that its
//! connection has seen, so that what is known of texts holds while it is open; a step that does not succeed changes nothing, and a
//! reader's thread does it; a connection that can be used again is not closed here. Leaves out: one read (`inline_read`), the
//! order of messages (`read_session`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::inline_read::{InlineQuery, Lent};
use super::pool::Pool;
use super::read_session::{ReadSession, ended_by_statement};
use super::reader::{Reader, SnapshotSchema};
use super::{Readers, ReadersShared};
use crate::connection::EngineConnection;
use crate::connection::run::inline_run;
use crate::options::Options;
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::shared_errors::fault;
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};

impl Readers {
    /// Begins a snapshot on this thread, if a connection is idle and knows the schema.
    pub(crate) fn begin_snapshot_inline(&self, permit: &Permit<'_>) -> InlineRun<Result<Answer>> {
        let shared = &self.0;
        let busy = InlineRun::Ineligible(NotTried::Busy);
        let Some(mut lent) = Lent::of(self, |pool| pool.may_hold(&shared.context.options)) else { return busy };
        let Some(reader) = &mut lent.reader else { return busy };
        lent.is_sound = false;
        let begun = reader.begin_snapshot_here(shared, permit);
        lent.is_sound = reader.is_usable() && !reader.connection.is_spoilt();
        match begun {
            None => InlineRun::Ineligible(NotTried::Other),
            Some(Err(why)) => InlineRun::FellBack(why, permit.held_until_now()),
            Some(Ok(())) => match lent.hold() {
                Some(reader) => {
                    InlineRun::Done(Ok(shared.keep(reader, None, None, permit.began)), permit.held_until_now())
                }
                None => InlineRun::Ineligible(NotTried::Other),
            },
        }
    }
}

impl Lent<'_> {
    /// Takes the connection, which has a snapshot and is held from now on. Returns `None` if it may not be: then the snapshot
    /// ends.
    fn hold(mut self) -> Option<Box<Reader>> {
        let shared = &self.readers.0;
        if shared.lock().hold_lent(&shared.context.options) {
            // The drop of this value counts it out of the pool, where another one may be opened in its place.
            return self.reader.take();
        }
        self.is_sound = self.reader.as_mut().is_some_and(|reader| reader.end_held());
        None
    }
}

impl Pool {
    /// Returns true if another connection may be held, and no request waits for that.
    fn may_hold(&self, options: &Options) -> bool {
        self.holding.is_empty() && self.held < options.extra_readers
    }

    /// The connection that was lent counts as held from now on. Returns false if it may not be.
    fn hold_lent(&mut self, options: &Options) -> bool {
        let may_hold = !self.closed && self.may_hold(options);
        self.held += usize::from(may_hold);
        may_hold
    }
}

impl Reader {
    /// Begins a read transaction, if the schema in it is the one that this connection has seen. Returns `None` if nothing was
    /// tried.
    fn begin_snapshot_here(&mut self, shared: &ReadersShared, permit: &Permit<'_>) -> Option<Result<(), Fallback>> {
        let knows_too_little = self.epoch != shared.context.catalogue.epoch() || self.connection.is_behind();
        // SQLite begins in each attached file, which may recover one.
        if knows_too_little || self.connection.has_lost_function() || !self.connection.attached.names.is_empty() {
            return None;
        }
        if !self.end_lease() {
            return None;
        }
        self.busy_timeout.never();
        let guarded = inline_run::begin(permit, &self.connection.sqlite)?;
        let EngineConnection { sqlite, control, schema, .. } = &mut self.connection;
        let cookie = match control.begin_read(sqlite) {
            Ok(()) => schema.cookie(sqlite).map_err(|error| Fallback::after(error.sqlite_code())),
            Err(error) => Err(Fallback::after(error.code())),
        };
        drop(guarded);
        let begun = match cookie {
            Ok(cookie) if schema.seen.is(cookie) => Ok(()),
            Ok(_) => Err(Fallback::SchemaChanged),
            Err(why) => Err(why),
        };
        if begun.is_ok() {
            self.in_snapshot = Some(SnapshotSchema::Seen);
        } else {
            // If it fails, the connection is not between two reads, and is closed.
            let _ = control.rollback(sqlite);
        }
        Some(begun)
    }

    /// Runs the query, if it is known to be short in this snapshot.
    fn read_in_snapshot(&mut self, shared: &ReadersShared, tried: InlineQuery<'_>) -> InlineRun<Result<Answer>> {
        if self.in_snapshot != Some(SnapshotSchema::Seen) {
            return InlineRun::Ineligible(NotTried::Other);
        }
        let short = match self.short(shared, &tried) {
            Ok(short) => short,
            Err(why) => return InlineRun::Ineligible(why),
        };
        let (run, _) = self.run_inline(shared, &short, true, tried);
        if matches!(run, InlineRun::Done(Ok(_), _)) {
            self.connection.statements.give_back(short);
        }
        run
    }
}

impl ReadSession {
    /// Runs the query on this thread now, if it is known to be short, the session is at rest, and nothing waits that was sent
    /// before.
    pub(super) fn run_inline(self: &Arc<Self>, tried: InlineQuery<'_>) -> InlineRun<Result<Answer>> {
        let permit = tried.permit;
        let run = self.at_rest(|reader| {
            let run = catch_unwind(AssertUnwindSafe(|| reader.read_in_snapshot(self.pool(), tried)));
            let is_over = run.is_err() || !reader.is_in_snapshot();
            reader.panicked |= run.is_err();
            let run = run.unwrap_or_else(|_| InlineRun::Done(Err(fault()), permit.held_until_now()));
            let why = || match &run {
                InlineRun::Done(Err(error), _) => error.clone(),
                _ => ended_by_statement(),
            };
            let end = is_over.then(|| End::Lost(why()));
            (run, end)
        });
        run.unwrap_or(InlineRun::Ineligible(NotTried::Other))
    }

    /// Ends the snapshot on this thread, unless its connection is to be closed, or something still has to be done.
    pub(super) fn end_inline(self: &Arc<Self>) -> bool {
        let shared = self.pool();
        if shared.context.policy.limits().is_none() {
            return false;
        }
        let Some(mut reader) = self.take_to_end() else { return false };
        let usable = reader.end_held() && !shared.is_drained(&reader);
        let mut state = shared.lock();
        let left = if usable { state.adopt(Some(reader), &shared.context.options) } else { Some(reader) };
        let Some(reader) = left else {
            state.is_over(&self.ticket);
            shared.freed(state);
            let (_, requests) = self.close(End::Finished);
            debug_assert!(requests.is_empty(), "none is accepted after the end");
            return true;
        };
        drop(state);
        self.put_back_to_end(reader);
        true
    }
}
