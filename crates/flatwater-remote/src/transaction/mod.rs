//! An interactive transaction on a libSQL server, on a stream of its own.
//!
//! Owns: the transaction, from its BEGIN to its end. Runs as a task on the thread of the connection to the server, one for each transaction. Invariants:
//! calls run in their order; a transaction whose stream is lost is over, and no other one is begun in its place; a COMMIT whose
//! answer is lost is known by the guard's row, which is in the transaction. Leaves out: what a request contains (`writes`), the
//! stream (`libsql::stream`), beginning one (`begin`), and the order of its calls, which is that of any transaction.

mod begin;
mod send;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::bindings::server::{
    Answered, Asked, SavepointStep, ServerTransaction, Turn, error, result_lost, timeout,
};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorCode, Result};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use self::begin::begin;
use self::send::{Gone, close, send};
use crate::dialect::Dialect;
use crate::forms::Statements;
use crate::libsql::answer::{Batch, Step};
use crate::libsql::json::{Around, Steps};
use crate::libsql::stream::{Exchanged, Stream};
use crate::libsql::verdict::of_steps;
use crate::reads::{no_result, query_of, result};
use crate::request::Verdict;
use crate::results::StatementResult;
use crate::shared::Shared;
use crate::writes::grouped::{Applied, Grouped, checked, nothing_to_do};
use crate::writes::guard::Writer;
use crate::writes::settle::{clean, end, recorded, unknown};

/// How long a transaction may stay open after its database was closed, as in a file.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// A transaction that is not used for so long is ended, also by the server.
const IDLE: Duration = Duration::from_secs(10);

struct Transaction<'a> {
    shared: &'a Shared,
    stream: Stream,
    writer: Writer,
    /// A statement of it may have written.
    has_written: bool,
    /// That of the client.
    slot: Option<OwnedSemaphorePermit>,
}

/// How a call of a transaction failed.
enum Failed {
    /// The transaction goes on.
    Alone(Error),
    /// SQLite has rolled back the transaction.
    Lost(Error),
    /// The transaction is over.
    Over(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Alone(error)
    }
}

/// Begins a transaction, serves it, and ends it.
pub(crate) async fn serve(shared: &Shared, asked: Asked) {
    if !asked.starts() {
        return;
    }
    if shared.cluster.dialect != Dialect::Libsql {
        return asked.answer(Err(no_transactions()));
    }
    match begin(shared, &asked).await {
        Ok(Some(transaction)) => transaction.serve(asked).await,
        Ok(None) => {}
        Err(error) => asked.answer(Err(error)),
    }
}

