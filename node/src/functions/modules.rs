//! The modules of functions that databases of this process use.
//!
//! Owns: the list, and the workers of each module. Any thread. A database keeps a module through its functions. Invariants: one URL is
//! one module, so that databases share it and its registration changes nothing; each environment of Node that opens databases with it
//! has a worker of its own, and those that live answer for all; when no database uses the module, these environments are told. Leaves
//! out: starting workers and ending them, which JavaScript does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::definition::Definition;
use super::worker::Worker;
use crate::capi::wake::Wake;

static MODULES: Mutex<Vec<Weak<Module>>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(0);
static INSTANCES: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Module {
    /// No other module has it, also none with this URL.
    pub(crate) number: u64,
    url: Box<str>,
    workers: Mutex<Vec<Arc<Worker>>>,
    /// What wakes the environments that have started them.
    starters: Mutex<Vec<Wake>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of an instance of an aggregate.
pub(crate) fn instance() -> u64 {
    INSTANCES.fetch_add(1, Ordering::Relaxed)
}

impl Module {
    /// The module that is loaded from there.
    pub(crate) fn of(url: &str) -> Arc<Self> {
        let mut modules = lock(&MODULES);
        if let Some(module) = find(&modules, url) {
            return module;
        }
        let module = Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            url: url.into(),
            workers: Mutex::default(),
            starters: Mutex::default(),
        });
        modules.retain(|one| one.strong_count() > 0);
        modules.push(Arc::downgrade(&module));
        module
    }

    /// The same if a database uses it, or is about to.
    pub(crate) fn used(url: &str) -> Option<Arc<Self>> {
        find(&lock(&MODULES), url)
    }

    /// Wakes an environment when no database uses the module any more.
    pub(crate) fn tell(&self, starter: &Wake) {
        let mut starters = lock(&self.starters);
        if !starters.iter().any(|one| one.is(starter)) {
            starters.push(starter.clone());
        }
    }

    pub(crate) fn workers(&self) -> usize {
        lock(&self.workers).len()
    }

    pub(crate) fn add(&self, worker: Arc<Worker>) {
        lock(&self.workers).push(worker);
    }

    pub(crate) fn remove(&self, worker: &Arc<Worker>) {
        lock(&self.workers).retain(|one| !Arc::ptr_eq(one, worker));
    }

    /// What the module defines, by its last worker.
    pub(crate) fn definitions(&self) -> Vec<Arc<Definition>> {
        lock(&self.workers).last().map(|worker| worker.definitions.clone()).unwrap_or_default()
    }

    /// The worker that has the least to do, and the position at which it has the definition, which was at `at` in another one.
    pub(crate) fn worker(&self, at: usize, definition: &Definition) -> Option<(Arc<Worker>, usize)> {
        let workers = lock(&self.workers);
        let worker = match &**workers {
            [only] => only,
            several => several.iter().min_by_key(|worker| worker.load())?,
        };
        let has = |at: &usize| worker.definitions.get(*at).is_some_and(|own| **own == *definition);
        let at = Some(at).filter(has).or_else(|| (0..worker.definitions.len()).find(has))?;
        Some((worker.clone(), at))
    }
}

fn find(modules: &[Weak<Module>], url: &str) -> Option<Arc<Module>> {
    modules.iter().filter_map(Weak::upgrade).find(|module| *module.url == *url)
}

impl Drop for Module {
    fn drop(&mut self) {
        for starter in lock(&self.starters).drain(..) {
            starter.ring();
        }
    }
}
