//! A database under a load of a case, as its calls share it.
//!
//! Owns: what was acknowledged, and which errors are explained by a start of a thread that failed. Leaves out: the calls (`calls`), their order
//! (`load`).

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use flatwater::{Error, ErrorKind};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::round::Counts;

/// The time after which a call counts as hung.
const HANGS: Duration = Duration::from_secs(60);

/// A database under a load, and the answers of its writes.
pub(super) struct Work {
    pub(super) ledger: Ledger,
    pub(super) acknowledged: RefCell<Vec<i64>>,
    pub(super) counts: RefCell<Counts>,
    pub(super) blocking: Blocking,
    /// No start fails now, so no call may fail.
    pub(super) is_calm: Cell<bool>,
    pub(super) directory: PathBuf,
    names: Cell<u32>,
}

/// Returns whether the error says that no thread can be started.
pub(super) fn is_no_thread(error: &Error) -> bool {
    error.kind() == ErrorKind::Io && error.to_string().contains("thread cannot be started")
}

/// Returns the answer, or a finding if it takes too long.
pub(super) async fn within<F: Future>(what: &str, future: F) -> Result<F::Output, Finding> {
    let ended = tokio::time::timeout(HANGS, future).await;
    ended.map_err(|_| Finding::new(format!("{what} did not end within {} s", HANGS.as_secs())))
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that blocks, which was started before starts of threads fail.
pub(super) struct Blocking(Sender<Job>);

impl Blocking {
    pub(super) fn start() -> Self {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || jobs.iter().for_each(|job| job()));
        Self(sender)
    }

    pub(super) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Finding> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        // The receiver is gone only after a finding.
        let send = move || drop(sender.send(job()));
        self.0.send(Box::new(send)).map_err(|_| Finding::new("the blocking thread is gone"))?;
        Ok(answer.await?)
    }
}

impl Work {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            ledger: Ledger::default(),
            acknowledged: RefCell::default(),
            counts: RefCell::default(),
            blocking: Blocking::start(),
            is_calm: Cell::new(true),
            directory,
            names: Cell::new(0),
        }
    }

    pub(super) fn count(&self, what: &str, count: u64) {
        self.counts.borrow_mut().add(what, count);
    }

    pub(super) fn new_path(&self) -> PathBuf {
        self.names.set(self.names.get() + 1);
        self.directory.join(format!("copy-{}.db", self.names.get()))
    }

    pub(super) fn some_acknowledged(&self, rng: &mut StdRng) -> Option<i64> {
        self.acknowledged.borrow().choose(rng).copied()
    }

    /// Records the answer of a write.
    pub(super) fn wrote<T>(&self, what: &str, number: i64, answer: Result<T, Error>) -> Result<(), Finding> {
        self.ledger.answered(number, &answer);
        match answer {
            Ok(_) => {
                self.acknowledged.borrow_mut().push(number);
                self.count("acknowledged writes", 1);
                Ok(())
            }
            Err(error) => self.may_fail(what, &error),
        }
    }

    /// Returns a finding if the error is not explained by a start that failed.
    pub(super) fn may_fail(&self, what: &str, error: &Error) -> Result<(), Finding> {
        if self.is_calm.get() {
            return Err(Finding::new(format!("threads can be started again, but {what} was answered {error}")));
        }
        if !is_no_thread(error) {
            return Err(Finding::new(format!(
                "a thread that cannot be started does not explain this: {what}: {error}"
            ))
            .with_history(format!("{error:?}")));
        }
        self.count("calls refused", 1);
        Ok(())
    }
}
