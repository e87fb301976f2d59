//! Many rows, or a batch, as one inline run: a transaction of short writes, from its BEGIN to its COMMIT.
//!
//! Owns: that transaction, and which rows are eligible. Runs on the thread that polls a call. Never waits, neither for the
//! slot nor for a lock of the file. Invariants: all of the rows are committed, or nothing of them is left and a worker runs
//! them from the start, unless the COMMIT itself failed: then the writer's thread finds out what became of it; it never
//! pays for a checkpoint or a sync. Leaves out: many rows whose statement returns rows, which a worker runs; BEGIN and COMMIT (`transaction`), single statements
//! (`write`), rows in a caller's transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::gate::{self, Place};
use super::transaction::{begin, run_end};
use super::write::{Ended, INELIGIBLE, is_from_commit, tell};
use crate::connection::EngineConnection;
use crate::connection::run::statement_cache::CachedStatement;
use crate::queue::metrics::PendingWrite;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::request::Tried;
use crate::workers::work::{WantedOfRuns, Work};
use crate::workers::writer::inline_access::run_inline;
use crate::workers::writer::known_schema::has_settled_schema;
use crate::workers::writer::slot::Slot;
use crate::workers::writer::writer_connection::WriterConnection;
use crate::workers::writer::{Writer, WriterShared};
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::Fallback;
use flatwater_base::time::later;
use flatwater_base::values::outcome::RunResult;
use flatwater_base::values::param_rows::ParamRows;
use flatwater_sql::statement_info::StatementInfo;

/// What a text is expected to take at least, per row: so the number of rows has a limit whatever the clock tells.
const LEAST: Duration = Duration::from_nanos(100);

/// Rows that take so many times as long as they may are given up.
const LATE: u32 = 2;

/// Rows to run.
struct Rows<'a> {
    work: &'a Work,
    permit: &'a Permit<'a>,
    /// How long they may take as far as is known.
    time: Duration,
}

/// Runs the rows on this thread, if they are known to be short in all and the token is free.
pub(crate) fn run_rows_inline(writer: &Writer, work: &Work, permit: &Permit<'_>, options: CallOptions) -> Tried {
    let shared = &*writer.0;
    let rows = Rows { work, permit, time: permit.limits.together() };
    if !rows.are_short(shared.context.catalogue.epoch()) || !gate::may_write(shared, permit) {
        return INELIGIBLE;
    }
    let _pending = PendingWrite::new(&*shared.pending_writes);
    let Some(mut slot) = Slot::acquire_idle(writer) else { return INELIGIBLE };
    let Some((ended, took, change)) = slot.run(|writer, _| rows.run_in(shared, writer)) else {
        return INELIGIBLE;
    };
    tell(slot, ended, permit.held(took), change, work, options, permit.began)
}

impl Rows<'_> {
    /// Returns true if, as far as is known, all rows together take no longer than they may.
    fn are_short(&self, epoch: u64) -> bool {
        let mut left = self.time;
        texts(self.work).all(|(text, rows)| {
            let expected = text.expected_time(rows.len()).filter(|_| text.is_groupable(epoch, self.permit.limits.time));
            let least = LEAST.saturating_mul(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            let after = expected.and_then(|expected| left.checked_sub(expected.max(least)));
            after.inspect(|after| left = *after).is_some()
        })
    }

    /// Runs the rows, and leaves the slot as it is to be released. Returns how they ended, how long that took, and the
    /// change counter from before a commit that is unsettled; `None` if they did not begin.
    fn run_in(&self, shared: &WriterShared, writer: &mut WriterConnection) -> Option<(Ended, Duration, u32)> {
        gate::commit(writer)?;
        let statements = eligible(writer, self)?;
        if let Err(why) = begin(shared, writer, self.permit)? {
            return Some((Ended::Fallback(why), self.permit.began.elapsed(), 0));
        }
        let (ended, change) = self.run_and_commit(shared, writer, &statements);
        if !writer.is_autocommit() {
            writer.rollback();
        }
        let now = Instant::now();
        let took = now.saturating_duration_since(self.permit.began);
        let left = writer.wal_now();
        shared.leave(writer, left.as_ref(), now);
        shared.context.policy.wrote(&mut writer.router, self.permit.began, now);
        Some((ended, took, change))
    }

    /// Runs the rows in the transaction that is open, and commits it. After a failure it may still be open.
    fn run_and_commit(
        &self,
        shared: &WriterShared,
        writer: &mut WriterConnection,
        statements: &[Arc<CachedStatement>],
    ) -> (Ended, u32) {
        let fallback = |why| (Ended::Fallback(why), 0);
        if !has_settled_schema(writer) {
            return fallback(Fallback::SchemaChanged);
        }
        // Whether the WAL starts over was decided by BEGIN, whatever is copied out of it from now on.
        let Some((state, _)) = gate::commit(writer) else { return fallback(Fallback::Locked) };
        let answer = match run_inline(writer, self.permit, |writer| run_rows(writer, self, statements)) {
            Some(Ok(Some(answer))) => answer,
            Some(Ok(None)) => return fallback(Fallback::Late),
            Some(Err(error)) => return fallback(Fallback::after(error.sqlite_code())),
            None => return fallback(Fallback::Failed),
        };
        let ended = match run_end(writer, true, self.permit) {
            Some(Ok(())) => Ended::Well(answer),
            Some(Err(error)) if writer.is_autocommit() && is_from_commit(&error) => {
                shared.context.recorder.commit_failed(&error);
                Ended::Unsettled(error)
            }
            Some(Err(error)) => Ended::Fallback(Fallback::after(error.sqlite_code())),
            None => Ended::Fallback(Fallback::Failed),
        };
        (ended, state.change())
    }
}

