//! Inline reads: a short query, or a short live query again, on the thread of a caller, on an idle connection where its statement
//! is prepared.
//!
//! Owns: borrowing a connection for an inline run, which live queries are eligible, and reporting the outcome. Runs on the thread
//! that polls a call, or whose commit invalidated the live query. Waits for nothing but the pool's lock: neither for a connection
//! nor for a lock of the file. Invariants: an inline run returns the result that a reader's thread would return, or the error of a
//! function of the user; otherwise it returns none, and a reader's thread runs the query; of a live query the schema is the one
//! under which it was found out what it reads. While the statement runs, this thread holds no lock. Leaves out: reads on the
//! readers' threads, and who delivers a live result (`workers::live`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::ffi;

use super::pool::Pool;
use super::reader::Reader;
use super::{Readers, ReadersShared};
use crate::connection::EngineConnection;
use crate::connection::learn::live_query::{Derived, LiveQuery, LiveRun};
use crate::connection::learn::schema::Known;
use crate::connection::run::execute::{Bounds, Output, StatementRun};
use crate::connection::run::inline_run;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};
use flatwater_base::time::later;
use flatwater_base::values::params::Params;
use flatwater_sql::statement_info::StatementInfo;

/// A query to run inline.
#[derive(Clone, Copy)]
pub(crate) struct InlineQuery<'a> {
    pub(crate) text: &'a StatementInfo,
    pub(crate) params: &'a Params,
    pub(crate) output: Output<'a>,
    pub(crate) permit: &'a Permit<'a>,
    /// The only schema under which it may run.
    pub(crate) cookie: Option<i64>,
    /// It may call timed functions: no lock is held that a thread with the lock of their host may wait for.
    pub(crate) calls_timed: bool,
}

impl Readers {
    /// Runs the query on this thread at once, if it is known to be short and an idle connection holds it prepared.
    pub(crate) fn run_inline(&self, tried: InlineQuery<'_>) -> InlineRun<Result<Answer>> {
        let shared = &*self.0;
        let busy = InlineRun::Ineligible(NotTried::Busy);
        let Some(mut lent) = Lent::of(self, |_| true) else { return busy };
        let Some(reader) = &mut lent.reader else { return busy };
        let short = match reader.short(shared, &tried) {
            Ok(short) => short,
            Err(why) => return InlineRun::Ineligible(why),
        };
        lent.is_sound = false;
        let Some(continues) = reader.enter(tried.permit.began) else { return InlineRun::Ineligible(NotTried::Other) };
        let (run, now) = reader.run_inline(shared, &short, continues, tried);
        let is_well = matches!(run, InlineRun::Done(Ok(_), _));
        if is_well {
            reader.connection.statements.give_back(short);
        }
        lent.is_sound = reader.leave(is_well, now);
        if let InlineRun::Done(_, held) = &run {
            lent.answered = Some(held.time());
        }
        run
    }
}

/// A connection borrowed for an inline run. Dropping this value gives the connection back, unless it is not sound:
/// after a panic the connection is closed.
pub(super) struct Lent<'a> {
    pub(super) readers: &'a Readers,
    /// `None`: it is closed, or held.
    pub(super) reader: Option<Box<Reader>>,
    /// No statement runs on the connection, and no code panicked while it used the connection.
    pub(super) is_sound: bool,
    /// How long the inline run took, if it returned a result.
    answered: Option<Duration>,
}

impl<'a> Lent<'a> {
    /// Borrows an idle connection, if the pool may lend one.
    pub(super) fn of(readers: &'a Readers, may_lend: impl FnOnce(&Pool) -> bool) -> Option<Self> {
        let mut pool = readers.0.lock();
        let reader = if may_lend(&pool) { pool.lend() } else { None };
        drop(pool);
        reader.map(|reader| Self { readers, reader: Some(reader), is_sound: true, answered: None })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let shared = &self.readers.0;
        let reader = self.reader.take().filter(|reader| self.is_sound && !shared.is_drained(reader));
        let mut state = shared.lock();
        state.take_back(reader);
        if let Some(took) = self.answered {
            state.tally.answered(took);
        }
        shared.freed(state);
    }
}

impl Pool {
    /// Takes the idle connection that was used last, if no request waits for one.
    fn lend(&mut self) -> Option<Box<Reader>> {
        if self.closed || !self.waiting.is_empty() { None } else { self.idle.pop() }
    }
}

