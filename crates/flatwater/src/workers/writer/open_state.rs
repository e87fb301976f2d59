//! The writer's connection while a transaction is open on it, and what the transaction's steps have made of it.
//!
//! Owns: that state, which rests in the transaction's inbox between two steps. Used by the thread that has taken it out. Leaves
//! out: the order of messages (`kept`), and the steps (`inline_statement`, `inline_transaction`, `serve_transaction`).

use std::sync::Weak;
use std::time::Duration;

use super::WriterShared;
use super::effects::Effects;
use super::writer_connection::WriterConnection;
use crate::workers::kept::transaction::KeptTransaction;
use crate::workers::savepoint_stack::Stack;

/// A transaction that is open on the writer's connection.
pub(super) type WriterTransaction = KeptTransaction<OnWriter>;

/// The state of the open transaction.
pub(super) struct OpenState {
    pub(super) writer: Box<WriterConnection>,
    pub(super) effects: Effects,
    pub(super) savepoints: Stack,
    /// How long its writes took.
    pub(super) worked: Duration,
}

impl OpenState {
    pub(super) fn new(writer: Box<WriterConnection>) -> Self {
        Self { writer, effects: Effects::default(), savepoints: Stack::default(), worked: Duration::ZERO }
    }
}

/// The side of such a transaction: the writer.
pub(super) struct OnWriter(pub(super) Weak<WriterShared>);
