//! One request of a transaction.
//!
//! Owns: sending it on the stream, and what it came to. Runs as a part of its task. Leaves out: what follows from that.

use std::time::Duration;

use crate::forms::Statements;
use crate::libsql::answer::{Batch, Step};
use crate::libsql::json::Around;
use crate::libsql::stream::{Exchanged, Stream};
use crate::libsql::verdict::{of_steps, of_whole};
use crate::request::Verdict;
use crate::shared::Shared;

/// Why nothing more is known of a request, and the stream is of no use.
pub(super) enum Gone {
    /// There is no answer.
    Lost(String),
    /// There is one that cannot be used.
    Unreadable(String),
}

/// Returns what a request came to, and whether SQLite has rolled back the transaction around it, because of what failed.
pub(super) async fn send(
    shared: &Shared,
    stream: &mut Stream,
    statements: Statements,
    limit: Duration,
) -> Result<(Verdict, bool), Gone> {
    let Statements::Libsql(steps) = statements else { return Err(Gone::Unreadable("it is no libSQL server".into())) };
    let around = steps.around();
    let before = shared.cluster.newest();
    let mut is_lost = false;
    let verdict = match stream.send(&shared.cluster.http, steps, false, limit).await {
        Exchanged::Batch(Batch::Steps { steps, .. })
            if matches!(around, Around::Savepoint { .. }) && matches!(steps.first(), Some(Step::Skipped)) =>
        {
            Verdict::NotExecuted("the server has rolled it back".into())
        }
        Exchanged::Batch(Batch::Steps { steps, index }) => {
            // There is no savepoint any more.
            let undone = steps.len().checked_sub(2).and_then(|at| steps.get(at));
            is_lost = matches!(around, Around::Savepoint { .. }) && matches!(undone, Some(Step::Failed(_)));
            let verdict = of_steps(steps, around, index);
            if let Verdict::Results { index, .. } = &verdict {
                shared.cluster.saw(&shared.cluster.leader(), before, *index);
            }
            verdict
        }
        Exchanged::Batch(Batch::Failed(error)) => of_whole(error),
        Exchanged::Unreached(why) => Verdict::NotExecuted(why),
        Exchanged::Refused(error) => Verdict::Refused(error),
        Exchanged::Unreadable(why) => return Err(Gone::Unreadable(why)),
        Exchanged::Lost(why) => return Err(Gone::Lost(why)),
    };
    Ok((verdict, is_lost))
}

/// Ends a stream, if its baton is known.
pub(super) async fn close(shared: &Shared, stream: &mut Stream) {
    stream.close(&shared.cluster.http, shared.cluster.attempt).await;
}
