//! An interactive transaction on a libSQL server, on a stream of its own.
//!
//! Owns: the transaction, from its BEGIN to its end. Runs as a task on the thread of the connection to the server, one for each transaction. Invariants:
//! calls run in their order; a transaction whose stream is lost is over, and no other one is begun in its place; a COMMIT whose
//! answer is lost is known by the guard's row, which is in the transaction. Leaves out: what a request contains (`writes`), the
//! stream (`libsql::stream`), and the handle of the caller (`interactive`).

use std::time::{Duration, Instant};

use flatwater::bindings::server::{Answered, Asked, What, error, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind, Result};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::check::{check, check_text, needs_database};
use crate::clock::seconds;
use crate::cluster::nodes::pause;
use crate::dialect::{Dialect, Statements};
use crate::libsql::answer::{Batch, Step};
use crate::libsql::json::{Around, Steps};
use crate::libsql::stream::{Exchanged, Stream};
use crate::libsql::verdict::{of_steps, of_whole};
use crate::reads::{no_result, returns_no_rows};
use crate::request::Verdict;
use crate::results::{StatementResult, rows};
use crate::shared::Shared;
use crate::writes::grouped::{Applied, Grouped, checked, nothing_to_do};
use crate::writes::guard::{SCHEMA, Writer, is_without_tables, was_applied};
use crate::writes::settle::{end, own, recorded, too_late, unknown};

/// What a transaction is asked.
pub(crate) enum Inside {
    Asked(Asked),
    /// COMMIT, or ROLLBACK.
    End {
        commits: bool,
        answer: oneshot::Sender<Result<()>>,
    },
    /// Its handle is gone.
    Close(Box<dyn FnOnce() + Send>),
}

/// A transaction that is to be begun.
pub(crate) struct Begin {
    pub(crate) inbox: UnboundedReceiver<Inside>,
    pub(crate) until: Instant,
    pub(crate) answer: oneshot::Sender<Result<()>>,
}

struct Transaction<'a> {
    shared: &'a Shared,
    stream: Stream,
    writer: Writer,
    /// A statement of it has written.
    has_written: bool,
    /// Why it is over.
    over: Option<String>,
}

/// Begins a transaction, serves it, and ends it.
pub(crate) async fn serve(shared: &Shared, Begin { mut inbox, until, answer }: Begin) {
    let mut transaction = match begin(shared, until).await {
        Ok(transaction) => transaction,
        Err(error) => {
            let _ = answer.send(Err(error));
            return;
        }
    };
    // If nobody waits for it any more, its handle is gone, and the next message says so.
    let _ = answer.send(Ok(()));
    while let Some(message) = inbox.recv().await {
        match message {
            Inside::Asked(asked) => transaction.run(asked).await,
            Inside::End { commits: true, answer } => {
                let _ = answer.send(transaction.commit().await);
                break;
            }
            Inside::End { commits: false, answer } => {
                transaction.close().await;
                let _ = answer.send(Ok(()));
                break;
            }
            Inside::Close(closed) => {
                transaction.close().await;
                closed();
                break;
            }
        }
    }
    shared.keep_writer(transaction.writer);
    inbox.close();
    while let Some(message) = inbox.recv().await {
        match message {
            Inside::Asked(asked) => asked.answer(Err(over("it has ended"))),
            Inside::End { answer, .. } => {
                let _ = answer.send(Err(over("it has ended")));
            }
            Inside::Close(closed) => closed(),
        }
    }
}

