//! Inline runs: trying a call on its caller's thread, and recording the outcome.
//!
//! Owns: the step from a call to an inline run. Runs on the thread that begins the call, and waits for nothing. Leaves
//! out: which calls are short enough, which the workers decide.

use std::sync::Arc;
use std::time::Instant;

use super::dispatch::{Begun, Route};
use crate::engine::Engine;
use crate::error::Result;
use crate::inline::budget;
use crate::inline::eligibility::RunPlace;
use crate::inline::limits::InlineLimits;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::sql::catalogue::StatementInfo;
use crate::thread::block_on::mark_closure;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::nesting::Inside;
use crate::workers::readers::InlineQuery;
use crate::workers::tried::Tried;
use crate::workers::work::{Wanted, Work};
use crate::workers::writer::{begin_inline, run_rows_inline};

impl Engine {
    /// Runs the work on this thread at once and without waiting, if it is known to be short. The work is
    /// to be sent if it did not run, or fell back.
    pub(super) fn run_inline<'a>(&self, route: Route<'a>, work: &Work, options: CallOptions) -> Begun<'a> {
        let Some(limits) = self.context.policy.limits().filter(|_| !options.never_inline) else {
            return Begun::ToSend(route);
        };
        if matches!(route, Route::Kept(kept) if !kept.runs_inline()) {
            self.context.recorder.inline.queued.count();
            return Begun::ToSend(route);
        }
        if work.describe().is_bracket() {
            return self.bracket_inline(route, work, limits);
        }
        if let Some((_, bytes)) = work.rows() {
            return rows_inline(&self.context, route, work, bytes, limits, options);
        }
        let Some((text, _)) = work
            .statement()
            .filter(|(text, params)| self.context.policy.may_try(route.place(), &text.backoff, params.heap_bytes()))
        else {
            self.context.recorder.inline.queued.count();
            return Begun::ToSend(route);
        };
        let began = Instant::now();
        // Foreign code that runs meanwhile, such as the receiver of the events, must not wait for this connection.
        let tried = mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { transaction, savepoints }), _) => {
                transaction.run_inline(work, savepoints, limits, began)
            }
            (Route::Readers(readers), Work::Query { text, params, wanted, .. }) => {
                // A front end holds a lock while it polls batches.
                let calls_timed = !matches!(wanted, Wanted::Batches);
                let (output, cookie) = (work.output(), None);
                let query = InlineQuery { text, params, output, limits, began, cookie, calls_timed };
                Tried::Ran(readers.run_inline(query))
            }
            (Route::Kept(kept), _) => kept.run_inline(work, limits, options, began),
            (Route::Readers(_), _) => Tried::Ran(InlineRun::Ineligible),
            (Route::Writer(writer), _) => writer.run_inline(work, limits, options, began),
        });
        let (run, unsettled) = parts(tried);
        if matches!(route, Route::Readers(_)) {
            self.context.recorder.tried_to_read(&run);
        } else {
            let is = work.describe();
            self.context.recorder.tried(is.kind, !is.only_reads(), &run);
        }
        self.context.policy.tried(&text.backoff, began, &run);
        begun(route, run, unsettled)
    }

    /// Begins or ends a transaction on this thread, does a step with a savepoint of one, or begins a snapshot.
    fn bracket_inline<'a>(&self, route: Route<'a>, work: &Work, limits: &InlineLimits) -> Begun<'a> {
        let began = Instant::now();
        let (run, unsettled) = parts(mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { transaction, savepoints }), _) => {
                transaction.run_inline(work, savepoints, limits, began)
            }
            (Route::Readers(readers), _) => Tried::Ran(readers.begin_snapshot_inline(limits, began)),
            (Route::Writer(writer), Work::Begin(rowid)) if self.context.policy.may_begin() => {
                Tried::Ran(begin_inline(writer, *rowid, limits, began))
            }
            _ => Tried::Ran(InlineRun::Ineligible),
        }));
        let is = work.describe();
        self.context.recorder.tried(is.kind, !is.only_reads(), &run);
        budget::spend(began, run.took());
        begun(route, run, unsettled)
    }

    /// Counts a call that suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.context.recorder.inline.yields.count();
    }
}

/// Runs rows of parameters on this thread, with so many bytes of values.
fn rows_inline<'a>(
    context: &Context,
    route: Route<'a>,
    work: &Work,
    bytes: usize,
    limits: &InlineLimits,
    options: CallOptions,
) -> Begun<'a> {
    let may_try = |text: &Arc<StatementInfo>| context.policy.may_try(RunPlace::Writer, &text.backoff, bytes);
    let writer = if let Route::Writer(writer) = route { Some(writer) } else { None };
    // Each text counts a use, also after one that may not be tried.
    let Some(writer) = writer.filter(|_| work.texts().filter(|text| !may_try(text)).count() == 0) else {
        context.recorder.inline.queued.count();
        return Begun::ToSend(route);
    };
    let began = Instant::now();
    let (run, unsettled) = parts(mark_closure(|| run_rows_inline(writer, work, limits, options, began)));
    context.recorder.tried(work.describe().kind, true, &run);
    // A text that is to blame for a fallback was told.
    if matches!(run, InlineRun::Done(..)) {
        work.texts().for_each(|text| text.backoff.tried(&run));
    }
    budget::spend(began, run.took());
    begun(route, run, unsettled)
}

/// Returns the run, and the reply that says what became of it if it cannot know.
fn parts(tried: Tried) -> (InlineRun<Result<Answer>>, Option<Reply<Result<Answer>>>) {
    match tried {
        Tried::Ran(run) => (run, None),
        Tried::Unsettled(reply, took) => (InlineRun::FellBack(Fallback::Failed, took), Some(reply)),
    }
}

fn begun<'a>(route: Route<'a>, run: InlineRun<Result<Answer>>, unsettled: Option<Reply<Result<Answer>>>) -> Begun<'a> {
    match run {
        InlineRun::Done(answer, took) => Begun::Answered(answer, Some(took)),
        _ => unsettled.map_or(Begun::ToSend(route), Begun::Unsettled),
    }
}

impl Route<'_> {
    fn place(&self) -> RunPlace {
        match self {
            Self::Transaction(_) => RunPlace::Transaction,
            Self::Kept(kept) => kept.place(),
            Self::Writer(_) => RunPlace::Writer,
            Self::Readers(_) => RunPlace::Readers,
        }
    }
}
