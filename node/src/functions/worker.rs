//! A thread of Node that answers, as the threads of databases see it: a worker that has loaded a module of functions, or one whose
//! program has functions on its loop.
//!
//! Owns: the requests that it has not answered, and its end. Any thread asks; the worker's answers. Invariants: requests are served one
//! after the other, in their order; one that was pushed is answered or left, also when the thread ends in the middle; the loop is rung
//! for a request unless the worker is serving; nobody waits for the thread that it is on. One lock guards the queue, for a few
//! assignments. Leaves out: calling JavaScript (`serve`), and which worker is asked (`modules`).
//!
//! ```text
//! thread of a database                   another one                            worker
//! pushes, and finds it not serving                                              sleeps in its event loop
//! rings, sleeps                          pushes, and finds it serving: sleeps   is woken, serves, answers
//! is woken                               is woken                               serves, answers, is not serving any more
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::definition::Definition;
use super::request::{Answer, Failed, Request};
use super::threw::Threw;
use crate::capi::wake::Wake;

pub(crate) struct Worker {
    /// Those of its module; none of a loop, to which functions come and go.
    pub(crate) definitions: Vec<Arc<Definition>>,
    pub(crate) wake: Wake,
    /// The thread whose loop it is, if it has no module.
    on_loop: Option<ThreadId>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<Arc<Request>>,
    /// What the worker answers now.
    served: Option<Arc<Request>>,
    is_serving: bool,
    /// The thread has ended.
    is_gone: bool,
}

impl Worker {
    /// A worker of a module.
    pub(crate) fn new(definitions: Vec<Arc<Definition>>) -> Self {
        Self { definitions, wake: Wake::default(), on_loop: None, queue: Mutex::default() }
    }

    /// The loop of this thread.
    pub(crate) fn on_loop() -> Self {
        Self { on_loop: Some(thread::current().id()), ..Self::new(Vec::new()) }
    }

    /// The requests that are before one that is made now.
    pub(crate) fn load(&self) -> usize {
        let queue = self.lock();
        if queue.is_gone { usize::MAX } else { queue.requests.len() + usize::from(queue.served.is_some()) }
    }

    /// Asks for an answer, and waits for it.
    pub(crate) fn ask(&self, request: Request) -> Answer {
        if self.on_loop == Some(thread::current().id()) {
            let said = format!("{} was not called: its loop would wait for itself", request.definition.said());
            return Err(Failed::Threw(Threw::new(said, None)));
        }
        let request = Arc::new(request);
        if !self.push(request.clone()) {
            return Err(self.gone(&request, "was not called"));
        }
        request.wait()
    }

    /// Has a request served whose answer nobody waits for.
    pub(crate) fn tell(&self, request: Request) {
        self.push(Arc::new(request));
    }

    /// Returns false if the thread has ended.
    fn push(&self, request: Arc<Request>) -> bool {
        let mut queue = self.lock();
        if queue.is_gone {
            return false;
        }
        queue.requests.push_back(request);
        let rings = !std::mem::replace(&mut queue.is_serving, true);
        drop(queue);
        if rings {
            self.wake.ring();
        }
        true
    }

    /// Returns what the worker serves next, which has answered what it served. `None`: it goes back to its loop.
    pub(crate) fn next(&self) -> Option<Arc<Request>> {
        let mut queue = self.lock();
        let next = loop {
            match queue.requests.pop_front() {
                Some(request) if request.is_left() => {}
                next => break next,
            }
        };
        queue.served.clone_from(&next);
        queue.is_serving = next.is_some();
        next
    }

    /// Its loop has a turn before it goes on, without being rung.
    pub(crate) fn pause(&self) {
        self.lock().served = None;
    }

    /// The thread has ended, or is about to: nobody waits for it any more.
    pub(crate) fn is_gone(&self) {
        let mut queue = self.lock();
        queue.is_gone = true;
        let (served, left) = (queue.served.take(), std::mem::take(&mut queue.requests));
        drop(queue);
        if let Some(request) = served {
            request.answer(Err(self.gone(&request, "did not return")));
        }
        for request in left {
            request.answer(Err(self.gone(&request, "was not called")));
        }
    }

    fn gone(&self, request: &Request, what: &str) -> Failed {
        if self.on_loop.is_none() {
            return no_worker(&request.definition, what);
        }
        let said = format!("{} {what}: the thread whose loop it runs on has ended", request.definition.said());
        Failed::Threw(Threw::new(format!("{said} -- `open` the database with it in another one"), None))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure of a function whose module has no worker any more.
pub(crate) fn no_worker(definition: &Definition, what: &str) -> Failed {
    let said = format!("{} {what}: the worker thread of its module has ended", definition.said());
    let hint = "a process warning says why; `open` the database with it once more to begin another";
    Failed::Threw(Threw::new(format!("{said} -- {hint}"), None))
}
