//! A resting connection: where the connection of an open transaction is kept while its caller is not waiting for the
//! writer's thread, so that short steps of the transaction can run inline.
//!
//! Owns: the connection while a transaction is open, and what its steps have made of the transaction. Guarded by its own lock,
//! which the writer's thread takes for each message, and a caller's thread only while the writer's thread has no message.
//! Invariant: after a panic in a step nothing runs on the connection any more. Leaves out: the order of messages
//! (`open_transaction`), and the steps (`inline_statement`, `inline_transaction`, `serve_transaction`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::WriterShared;
use super::effects::Effects;
use super::failed_commit::Changes;
use super::writer_connection::WriterConnection;
use crate::error::Error;
use crate::workers::open_transaction::OpenTransaction;
use crate::workers::savepoint_stack::Stack;

/// The state of the open transaction.
pub(super) struct OpenState {
    /// Which transaction it is.
    pub(super) transaction: Arc<OpenTransaction>,
    pub(super) writer: Box<WriterConnection>,
    pub(super) effects: Effects,
    pub(super) savepoints: Stack,
    /// How long its writes took.
    pub(super) worked: Duration,
    /// An inline run panicked: the transaction is lost.
    pub(super) lost: bool,
    /// The error of a COMMIT that failed inline, after which no transaction is open, and the change counters from before it.
    /// The writer's thread finds out what became of the commit.
    pub(super) unsettled: Option<(Error, Changes)>,
}

impl OpenState {
    pub(super) fn new(transaction: Arc<OpenTransaction>, writer: Box<WriterConnection>) -> Self {
        let (effects, savepoints) = (Effects::default(), Stack::default());
        let worked = Duration::ZERO;
        Self { transaction, writer, effects, savepoints, worked, lost: false, unsettled: None }
    }

    /// Runs `f` on the connection. If `f` panics, which only a bug in this crate can cause, the connection is not trusted, and
    /// the transaction is lost.
    pub(super) fn run<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let given_up = GivenUp(self);
        let result = f(given_up.0);
        std::mem::forget(given_up);
        result
    }
}

/// The place of the writer's connection while a transaction is open.
pub(super) struct RestingConnection {
    /// `None` when no transaction is open.
    place: Mutex<Option<OpenState>>,
    pub(super) shared: Weak<WriterShared>,
}

impl RestingConnection {
    pub(super) fn new(shared: Weak<WriterShared>) -> Self {
        Self { place: Mutex::new(None), shared }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<OpenState>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped by a panic alone.
struct GivenUp<'a>(&'a mut OpenState);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.writer.replace();
        self.0.lost = true;
    }
}