async fn begin(shared: &Shared, until: Instant) -> Result<Transaction<'_>> {
    let mut writer = shared.writer();
    let mut attempts = 0;
    loop {
        writer.next(rand::random());
        let mut stream = Stream::new(shared.cluster.leader());
        let mut statements = Statements::Libsql(Steps::new(Around::Begin, None));
        writer.begin_in(&mut statements, seconds());
        // Not in shorter attempts: each that is given up may stay in the server's queue before the next one.
        let left = until.saturating_duration_since(Instant::now());
        let verdict = match send(shared, &mut stream, statements, Around::Begin, left).await {
            Ok(verdict) => verdict,
            Err(lost) => Verdict::Unknown(lost),
        };
        let why = match verdict {
            Verdict::Results { mut results, .. } => match results.pop() {
                Some(StatementResult::Failed(failure)) if is_without_tables(&failure.message) => {
                    own(shared, SCHEMA, &[], until).await?;
                    continue;
                }
                // Somebody else has the number of this writer.
                Some(StatementResult::Failed(failure)) if was_applied(&failure.message) => {
                    writer = Writer::new(rand::random());
                    continue;
                }
                Some(StatementResult::Failed(failure)) => return Err(failure.error()),
                _ => return Ok(Transaction { shared, stream, writer, has_written: false, over: None }),
            },
            Verdict::Refused(error) => return Err(error),
            Verdict::Undone(failure) => return Err(failure.error()),
            // One that has begun all the same ends when its stream does.
            Verdict::NotExecuted(why) | Verdict::Unknown(why) | Verdict::Unmade(why) | Verdict::Elsewhere(why) => why,
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late(&why));
        }
        tokio::time::sleep(pause(attempts, rand::random()).min(left)).await;
        attempts += 1;
    }
}

/// Returns what a request came to, or why the stream is lost.
async fn send(
    shared: &Shared,
    stream: &mut Stream,
    statements: Statements,
    around: Around,
    limit: Duration,
) -> Result<Verdict, String> {
    let Statements::Libsql(steps) = statements else { return Err("it is no libSQL server".into()) };
    match stream.send(&shared.cluster.http, steps, false, limit).await {
        Exchanged::Batch(Batch::Steps { steps, .. })
            if around == Around::Savepoint && matches!(steps.first(), Some(Step::Skipped)) =>
        {
            Err("the server has rolled it back".into())
        }
        Exchanged::Batch(Batch::Steps { steps, index }) => {
            let verdict = of_steps(steps, around, index);
            if let Verdict::Results { index, .. } = &verdict {
                shared.cluster.saw(*index);
            }
            Ok(verdict)
        }
        Exchanged::Batch(Batch::Failed(error)) => Ok(of_whole(error)),
        Exchanged::Unreached(why) => Ok(Verdict::NotExecuted(why)),
        Exchanged::Refused(error) => Ok(Verdict::Refused(error)),
        Exchanged::Lost(why) => Err(why),
    }
}

