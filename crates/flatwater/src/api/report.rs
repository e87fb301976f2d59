//! The event of one call, from its first poll until it is sent.
//!
//! Owns: whether anyone listens, what the event says, and sending it once. Runs on the thread that polls or drops the
//! call, which holds no lock of this crate then. Invariants: without a listener nothing is allocated and no clock is
//! read; a report is sent exactly once, or belongs to a collection that is. Leaves out: what the workers note
//! (`queue::metrics`), and what an event is (`statement_event`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::caller::Caller;
use crate::engine::handle::Handle;
use crate::engine::opening::CancelOutcome;
use crate::events;
use crate::events::statement_event::{ExecutedOn, StatementEvent, is_telling, tell};
use crate::queue::metrics::{Counts, Measured, MeasuredRun, RunMetrics};
use crate::workers::Answer;
use crate::workers::work::Work;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result, shorten};
use flatwater_base::thread::lock;
use flatwater_sql::statement_info::StatementInfo;

/// A call that is to be reported.
pub(crate) struct Report {
    handle: Arc<Handle>,
    operation: &'static str,
    text: Text,
    in_transaction: bool,
    submitted: Instant,
    pub(crate) metrics: Arc<RunMetrics>,
}

/// Returns true if someone listens to the calls of this caller.
#[inline]
pub(crate) fn is_heard(caller: &Caller) -> bool {
    let options = &caller.handle.context().options;
    let is_heard = options.on_statement.is_some()
        || caller.handle.is_heard()
        || events::statements_are_heard(options.slow_statement.is_some());
    is_heard && !is_telling()
}

/// What the call asks SQLite to run.
enum Text {
    /// Of this crate's own.
    Control(&'static str),
    Of(Vec<Arc<StatementInfo>>),
}

/// How a call went.
#[derive(Default)]
struct Facts {
    ran_on: Option<ExecutedOn>,
    queue: Duration,
    lock: Duration,
    run: Duration,
    counts: Counts,
    error: Option<Error>,
}

impl Report {
    /// Returns the report of a call that begins now, if anyone listens. `work` is `None` if the call was refused.
    #[inline]
    pub(crate) fn begin(caller: &Caller, operation: &'static str, work: Option<&Work>) -> Option<Box<Self>> {
        if is_heard(caller) { Self::begin_heard(caller, operation, work) } else { None }
    }

    #[cold]
    fn begin_heard(caller: &Caller, operation: &'static str, work: Option<&Work>) -> Option<Box<Self>> {
        // A forked process has none of the threads that the listener may rely on.
        if work.is_some_and(Work::only_prepares) || caller.handle.is_inherited() {
            return None;
        }
        Some(Box::new(Self {
            handle: caller.handle.clone(),
            operation,
            text: work.map_or_else(|| Text::Of(Vec::new()), Text::of),
            in_transaction: caller.inside.is_some() && !caller.options.read_only,
            submitted: Instant::now(),
            metrics: Arc::default(),
        }))
    }

    /// Notes that the work ran on this thread, for so long.
    pub(crate) fn ran_here(&self, took: Duration, answer: &Result<Answer>) {
        self.metrics.runs(MeasuredRun {
            ran_on: ExecutedOn::Caller,
            began: self.submitted,
            lock: Duration::ZERO,
            run: Some(took),
        });
        self.metrics.counted(answer.as_ref().map_or(Counts::default(), Answer::counts));
    }

    /// Ends the report of a call with this answer: sends it, or adds it to the collection.
    pub(crate) fn end(self, answer: &Result<Answer>, into: Option<&Collection>) {
        let error = match answer {
            Ok(Answer::Returned(_, error)) => error.clone(),
            answer => answer.as_ref().err().cloned(),
        };
        self.finish(error, into);
    }

