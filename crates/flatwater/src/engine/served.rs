//! A handle's server, with what a handle needs besides: the texts, the settings, who listens, and its live queries.
//!
//! Owns: these. Runs on the callers' threads. Leaves out: the server (`server`).

use std::sync::{Arc, OnceLock};

use super::Closed;
use super::server::{Asked, Changes, Server};
use crate::options::Options;
use crate::queue::reply::wake;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::live::{LiveQueries, LooksForOthers, Powers, Push};
use crate::workers::request::Request;

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
            if let Some(promise) = promise
                && let Ok(waiter) = promise.fill(Ok(Answer::Done))
            {
                wake(waiter);
            }
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
    let told = known.clone();
    let look: LooksForOthers = Box::new(move |_| told.get().into_iter().for_each(|told| server.look(told.clone())));
    let powers = Powers { push, run_here: Box::new(|_, _| None), look };
    let live = LiveQueries::new(context.clone(), powers, ON_A_SERVER);
    let changes = Changes(live.listener());
    let _ = known.set(changes.clone());
    (live, changes)
}
