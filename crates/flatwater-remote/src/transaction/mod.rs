//! An interactive transaction on a libSQL server, on a stream of its own.
//!
//! Owns: the transaction, from its BEGIN to its end. Runs as a task on the thread of the connection to the server, one for each transaction. Invariants:
//! calls run in their order; a transaction whose stream is lost is over, and no other one is begun in its place; a COMMIT whose
//! answer is lost is known by the guard's row, which is in the transaction. Leaves out: what a request contains (`writes`), the
//! stream (`libsql::stream`), beginning one (`begin`), and the handle of the caller (`interactive`).

mod begin;
mod send;

use std::time::{Duration, Instant};

use flatwater::bindings::server::{Answered, Asked, error, result_lost, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind, Result};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use self::begin::begin;
use self::send::{Gone, close, send};
use crate::dialect::{Dialect, Statements};
use crate::libsql::answer::Batch;
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
    /// A statement of it may have written.
    has_written: bool,
    /// Why it is over.
    over: Option<String>,
}

/// Begins a transaction, serves it, and ends it.
pub(crate) async fn serve(shared: &Shared, Begin { mut inbox, until, answer }: Begin) {
    match begin(shared, until).await {
        Ok(transaction) => {
            // If nobody waits for it any more, its handle is gone, and the next message says so.
            let _ = answer.send(Ok(()));
            transaction.serve(&mut inbox).await;
        }
        Err(error) => {
            let _ = answer.send(Err(error));
        }
    }
    inbox.close();
    while let Some(message) = inbox.recv().await {
        match message {
            Inside::Asked(asked) => asked.answer(Err(has_ended())),
            Inside::End { answer, .. } => {
                let _ = answer.send(Err(has_ended()));
            }
            Inside::Close(closed) => closed(),
        }
    }
}

impl Transaction<'_> {
    /// Serves the transaction until it is ended, or its handle is gone.
    async fn serve(mut self, inbox: &mut UnboundedReceiver<Inside>) {
        while let Some(message) = inbox.recv().await {
            match message {
                Inside::Asked(asked) => self.run(asked).await,
                Inside::End { commits: true, answer } => {
                    let _ = answer.send(self.commit().await);
                    if !self.shared.has_cleaned.replace(true) {
                        clean(self.shared).await;
                    }
                    break;
                }
                Inside::End { commits: false, answer } => {
                    close(self.shared, &mut self.stream).await;
                    let _ = answer.send(Ok(()));
                    break;
                }
                Inside::Close(closed) => {
                    close(self.shared, &mut self.stream).await;
                    closed();
                    break;
                }
            }
        }
        self.shared.keep_writer(self.writer);
    }

    async fn run(&mut self, asked: Asked) {
        if !asked.starts() {
            return;
        }
        if let Some(why) = &self.over {
            return asked.answer(Err(over(why)));
        }
        let left = self.shared.ends(&asked).saturating_duration_since(Instant::now());
        let answer = if asked.only_reads() {
            self.read(&asked, left).await
        } else {
            match checked(&asked, Dialect::Libsql) {
                // From now on it is in the transaction, whatever its caller does.
                Ok(Some(_)) if asked.finishes() => self.write(&asked, left).await,
                Ok(Some(_)) => return,
                Ok(None) => return nothing_to_do(asked),
                Err(error) => Err(error),
            }
        };
        asked.answer(answer);
    }

    async fn read(&mut self, asked: &Asked, limit: Duration) -> Result<Answered> {
        let one = query_of(asked, Dialect::Libsql)?;
        let mut statements = Statements::Libsql(Steps::new(Around::Savepoint, None));
        statements.add(&one);
        match self.verdict(statements, limit).await? {
            // Its savepoint may be open still, and has changed nothing.
            Verdict::Doubtful(failure) => Err(failure.error()),
            Verdict::Unmade(why) => Err(infinite(why)),
            Verdict::Results { results, .. } => result(&one, results).map(Answered::Rows),
            _ => Err(no_result()),
        }
    }

    async fn write(&mut self, asked: &Asked, limit: Duration) -> Result<Answered> {
        let mut statements = Statements::Libsql(Steps::new(Around::Savepoint, None));
        let grouped = Grouped::inside(&self.writer, &mut statements, asked);
        self.has_written = true;
        let mut results = match self.verdict(statements, limit).await? {
            Verdict::Results { results, .. } => results,
            Verdict::Unmade(why) => return Err(result_lost(infinite(why))),
            // A part of it may have stayed in the transaction.
            Verdict::Doubtful(failure) => return Err(self.end_with(failure.error()).await),
            _ => return Err(self.end_with(no_result()).await),
        };
        let at = results.len().saturating_sub(1);
        match results.pop() {
            Some(StatementResult::Failed(failure)) => Err(grouped.explain(failure.error(), at, asked)),
            Some(StatementResult::Rows { values, .. }) => {
                let recorded = self.writer.results(&values).ok_or_else(no_result)?;
                let applied = Applied::new(recorded, Some(results), grouped.results);
                grouped.answer(0, asked, &mut applied.ok_or_else(no_result)?)
            }
            _ => Err(no_result()),
        }
    }

    /// Ends the transaction because of this error.
    async fn end_with(&mut self, error: Error) -> Error {
        self.over = Some(error.message().to_owned());
        close(self.shared, &mut self.stream).await;
        error
    }

    /// Runs statements in a savepoint. An error that is not a statement's ends the transaction.
    async fn verdict(&mut self, statements: Statements, limit: Duration) -> Result<Verdict> {
        let began = Instant::now();
        let why = match send(self.shared, &mut self.stream, statements, Around::Savepoint, limit).await {
            Ok(Verdict::Undone(failure)) => return Err(failure.error()),
            Ok(Verdict::Refused(refusal)) => return Err(self.end_with(refusal).await),
            Ok(Verdict::NotExecuted(why) | Verdict::Unknown(why) | Verdict::Elsewhere(why)) => why,
            Ok(verdict) => return Ok(verdict),
            Err(Gone::Lost(why) | Gone::Unreadable(why)) => why,
        };
        // Without its COMMIT nothing of it can stay.
        let is_late = began.elapsed() >= limit;
        let error = if is_late { timeout(ended(&why), TimeoutEffect::No) } else { over(&why) };
        self.over = Some(why);
        close(self.shared, &mut self.stream).await;
        Err(error)
    }

    async fn commit(&mut self) -> Result<()> {
        if let Some(why) = &self.over {
            return Err(over(why));
        }
        let nonsense = || "the server's answer does not fit the request".to_owned();
        let mut steps = Steps::read(None);
        steps.own("COMMIT", &[]);
        let cluster = &self.shared.cluster;
        let before = cluster.newest();
        let sent = self.stream.send(&cluster.http, steps, true, cluster.attempt).await;
        let why = match sent {
            Exchanged::Batch(Batch::Steps { steps, index }) => {
                cluster.saw(&cluster.leader(), before, index);
                match of_steps(steps, Around::Nothing, index) {
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
    error(ErrorKind::Io, why, "store and return finite numbers")
}

fn ended(why: &str) -> String {
    format!("the transaction is over, and nothing of it was written: {why}")
}

fn over(why: &str) -> Error {
    error(ErrorKind::Io, ended(why), "begin another one, and do all of it again")
}

/// The error of a call that comes after the end of its transaction.
pub(crate) fn has_ended() -> Error {
    error(ErrorKind::Misuse, "the transaction has ended".into(), "begin another one")
}
