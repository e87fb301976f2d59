//! A worker thread of Node that has loaded a module of functions, as the threads of databases see it.
//!
//! Owns: the requests that it has not answered, and its end. Any thread asks; the worker's answers. Invariants: requests are served one
//! after the other, in their order; one that was pushed is answered or left, also when the thread ends in the middle; the loop is rung
//! for a request unless the worker is serving. One lock guards the queue, for a few assignments. Leaves out: calling JavaScript
//! (`serve`), and which worker is asked (`modules`).
//!
//! ```text
//! thread of a database                   another one                            worker
//! pushes, and finds it not serving                                              sleeps in its event loop
//! rings, sleeps                          pushes, and finds it serving: sleeps   is woken, serves, answers
//! is woken                               is woken                               serves, answers, is not serving any more
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::request::{Answer, Failed, Request};
use super::threw::Threw;
use crate::capi::wake::Wake;

/// What a module defines, as SQLite is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) kind: Kind,
    pub(crate) name: Box<str>,
    /// -1 for any number.
    pub(crate) arguments: i32,
    pub(crate) is_deterministic: bool,
    pub(crate) is_direct_only: bool,
    /// As the option `integers` has it.
    pub(crate) integers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function = 0,
    Aggregate = 1,
    Window = 2,
    Collation = 3,
}

impl Definition {
    /// As an error names it.
    pub(crate) fn said(&self) -> String {
        let kind = if self.kind == Kind::Collation { "collation" } else { "function" };
        format!("the {kind} {}", self.name)
    }
}

pub(crate) struct Worker {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) wake: Wake,
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
    pub(crate) fn new(definitions: Vec<Definition>) -> Self {
        Self { definitions, wake: Wake::default(), queue: Mutex::default() }
    }

    /// The requests that are before one that is made now.
    pub(crate) fn load(&self) -> usize {
        let queue = self.lock();
        if queue.is_gone { usize::MAX } else { queue.requests.len() + usize::from(queue.served.is_some()) }
    }

    /// Asks for an answer, and waits for it.
    pub(crate) fn ask(&self, request: Request) -> Answer {
        let request = Arc::new(request);
        if !self.push(request.clone()) {
            return Err(gone(&self.definitions[request.at], "was not called"));
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

    /// Has the worker's loop have its turn first.
    pub(crate) fn ring_again(&self) {
        self.lock().served = None;
        self.wake.ring();
    }

    /// The thread has ended, or is about to: nobody waits for it any more.
    pub(crate) fn is_gone(&self) {
        let mut queue = self.lock();
        queue.is_gone = true;
        let (served, left) = (queue.served.take(), std::mem::take(&mut queue.requests));
        drop(queue);
        if let Some(request) = served {
            request.answer(Err(gone(&self.definitions[request.at], "did not return")));
        }
        for request in left {
            request.answer(Err(gone(&self.definitions[request.at], "was not called")));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure of a function whose worker has ended.
pub(crate) fn gone(definition: &Definition, what: &str) -> Failed {
    let said = format!("{} {what}: the worker thread of its module has ended", definition.said());
    let hint = "a process warning says why; `open` the database with it once more to begin another";
    Failed::Threw(Threw::new(format!("{said} -- {hint}"), None))
}
