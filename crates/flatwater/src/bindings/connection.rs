//! Connections of callers, for front ends.
//!
//! Owns: their calls. Runs on the caller's thread. Leaves out: what runs SQL on them ([`Target`](super::Target)).

use super::{FrontCall, Output};
use crate::api::connection::Connection;

/// Closes a connection.
#[must_use]
pub fn close_connection(connection: &Connection) -> FrontCall {
    FrontCall::new(connection.close_as(|answer, _| answer.done().map(|()| Output::Done)))
}
