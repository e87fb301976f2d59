//! The runs of live queries: each is a request whose answer no task awaits.
//!
//! Owns: pushing the request, and taking its answer on the thread that delivers it. Invariant: each run that was started
//! ends in the registry, whatever becomes of its request. Leaves out: what the registry makes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
    awaited: Mutex<Awaited>,
}

struct Awaited {
    /// Until the run has ended.
    reply: Option<Reply<Result<Answer>>>,
    is_pushed: bool,
    /// The request is gone without an answer.
    is_lost: bool,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer if it is there; otherwise it is woken when it is. What becomes of a request that is not pushed yet,
    /// the push tells.
    fn look(self: &Arc<Self>) -> Option<Result<Vec<LiveRun>>> {
        let waker = Waker::from(self.clone());
        let mut awaited = self.lock();
        let polled = Pin::new(awaited.reply.as_mut()?).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(answer) = polled else { return None };
        if answer.is_none() && !awaited.is_pushed {
            awaited.is_lost = true;
            return None;
        }
        let reply = awaited.reply.take();
        drop(awaited);
        drop(reply);
        Some(answer.unwrap_or_else(|| Err(lost())).and_then(Answer::live))
    }

    /// Notes whether the request was pushed. Returns the end of a run that no thread will answer.
    fn is_pushed(&self, pushed: Result<()>) -> Option<Result<Vec<LiveRun>>> {
        let mut awaited = self.lock();
        awaited.is_pushed = true;
        let error = match pushed {
            Ok(()) if !awaited.is_lost => return None,
            Ok(()) => lost(),
            Err(error) => error,
        };
        let reply = awaited.reply.take();
        drop(awaited);
        reply.map(|_| Err(error))
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
        let mut todo = self.lock().finish(id, ran, Instant::now());
        let Some(behind) = todo.behind.take() else { return todo };
        wake(todo.wakers);
        let (puts, wakers) = behind.deliver();
        todo = self.lock().delivered(id, &puts);
        todo.wakers.extend(wakers);
        todo
    }

    /// Pushes the request of a run. Returns the end of the run if no other thread will tell it: this one may be a caller's,
    /// and a large result takes long to compare.
    fn start(self: &Arc<Self>, start: Start) -> Option<Result<Vec<LiveRun>>> {
        let Start { id, query, known, ticket } = start;
        let (promise, reply) = reply();
        let awaited = Mutex::new(Awaited { reply: Some(reply), is_pushed: false, is_lost: false });
        let in_flight = Arc::new(InFlight { live: Arc::downgrade(self), id, awaited });
        let ended = in_flight.look();
        debug_assert!(ended.is_none(), "it ends after it began");
        in_flight.is_pushed((self.powers.push)(Request::new(ticket, Work::Live(query, known), promise)))
    }
}
