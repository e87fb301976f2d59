//! One request of writes, until it is known what became of it, whatever happens to its answers.
//!
//! Owns: the attempts, and the questions between them. Runs on the thread of the connection to the cluster. Invariants: before the members
//! get an error, or go into another request, this one was applied or never will be; `CommitUnknown` is said only when no
//! question was answered either. Leaves out: who the members are (`queue`), what a request contains (`grouped`, `guard`).

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use flatwater::bindings::server::{error, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorCode, Result};

use super::grouped::{Applied, Grouped};
use super::guard::{CLEAN, Recorded, SCHEMA, Writer, is_without_tables, was_applied};
use crate::clock::seconds;
use crate::cluster::nodes::pause;
use crate::forms::Statements;
use crate::reads::no_result;
use crate::request::{How, Known, Request};
use crate::results::{Failure, StatementResult};
use crate::shared::Shared;

/// What became of a request, for its members.
pub(crate) enum Outcome {
    Applied(Applied),
    /// Nothing was applied: the statement at this place failed, of this member.
    Failed {
        member: usize,
        at: usize,
        failure: Failure,
    },
    /// Nothing was applied, and it is not known which member is to blame.
    Undone(Error),
    /// The guard has refused it.
    Taken,
    /// It was not applied, and never will be. The members are sent in another request.
    Again,
    /// Its time is over, and nothing was applied, or it is not known whether it was.
    Over(Error),
}

/// What one attempt came to.
enum Attempt {
    Came(Outcome),
    /// The database has no table for the guard yet.
    WithoutTables,
}

/// The attempts of one request.
pub(crate) struct Attempts<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) writer: &'a Writer,
    pub(crate) grouped: &'a Grouped,
    pub(crate) until: Instant,
}

impl Attempts<'_> {
    /// Sends the request until it is known what became of it. After an attempt of which nothing is known the database is asked first:
    /// a long commit may have ended meanwhile, and the answer to a question does not take as long.
    pub(crate) async fn settle(&self, body: Bytes) -> Outcome {
        let request = Request { how: How::Write, body, repeats: false, until: self.until };
        let (mut attempts, mut may_be_second) = (0, false);
        loop {
            let known = self.shared.cluster.ask(&request).await;
            may_be_second |= matches!(known, Known::Doubtful(_));
            let why = match self.attempt(known) {
                Ok(Attempt::Came(Outcome::Applied(applied))) => return Outcome::Applied(applied),
                // Also the first attempt may be one: something on the way has sent it twice.
                Ok(Attempt::Came(Outcome::Taken)) => match self.recorded().await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) if !may_be_second => return Outcome::Taken,
                    // It was ended, and that answer was lost.
                    Ok(None) => return Outcome::Again,
                    Err(error) => error.message().to_owned(),
                },
                Ok(Attempt::WithoutTables) => match self.create(may_be_second).await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) => return Outcome::Again,
                    Err(error) if !may_be_second => return Outcome::Undone(error),
                    Err(error) => error.message().to_owned(),
                },
                Ok(Attempt::Came(outcome)) if !may_be_second => return outcome,
                Ok(Attempt::Came(outcome)) => match self.end().await {
                    Ok(Some(applied)) => return Outcome::Applied(applied),
                    Ok(None) => return outcome,
                    Err(error) => error.message().to_owned(),
                },
                Err(why) => why,
            };
            may_be_second = true;
            if let Ok(Some(applied)) = self.recorded().await {
                return Outcome::Applied(applied);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Outcome::Over(unknown(&why));
            }
            tokio::time::sleep(pause(attempts, rand::random()).min(left)).await;
            attempts += 1;
        }
    }

    /// Creates the tables, after which the members are sent in another request.
    async fn create(&self, may_be_second: bool) -> Result<Option<Applied>> {
        own(self.shared, SCHEMA, &[], self.until).await?;
        if may_be_second { self.end().await } else { Ok(None) }
    }

    /// Ends the request, of which an attempt may be under way: afterwards it was applied, or it never will be. Without this, an attempt
    /// that is late could be applied beside what is sent instead:
    ///
    /// | this client | the server |
    /// |---|---|
    /// | sends request 7, gets no answer | has it in a buffer |
    /// | sends request 7 again: a member fails | undoes it |
    /// | sends the other members as request 8 | applies request 7, of the buffer, then request 8 |
    async fn end(&self) -> Result<Option<Applied>> {
        end(self.shared, self.writer, self.until).await?;
        self.recorded().await
    }

    /// Returns what an attempt came to, or why nothing is known of it.
    fn attempt(&self, known: Known) -> Result<Attempt, String> {
        let mut results = match known {
            Known::Results(results) => results,
            Known::Refused(error) => return Ok(Attempt::Came(Outcome::Undone(error))),
            Known::Undone(failure) | Known::Doubtful(failure) => {
                let of_one_node = self.of_one_node(&failure);
                return Ok(Attempt::Came(of_one_node.unwrap_or_else(|| Outcome::Undone(failure.error()))));
            }
            Known::TooLate(why) => return Ok(Attempt::Came(Outcome::Over(too_late(&why)))),
            Known::Unknown(why) => return Err(why),
        };
        if let Some(StatementResult::Failed(failure)) = results.last() {
            let of_one_node = self.of_one_node(failure);
            return Ok(of_one_node.map_or_else(|| self.failed(results), Attempt::Came));
        }
        let nonsense = || "the server's answer does not fit the request".to_owned();
        // A list of which one has failed ends there, and all of it is undone.
        if results.iter().any(|result| matches!(result, StatementResult::Failed(_))) {
            return Err(nonsense());
        }
        let Some(StatementResult::Rows { values, .. }) = results.pop() else { return Err(nonsense()) };
        let recorded = self.writer.results(&values).ok_or_else(nonsense)?;
        let applied = Applied::new(recorded, Some(results), self.grouped.results).ok_or_else(nonsense)?;
        Ok(Attempt::Came(Outcome::Applied(applied)))
    }

    /// What comes of a failure that says nothing of the other nodes.
    fn of_one_node(&self, failure: &Failure) -> Option<Outcome> {
        let is_of_one = self.shared.cluster.dialect.is_of_one_node(failure);
        is_of_one.then(|| Outcome::Over(of_one_node(failure)))
    }

    fn failed(&self, mut results: Vec<StatementResult>) -> Attempt {
        let member = self.grouped.failed(&results);
        let Some(StatementResult::Failed(failure)) = results.pop() else { return Attempt::Came(Outcome::Again) };
        let at = results.len();
        Attempt::Came(match member {
            None if at == 0 && was_applied(&failure.message) => Outcome::Taken,
            None if is_without_tables(&failure.message) => return Attempt::WithoutTables,
            None => Outcome::Undone(failure.error()),
            Some(member) => Outcome::Failed { member, at, failure },
        })
    }

    /// Asks for the results of the request. `None`: it is not applied, yet.
    async fn recorded(&self) -> Result<Option<Applied>> {
        let expected = self.grouped.results;
        let recorded = recorded(self.shared, self.writer, expected, self.until).await?;
        Ok(recorded.and_then(|recorded| Applied::new(recorded, None, expected)))
    }
}

