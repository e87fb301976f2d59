//! An open transaction on a server, as the crate that reaches the server serves it. Part of the interface that
//! `bindings` is, and with it not for programs.
//!
//! Owns: the order of its calls, and its savepoints. Runs on the thread of that crate. Invariants: calls are served in
//! the order in which they were sent; a step with a savepoint needs no request of its own, because it goes with the
//! next one that is sent; when this is gone nobody waits for an answer. Leaves out: the server's own transaction.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::api::call::Call;
use crate::api::session::Session;
use crate::api::transaction::{self, Transaction};
use crate::api::transaction_call::{self, TransactionCall};
use crate::engine::server::{Asked, Changes};
use crate::options::Options;
use crate::queue::reply::Teller;
use crate::queue::ticket::left_request;
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::kept::transaction::{KeptTransaction, Message, Side, Step, Undo};
use crate::workers::open_transaction::{Savepoints, TransactionGuard, answer_after};
use crate::workers::request::Request;
use crate::workers::savepoint_stack::{Control, Stack};
use crate::workers::work::{SavepointWork, Work};
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{InlineRun, NotTried};
use flatwater_base::time::recurring::Recurring;

/// Begins a transaction on the server of a session.
pub fn begin(session: &Session) -> Call<Transaction<'static>> {
    transaction::begin(session, None)
}

/// Runs `body` in a transaction on the server of a session, as `Database::try_transaction` does.
pub fn run<F, R, E>(
    session: &Session,
    body: F,
) -> TransactionCall<'static, impl Future<Output = Result<R, E>> + use<F, R, E>>
where
    F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
    E: From<Error>,
{
    transaction_call::transaction(begin(session), body)
}

/// A step with the innermost savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavepointStep {
    Open,
    Release,
    /// Undoes what was done in it, and closes it.
    Undo,
    /// Undoes what was done in it.
    RollbackTo,
}

/// What comes next in a transaction.
pub enum Turn {
    /// Its calls are served by now, and it is open.
    Waits,
    /// Statements, which come after the steps with savepoints.
    Run(Asked),
    Commit(Asked),
    Rollback(Asked),
    /// Nobody can use it any more: it is to be rolled back.
    Ends,
}

/// An open transaction on a server.
pub struct ServerTransaction {
    transaction: Arc<KeptTransaction<OnServer>>,
    /// Looks whether it is idle.
    _looks: Recurring,
    /// It is served: the next message is taken as it comes.
    is_served: bool,
    stack: Stack,
    steps: Steps,
    end: End,
    /// Who is told of its COMMIT.
    changes: Option<Changes>,
    _kept: Option<Box<dyn Send + Sync>>,
}

impl ServerTransaction {
    /// Answers the call by which it was begun. `path` is its name in events; it ends when it is not used for `idle`; `calls` is called from any thread when there is a call after
    /// [`turn`](Self::turn) said that it waits.
    pub fn begun(mut asked: Asked, path: &str, idle: Duration, calls: impl Fn() + Send + Sync + 'static) -> Self {
        let options = Options::new(path).tuning(|t| t.transaction_idle(idle));
        let transaction = KeptTransaction::new(&options, OnServer(Box::new(calls)), None);
        let (looks, looked_at) = (Recurring::default(), Arc::downgrade(&transaction));
        looks.by(transaction.first_look(), move || looked_at.upgrade()?.look());
        let (kept, changes) = (asked.kept.take(), asked.changes.take());
        let guard = TransactionGuard(transaction.clone());
        // If its caller is gone, the guard is dropped, and the next turn is the end.
        answer(asked.request, Ok(Answer::Transaction(guard)));
        let (stack, steps) = (Stack::default(), Steps::default());
        Self { transaction, _looks: looks, is_served: true, stack, steps, end: End::Finished, changes, _kept: kept }
    }

    /// Returns what comes next. What needs no statement is answered here.
    pub fn turn(&mut self) -> Turn {
        loop {
            let next = if self.is_served { self.transaction.next(()) } else { self.transaction.take() };
            self.is_served = next.is_some();
            let (request, place) = match next.map(|((), message)| message) {
                None => return Turn::Waits,
                Some(Message::End) => return Turn::Ends,
                Some(Message::Aside(Undo(place))) => {
                    self.undo(place);
                    continue;
                }
                Some(Message::Request(request, place)) => (*request, place),
            };
            if let Some(turn) = self.turn_of(request, &place) {
                return turn;
            }
        }
    }

    /// The steps with savepoints that come before what is sent next, in their order.
    pub fn steps(&self) -> &[SavepointStep] {
        &self.steps.0
    }

    /// The server has done the steps.
    pub fn stepped(&mut self) {
        self.steps.0.clear();
    }

    /// It is over: it was committed or rolled back, unless it has ended otherwise.
    pub fn ended(&mut self) {
        let (end, refused) = self.transaction.close(self.end.clone());
        for request in refused {
            let ended = answer_after(&end, &request.work);
            answer(request, ended);
        }
    }

