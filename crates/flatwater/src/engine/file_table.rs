//! The table of the open files of this process.
//!
//! Owns: the table and its lock, and what stands in the way of opening a file. Runs on the threads that open and close
//! databases, and on `fw-check`. Invariant: the lock is never held while a file is opened or closed. Leaves out: what opening
//! and closing do with the table (`registry`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Weak};

use flatwater_sqlite::PerProcess;

use super::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::file::identity::FileId;
use crate::options::{Options, SecondCopy};

/// A file that is in use here.
pub(super) struct Entry {
    pub(super) state: FileState,
    /// Empty until the file is open.
    pub(super) engine: Weak<Engine>,
    /// The number of its handles whose callers do not have them yet, and may have left.
    pub(super) undelivered: usize,
    /// It is used for writing, and no other SQLite library may open it in this process.
    pub(super) is_guarded: bool,
}

pub(super) enum FileState {
    /// The file is being opened, or the engine is being closed.
    Claimed,
    /// A close has left this behind, which still uses the file.
    Left(Box<str>),
    /// The number of handles that `open` returned and that have not left.
    Open(usize),
}

#[derive(Default)]
pub(super) struct Files {
    pub(super) entries: HashMap<FileId, Entry>,
    /// The file that an engine opened at a path, until it is closed. Whatever is at the path by now: another file there
    /// would use the same WAL.
    pub(super) paths: HashMap<PathBuf, FileId>,
}

pub(super) static FILES: PerProcess<Files> = PerProcess::new(Files::default);
/// Signalled when a reservation ends, when an opening is given up, and when a caller gets a handle or a handle leaves.
pub(super) static CHANGED: Condvar = Condvar::new();

/// Wakes the openings that wait for others, because one of them is not wanted any more.
pub(super) fn look_again() {
    // Who has looked whether it is wanted, under this lock, waits by now.
    drop(FILES.lock());
    CHANGED.notify_all();
}

pub(super) fn has_open() -> bool {
    FILES.lock().has_open()
}

pub(super) fn open_engines() -> Vec<Weak<Engine>> {
    FILES.lock().open_engines()
}

impl Entry {
    pub(super) fn new(state: FileState, engine: Weak<Engine>, options: &Options) -> Self {
        let is_guarded = options.second_copy == SecondCopy::Refuse && !options.read_only;
        Self { state, engine, undelivered: 0, is_guarded }
    }

    pub(super) fn of_open(engine: &Arc<Engine>) -> Self {
        Self { undelivered: 1, ..Self::new(FileState::Open(1), Arc::downgrade(engine), &engine.context.options) }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, FileState::Open(_))
    }

    /// Counts one more handle of an open engine, which its caller does not have yet.
    pub(super) fn join(&mut self) {
        if let FileState::Open(handles) = &mut self.state {
            *handles += 1;
            self.undelivered += 1;
        }
    }

    /// Returns true if a caller has a handle of this engine.
    pub(super) fn is_in_use(&self) -> bool {
        matches!(self.state, FileState::Open(handles) if handles > self.undelivered)
    }
}

impl Files {
    /// Another file that is still in use at the same path.
    fn other(&self, id: &FileId, options: &Options) -> Option<&Entry> {
        let other = self.paths.get(&options.path).filter(|other| *other != id)?;
        self.entries.get(other)
    }

    /// The file of this identity, and another one that is still in use at the same path.
    fn in_the_way(&self, id: &FileId, options: &Options) -> impl Iterator<Item = &Entry> {
        self.entries.get(id).into_iter().chain(self.other(id, options))
    }

    /// Returns the engine that opened another file at the same path.
    pub(super) fn replaced(&self, id: &FileId, options: &Options) -> Option<Arc<Engine>> {
        self.other(id, options).filter(|entry| entry.is_open()).and_then(|entry| entry.engine.upgrade())
    }

    /// Returns true while one of the files is being opened or closed.
    pub(super) fn is_claimed(&self, id: &FileId, options: &Options) -> bool {
        self.in_the_way(id, options).any(|entry| matches!(entry.state, FileState::Claimed))
    }

    /// Refuses a file if a close has left something behind that still uses it.
    pub(super) fn refuse_left(&self, id: &FileId, options: &Options) -> Result<()> {
        let mut left = self.in_the_way(id, options).filter_map(|entry| match &entry.state {
            FileState::Left(what) => Some(what),
            FileState::Claimed | FileState::Open(_) => None,
        });
        left.next().map_or(Ok(()), |what| Err(left_behind(what, &options.path).in_operation("open")))
    }

    fn has_open(&self) -> bool {
        self.entries.values().any(Entry::is_open)
    }

    fn open_engines(&self) -> Vec<Weak<Engine>> {
        self.entries.values().filter(|entry| entry.is_open()).map(|entry| entry.engine.clone()).collect()
    }
}

/// Returns the error for a file that a close could not leave, because `what` runs.
pub(super) fn left_behind(what: &str, path: &Path) -> Error {
    let sentence = format!("{} is not closed yet: {what} is still running", path.display());
    Error::new(ErrorKind::Busy, sentence).with_hint(
        "the file closes when that ends; nothing of it is committed; put a timeout around code that can block",
    )
}
