//! What an environment has that answers calls of functions.
//!
//! Owns: its loop, and the worker that it is if it has loaded a module of functions; what a function that runs has thrown. Used on its
//! thread. Invariant: when the environment ends, nobody waits for it any more. Leaves out: serving (`serve`).

use std::cell::RefCell;
use std::sync::Arc;

use super::modules::Module;
use super::worker::Worker;

/// What is said of a failure, and what was thrown.
type Thrown = (String, Option<Box<[u8]>>);

/// What an environment is that serves functions.
pub(crate) struct Serves {
    /// The functions of the program on this thread's loop.
    pub(super) on_loop: Arc<Worker>,
    /// The worker, and the URL of its module.
    pub(super) worker: RefCell<Option<(Arc<Worker>, String)>>,
    /// Of the function that runs.
    pub(super) threw: RefCell<Option<Thrown>>,
}

impl Serves {
    /// Those of this thread.
    pub(crate) fn new() -> Self {
        Self { on_loop: Arc::new(Worker::on_loop()), worker: RefCell::default(), threw: RefCell::default() }
    }

    /// The thread ends: nobody waits for it any more.
    pub(crate) fn end(&self) {
        self.on_loop.is_gone();
        if let Some((worker, url)) = self.worker.take() {
            worker.is_gone();
            if let Some(module) = Module::used(&url) {
                module.remove(&worker);
            }
        }
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        self.end();
    }
}
