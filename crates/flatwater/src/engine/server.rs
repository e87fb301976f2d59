//! A server that takes the calls of a handle in the place of an engine: another process that has the database.
//!
//! Owns: what both have in common. Runs on the callers' threads. Invariants: requests are sent in the order in which the calls begin; a
//! request that was sent has one answer, or is dropped. Leaves out: what a handle needs besides (`served`), and the way to the server, and
//! what it can be asked, which belong to another crate.

use std::sync::Arc;

use crate::dependencies::change::Change;
use crate::workers::commit_listeners::ChangeListener;
use crate::workers::request::Request;

/// A request that a server is asked.
pub struct Asked {
    pub(crate) request: Request,
    /// Who is told when it has written.
    pub(crate) changes: Option<Changes>,
    /// Dropped with it.
    pub(crate) kept: Option<Box<dyn Send + Sync>>,
}

/// Who is told that something was committed: the live queries of a handle.
#[derive(Clone)]
pub struct Changes(pub(crate) Arc<dyn ChangeListener>);

impl Changes {
    /// Has the live queries run again. Does not block.
    pub fn tell(&self) {
        if self.0.is_watching() {
            self.0.publish(&Change::Everything);
            self.0.start();
        }
    }
}

/// The way to a server.
pub trait Server: Send + Sync {
    /// Sends a request. Does not block.
    fn send(&self, asked: Asked);

    /// The caller of a request that was started has left. Does not block.
    fn look_again(&self);

    /// Looks whether something was committed since the last look, also by others, and says so to `changes`. Does not block.
    fn look(&self, changes: Changes);

    /// Ends the way when the requests that were sent are answered. `closed` is called then. Does not block.
    fn close(&self, closed: Box<dyn FnOnce() + Send>);
}
