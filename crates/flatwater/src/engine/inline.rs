//! Calls on their caller's thread: trying one where it is routed, and what is noted of the try.
//!
//! Owns: the step from a call to an inline run. Runs on the thread that begins the call, and waits for nothing. Leaves out:
//! what is short enough, which the workers know.

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

/// What came of a call that was tried on its caller's thread.
pub(crate) enum RanInline {
    Answered(Result<Answer>),
    /// It failed, and the writer's thread finds out whether it is committed.
    Unsettled(Reply<Result<Answer>>),
}

impl Engine {
    /// Runs the work on this thread, at once and without waiting for anything, if it is known to be short. `None`: it was
    /// not run, or nothing came of it.
    pub(super) fn run_inline(&self, route: Route<'_>, work: &Work, options: CallOptions) -> Option<RanInline> {
        let Inline::Auto(limits) = &self.options.inline else { return None };
        // Where many write even asking costs: each goes to the queue at once.
        if let Route::Writer(writer) = route
            && writer.prefers_the_queue()
        {
            self.recorder.inline.queued();
            return None;
        }
        let began = Instant::now();
        let mut unsettled = None;
        // Code of others that runs meanwhile, such as what takes our events, must not wait for this connection.
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

    /// A call suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.recorder.inline.yielded();
    }
}