impl Transaction<'_> {
    /// Serves the transaction until it is ended, or its handle is gone.
    async fn serve(mut self, asked: Asked) {
        let told = Arc::new(Notify::new());
        let tell = told.clone();
        let mut turns = ServerTransaction::begun(asked, &self.shared.options.name(), IDLE, move || tell.notify_one());
        loop {
            match turns.turn() {
                Turn::Waits => tokio::select! {
                    () = told.notified() => {}
                    () = self.shared.closed_for(CLOSE_WAIT) => {
                        turns.closed();
                        break close(self.shared, &mut self.stream).await;
                    }
                },
                Turn::Run(asked) => {
                    if self.run(&mut turns, asked).await {
                        break close(self.shared, &mut self.stream).await;
                    }
                }
                Turn::Commit(asked) => {
                    // From now on it is committed, whatever its caller does.
                    if !asked.finishes() {
                        break close(self.shared, &mut self.stream).await;
                    }
                    let committed = self.commit(&turns).await;
                    turns.ended();
                    asked.answer(committed.map(|()| Answered::Done));
                    drop(self.slot.take());
                    if !self.shared.has_cleaned.replace(true) {
                        clean(self.shared).await;
                    }
                    break;
                }
                Turn::Rollback(asked) => {
                    close(self.shared, &mut self.stream).await;
                    turns.ended();
                    break asked.answer(Ok(Answered::Done));
                }
                Turn::Ends => break close(self.shared, &mut self.stream).await,
            }
        }
        self.shared.keep_writer(self.writer);
    }

    /// Runs what is asked. Returns true if the transaction is over.
    async fn run(&mut self, turns: &mut ServerTransaction, asked: Asked) -> bool {
        if !asked.starts() {
            return false;
        }
        let left = self.shared.ends(&asked).saturating_duration_since(Instant::now());
        let answer = if asked.only_reads() {
            self.read(turns, &asked, left).await
        } else {
            match checked(&asked, Dialect::Libsql) {
                // From now on it is in the transaction, whatever its caller does.
                Ok(Some(_)) if asked.finishes() => self.write(turns, &asked, left).await,
                Ok(Some(_)) => return false,
                Ok(None) => {
                    nothing_to_do(asked);
                    return false;
                }
                Err(error) => Err(Failed::Alone(error)),
            }
        };
        let (answer, is_over) = match answer {
            Ok(answered) => (Ok(answered), false),
            Err(Failed::Alone(error)) => (Err(error), false),
            Err(Failed::Lost(error)) => {
                turns.lost(error.clone());
                (Err(error), true)
            }
            Err(Failed::Over(error)) => {
                turns.gone(over(error.message()));
                (Err(error), true)
            }
        };
        asked.answer(answer);
        is_over
    }

    async fn read(
        &mut self,
        turns: &mut ServerTransaction,
        asked: &Asked,
        limit: Duration,
    ) -> Result<Answered, Failed> {
        let one = query_of(asked, Dialect::Libsql)?;
        let mut statements = Statements::Libsql(Steps::savepoint(&texts(turns.steps())));
        statements.add(&one);
        match self.verdict(turns, statements, limit).await?.0 {
            // Its savepoint may be open still, and has changed nothing.
            Verdict::Doubtful(failure) => Err(failure.error().into()),
            Verdict::Unmade(why) => Err(infinite(why).into()),
            Verdict::Results { results, .. } => Ok(result(&one, results).map(Answered::Rows)?),
            _ => Err(no_result().into()),
        }
    }

    async fn write(
        &mut self,
        turns: &mut ServerTransaction,
        asked: &Asked,
        limit: Duration,
    ) -> Result<Answered, Failed> {
        let mut statements = Statements::Libsql(Steps::savepoint(&texts(turns.steps())));
        let grouped = Grouped::inside(&self.writer, &mut statements, asked);
        self.has_written = true;
        let (verdict, is_lost) = self.verdict(turns, statements, limit).await?;
        let mut results = match verdict {
            Verdict::Results { results, .. } => results,
            Verdict::Unmade(why) => return Err(result_lost(infinite(why)).into()),
            // A part of it may have stayed in the transaction.
            Verdict::Doubtful(failure) => return Err(Failed::Over(failure.error())),
            _ => return Err(Failed::Over(no_result())),
        };
        let at = results.len().saturating_sub(1);
        match results.pop() {
            Some(StatementResult::Failed(failure)) => {
                let error = grouped.explain(failure.error(), at, asked);
                Err(if is_lost { Failed::Lost(error) } else { Failed::Alone(error) })
            }
            Some(StatementResult::Rows { values, .. }) => {
                let recorded = self.writer.results(&values).ok_or_else(no_result)?;
                let applied = Applied::new(recorded, Some(results), grouped.results);
                Ok(grouped.answer(0, asked, &mut applied.ok_or_else(no_result)?)?)
            }
            _ => Err(no_result().into()),
        }
    }

    /// Runs statements in a savepoint.
    async fn verdict(
        &mut self,
        turns: &mut ServerTransaction,
        statements: Statements,
        limit: Duration,
    ) -> Result<(Verdict, bool), Failed> {
        let began = Instant::now();
        let why = match send(self.shared, &mut self.stream, statements, limit).await {
            // None of it has run, also of what goes before it.
            Ok((Verdict::Undone(failure), _)) => return Err(failure.error().into()),
            Ok((Verdict::Refused(refusal), _)) => return Err(Failed::Over(refusal)),
            Ok((Verdict::NotExecuted(why) | Verdict::Unknown(why) | Verdict::Elsewhere(why), _)) => why,
            Ok(verdict) => {
                turns.stepped();
                return Ok(verdict);
            }
            Err(Gone::Lost(why) | Gone::Unreadable(why)) => why,
        };
        // Without its COMMIT nothing of it can stay.
        let is_late = began.elapsed() >= limit;
        Err(Failed::Over(if is_late { timeout(ended(&why), TimeoutEffect::No) } else { over(&why) }))
    }

    async fn commit(&mut self, turns: &ServerTransaction) -> Result<()> {
        let nonsense = || "the server's answer does not fit the request".to_owned();
        let mut statements = Statements::Libsql(Steps::commit(&texts(turns.steps())));
        if self.has_written {
            // What was recorded may have been undone with a savepoint.
            self.writer.mark(&mut statements);
        }
        let Statements::Libsql(steps) = statements else { return Err(no_result()) };
        let cluster = &self.shared.cluster;
        let before = cluster.newest();
        let sent = self.stream.send(&cluster.http, steps, true, cluster.attempt).await;
        let why = match sent {
            Exchanged::Batch(Batch::Steps { steps, .. }) if matches!(steps.first(), Some(Step::Skipped)) => {
                return Err(over("the server has rolled it back"));
            }
            Exchanged::Batch(Batch::Steps { steps, index }) => {
                cluster.saw(&cluster.leader(), before, index);
                match of_steps(steps, Around::Open, index) {
                    Verdict::Results { mut results, .. } => match results.pop() {
                        Some(StatementResult::Failed(failure)) => return Err(failure.error()),
                        Some(_) => return Ok(()),
                        None => nonsense(),
                    },
                    // The server has rolled it back before.
                    Verdict::NotExecuted(why) => return Err(over(&why)),
                    Verdict::Doubtful(failure) => failure.message,
                    _ => nonsense(),
                }
            }
            Exchanged::Batch(Batch::Failed(error)) => error.message,
            Exchanged::Refused(refusal) => return Err(refusal),
            Exchanged::Unreached(why) | Exchanged::Unreadable(why) | Exchanged::Lost(why) => why,
        };
        self.has_committed(&why).await
    }

    /// Finds out what became of a COMMIT without an answer. The row of the guard is in the transaction, so when its number is taken by
    /// another request, the transaction is over, one way or the other.
    async fn has_committed(&self, why: &str) -> Result<()> {
        let until = Instant::now() + self.shared.options.timeout;
        if let Err(error) = end(self.shared, &self.writer, until).await {
            return Err(unknown(error.message()));
        }
        if !self.has_written {
            return Ok(());
        }
        match recorded(self.shared, &self.writer, 1, until).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(over(why)),
            Err(error) => Err(unknown(error.message())),
        }
    }
}

