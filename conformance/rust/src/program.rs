//! The program that a scenario describes: its steps, one after the other.
//!
//! Owns: the handles by their names, and the order of calls. Runs on the scenario's thread. Invariants: a step ends when
//! its call has ended, unless it starts the call; a name is that of one handle. Leaves out: making one call (`calls`), and
//! comparing its end (`check`).

mod calls;
mod functions;

use std::collections::HashMap;
use std::path::Path;
use std::task::Poll;

use flatwater::calls::RowStream;
use flatwater::{Error, Transaction};
use futures_util::future::{LocalBoxFuture, ready};

use crate::check::{self, Checked};
use crate::fields::{Failure, Options};
use crate::format::Scenario;
use crate::opened::Opened;
use crate::outcome::{Handle, Outcome};
use crate::step::{Step, Verb};
use crate::value::Value;

/// The name of the scenario's database.
const DB: &str = "db";

/// Why the body of a transaction ended before its last step.
enum Stop {
    /// A step was not as expected.
    Failed(String),
    /// The program raised its own error.
    Raised(String),
    /// The transaction itself failed.
    Ended(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Ended(error)
    }
}

impl From<String> for Stop {
    fn from(failed: String) -> Self {
        Self::Failed(failed)
    }
}

/// The transaction whose body runs.
struct Body<'b, 't> {
    name: &'b str,
    tx: &'b mut Transaction<'t>,
}

pub(crate) struct Program<'s> {
    path: String,
    is_on_server: bool,
    directory: &'s Path,
    handles: HashMap<String, Handle<'s>>,
}

impl<'s> Program<'s> {
    pub(crate) fn new(path: String, is_on_server: bool, directory: &'s Path) -> Self {
        Self { path, is_on_server, directory, handles: HashMap::new() }
    }

    /// Runs all steps, and closes what they left open.
    pub(crate) async fn run(mut self, scenario: &'s Scenario) -> Checked {
        let opens = scenario.steps.iter().find(|step| !matches!(step.verb, Verb::WriteFile { .. }));
        if !matches!(opens, Some(Step { verb: Verb::Open { .. }, .. })) {
            let opened = self.open(None, &scenario.options)?.await;
            let db = opened.map_err(|error| format!("the database does not open: {error}"))?;
            self.keep(DB, Handle::Database(db))?;
        } else if scenario.options != Options::default() {
            return Err("the options of a database that a step opens are those of the step".to_owned());
        }
        let ended = self.steps(None, &scenario.steps).await;
        let forgotten = self.handles.iter().find(|(_, handle)| matches!(handle, Handle::Call(..)));
        let forgotten = forgotten.map(|(name, _)| format!("{name} was started, and neither awaited nor dropped"));
        let (databases, others): (Vec<_>, Vec<_>) =
            self.handles.into_values().partition(|handle| matches!(handle, Handle::Database(_)));
        drop(others);
        for handle in databases {
            if let Handle::Database(db) = handle {
                db.close().await.map_err(|error| format!("the database does not close: {error}"))?;
            }
        }
        match ended {
            Ok(()) => forgotten.map_or(Ok(()), Err),
            Err(Stop::Failed(failed)) => Err(failed),
            Err(Stop::Raised(text)) => Err(format!("{text:?} was raised outside of a transaction's body")),
            Err(Stop::Ended(error)) => Err(error.to_string()),
        }
    }