/// Asks for so many results of the writer's request. `None`: it is not applied, yet.
pub(crate) async fn recorded(
    shared: &Shared,
    writer: &Writer,
    expected: usize,
    until: Instant,
) -> Result<Option<HashMap<usize, Recorded>>> {
    let (begun, how) = shared.cluster.dialect.question();
    match ask(shared, how, writer.question(begun, expected), until).await?.pop() {
        Some(StatementResult::Rows { values, .. }) => {
            let recorded = writer.results(&values).ok_or_else(no_result)?;
            Ok((recorded.len() == expected).then_some(recorded))
        }
        Some(StatementResult::Failed(failure)) if is_without_tables(&failure.message) => Ok(None),
        Some(StatementResult::Failed(failure)) => Err(failure.error()),
        _ => Err(no_result()),
    }
}

/// Takes the number of the writer's request, unless it is taken: afterwards no request with this number can be applied.
/// Returns true if it was taken before.
pub(crate) async fn end(shared: &Shared, writer: &Writer, until: Instant) -> Result<bool> {
    let statements = writer.begin(shared.cluster.dialect, seconds());
    match ask(shared, How::Write, statements, until).await?.pop() {
        Some(StatementResult::Failed(failure)) if was_applied(&failure.message) => Ok(true),
        Some(StatementResult::Failed(failure)) => Err(failure.error()),
        Some(StatementResult::Done) => Ok(false),
        _ => Err(no_result()),
    }
}

/// Runs statements of ours, which may be executed again, in one transaction.
pub(crate) async fn own(shared: &Shared, all: &[&str], values: &[i64], until: Instant) -> Result<()> {
    let mut statements = shared.cluster.dialect.transaction();
    all.iter().for_each(|sql| statements.own(sql, values));
    match ask(shared, How::Write, statements, until).await?.pop() {
        Some(StatementResult::Failed(failure)) => Err(failure.error()),
        _ => Ok(()),
    }
}

/// Removes what other clients have left. If it fails, the next client does it.
pub(crate) async fn clean(shared: &Shared) {
    let until = Instant::now() + shared.options.timeout;
    let _ = own(shared, CLEAN, &[seconds()], until).await;
}

/// Asks what may be asked again.
async fn ask(shared: &Shared, how: How, statements: Statements, until: Instant) -> Result<Vec<StatementResult>> {
    let request = Request { how, body: statements.finish(), repeats: true, until };
    match shared.cluster.ask(&request).await {
        Known::Results(results) => Ok(results),
        Known::Refused(error) => Err(error),
        Known::Undone(failure) | Known::Doubtful(failure) => Err(failure.error()),
        Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
    }
}

pub(crate) fn too_late(why: &str) -> Error {
    timeout(format!("the time of the call was over, and nothing was written: {why}"), TimeoutEffect::No)
}

fn of_one_node(failure: &Failure) -> Error {
    let message =
        format!("the node that leads could not apply the write, and other nodes may have: {}", failure.message);
    error(
        ErrorCode::CommitUnknown,
        message,
        "mend that node, or let another one lead, and then read what the write writes",
    )
}

pub(crate) fn unknown(why: &str) -> Error {
    let message = format!("it is not known whether the write was applied: {why}");
    error(
        ErrorCode::CommitUnknown,
        message,
        "when the server answers again, write something through this session, and then read what it writes",
    )
}