/// Returns the statement of each text, if all are prepared here and short.
fn eligible(writer: &mut WriterConnection, rows: &Rows<'_>) -> Option<Vec<Arc<CachedStatement>>> {
    let returns_what_is_wanted = |ready: &CachedStatement| match rows.work {
        Work::Batch(_) => true,
        Work::Many { wanted: WantedOfRuns::Rows, .. } => false,
        _ => ready.class.columns == 0,
    };
    let is_eligible =
        |ready: &Arc<CachedStatement>| ready.class.change_function.is_none() && returns_what_is_wanted(ready);
    texts(rows.work)
        .map(|(text, _)| gate::write(writer, text, Place::Inside, rows.permit.limits).filter(is_eligible))
        .collect()
}

/// Runs the statements of the work. Returns `None` if they take too long.
fn run_rows(
    writer: &mut WriterConnection,
    rows: &Rows<'_>,
    statements: &[Arc<CachedStatement>],
) -> Result<Option<Answer>> {
    let connection = writer.connection()?;
    let all = statements.iter().zip(texts(rows.work));
    if let Work::Batch(of) = rows.work {
        let mut results = Vec::with_capacity(of.len());
        for (ready, (_, params)) in all {
            if !run_text(connection, rows, ready, params, |result| results.push(result))? {
                return Ok(None);
            }
        }
        return Ok(Some(Answer::Batch(results)));
    }
    let mut changes = 0;
    for (ready, (_, params)) in all {
        if !run_text(connection, rows, ready, params, |result| changes += result.changes)? {
            return Ok(None);
        }
    }
    Ok(Some(Answer::Changes(changes)))
}

/// Runs one statement with its rows, and records how long each took. Returns false if they take too long.
fn run_text(
    connection: &mut EngineConnection,
    rows: &Rows<'_>,
    ready: &CachedStatement,
    params: &ParamRows,
    mut each: impl FnMut(RunResult),
) -> Result<bool> {
    let (began, mut runs) = (Instant::now(), 0);
    let limits = (later(rows.permit.began, rows.time.saturating_mul(LATE)), rows.permit.limits.bytes);
    let ran = connection.execute_each_inline(ready, params.rows(), limits, &mut |result| {
        runs += 1;
        each(result);
    });
    let why = ran.as_ref().err().map(|error| Fallback::after(error.sqlite_code()));
    // What other connections did, or which rows the table held, does not show how long the text takes.
    if why.is_none_or(Fallback::tells_its_time) && runs > 0 {
        ready.text.took(rows.permit.limits.counted(began.elapsed() / runs));
    }
    if let Some(why) = why {
        ready.text.backoff.fell_back(why);
    }
    ran
}

/// The texts of the work with their rows.
fn texts(work: &Work) -> impl Iterator<Item = (&StatementInfo, &ParamRows)> {
    let (one, several) = match work {
        Work::Many { text, rows, .. } => (Some((&**text, rows)), &[][..]),
        Work::Batch(statements) => (None, statements.texts()),
        _ => (None, &[][..]),
    };
    one.into_iter().chain(several.iter().map(|(text, rows)| (&**text, rows)))
}
