//! Short statements of a connection of a caller, on the thread that polls their call.
//!
//! Owns: which run there, and what follows. Runs on callers' threads, under the lock of the inbox, for no longer than a
//! stay in an open transaction. Invariants: nothing waits that was sent before; a statement waits for nothing, neither
//! for the turn nor for a lock of the file, and prepares nothing; what fails leaves nothing behind, and a helper thread
//! runs it again. Leaves out: the limits of such a run (`inline_access`), statements in an open transaction of the
//! database (`transaction_connection`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::known_schema::{has_seen_schema, has_settled_schema};
use super::super::transaction_connection::{run_short, short_statement};
use super::run::Own;
use super::{End, OwnConnection};
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, Result};
use crate::inline::limits::InlineLimits;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::sql::schema_seen::LeftWal;
use crate::workers::Answer;
use crate::workers::work::Work;

impl OwnConnection {
    /// Runs the work on this thread now, if it is known to be short and the connection is at rest.
    pub(super) fn run_short(&self, work: &Work, limits: &InlineLimits, began: Instant) -> InlineRun<Result<Answer>> {
        let mut inbox = self.lock();
        let Some(writer) = &self.given.writer else { return InlineRun::Ineligible };
        if inbox.end.is_some() || inbox.closes || inbox.ended.is_some() || self.has_callbacks.load(Ordering::Acquire) {
            return InlineRun::Ineligible;
        }
        let Some(mut own) = inbox.resting.take() else { return InlineRun::Ineligible };
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let run = own.run_short(work, limits, began, &writer.0.context.catalogue.left);
            (run, own)
        }));
        match ran {
            Ok((run, mut own)) if has_lost_transaction(&own) => {
                // The turn is given back without the lock: live queries run, and callers are woken.
                drop(inbox);
                self.note(own.rest());
                put_to_rest(self, own);
                run
            }
            Ok((run, mut own)) => {
                if !matches!(run, InlineRun::Ineligible) {
                    self.note(own.rest());
                }
                inbox.idle_since = Instant::now();
                inbox.resting = Some(own);
                run
            }
            Err(_) => {
                let error = Error::misuse("a fault inside Flatwater ended it; please report it");
                inbox.end = Some(End::Lost(error.clone()));
                drop(inbox);
                self.given.list.leave(self);
                InlineRun::Done(Err(error), began.elapsed())
            }
        }
    }
}

/// Puts the connection to rest, or has a thread serve what was sent meanwhile.
fn put_to_rest(of: &OwnConnection, own: Box<Own>) {
    let mut inbox = of.lock();
    if inbox.messages.is_empty() && !inbox.closes {
        inbox.resting = Some(own);
    } else {
        drop(inbox);
        of.serve_on_a_thread(own, None);
    }
}

/// Returns true if a statement has ended the transaction that has the turn.
fn has_lost_transaction(own: &Own) -> bool {
    own.turn.is_some() && own.connection.as_ref().is_some_and(|writer| writer.is_autocommit())
}

impl Own {
    fn run_short(
        &mut self,
        work: &Work,
        limits: &InlineLimits,
        began: Instant,
        left: &LeftWal,
    ) -> InlineRun<Result<Answer>> {
        let Some(ready) = self.eligible(work, limits, left) else { return InlineRun::Ineligible };
        let Some(writer) = &mut self.connection else { return InlineRun::Ineligible };
        let was_autocommit = writer.is_autocommit();
        match run_short(writer, &ready, work, limits, began) {
            None => InlineRun::Ineligible,
            Some((Ok(answer), took)) => InlineRun::Done(Ok(answer), took),
            // SQLite has ended the transaction.
            Some((Err(error), took)) if !was_autocommit && writer.is_autocommit() => InlineRun::Done(Err(error), took),
            Some((Err(error), took)) => InlineRun::FellBack(Fallback::after(error.sqlite_code()), took),
        }
    }

    /// Returns the statement of the work, if it is one short statement: a read outside of a transaction, or any in one
    /// that has begun to write, where nobody else can change the schema.
    fn eligible(&mut self, work: &Work, limits: &InlineLimits, left: &LeftWal) -> Option<Arc<CachedStatement>> {
        let (text, _) = work.statement()?;
        let (has_turn, defined) = (self.turn.is_some(), self.effects.defined);
        let writer = self.connection.as_mut().filter(|writer| !writer.is_suspect)?;
        let (state, _) = writer.wal_now()?;
        let is_known = match writer.is_autocommit() {
            true => has_seen_schema(writer, &state, left),
            false => has_turn && !defined && has_settled_schema(writer),
        };
        let only_reads = work.describe().only_reads();
        if !is_known || !(only_reads || has_turn) {
            return None;
        }
        short_statement(writer, text, only_reads, limits)
    }
}
