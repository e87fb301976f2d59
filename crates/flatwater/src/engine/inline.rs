//! Inline runs: trying a call on its caller's thread, and recording the outcome.
//!
//! Owns: the step from a call to an inline run. Runs on the thread that begins the call, and waits for nothing. Leaves
//! out: which calls are short enough, which the workers decide.

use std::time::Instant;

use super::dispatch::Route;
use crate::engine::Engine;
use crate::error::Result;
use crate::inline::budget;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::options::inline::Inline;
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::thread::park::mark_closure;
use crate::workers::readers;
use crate::workers::request::{Answer, Work};
use crate::workers::session::Inside;
use crate::workers::writer::Tried;

/// The result of an inline run.
pub(crate) enum RanInline {
    Answered(Result<Answer>),
    /// The run failed, and the writer's thread finds out whether the write was committed.
    Unsettled(Reply<Result<Answer>>),
}

impl Engine {
    /// Runs the work on this thread at once and without waiting, if it is known to be short. `None`: the work did not
    /// run, or fell back to a worker.
    pub(super) fn run_inline(&self, route: Route<'_>, work: &Work, options: CallOptions) -> Option<RanInline> {
        let Inline::Auto(limits) = &self.options.inline else { return None };
        // Where many callers write, even the check for an inline run costs time: each write goes to the queue at once.
        if let Route::Writer(writer) = route
            && writer.prefers_the_queue()
        {
            self.recorder.inline.queued();
            return None;
        }
        let began = Instant::now();
        let mut unsettled = None;
        // Foreign code that runs meanwhile, such as the receiver of the events, must not wait for this connection.
        let run = mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { session, savepoints }), _) => {
                session.run_inline(work, savepoints, limits, began)
            }
            (Route::Readers(readers), Work::Query { text, params, limit }) => readers
                .run_inline(readers::Tried { text, params, rows: *limit, limits, began })
                .map(|rows| Ok(Answer::Rows(rows))),
            (Route::Readers(_), _) => InlineRun::Ineligible,
            (Route::Writer(writer), _) => match writer.run_inline(work, limits, options, began) {
                Tried::Ran(run) => run,
                Tried::Unsettled(reply, took) => {
                    unsettled = Some(reply);
                    InlineRun::FellBack(Fallback::Failed, took)
                }
            },
        });
        let tallied = matches!(route, Route::Readers(_));
        self.recorder.tried(work.kind(), !work.only_reads(), tallied, &run);
        budget::spend(began, run.took());
        work.text().inspect(|text| text.backoff.tried(&run));
        match run {
            InlineRun::Done(answer, _) => {
                Some(RanInline::Answered(answer.map_err(|error| error.in_operation(work.kind().name()))))
            }
            InlineRun::FellBack(..) => unsettled.map(RanInline::Unsettled),
            InlineRun::Ineligible => None,
        }
    }

    /// Counts a call that suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.recorder.inline.yielded();
    }
}
