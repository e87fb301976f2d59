//! Beginning a transaction on a libSQL server.
//!
//! Owns: BEGIN, until it is known that a transaction is open. Runs as a part of its task. Invariants: one of a client is open at a time; a
//! stream that is not used is closed, if its baton is known. Leaves out: serving the transaction.

use std::time::Instant;

use flatwater::bindings::server::{Asked, error};
use flatwater::{ErrorCode, Result};

use super::Transaction;
use super::send::{Gone, close, send};
use crate::clock::seconds;
use crate::cluster::nodes::pause;
use crate::forms::Statements;
use crate::libsql::json::{Around, Steps};
use crate::libsql::stream::Stream;
use crate::request::Verdict;
use crate::results::StatementResult;
use crate::shared::Shared;
use crate::writes::guard::{SCHEMA, Writer, is_without_tables, was_applied};
use crate::writes::settle::{own, too_late};

/// Begins the transaction that is asked for. `None`: its caller has left.
pub(super) async fn begin<'a>(shared: &'a Shared, asked: &Asked) -> Result<Option<Transaction<'a>>> {
    let until = shared.ends(asked);
    let slot = tokio::time::timeout_at(until.into(), shared.slot.clone().acquire_owned());
    let slot = tokio::select! {
        slot = slot => slot.ok().and_then(Result::ok),
        () = shared.left(asked) => return Ok(None),
    };
    let slot = slot.ok_or_else(|| too_late("other writes of this client were before it"))?;
    let mut writer = shared.writer();
    match begin_as(shared, &mut writer, until).await {
        Ok(stream) => Ok(Some(Transaction { shared, stream, writer, has_written: false, slot: Some(slot) })),
        Err(error) => {
            shared.keep_writer(writer);
            Err(error)
        }
    }
}

/// Sends BEGIN, with the row of the guard, until it is known that a transaction is open.
async fn begin_as(shared: &Shared, writer: &mut Writer, until: Instant) -> Result<Stream> {
    let mut attempts = 0;
    loop {
        writer.next(rand::random());
        let mut stream = Stream::new(shared.cluster.leader());
        let mut statements = Statements::Libsql(Steps::new(Around::Begin, None));
        writer.begin_in(&mut statements, seconds());
        // In one attempt: who asks again has lost its place in the server's queue.
        let left = until.saturating_duration_since(Instant::now());
        let sent = send(shared, &mut stream, statements, left).await.map(|(verdict, _)| verdict);
        if !matches!(&sent, Ok(Verdict::Results { results, .. }) if !has_failed(results)) {
            close(shared, &mut stream).await;
        }
        let why = match sent {
            Ok(Verdict::Results { mut results, .. }) => match results.pop() {
                Some(StatementResult::Failed(failure)) if is_without_tables(&failure.message) => {
                    own(shared, SCHEMA, &[], until).await?;
                    continue;
                }
                // Somebody else has the number of this writer.
                Some(StatementResult::Failed(failure)) if was_applied(&failure.message) => {
                    *writer = Writer::new(rand::random());
                    continue;
                }
                Some(StatementResult::Failed(failure)) => return Err(failure.error()),
                _ => return Ok(stream),
            },
            Ok(Verdict::Refused(error)) => return Err(error),
            Ok(Verdict::Undone(failure) | Verdict::Doubtful(failure)) => return Err(failure.error()),
            Ok(Verdict::NotExecuted(why) | Verdict::Unknown(why) | Verdict::Unmade(why) | Verdict::Elsewhere(why)) => {
                why
            }
            Err(Gone::Lost(why)) => why,
            Err(Gone::Unreadable(why)) => {
                return Err(error(ErrorCode::Server, why, "look at what is reached at its address"));
            }
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late(&why));
        }
        tokio::time::sleep(pause(attempts, rand::random()).min(left)).await;
        attempts += 1;
    }
}

fn has_failed(results: &[StatementResult]) -> bool {
    results.iter().any(|result| matches!(result, StatementResult::Failed(_)))
}
