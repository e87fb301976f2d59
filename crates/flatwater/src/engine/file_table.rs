//! The table of the open files of this process, and their check every few seconds.
//!
//! Owns: the table and its lock, what stands in the way of opening a file, the tick of the check, and the thread `fw-check`, which runs
//! one check: it asks file systems, and may hang with one of them. The table is used on the threads that open and close databases; the
//! tick is on the timer's thread, which asks no file system, so that no deadline waits for one. Invariants: no lock is held while
//! a file is opened, closed or checked; at most one check runs; while it hangs the tick goes on, and databases are parked. Leaves out:
//! what opening and closing do with the table (`registry`), and what is checked (`file::watch`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::PerProcess;

use super::{Engine, parking};
use crate::file::guard;
use crate::file::identity::FileId;
use crate::file::second_library::mappings;
use crate::options::Options;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::background;
use flatwater_base::time::later;
use flatwater_base::time::recurring::Recurring;

/// A file that is in use here.
pub(super) struct Entry {
    pub(super) state: FileState,
    /// Empty until the file is open.
    pub(super) engine: Weak<Engine>,
    /// The number of its handles whose callers do not have them yet, and may have left.
    pub(super) undelivered: usize,
    /// It is used for writing, and no other SQLite library may open it in this process.
    pub(super) is_guarded: bool,
    observe: bool,
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

impl Entry {
    pub(super) fn new(state: FileState, engine: Weak<Engine>, options: &Options) -> Self {
        let is_guarded = !options.allow_second_sqlite && !options.read_only;
        Self { state, engine, undelivered: 0, is_guarded, observe: options.observe }
    }

    pub(super) fn of_open(engine: &Arc<Engine>) -> Self {
        Self { undelivered: 1, ..Self::new(FileState::Open(1), Arc::downgrade(engine), &engine.context.options) }
    }

    fn is_open(&self) -> bool {
        matches!(self.state, FileState::Open(_))
    }

    /// Returns true if the engine is open, and shows its figures.
    pub(super) fn is_observed(&self) -> bool {
        self.observe && self.is_open()
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
}

/// Returns the error for a file that a close could not leave, because `what` runs.
pub(super) fn left_behind(what: &str, path: &Path) -> Error {
    let sentence = format!("{} is not closed yet: {what} is still running", path.display());
    Error::new(ErrorCode::Closing, sentence).with_hint(
        "the file closes when that ends; nothing of it is committed; put a timeout around code that can block",
    )
}

/// How often all open files are checked.
const PERIOD: Duration = Duration::from_secs(3);

#[derive(Default)]
struct Check {
    ticks: Recurring,
    is_running: bool,
}

static CHECK: PerProcess<Check> = PerProcess::new(Check::default);

/// Called when a file is open: checks all open files from now on.
pub(super) fn begin_checks() {
    CHECK.lock().ticks.by(next_check(), tick);
}

/// Called when a file was closed, and after each check: stops the checks, if no file is open. They go on while something of closed
/// files is kept, because they retry to close it.
///
/// ```text
/// a check, or another close                      a close
/// no file is open                                has its guard yet, which is not kept
/// the checks end
///                                                releases its guard, which cannot be closed: it is kept
/// looks at what is kept                          ends the checks, and looks at what is kept
/// ```
///
/// Whoever looks last has ended the checks before: they begin again.
pub(super) fn end_checks_if_unneeded() {
    let check = CHECK.lock();
    // Under the lock: a file that is opened from here on begins the checks after this.
    if !FILES.lock().entries.values().any(Entry::is_open) {
        check.ticks.end();
    }
    drop(check);
    // After the end, and without the lock: to read what is kept may wait for a file system.
    if guard::has_kept() {
        begin_checks();
    }
}

fn next_check() -> Instant {
    later(Instant::now(), PERIOD)
}

/// Runs on the timer's thread.
fn tick() -> Option<Instant> {
    parking::look();
    run(&CHECK, || {
        check_all();
        end_checks_if_unneeded();
    });
    Some(next_check())
}

/// Runs `look` on a thread of its own, unless the one before still runs. Does not block.
fn run(state: &'static PerProcess<Check>, look: impl FnOnce() + Send + 'static) {
    if std::mem::replace(&mut state.lock().is_running, true) {
        return;
    }
    let ended = || state.lock().is_running = false;
    let check = move || {
        look();
        ended();
    };
    // If no thread can be started, the next tick tries again.
    background::run("fw-check", check, ended);
}

/// Checks all open files. Blocks on their file systems.
fn check_all() {
    let mappings = mappings();
    let open: Vec<_> =
        FILES.lock().entries.values().filter(|entry| entry.is_open()).map(|entry| entry.engine.clone()).collect();
    // A check that hangs keeps no other engine than its own.
    for engine in open.iter().filter_map(Weak::upgrade) {
        // `look` stores the error.
        let _ = engine.watch().map(|watch| watch.look(&mappings));
    }
    guard::close_kept();
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use flatwater_base::time::timer;

    #[test]
    fn what_is_kept_when_the_checks_have_ended_begins_them_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("a.db");
        let user = rusqlite::Connection::open(&path).unwrap();
        user.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        let Some(guard) = guard::Guard::hold(&path).unwrap() else { return };
        CHECK.lock().ticks.end();
        drop(guard);
        end_checks_if_unneeded();
        let is_open = || {
            let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
            let mut open = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
            open.any(|file| file.starts_with(path.parent().unwrap()))
        };
        assert_eq!(is_open(), cfg!(target_os = "linux"));
        drop(user);
        let until = Instant::now() + Duration::from_secs(60);
        while is_open() {
            assert!(Instant::now() < until, "nothing closes what was kept");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_check_that_hangs_holds_up_no_alarm_and_no_other_check_begins() {
        static STATE: PerProcess<Check> = PerProcess::new(Check::default);
        let (begins, began) = channel();
        let (ends, ended) = channel::<()>();
        let hangs = move || {
            begins.send(()).unwrap();
            let _ = ended.recv();
        };
        let check = timer::at(Instant::now(), || run(&STATE, hangs));
        began.recv().unwrap();
        let (goes_off, went_off) = channel();
        let deadline = timer::at(Instant::now(), move || {
            run(&STATE, || panic!("the one before still runs"));
            goes_off.send(STATE.lock().is_running).unwrap();
        });
        assert!(went_off.recv_timeout(Duration::from_secs(60)).expect("the timer's thread is free"));
        drop((check, deadline, ends));
        while STATE.lock().is_running {
            std::thread::yield_now();
        }
    }
}