impl Reader {
    /// Returns the statement of `text`, if it is prepared on this connection and known to be short.
    pub(super) fn short(
        &mut self,
        shared: &ReadersShared,
        tried: &InlineQuery<'_>,
    ) -> Result<Arc<CachedStatement>, NotTried> {
        if self.epoch != shared.context.catalogue.epoch() || self.connection.is_behind() {
            return Err(NotTried::Unknown);
        }
        let statement = self.connection.statements.lend(&mut self.connection.sqlite, tried.text);
        let statement = statement.ok_or(NotTried::Unknown)?;
        let is_short = statement.reads_shortly(tried.permit.limits) && (tried.calls_timed || !statement.calls_timed());
        match is_short {
            true => Ok(statement),
            false if statement.is_known() => Err(NotTried::Long),
            false => Err(NotTried::Unknown),
        }
    }

    /// Runs the query, in the snapshot of the lease if `continues`. Returns the outcome, and when the run ended.
    pub(super) fn run_inline(
        &mut self,
        shared: &ReadersShared,
        short: &CachedStatement,
        continues: bool,
        tried: InlineQuery<'_>,
    ) -> (InlineRun<Result<Answer>>, Instant) {
        let InlineQuery { permit, .. } = tried;
        let (limits, began) = (permit.limits, permit.began);
        self.busy_timeout.never();
        self.connection.lengths.lower(&mut self.connection.sqlite, limits.bytes);
        let end = later(began, limits.time);
        let Some(begun) = inline_run::begin(permit, &self.connection.sqlite) else {
            return (InlineRun::Ineligible(NotTried::Other), began);
        };
        let EngineConnection { sqlite, control, schema, .. } = &mut self.connection;
        let known =
            if continues { Ok(Known::Before) } else { schema.knows(sqlite, control, &shared.context.catalogue.left) };
        let is_schema = tried.cookie.is_none_or(|cookie| schema.seen.is(cookie));
        let ran = known.and_then(|known| {
            let bounds = Bounds::Inline { end: Some(end), rows: limits.rows, bytes: limits.bytes };
            let run = StatementRun { statement: short, params: tried.params.row(), output: tried.output, bounds };
            let outcome = if is_schema {
                match self.connection.execute(&run) {
                    // Without its snapshot no worker can run it.
                    Err(error) if self.in_snapshot.is_some() && !self.is_in_snapshot() => Ok(Err(error)),
                    Err(error) if !is_of_function(&error) => Err(Fallback::after(error.sqlite_code())),
                    outcome => Ok(outcome),
                }
            } else {
                Err(Fallback::SchemaChanged)
            };
            if known == Known::Held {
                self.connection.control.let_go(&mut self.connection.sqlite);
            }
            outcome
        });
        drop(begun);
        let now = Instant::now();
        let took = now.saturating_duration_since(began);
        short.read_inline_took(took, limits);
        permit.note_steps(self.connection.steps_of(short));
        if short.calls_timed() {
            permit.note_foreign_code();
        }
        let held = permit.held(took);
        let run = match ran {
            Ok(outcome) => InlineRun::Done(outcome.map(Answer::from), held),
            Err(why) => InlineRun::FellBack(why, held),
        };
        (run, now)
    }
}

/// Returns true for the error of a function of the user. A worker would report the same, and call the function once more.
fn is_of_function(error: &Error) -> bool {
    error.sqlite_code() == Some(ffi::SQLITE_ERROR) && std::error::Error::source(error).is_some()
}

impl Readers {
    /// Runs the live query on this thread at once, if it is one statement that is known to be short, and an idle connection
    /// holds it prepared. `known` is what it read the last time.
    pub(crate) fn run_live_inline(&self, query: &LiveQuery, known: &[Option<Derived>]) -> Option<Vec<LiveRun>> {
        let shared = &*self.0;
        let ([part], [Some(known)]) = (&*query.0, known) else { return None };
        let (text, params) = (&part.text.clone().for_values(&part.params.row()), &part.params);
        // The row that it looks up by a unique key is another statement.
        let found = known.finds_no_rows()?;
        let permit = &shared.context.policy.permit(false, params.heap_bytes(), || text.backoff.may_try()).ok()?;
        let (output, cookie) = (Output::Rows(usize::MAX), Some(known.cookie));
        let run = self.run_inline(InlineQuery { text, params, output, permit, cookie, calls_timed: false });
        shared.context.recorder.inline.tried(&run);
        shared.context.policy.tried(&text.backoff, permit.began, &run);
        match run {
            InlineRun::Done(Ok(Answer::Rows(rows)), _) => Some(vec![LiveRun { rows, derived: known.clone(), found }]),
            _ => None,
        }
    }
}