    /// It is over: SQLite has rolled it back because of this error.
    pub fn lost(&mut self, error: Error) {
        self.end = End::Lost(error);
        self.ended();
    }

    /// It is over, and calls that come later get this error.
    pub fn gone(&mut self, error: Error) {
        self.end = End::Gone(error);
        self.ended();
    }

    /// It is over, because the database was closed.
    pub fn closed(&mut self) {
        self.end = End::Closed;
        self.ended();
    }

    fn turn_of(&mut self, request: Request, place: &Savepoints) -> Option<Turn> {
        if !request.ticket.start() {
            return None;
        }
        if matches!(request.work, Work::Savepoint(SavepointWork::Undo)) && !self.stack.has_place(place) {
            // It was undone with one around it.
            answer(request, Ok(Answer::Done));
            return None;
        }
        if let Err(error) = self.stack.unwind(&mut self.steps, place, request.ticket.options.ended_nested) {
            answer(request, Err(error));
            return None;
        }
        match &request.work {
            Work::Commit => return Some(Turn::Commit(Asked { changes: self.changes.clone(), ..asked(request) })),
            work if work.describe().is_control() && !request.ticket.finishes() => answer(request, Err(left_request())),
            Work::Rollback => return Some(Turn::Rollback(asked(request))),
            Work::Savepoint(step) => {
                let done = self.stack.step(&mut self.steps, step);
                answer(request, done);
            }
            _ => return Some(Turn::Run(asked(request))),
        }
        None
    }

    /// The handle of a nested transaction was dropped.
    fn undo(&mut self, mut place: Savepoints) {
        let innermost = place.pop();
        if innermost.is_some_and(|number| self.stack.has(number)) {
            // It is open, so the place around it is.
            let _ = self.stack.unwind(&mut self.steps, &place, u64::MAX);
        }
    }
}

impl Drop for ServerTransaction {
    fn drop(&mut self) {
        self.ended();
    }
}

fn asked(request: Request) -> Asked {
    Asked { request, changes: None, kept: None }
}

fn answer(request: Request, answer: Result<Answer>) {
    let answer = answer.map_err(|error| request.work.explain(error));
    request.reply_to.fill(answer, &mut Teller::default());
}

/// Steps that the server was not told yet.
#[derive(Default)]
struct Steps(Vec<SavepointStep>);

impl Steps {
    /// Closes the innermost savepoint: one that was just opened was never there.
    fn close(&mut self, step: SavepointStep) {
        if self.0.last() == Some(&SavepointStep::Open) {
            self.0.pop();
        } else {
            self.0.push(step);
        }
    }
}

impl Control for Steps {
    fn open_savepoint(&mut self) -> Result<()> {
        self.0.push(SavepointStep::Open);
        Ok(())
    }

    fn release_savepoint(&mut self) -> Result<()> {
        self.close(SavepointStep::Release);
        Ok(())
    }

    fn undo_savepoint(&mut self) -> Result<()> {
        self.close(SavepointStep::Undo);
        Ok(())
    }

    fn rollback_to_savepoint(&mut self) -> Result<()> {
        // Nothing was done since.
        if !matches!(self.0.last(), Some(SavepointStep::Open | SavepointStep::RollbackTo)) {
            self.0.push(SavepointStep::RollbackTo);
        }
        Ok(())
    }
}

/// The place of the writer's connection: it is on a server.
struct OnServer(Box<dyn Fn() + Send + Sync>);

impl Side for OnServer {
    type Connection = ();

    fn run_inline(&self, (): &mut (), _: &Work, _: &Savepoints, _: &Permit<'_>) -> (InlineRun<Result<Answer>>, Step) {
        (InlineRun::Ineligible(NotTried::Other), Step::Stays)
    }

    fn give_up(&self, (): &mut ()) {}

    fn leave(&self, (): (), _: Vec<Request>, _: &End) {}

    fn call(&self, _: Arc<KeptTransaction<Self>>) {
        (self.0)();
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::SavepointStep::{Open, Release, RollbackTo, Undo};
    use super::*;

    fn of(steps: &[SavepointStep]) -> Vec<SavepointStep> {
        let mut all = Steps::default();
        for step in steps {
            let done = match step {
                Open => all.open_savepoint(),
                Release => all.release_savepoint(),
                Undo => all.undo_savepoint(),
                RollbackTo => all.rollback_to_savepoint(),
            };
            done.unwrap();
        }
        all.0
    }

    #[test]
    fn what_was_opened_for_nothing_is_not_sent() {
        assert_eq!(of(&[Open, Open, Release, Undo]), []);
        assert_eq!(of(&[Release, Open, Undo, Undo]), [Release, Undo]);
        assert_eq!(of(&[Open, RollbackTo, RollbackTo]), [Open]);
        assert_eq!(of(&[RollbackTo, RollbackTo, Release]), [RollbackTo, Release]);
        assert_eq!(of(&[Undo, Open]), [Undo, Open]);
    }
}
