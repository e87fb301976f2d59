//! The runs of live queries: each is a request whose answer no task awaits.
//!
//! Owns: pushing the request, and taking its answer on the thread that delivers it. Invariant: each run that was started
//! ends in the registry, whatever becomes of its request. Leaves out: what the registry makes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use super::Shared;
use super::entry::Ran;
use super::registry::{Start, Todo};
use crate::changes::index::Id;
use crate::connection::reads::LiveRun;
use crate::error::{Error, Result};
use crate::queue::reply::{Reply, reply, wake};
use crate::workers::answer::Answer;
use crate::workers::request::{Request, Work};

/// A run in flight, as the waker of its reply.
struct InFlight {
    live: Weak<Shared>,
    id: Id,
    reply: Mutex<Option<Reply<Result<Answer>>>>,
}

impl InFlight {
    /// Takes the answer if it is there; otherwise it is woken when it is.
    fn look(self: &Arc<Self>) -> Option<Result<Vec<LiveRun>>> {
        let waker = Waker::from(self.clone());
        let mut place = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        let polled = Pin::new(place.as_mut()?).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(answer) = polled else { return None };
        let reply = place.take();
        drop(place);
        drop(reply);
        Some(answer.unwrap_or_else(|| Err(lost())).and_then(Answer::live))
    }
}

impl Wake for InFlight {
    fn wake(self: Arc<Self>) {
        let Some(run) = self.look() else { return };
        if let Some(live) = self.live.upgrade() {
            let todo = live.finish(self.id, run);
            live.perform(todo);
        }
    }
}

#[cold]
fn lost() -> Error {
    Error::misuse("the run of a live query was lost, because it was withdrawn or to a panic inside Flatwater")
}

impl Shared {
    /// Starts the runs and wakes the tasks. Called without the lock.
    pub(super) fn perform(self: &Arc<Self>, mut todo: Todo) {
        while let Some(start) = todo.starts.pop_front() {
            let id = start.id;
            if let Some(ended) = self.start(start) {
                let mut more = self.finish(id, ended);
                todo.starts.append(&mut more.starts);
                todo.wakers.append(&mut more.wakers);
            }
        }
        wake(todo.wakers);
    }

    fn finish(&self, id: Id, run: Result<Vec<LiveRun>>) -> Todo {
        let last = self.lock().last(id);
        let ran = Ran::new(run, last.as_ref());
        self.lock().finish(id, ran, Instant::now())
    }

    /// Pushes the request of a run. Returns the end of the run if it has already ended.
    fn start(self: &Arc<Self>, start: Start) -> Option<Result<Vec<LiveRun>>> {
        let Start { id, query, known, ticket } = start;
        let (promise, reply) = reply();
        let in_flight = Arc::new(InFlight { live: Arc::downgrade(self), id, reply: Mutex::new(Some(reply)) });
        match (self.powers.push)(Request::new(ticket, Work::Live(query, known), promise)) {
            Ok(()) => in_flight.look(),
            Err(error) => Some(Err(error)),
        }
    }
}
