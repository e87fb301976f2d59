//! The file `<db>-turn` of one open database, as this process has it.
//!
//! Owns: looking for the file, opening it, and giving it up. Runs on the thread that holds the writer slot, and on the
//! one that waits for commits. Invariant: after a failure the file is given up and not opened for a while; the one at
//! the path is used, as of the last look. Leaves out: what is in the file (`flatwater_sqlite::TurnFile`).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use flatwater_sqlite::{TurnFile, Word};

use crate::options::resolve::beside;
use crate::stats::file_counters::TurnRecorder;
use flatwater_base::thread::lock;

/// How often a process that writes looks for the file.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct SideFile {
    path: PathBuf,
    database: PathBuf,
    recorder: Arc<TurnRecorder>,
    state: Mutex<State>,
}

struct State {
    file: Option<Arc<TurnFile>>,
    /// When it is looked for again.
    look_at: Instant,
    /// After a failure it is not used until then.
    again_at: Instant,
    may_use: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Always,
    /// Not to wait for commits.
    Parked,
    Never,
}

impl SideFile {
    pub(super) fn new(database: &Path, recorder: Arc<TurnRecorder>) -> Self {
        let now = Instant::now();
        let state = State { file: None, look_at: now, again_at: now, may_use: Use::Always };
        let path = beside(database, "-turn");
        Self { path, database: database.to_owned(), recorder, state: Mutex::new(state) }
    }

    /// Returns the file, if it was found.
    pub(super) fn opened(&self) -> Option<Arc<TurnFile>> {
        lock(&self.state).file.clone()
    }

    /// Returns the file, if it is there, or if it may be made. Looks for it if that is due.
    pub(super) fn get(&self, now: Instant, may_make: bool) -> Option<Arc<TurnFile>> {
        let state = lock(&self.state);
        if state.may_use == Use::Never || now < state.again_at { None } else { self.look(state, now, may_make) }
    }

    /// The same, and `None` while the database is parked.
    pub(super) fn get_unless_parked(&self, now: Instant, may_make: bool) -> Option<Arc<TurnFile>> {
        let state = lock(&self.state);
        if state.may_use == Use::Always && now >= state.again_at { self.look(state, now, may_make) } else { None }
    }

    fn look(&self, mut state: MutexGuard<'_, State>, now: Instant, may_make: bool) -> Option<Arc<TurnFile>> {
        if now >= state.look_at {
            state.look_at = now + LOOK;
            state.file.take_if(|file| !file.is_at(&self.path));
        } else if !may_make {
            return state.file.clone();
        }
        if state.file.is_none() {
            match TurnFile::open(&self.path, &self.database, may_make) {
                Ok(opened) => state.file = opened.map(Arc::new),
                Err(error) => {
                    drop(state);
                    return self.unless_failed(Err(error));
                }
            }
        }
        state.file.clone()
    }

    /// After a failure the file is given up, and looked for again later.
    pub(super) fn unless_failed<T>(&self, result: io::Result<T>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let mut state = lock(&self.state);
        let given_up = state.file.take();
        state.again_at = Instant::now() + AFTER_FAILURE;
        drop(state);
        drop(given_up);
        self.recorder.failed(&error);
        None
    }

    pub(super) fn unpark(&self) {
        let mut state = lock(&self.state);
        if state.may_use == Use::Parked {
            state.may_use = Use::Always;
        }
    }

    /// Gives the file up, and removes it if no other process uses it.
    pub(super) fn let_go(&self, for_good: bool) {
        let mut state = lock(&self.state);
        state.may_use = if for_good { Use::Never } else { Use::Parked };
        let file = state.file.take();
        drop(state);
        if let Some(file) = file {
            file.remove_if_last(&self.path);
            // A thread of this process that waits for commits looks whether it still has to.
            file.wake(Word::Commit, u32::MAX);
        }
    }
}
