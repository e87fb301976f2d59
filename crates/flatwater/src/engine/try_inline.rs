//! Inline runs: trying a call on its caller's thread, and recording the outcome.
//!
//! Owns: the step from a call to an inline run. Runs on the thread that begins the call, and waits for nothing. Leaves
//! out: which calls are short enough, which the workers decide.

use std::time::Instant;

use super::dispatch::{Begun, Route};
use crate::engine::Engine;
use crate::inline::budget;
use crate::inline::eligibility::RunPlace;
use crate::inline::limits::InlineLimits;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::queue::ticket::CallOptions;
use crate::thread::block_on::mark_closure;
use crate::workers::level::Inside;
use crate::workers::open_transaction::StepTried;
use crate::workers::readers;
use crate::workers::work::Work;
use crate::workers::writer::{Tried, begin_inline};

impl Engine {
    /// Runs the work on this thread at once and without waiting, if it is known to be short. The work is
    /// to be sent if it did not run, or fell back.
    pub(super) fn run_inline<'a>(&self, route: Route<'a>, work: &Work, options: CallOptions) -> Begun<'a> {
        let Some(limits) = self.policy.limits().filter(|_| !options.never_inline) else { return Begun::ToSend(route) };
        if matches!(route, Route::OpenRead(_)) {
            self.recorder.inline.queued.count();
            return Begun::ToSend(route);
        }
        if work.describe().is_bracket() {
            return self.bracket_inline(route, work, limits);
        }
        let Some((text, _)) = work
            .statement()
            .filter(|(text, params)| self.policy.may_try(route.place(), &text.backoff, params.heap_bytes()))
        else {
            self.recorder.inline.queued.count();
            return Begun::ToSend(route);
        };
        let began = Instant::now();
        let mut unsettled = None;
        // Foreign code that runs meanwhile, such as the receiver of the events, must not wait for this connection.
        let run = mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { session, savepoints }), _) => {
                match session.run_inline(work, savepoints, limits, began) {
                    StepTried::Ran(run) => run,
                    // Only the end of a transaction is that.
                    StepTried::Unsettled(_) => InlineRun::Ineligible,
                }
            }
            (Route::Readers(readers), Work::Query { text, params, .. }) => readers
                .run_inline(readers::Tried { text, params, output: work.output(), limits, began, cookie: None })
                .map(Ok),
            (Route::Readers(_) | Route::OpenRead(_), _) => InlineRun::Ineligible,
            (Route::Writer(writer), _) => match writer.run_inline(work, limits, options, began) {
                Tried::Ran(run) => run,
                Tried::Unsettled(reply, took) => {
                    unsettled = Some(reply);
                    InlineRun::FellBack(Fallback::Failed, took)
                }
            },
        });
        if matches!(route, Route::Readers(_)) {
            self.recorder.tried_to_read(&run);
        } else {
            let is = work.describe();
            self.recorder.tried(is.kind, !is.only_reads(), &run);
        }
        self.policy.tried(&text.backoff, began, &run);
        match run {
            InlineRun::Done(answer, took) => Begun::Answered(answer, Some(took)),
            InlineRun::FellBack(..) => unsettled.map_or(Begun::ToSend(route), Begun::Unsettled),
            InlineRun::Ineligible => Begun::ToSend(route),
        }
    }

    /// Begins a transaction or a nested one on this thread, or ends it.
    fn bracket_inline<'a>(&self, route: Route<'a>, work: &Work, limits: &InlineLimits) -> Begun<'a> {
        let began = Instant::now();
        let stepped = mark_closure(|| match route {
            Route::Transaction(Inside { session, savepoints }) => session.run_inline(work, savepoints, limits, began),
            Route::Writer(writer) if self.policy.may_begin() => StepTried::Ran(begin_inline(writer, limits, began)),
            _ => StepTried::Ran(InlineRun::Ineligible),
        });
        let run = match stepped {
            StepTried::Ran(run) => run,
            StepTried::Unsettled(outcome) => return Begun::Unsettled(outcome),
        };
        self.recorder.tried(work.describe().kind, true, &run);
        let InlineRun::Done(answer, took) = run else { return Begun::ToSend(route) };
        budget::spend(began, took);
        Begun::Answered(answer, Some(took))
    }

    /// Counts a call that suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.recorder.inline.yields.count();
    }
}

impl Route<'_> {
    fn place(&self) -> RunPlace {
        match self {
            Self::Transaction(_) => RunPlace::Transaction,
            Self::Writer(_) => RunPlace::Writer,
            Self::Readers(_) | Self::OpenRead(_) => RunPlace::Readers,
        }
    }
}
