//! Closures of the program that run on a connection of the engine, and what one returns to its caller.
//!
//! Owns: their types, and the answer that a result becomes. Runs on the worker's thread. Leaves out: running them.

use std::any::Any;

use flatwater_base::error::cause::panicked;
use flatwater_base::error::{Error, ErrorCode, Result};

use crate::queue::ticket::Ticket;
use crate::workers::Answer;

/// The result of a user's closure, for its caller, which knows the type; whether the result was `Ok`, and the error if it
/// is one of Flatwater's.
pub(crate) struct Returned {
    pub(crate) is_ok: bool,
    pub(crate) error: Option<Error>,
    pub(crate) result: Box<dyn Any + Send>,
}

impl Returned {
    /// Returns the answer for the caller, or an error if the closure failed because the deadline passed.
    pub(crate) fn answer(self, ticket: &Ticket) -> Result<Answer> {
        if !self.is_ok {
            ticket.closure_failed()?;
        }
        Ok(Answer::Returned(self.result, self.error))
    }

    /// Returns the answer of a closure that only read. `failed` is the failure of a collation, which SQLite does not tell: what
    /// the closure read may be in a wrong order.
    pub(crate) fn of_read(ran: std::thread::Result<Self>, failed: Option<String>, ticket: &Ticket) -> Result<Answer> {
        match (ran, failed) {
            (Ok(_), Some(message)) => Err(Error::new(ErrorCode::UserCode, message)),
            (Ok(returned), None) => returned.answer(ticket),
            (Err(panic), _) => Err(panicked(&*panic).with_hint("nothing was committed")),
        }
    }
}

/// A user's closure for a reader.
pub(crate) type ReadClosure = Box<dyn FnOnce(&rusqlite::Connection) -> Returned + Send>;
/// A user's closure for the writer, whose changes are committed if it returns `Ok`.
pub(crate) type WriteClosure = Box<dyn FnOnce(&rusqlite::Transaction<'_>) -> Returned + Send>;

/// A user's closure for the writer's exclusive connection.
pub(crate) type ExclusiveClosure = Box<dyn FnOnce(&mut rusqlite::Connection) -> Returned + Send>;