    /// Ends the report of a call that was dropped.
    pub(crate) fn dropped(self, cancelled: CancelOutcome, into: Option<&Collection>) {
        let message = match cancelled {
            CancelOutcome::Withdrawn => "the caller dropped the call before it ran",
            CancelOutcome::ReadInterrupted => "the caller dropped the call while it ran; the read was interrupted",
            CancelOutcome::WriteInterrupted => "the caller dropped the call while it ran; it was rolled back",
            CancelOutcome::WriteRunning => "the caller dropped the call while it ran; the write completes",
            CancelOutcome::Answered => "the caller dropped the call after it ended",
        };
        if cancelled == CancelOutcome::Withdrawn {
            // A write of a lost group had begun, and its run was undone.
            self.metrics.forget();
        }
        self.finish(Some(Error::new(ErrorCode::GivenUp, message)), into);
    }

    fn facts(&self, error: Option<Error>) -> Facts {
        let Measured { run, lock_before, counts } = self.metrics.read();
        let Some(MeasuredRun { ran_on, began, lock, run }) = run else {
            return Facts { queue: self.submitted.elapsed(), error, ..Facts::default() };
        };
        let queue = began.saturating_duration_since(self.submitted).saturating_sub(lock_before);
        let lock = lock_before + lock;
        let run = run.unwrap_or_else(|| began.elapsed());
        Facts { ran_on: Some(ran_on), queue, lock, run, counts, error }
    }

    fn finish(self, error: Option<Error>, into: Option<&Collection>) {
        let facts = self.facts(error);
        match into {
            Some(collection) => collection.add(self, facts),
            None => {
                let total = self.submitted.elapsed();
                self.send(&facts, total, total);
            }
        }
    }

    /// Calls whoever listens. `own` is the part of the total that is not the caller's.
    fn send(self, facts: &Facts, total: Duration, own: Duration) {
        let options = &self.handle.context().options;
        let sql = self.text.sql();
        let mut event = StatementEvent {
            path: &options.path,
            operation: self.operation,
            sql: sql.as_deref(),
            in_transaction: self.in_transaction,
            ran_on: facts.ran_on,
            queue: facts.queue,
            lock: facts.lock,
            run: facts.run,
            total,
            rows: facts.counts.rows,
            changes: facts.counts.changes,
            error: facts.error.as_ref(),
            is_slow: options.slow_statement.is_some_and(|limit| own >= limit),
        };
        for listener in options.on_statement.iter().chain(&self.handle.listener()) {
            tell(|| (listener.0)(&event));
        }
        let short = sql.as_deref().map(shorten);
        event.sql = short.as_deref();
        tell(|| events::statement(&event));
    }
}

impl Text {
    fn of(work: &Work) -> Self {
        work.control_sql().map_or_else(|| Self::Of(work.text_of_each().cloned().collect()), Self::Control)
    }

    fn sql(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Control(text) => Some((*text).into()),
            Self::Of(texts) => match &**texts {
                [] => None,
                [text] => Some((&*text.sql).into()),
                texts => Some(texts.iter().map(|text| &*text.sql).collect::<Vec<_>>().join("; ").into()),
            },
        }
    }
}

/// The reports of the calls of one stream or cursor, which are sent as one when it is dropped.
#[derive(Default)]
pub(crate) struct Collection(Mutex<Option<(Report, Facts)>>);

impl Collection {
    fn add(&self, report: Report, more: Facts) {
        let mut first = lock(&self.0);
        let Some((_, facts)) = &mut *first else {
            *first = Some((report, more));
            return;
        };
        facts.queue += more.queue;
        facts.lock += more.lock;
        facts.run += more.run;
        facts.counts.rows = facts.counts.rows.map(|rows| rows + more.counts.rows.unwrap_or(0));
        // A batch that was being fetched when the cursor was dropped was not asked for.
        let error = more.error.filter(|error| error.kind() != ErrorKind::Cancelled);
        facts.error = facts.error.take().or(error);
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        let first = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((report, facts)) = first.filter(|(report, _)| !report.handle.is_inherited()) {
            let total = report.submitted.elapsed();
            report.send(&facts, total, facts.queue + facts.lock + facts.run);
        }
    }
}
