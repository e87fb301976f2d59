//! Connections of callers, of one engine.
//!
//! Owns: what such a connection gets from its engine. Runs on the thread of the caller, and waits for nothing. Leaves out: the
//! connection (`workers::own_connections`).

use std::sync::Arc;

use super::Engine;
use crate::options::Options;
use crate::workers::own_connections::{Given, OwnConnection};

/// Returns a connection for one caller, with these options.
pub(crate) fn own_connection(engine: &Engine, options: Options) -> Arc<OwnConnection> {
    OwnConnection::new(Given {
        context: engine.context.clone(),
        options: Arc::new(options),
        functions: engine.context.functions.clone(),
        writer: engine.writer.clone(),
        list: engine.own.clone(),
        journal: engine.journal.clone(),
    })
}