fn infinite(why: String) -> Error {
    error(ErrorCode::NoJsonForm, why, "store and return finite numbers")
}

const ENDED: &str = "the transaction is over, and nothing of it was written";

fn ended(why: &str) -> String {
    format!("{ENDED}: {why}")
}

fn over(why: &str) -> Error {
    let message = if why.starts_with(ENDED) { why.to_owned() } else { ended(why) };
    error(ErrorCode::TransactionGone, message, "begin another one, and do all of it again")
}

fn no_transactions() -> Error {
    let hint = "use batch, which is all or nothing; a libSQL server and a file have such transactions";
    error(ErrorCode::NoTransactions, "an rqlite cluster has no interactive transactions".into(), hint)
}

/// The savepoints of the caller have one name, which stands for the innermost.
fn texts(steps: &[SavepointStep]) -> Vec<&'static str> {
    const RELEASE: &str = "RELEASE _flatwater_nested";
    const ROLLBACK_TO: &str = "ROLLBACK TO _flatwater_nested";
    let of = |step: &SavepointStep| match step {
        SavepointStep::Open => &["SAVEPOINT _flatwater_nested"][..],
        SavepointStep::Release => &[RELEASE],
        SavepointStep::Undo => &[ROLLBACK_TO, RELEASE],
        SavepointStep::RollbackTo => &[ROLLBACK_TO],
    };
    steps.iter().flat_map(of).copied().collect()
}
