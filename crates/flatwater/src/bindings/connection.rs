//! Connections of callers, for front ends.
//!
//! Owns: their calls. Runs on the caller's thread. Leaves out: what runs SQL on them ([`Target`](super::Target)).

pub use flatwater_sqlite::{AuthEvent, Authorize, Callbacks, Progress, Trace, Verdict};

use super::{FrontCall, Output};
use crate::api::connection::Connection;

/// Changes what the caller of a connection is asked and told, from its next statement on. A callback runs on a thread
/// of the database, and must not call it.
pub fn set_callbacks(connection: &Connection, set: impl FnOnce(&mut Callbacks)) {
    connection.guard.0.set_callbacks(set);
}

/// Closes a connection.
#[must_use]
pub fn close_connection(connection: &Connection) -> FrontCall {
    FrontCall::new(connection.close_as(|answer, _| answer.done().map(|()| Output::Done)))
}
