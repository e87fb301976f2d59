//! The database that all pieces of a round use, and what they share: its ledger, its counts, writes of every kind.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability, Inline};
use flatwater::{Database, Error, ErrorKind, Options};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::waiting::finish;
use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::round::Counts;
use crate::writes::{self, Op, SCHEMA, WAYS, is_pair};

/// An open database, the writes to it, and the counts.
pub(crate) struct Scene {
    pub(crate) db: Database,
    pub(crate) path: PathBuf,
    pub(crate) ledger: Ledger,
    /// Whether calls of this round have deadlines. Few rounds have them, because the timer's thread ends only seconds
    /// after the last deadline, and the end of the round has to wait for it.
    pub(crate) has_deadlines: bool,
    counts: Mutex<Counts>,
    /// The first finding from a place that cannot return one.
    aside: Mutex<Option<Finding>>,
    names: AtomicU64,
    directory: PathBuf,
}

impl Scene {
    /// Creates a database with random settings.
    pub(crate) fn new(directory: &Path, rng: &mut StdRng) -> Result<Self, Finding> {
        let path = directory.join("scene.db");
        let db = finish("open", options(&path, rng).open())??;
        finish("the schema", db.execute_script(SCHEMA))??;
        Ok(Self {
            db,
            path,
            ledger: Ledger::default(),
            has_deadlines: rng.random_bool(0.2),
            counts: Mutex::default(),
            aside: Mutex::default(),
            names: AtomicU64::new(0),
            directory: directory.to_owned(),
        })
    }

    pub(crate) fn count(&self, what: &str, count: u64) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(what, count);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns an unused path.
    pub(crate) fn new_path(&self) -> PathBuf {
        self.directory.join(format!("other-{}.db", self.names.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns a handle whose calls may have a deadline of a few milliseconds.
    pub(crate) fn handle(&self, rng: &mut StdRng) -> Database {
        match rng.random_range(0..6) {
            0 => self.db.ungrouped(),
            1 | 2 if self.has_deadlines => self.db.with_timeout(Duration::from_micros(rng.random_range(0..3000))),
            _ => self.db.clone(),
        }
    }

    /// Returns a new write of a random kind on a random handle.
    pub(crate) fn write(&self, rng: &mut StdRng) -> (i64, Op) {
        let way = rng.random_range(0..WAYS);
        let number = self.ledger.begin(is_pair(way));
        (number, writes::write(&self.handle(rng), way, number))
    }

    /// Records the result of a write. Returns a finding if the result is not allowed.
    pub(crate) fn note<T>(&self, number: i64, answer: &Result<T, Error>) -> Result<(), Finding> {
        self.ledger.answered(number, answer);
        self.count("calls", 1);
        match answer {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Timeout && self.has_deadlines => Ok(()),
            // On a busy machine a transaction may exceed its idle limit between two statements.
            Err(error) if is_idle(error) => Ok(()),
            Err(error) => Err(Finding::new(format!("a write that should succeed failed: {error}"))),
        }
    }

    /// As `note`, from a place that cannot return a finding, such as a waker.
    pub(crate) fn note_aside<T>(&self, number: i64, answer: &Result<T, Error>) {
        if let Err(finding) = self.note(number, answer) {
            self.aside.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(finding);
        }
    }

    /// As `note`, for a call that waited where this may be refused: inside a closure, or on a thread of the database.
    pub(crate) fn note_from_within<T>(&self, number: i64, answer: &Result<T, Error>) {
        match answer {
            Err(error) if error.kind() == ErrorKind::Misuse && error.message().contains("called the database") => {
                self.ledger.answered(number, answer);
            }
            _ => self.note_aside(number, answer),
        }
    }

    /// Returns the finding that was recorded aside.
    pub(crate) fn found_aside(&self) -> Result<(), Finding> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Runs a write to its end and records the result.
    pub(crate) fn write_now(&self, rng: &mut StdRng) -> Result<(), Finding> {
        let (number, op) = self.write(rng);
        let answer = finish("a write", op)?;
        self.note(number, &answer)
    }
}

/// Returns whether the transaction was rolled back because it was idle for too long.
pub(crate) fn is_idle(error: &Error) -> bool {
    error.kind() == ErrorKind::Expired && error.message().contains("was not used for")
}

/// Returns random settings, only ones that do not change results.
pub(crate) fn options(path: &Path, rng: &mut impl Rng) -> Options {
    let queue = [1, 2, 8, 1024][rng.random_range(0..4)];
    let mut options = Options::new(path)
        .tuning(|t| t.queue(queue))
        .readers(rng.random_range(1..4))
        .tuning(|t| t.leases(rng.random_bool(0.7)))
        .tuning(|t| {
            t.transaction_idle(Duration::from_millis(rng.random_range(200..800)))
                .close_wait(Duration::from_millis(rng.random_range(50..500)))
        });
    if rng.random_bool(0.3) {
        options = options.tuning(|t| t.inline(Inline::Never));
    }
    if rng.random_bool(0.2) {
        options = options.durability(Durability::Full);
    }
    if rng.random_bool(0.5) {
        // Small limits, so that the WAL restarts several times.
        options = options.checkpoint(Checkpoint::Managed(
            CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20),
        ));
    }
    options
}
