//! The writer's connection while a transaction is open on it, and what the transaction's steps have made of it.
//!
//! Owns: that state, which rests in the transaction's inbox between two steps. Used by the thread that has taken it out. Leaves
//! out: the order of messages (`kept`), and the steps (`short`, `perform::transaction`).

use std::sync::Weak;
use std::time::Duration;

use super::WriterShared;
use super::effects::Effects;
use super::writer_connection::WriterConnection;
use crate::workers::kept::transaction::KeptTransaction;
use crate::workers::savepoint_stack::Stack;

/// A transaction that is open on the writer's connection.
pub(crate) type WriterTransaction = KeptTransaction<OnWriter>;

/// The state of the open transaction.
pub(crate) struct OpenState {
    pub(crate) writer: Box<WriterConnection>,
    pub(crate) effects: Effects,
    pub(crate) savepoints: Stack,
    /// How long its writes took.
    pub(crate) worked: Duration,
}

impl OpenState {
    pub(crate) fn new(writer: Box<WriterConnection>) -> Self {
        Self { writer, effects: Effects::default(), savepoints: Stack::default(), worked: Duration::ZERO }
    }
}

/// The side of such a transaction: the writer.
pub(crate) struct OnWriter(pub(crate) Weak<WriterShared>);
