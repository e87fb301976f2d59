//! A server that takes the calls of a handle in the place of an engine: another process that has the database.
//!
//! Owns: what all servers have in common, and what a handle needs besides: the texts, the settings, who listens, and its live queries.
//! Runs on the callers' threads. Invariants: requests are sent in the order in which the calls begin; a request that was sent has one
//! answer, or is dropped. Leaves out: the way to the server, and what it can be asked, which belong to another crate.

use std::sync::{Arc, OnceLock};

use super::Closed;
use crate::options::Options;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::interfaces::ChangeListener;
use crate::workers::live::{LiveQueries, LooksForOthers, Powers, Push};
use crate::workers::request::Request;
use flatwater_sql::dependencies::change::Change;

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

/// The server of a handle.
pub(crate) struct Served {
    pub(crate) context: Arc<Context>,
    server: Arc<dyn Server>,
    pub(crate) live: LiveQueries,
    changes: Changes,
}

impl Served {
    pub(crate) fn by(server: Arc<dyn Server>, options: Options) -> Self {
        let context = Context::of_server(options);
        let (live, changes) = live_queries(&context, server.clone());
        Self { context, server, live, changes }
    }

    pub(crate) fn send(&self, request: Request) {
        let changes = (!request.work.describe().only_reads()).then(|| self.changes.clone());
        self.server.send(Asked { request, changes, kept: None });
    }

    pub(crate) fn look_again(&self) {
        self.server.look_again();
    }

    /// Keeps the server: in a forked process it is not dropped.
    pub(crate) fn forget(&self) {
        std::mem::forget((self.context.clone(), self.server.clone(), self.live.clone()));
    }

    pub(crate) fn close(&self, promise: Option<Closed>) {
        self.live.close();
        self.server.close(Box::new(move || {
            promise.into_iter().for_each(|promise| promise.answer(Ok(Answer::Done)));
        }));
    }
}

/// So many queries run at a time on a server.
const ON_A_SERVER: usize = 16;

/// Returns the live queries of a handle to a server, and who tells them of commits.
fn live_queries(context: &Arc<Context>, server: Arc<dyn Server>) -> (LiveQueries, Changes) {
    let (runs, known) = (server.clone(), Arc::<OnceLock<Changes>>::default());
    let push: Push = Box::new(move |request| {
        runs.send(Asked { request, changes: None, kept: None });
        Ok(())
    });
    let listener = known.clone();
    let look: LooksForOthers =
        Box::new(move |_| listener.get().into_iter().for_each(|changes| server.look(changes.clone())));
    let powers = Powers { push, run_here: Box::new(|_, _| None), look };
    let live = LiveQueries::new(context.clone(), powers, ON_A_SERVER);
    let changes = Changes(live.listener());
    let _ = known.set(changes.clone());
    (live, changes)
}
