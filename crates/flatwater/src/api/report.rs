//! The event of one call, from its first poll until it is sent.
//!
//! Owns: whether anyone listens, what the event says besides the record, and sending it once. Runs on the thread that polls or
//! drops the call, which holds no lock of this crate then. Invariants: without a listener nothing is allocated and no clock is
//! read; a report is sent exactly once, or belongs to a collection that is. Leaves out: the record, which the workers fill
//! (`queue::metrics`), and what an event is (`statement_event`).

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::engine::caller::Caller;
use crate::engine::handle::Handle;
use crate::engine::opening::CancelOutcome;
use crate::events;
use crate::events::statement_event::{ExecutedOn, StatementEvent, is_telling, tell};
use crate::queue::metrics::{CallRecord, Known};
use crate::workers::Answer;
use crate::workers::work::Work;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result, shorten};
use flatwater_base::thread::lock;

/// A call that is to be reported.
pub(crate) struct Report {
    handle: Arc<Handle>,
    operation: &'static str,
    texts: Texts,
    in_transaction: bool,
    pub(crate) record: Arc<CallRecord>,
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
            texts: work.map_or(Texts::None, Texts::of),
            in_transaction: caller.inside.is_some() && !caller.options.read_only,
            record: CallRecord::begin(),
        }))
    }

    /// Notes that the work ran on this thread, for so long.
    pub(crate) fn ran_here(&self, took: Duration, answer: &Result<Answer>) {
        self.record.runs(ExecutedOn::Caller, self.record.began, Duration::ZERO, Some(took));
        self.record.answered(answer.as_ref().map(Answer::numbers).unwrap_or_default());
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
            self.record.forget();
        }
        self.finish(Some(Error::new(ErrorCode::GivenUp, message)), into);
    }

    fn finish(self, error: Option<Error>, into: Option<&Collection>) {
        let known = self.record.read();
        if let Some(collection) = into {
            return collection.add(self, known, error);
        }
        let total = self.record.began.elapsed();
        self.send(known, error.as_ref(), total, total);
    }

    /// Calls whoever listens. `own` is the part of the total that is not the caller's.
    fn send(self, known: Known, error: Option<&Error>, total: Duration, own: Duration) {
        let options = &self.handle.context().options;
        let (rows, changes) = known.numbers;
        let sql = self.texts.sql();
        let mut event = StatementEvent {
            path: &options.path,
            operation: self.operation,
            sql: sql.as_deref(),
            in_transaction: self.in_transaction,
            ran_on: known.ran_on,
            queue: known.queue,
            lock: known.lock,
            run: known.run,
            total,
            rows,
            changes,
            error,
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

/// What a call asks SQLite to run.
enum Texts {
    None,
    /// The statement that the call stands for.
    Control(&'static str),
    Each(Vec<Arc<str>>),
}

impl Texts {
    fn of(work: &Work) -> Self {
        work.control_sql()
            .map_or_else(|| Self::Each(work.text_of_each().map(|text| text.sql.clone()).collect()), Self::Control)
    }

    /// Returns them as one, as an event has them.
    fn sql(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::None => None,
            Self::Control(sql) => Some(Cow::Borrowed(*sql)),
            Self::Each(texts) => match &**texts {
                [] => None,
                [one] => Some(Cow::Borrowed(one)),
                texts => Some(texts.join("; ").into()),
            },
        }
    }
}

/// The reports of the calls of one stream or cursor, which are sent as one when it is dropped.
#[derive(Default)]
pub(crate) struct Collection(Mutex<Option<(Report, Known, Option<Error>)>>);

impl Collection {
    fn add(&self, report: Report, more: Known, error: Option<Error>) {
        let mut first = lock(&self.0);
        let Some((_, known, first_error)) = &mut *first else {
            *first = Some((report, more, error));
            return;
        };
        known.queue += more.queue;
        known.lock += more.lock;
        known.run += more.run;
        let (rows, _) = &mut known.numbers;
        *rows = rows.map(|rows| rows + more.numbers.0.unwrap_or(0));
        // A batch that was being fetched when the cursor was dropped was not asked for.
        let error = error.filter(|error| error.kind() != ErrorKind::Cancelled);
        *first_error = first_error.take().or(error);
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        let first = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((report, known, error)) = first.filter(|(report, ..)| !report.handle.is_inherited()) {
            let total = report.record.began.elapsed();
            report.send(known, error.as_ref(), total, known.queue + known.lock + known.run);
        }
    }
}
