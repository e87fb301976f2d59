//! One request of a thread of a database to a thread of Node: calls of one function in their order, of which the last one's result is
//! the answer.
//!
//! Owns: the arguments and the answer, and waiting for that. Made and awaited on the thread that runs the statement, answered on that
//! of Node. Invariants: a request is answered once, or left, and nobody waits for one that is; the wait ends with the statement, which
//! is looked at every few milliseconds. Leaves out: the order of requests (`worker`), and making values (`serve`).

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use flatwater::bindings::functions::statement_ends;
use flatwater::rusqlite::types::Value as SqlValue;

use super::definition::Definition;
use super::threw::Threw;

/// What is called. The numbers are those of `flatwater/functions/calling.ts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Call = 0,
    Step = 1,
    Inverse = 2,
    Value = 3,
    Result = 4,
    Compare = 5,
    /// Forgets the instance of an aggregate whose statement has failed.
    Forget = 6,
    /// Lets go of the code of a definition, which no database has any more.
    Release = 7,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The statement is to end.
    Ended,
    Threw(Threw),
}

pub(crate) type Answer = Result<SqlValue, Failed>;

const WAITING: u8 = 0;
const ANSWERED: u8 = 1;
const LEFT: u8 = 2;

/// How often a thread that sleeps looks whether its statement is to end.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Request {
    pub(crate) definition: Arc<Definition>,
    /// The number by which JavaScript has its code.
    pub(crate) at: usize,
    /// The instance of an aggregate.
    pub(crate) instance: u64,
    /// The calls, each with its number of arguments.
    pub(crate) calls: Vec<(Method, usize)>,
    pub(crate) arguments: Vec<SqlValue>,
    state: AtomicU8,
    answer: Mutex<Option<Answer>>,
    asker: Thread,
}

impl Request {
    /// `of` is a definition and its number.
    pub(crate) fn new(
        of: (&Arc<Definition>, usize),
        instance: u64,
        calls: Vec<(Method, usize)>,
        arguments: Vec<SqlValue>,
    ) -> Self {
        let (state, answer, asker) = (AtomicU8::new(WAITING), Mutex::default(), thread::current());
        Self { definition: of.0.clone(), at: of.1, instance, calls, arguments, state, answer, asker }
    }

    /// Nobody waits for it any more.
    pub(crate) fn is_left(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEFT
    }

    /// Called once, by who has it from the queue.
    pub(crate) fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        if self.state.compare_exchange(WAITING, ANSWERED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.asker.unpark();
        }
    }

    /// Waits for the answer, or until the statement is to end.
    pub(crate) fn wait(&self) -> Answer {
        let is_left = || self.state.compare_exchange(WAITING, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok();
        while self.state.load(Ordering::Acquire) == WAITING {
            if statement_ends() && is_left() {
                return Err(Failed::Ended);
            }
            thread::park_timeout(LOOK);
        }
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer.unwrap_or(Err(Failed::Ended))
    }
}
