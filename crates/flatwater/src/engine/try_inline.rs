//! Inline runs: trying a call on its caller's thread, and recording the outcome.
//!
//! Owns: the step from a call to an inline run. Runs on the thread that begins the call, and waits for nothing. Leaves
//! out: which calls are short enough, which the workers decide.

use super::dispatch::{Begun, Route};
use crate::engine::Engine;
use crate::error::Result;
use crate::inline::budget;
use crate::inline::outcome::{Fallback, InlineRun, NotTried};
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::thread::current::mark_closure;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::open_transaction::Inside;
use crate::workers::readers::InlineQuery;
use crate::workers::request::Tried;
use crate::workers::short::rows::run_rows_inline;
use crate::workers::short::transaction::begin_inline;
use crate::workers::work::{Wanted, Work};

impl Engine {
    /// Runs the work on this thread at once and without waiting, if it is known to be short. The work is
    /// to be sent if it did not run, or fell back.
    pub(super) fn run_inline<'a>(&self, route: Route<'a>, work: &Work, options: CallOptions) -> Begun<'a> {
        let policy = &self.context.policy;
        if options.never_inline || policy.limits().is_none() {
            return Begun::ToSend(route);
        }
        if matches!(route, Route::Kept(kept) if !kept.runs_inline()) {
            self.context.recorder.inline.not_tried(NotTried::Other);
            return Begun::ToSend(route);
        }
        if work.describe().is_bracket() {
            return self.bracket_inline(route, work);
        }
        if let Some((_, bytes)) = work.rows() {
            return rows_inline(&self.context, route, work, bytes, options);
        }
        let permitted = work.statement().ok_or(NotTried::Other).and_then(|(text, params)| {
            Ok((text, policy.permit(route.queues(), params.heap_bytes(), || text.backoff.may_try())?))
        });
        let Some((text, permit)) = self.context.recorder.inline.permitted(permitted) else {
            return Begun::ToSend(route);
        };
        let permit = &permit;
        // Foreign code that runs meanwhile, such as the receiver of the events, must not wait for this connection.
        let tried = mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { transaction, savepoints }), _) => {
                transaction.run_inline(work, savepoints, permit)
            }
            (Route::Readers(readers), Work::Query { text, params, wanted, .. }) => {
                // A front end holds a lock while it polls batches.
                let calls_timed = !matches!(wanted, Wanted::Batches);
                let (output, cookie) = (work.output(), None);
                let query = InlineQuery { text, params, output, permit, cookie, calls_timed };
                Tried::Ran(readers.run_inline(query))
            }
            (Route::Kept(kept), _) => kept.run_inline(work, permit, options),
            (Route::Readers(_) | Route::Server(_), _) => Tried::Ran(InlineRun::Ineligible(NotTried::Other)),
            (Route::Writer(writer), _) => writer.run_inline(work, permit, options),
        });
        let (run, unsettled) = parts(tried);
        if matches!(route, Route::Readers(_)) {
            self.context.recorder.tried_to_read(&run);
        } else {
            let is = work.describe();
            self.context.recorder.tried(is.kind, !is.only_reads(), &run);
        }
        policy.tried(&text.backoff, permit.began, &run);
        begun(route, run, unsettled)
    }

    /// Begins or ends a transaction on this thread, does a step with a savepoint of one, or begins a snapshot.
    fn bracket_inline<'a>(&self, route: Route<'a>, work: &Work) -> Begun<'a> {
        // A transaction shares no commit, so whether groups are cheaper is no question for it.
        let permitted = self.context.policy.permit(false, 0, || true);
        let Some(permit) = &self.context.recorder.inline.permitted(permitted) else { return Begun::ToSend(route) };
        let (run, unsettled) = parts(mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { transaction, savepoints }), _) => {
                transaction.run_inline(work, savepoints, permit)
            }
            (Route::Readers(readers), _) => Tried::Ran(readers.begin_snapshot_inline(permit)),
            (Route::Writer(writer), Work::Begin(rowid)) => Tried::Ran(begin_inline(writer, *rowid, permit)),
            _ => Tried::Ran(InlineRun::Ineligible(NotTried::Other)),
        }));
        let is = work.describe();
        self.context.recorder.tried(is.kind, !is.only_reads(), &run);
        budget::spend(permit.began, run.took());
        begun(route, run, unsettled)
    }
}

/// Runs rows of parameters on this thread, with so many bytes of values.
fn rows_inline<'a>(context: &Context, route: Route<'a>, work: &Work, bytes: usize, options: CallOptions) -> Begun<'a> {
    // Each text counts a use, also after one that may not be tried.
    let texts_may = || work.texts().filter(|text| !text.backoff.may_try()).count() == 0;
    let permitted = match route {
        Route::Writer(writer) => context.policy.permit(true, bytes, texts_may).map(|permit| (writer, permit)),
        _ => Err(NotTried::Other),
    };
    let Some((writer, permit)) = &context.recorder.inline.permitted(permitted) else { return Begun::ToSend(route) };
    let (run, unsettled) = parts(mark_closure(|| run_rows_inline(writer, work, permit, options)));
    context.recorder.tried(work.describe().kind, true, &run);
    // A text that is to blame for a fallback was told.
    if matches!(run, InlineRun::Done(..)) {
        work.texts().for_each(|text| text.backoff.tried(&run));
    }
    budget::spend(permit.began, run.took());
    begun(route, run, unsettled)
}

/// Returns the run, and the reply that says what became of it if it cannot know.
fn parts(tried: Tried) -> (InlineRun<Result<Answer>>, Option<Reply<Result<Answer>>>) {
    match tried {
        Tried::Ran(run) => (run, None),
        Tried::Unsettled(reply, held) => (InlineRun::FellBack(Fallback::Failed, held), Some(reply)),
    }
}

fn begun<'a>(route: Route<'a>, run: InlineRun<Result<Answer>>, unsettled: Option<Reply<Result<Answer>>>) -> Begun<'a> {
    match run {
        InlineRun::Done(answer, held) => Begun::Answered(answer, Some(held.time())),
        _ => unsettled.map_or(Begun::ToSend(route), Begun::Unsettled),
    }
}

impl Route<'_> {
    /// Returns true if its calls go through the writer's queue.
    fn queues(&self) -> bool {
        matches!(self, Self::Writer(_))
    }
}
