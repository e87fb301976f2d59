//! Inline runs of live queries: a short one runs again on the thread of the caller whose commit invalidated it.
//!
//! Owns: which live queries are eligible. Runs on a caller's thread, after the writer slot is released. Waits for nothing but
//! the pool's lock. Invariant: an inline run returns what a reader's thread would return: the schema is the one under which
//! it was found out what the query reads. Leaves out: the run itself (`inline_read`), and who delivers the result
//! (`workers::live`).

use super::Readers;
use super::inline_read::InlineQuery;
use crate::connection::learn::live_query::{Derived, LiveRun};
use crate::connection::run::execute::Output;
use crate::inline::outcome::InlineRun;
use crate::workers::Answer;
use crate::workers::work::LiveQuery;

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
        let (output, cookie) = (Output::Rows(usize::MAX), Some(known.cookie()));
        let run = self.run_inline(InlineQuery { text, params, output, permit, cookie, calls_timed: false });
        shared.context.recorder.tried_to_read(&run);
        shared.context.policy.tried(&text.backoff, permit.began, &run);
        match run {
            InlineRun::Done(Ok(Answer::Rows(rows)), _) => Some(vec![LiveRun { rows, derived: known.clone(), found }]),
            _ => None,
        }
    }
}
