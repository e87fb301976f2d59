//! What an environment has that serves a module of functions.
//!
//! Owns: the worker that it is, and what a function that runs has thrown. Used on the worker thread. Invariant: when the environment
//! ends, nobody waits for it any more. Leaves out: serving (`serve`).

use std::cell::RefCell;
use std::sync::Arc;

use super::modules::Module;
use super::worker::Worker;

/// What is said of a failure, and what was thrown.
type Thrown = (String, Option<Box<[u8]>>);

/// What an environment is that serves functions.
#[derive(Default)]
pub(crate) struct Serves {
    /// The worker, and the URL of its module.
    pub(super) worker: RefCell<Option<(Arc<Worker>, String)>>,
    /// Of the function that runs.
    pub(super) threw: RefCell<Option<Thrown>>,
}

impl Serves {
    /// The thread ends: nobody waits for it any more.
    pub(super) fn end(&self) {
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
