//! A server that takes the calls of a handle in the place of an engine: another process that has the database.
//!
//! Owns: what such a handle needs besides: the texts, the settings and who listens. Runs on the callers' threads. Invariants: requests
//! are sent in the order in which the calls begin; a request that was sent has one answer, or is dropped. Leaves out: the way to the
//! server, and what it can be asked, which belong to another crate.

use std::sync::Arc;

use crate::options::Options;
use crate::queue::reply::wake;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::request::Request;

use super::Closed;

/// A request that a server is asked.
pub struct Asked {
    pub(crate) request: Request,
    /// Dropped with it.
    pub(crate) kept: Option<Box<dyn Send + Sync>>,
}

/// The way to a server.
pub trait Server: Send + Sync {
    /// Sends a request. Does not block.
    fn send(&self, asked: Asked);

    /// The caller of a request that was started has left. Does not block.
    fn look_again(&self);

    /// Ends the way when the requests that were sent are answered. `closed` is called then. Does not block.
    fn close(&self, closed: Box<dyn FnOnce() + Send>);
}

/// The server of a handle.
pub(crate) struct Served {
    pub(crate) context: Arc<Context>,
    server: Arc<dyn Server>,
}

impl Served {
    pub(crate) fn by(server: Arc<dyn Server>, options: Options) -> Self {
        Self { context: Context::of_server(options), server }
    }

    pub(crate) fn send(&self, request: Request) {
        self.server.send(Asked { request, kept: None });
    }

    pub(crate) fn look_again(&self) {
        self.server.look_again();
    }

    /// Keeps the server: in a forked process it is not dropped.
    pub(crate) fn forget(&self) {
        std::mem::forget((self.context.clone(), self.server.clone()));
    }

    pub(crate) fn close(&self, promise: Option<Closed>) {
        self.server.close(Box::new(move || {
            if let Some(promise) = promise
                && let Ok(waiter) = promise.fill(Ok(Answer::Done))
            {
                wake(waiter);
            }
        }));
    }
}