    /// Runs steps, in the body of a transaction or outside of any. Boxed, because a step may contain steps.
    fn steps<'a>(
        &'a mut self,
        mut body: Option<Body<'a, '_>>,
        steps: &'s [Step],
    ) -> LocalBoxFuture<'a, Result<(), Stop>>
    where
        's: 'a,
    {
        Box::pin(async move {
            for (number, step) in (1..).zip(steps) {
                let body = body.as_mut().map(|Body { name, tx }| Body { name, tx });
                self.step(body, step).await.map_err(|stop| match stop {
                    Stop::Failed(failed) => Stop::Failed(format!("step {number}: {failed}")),
                    stop => stop,
                })?;
            }
            Ok(())
        })
    }

    async fn step(&mut self, body: Option<Body<'_, '_>>, step: &'s Step) -> Result<(), Stop> {
        match &step.verb {
            Verb::Raise { of } => return Err(Stop::Raised(of.clone())),
            Verb::Transaction { of, r#as, raised } => {
                let ended = self.transaction(body, step, of, r#as).await;
                transaction_end(step, raised.as_ref(), ended)?;
            }
            Verb::Await { of } => match self.take(of)? {
                Handle::Call(started, call) => {
                    let end = call.await;
                    self.ended(started, end)?;
                }
                _ => return Err(format!("{of} is not a call").into()),
            },
            Verb::Drop { of } => drop(self.take(of)?),
            Verb::WriteFile { .. } if self.is_on_server => return Err("a server has no files".to_owned().into()),
            Verb::WriteFile { of } => {
                let (Value::Text(_) | Value::Blob(_)) = of else { return Err("a file has bytes".to_owned().into()) };
                std::fs::write(&self.path, of.bytes()).map_err(|error| error.to_string())?;
            }
            Verb::Next { of, rows, end } => match self.take(of)? {
                Handle::Stream(mut stream) => {
                    next(&mut stream, rows, *end, step.common.error.as_ref()).await?;
                    self.keep(of, Handle::Stream(stream))?;
                }
                _ => return Err(format!("{of} is not a stream").into()),
            },
            _ => {
                let mut call = self.call(body, step)?;
                let Some(name) = &step.common.start else {
                    let end = call.await;
                    return Ok(self.ended(step, end)?);
                };
                let call = match futures_util::poll!(&mut call) {
                    Poll::Ready(end) => Box::pin(ready(end)),
                    Poll::Pending => call,
                };
                self.keep(name, Handle::Call(step, call))?;
            }
        }
        Ok(())
    }

    /// Compares the end of a call, and keeps the handle that it made.
    fn ended(&mut self, step: &Step, end: Result<Outcome, Error>) -> Checked {
        check::end(step, &end)?;
        match (end, &step.verb) {
            (
                Ok(Outcome::Made(handle)),
                Verb::Open { of, .. }
                | Verb::Snapshot { of }
                | Verb::Prepare { of, .. }
                | Verb::Begin { of }
                | Verb::Connection { of, .. }
                | Verb::Serialize { of }
                | Verb::OpenBlob { of, .. }
                | Verb::Stream { of, .. },
            ) => self.keep(of, handle),
            _ => Ok(()),
        }
    }

    /// Runs steps as the body of a transaction.
    async fn transaction(
        &mut self,
        body: Option<Body<'_, '_>>,
        step: &Step,
        steps: &'s [Step],
        name: &'s str,
    ) -> Result<(), Stop> {
        if self.handles.contains_key(name) {
            return Err(format!("{name} is used twice").into());
        }
        let on = step.common.on.as_deref().unwrap_or(DB);
        if let Some(body) = body.filter(|body| body.name == on) {
            return body.tx.try_transaction(async |tx| self.steps(Some(Body { name, tx }), steps).await).await;
        }
        match self.take(on)? {
            Handle::Transaction(mut tx) => {
                let ended = tx.try_transaction(async |tx| self.steps(Some(Body { name, tx }), steps).await).await;
                self.keep(on, Handle::Transaction(tx))?;
                ended
            }
            Handle::Database(db) => {
                self.keep(on, Handle::Database(db.clone()))?;
                let db = calls::within(&db, step);
                match &db {
                    Opened::Here(db) => {
                        db.try_transaction(async |tx| self.steps(Some(Body { name, tx }), steps).await).await
                    }
                    Opened::Libsql(db) => {
                        db.try_transaction(async |tx| self.steps(Some(Body { name, tx }), steps).await).await
                    }
                    Opened::Cluster(_) => Err("a cluster has no transactions".to_owned().into()),
                }
            }
            _ => Err(format!("{on} has no transactions").into()),
        }
    }

    fn keep(&mut self, name: &str, handle: Handle<'s>) -> Checked {
        match self.handles.insert(name.to_owned(), handle) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is used twice")),
        }
    }

    fn take(&mut self, name: &str) -> Result<Handle<'s>, String> {
        self.handles.remove(name).ok_or_else(|| format!("there is no handle {name}"))
    }
}

/// Compares the end of a transaction with a body.
fn transaction_end(step: &Step, raised: Option<&String>, ended: Result<(), Stop>) -> Result<(), Stop> {
    match (ended, raised, &step.common.error) {
        (Err(Stop::Failed(failed)), ..) => Err(Stop::Failed(failed)),
        (Err(Stop::Raised(text)), Some(expected), _) if text == *expected => Ok(()),
        (Err(Stop::Raised(text)), ..) => Err(format!("the body raised {text:?}").into()),
        (Err(Stop::Ended(error)), None, Some(expected)) => Ok(check::failure(expected, &error)?),
        (Err(Stop::Ended(error)), ..) => Err(format!("it failed: {error}").into()),
        (Ok(()), None, None) => Ok(()),
        (Ok(()), ..) => Err("it did not fail".to_owned().into()),
    }
}

/// Fetches rows from a stream, and then its error or its end.
async fn next(stream: &mut RowStream, rows: &[Vec<Value>], end: bool, error: Option<&Failure>) -> Checked {
    for expected in rows {
        match stream.next().await {
            Some(Ok(row)) => check::row(expected, &row)?,
            Some(Err(error)) => return Err(format!("it failed: {error}")),
            None => return Err(format!("the stream ended, and {expected:?} is expected")),
        }
    }
    match error {
        Some(expected) => match stream.next().await {
            Some(Err(error)) => check::failure(expected, &error),
            is => Err(format!("the next is {is:?}, and an error is expected")),
        },
        None if end => match stream.next().await {
            None => Ok(()),
            is => Err(format!("the next is {is:?}, and the end is expected")),
        },
        None => Ok(()),
    }
}