impl Transaction<'_> {
    async fn run(&mut self, asked: Asked) {
        if !asked.starts() {
            return;
        }
        if let Some(why) = &self.over {
            return asked.answer(Err(over(why)));
        }
        let end = self.shared.ends(&asked);
        let until = asked.deadline().map_or(end, |deadline| deadline.min(end));
        let left = until.saturating_duration_since(Instant::now());
        let answer = if asked.only_reads() {
            self.read(&asked, left).await
        } else {
            match checked(&asked, Dialect::Libsql) {
                Ok(Some(_)) => self.write(&asked, left).await,
                Ok(None) => return nothing_to_do(asked),
                Err(error) => Err(error),
            }
        };
        asked.answer(answer);
    }

    async fn read(&mut self, asked: &Asked, limit: Duration) -> Result<Answered> {
        let one = match asked.what() {
            What::Query(one) => one,
            What::Other(name) => return Err(needs_database(name)),
            _ => return Err(no_result()),
        };
        check_text(one.sql)?;
        check(&one, Dialect::Libsql)?;
        let mut statements = Statements::Libsql(Steps::new(Around::Savepoint, None));
        statements.add(&one);
        match self.results(statements, limit).await?.pop() {
            Some(StatementResult::Failed(failure)) => Err(failure.error()),
            Some(StatementResult::Rows { columns, values }) => {
                rows(one.sql, columns, &values, false).map(Answered::Rows).ok_or_else(no_result)
            }
            Some(StatementResult::Done) => Err(returns_no_rows()),
            None => Err(no_result()),
        }
    }

    async fn write(&mut self, asked: &Asked, limit: Duration) -> Result<Answered> {
        let mut statements = Statements::Libsql(Steps::new(Around::Savepoint, None));
        let grouped = Grouped::inside(&self.writer, &mut statements, asked);
        let mut results = self.results(statements, limit).await?;
        let at = results.len().saturating_sub(1);
        match results.pop() {
            Some(StatementResult::Failed(failure)) => Err(grouped.explain(failure.error(), at, asked)),
            Some(StatementResult::Rows { values, .. }) => {
                self.has_written = true;
                let recorded = self.writer.results(&values).ok_or_else(no_result)?;
                let applied = Applied::new(recorded, Some(results), grouped.results);
                grouped.answer(0, asked, &mut applied.ok_or_else(no_result)?)
            }
            _ => Err(no_result()),
        }
    }

    /// Runs statements in a savepoint. An error that is not a statement's ends the transaction.
    async fn results(&mut self, statements: Statements, limit: Duration) -> Result<Vec<StatementResult>> {
        let began = Instant::now();
        match send(self.shared, &mut self.stream, statements, Around::Savepoint, limit).await {
            Ok(Verdict::Results { results, .. }) => Ok(results),
            Ok(Verdict::Undone(failure)) => Err(failure.error()),
            Ok(Verdict::Unmade(why)) => Err(error(ErrorKind::Io, why, "bind and store finite numbers")),
            Ok(Verdict::Refused(refusal)) => {
                self.over = Some(refusal.message().to_owned());
                Err(refusal)
            }
            Ok(Verdict::NotExecuted(why) | Verdict::Unknown(why) | Verdict::Elsewhere(why)) | Err(why) => {
                let is_late = began.elapsed() >= limit;
                self.over = Some(why.clone());
                // Without its COMMIT nothing of it can stay.
                Err(if is_late { timeout(ended(&why), TimeoutEffect::No) } else { over(&why) })
            }
        }
    }

    async fn commit(&mut self) -> Result<()> {
        if let Some(why) = &self.over {
            return Err(over(why));
        }
        let until = Instant::now() + self.shared.options.timeout;
        let mut steps = Steps::read(None);
        steps.own("COMMIT", &[]);
        let sent = self.stream.send(&self.shared.cluster.http, steps, true, self.shared.options.timeout).await;
        let why = match sent {
            Exchanged::Batch(Batch::Steps { steps, index }) => {
                self.shared.cluster.saw(index);
                match of_steps(steps, Around::Nothing, index) {
                    Verdict::Results { mut results, .. } => match results.pop() {
                        Some(StatementResult::Failed(failure)) => return Err(failure.error()),
                        Some(_) => return Ok(()),
                        None => "the server's answer does not fit the request".to_owned(),
                    },
                    // The server has rolled it back before.
                    Verdict::NotExecuted(why) => return Err(over(&why)),
                    _ => "the server's answer does not fit the request".to_owned(),
                }
            }
            Exchanged::Batch(Batch::Failed(error)) => error.message,
            Exchanged::Refused(refusal) => return Err(refusal),
            Exchanged::Unreached(why) | Exchanged::Lost(why) => why,
        };
        self.has_committed(&why, until).await
    }

    /// Finds out what became of a COMMIT without an answer. The row of the guard is in the transaction, so when its number is taken by
    /// another request, the transaction is over, one way or the other.
    async fn has_committed(&self, why: &str, until: Instant) -> Result<()> {
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

    /// Ends the stream, and with it what was not committed.
    async fn close(&mut self) {
        if self.over.is_none() {
            let steps = Steps::read(None);
            let _ = self.stream.send(&self.shared.cluster.http, steps, true, self.shared.cluster.attempt).await;
        }
    }
}

fn ended(why: &str) -> String {
    format!("the transaction is over, and nothing of it was written: {why}")
}

fn over(why: &str) -> Error {
    error(ErrorKind::Io, ended(why), "begin another one, and do all of it again")
}
