//! The open files of this process: one file, one engine, however often and by whatever name the file is opened.
//!
//! Owns: opening each file once, leaving it, and closing encrypted databases when the process exits. Runs on the threads that open and
//! close databases, which may block, and on the thread that exits.
//! Invariants, all under one lock that is never held while a file is opened or closed: a file has at most one
//! engine; it is opened again only after it is closed; the last handle that leaves, or the shutdown, begins to close it;
//! an engine that no caller has refuses nobody: who wants other options waits until it is delivered or closed.
//! Leaves out: the table, and checking the open files (`file_table`); databases in memory, which are never shared; closing (`closing`).
//!
//! ```text
//! thread A: open("new.db")                 thread B: open("link to new.db")
//! no such file: claims its path
//! SQLite creates the file
//!                                          the file is there: claims its inode, opens it too
//! finds its inode claimed: closes its
//! own engine, and waits for B's            done: both handles are of B's engine
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::InUse;

use super::Engine;
use super::file_table::{self, CHANGED, Entry, FILES, FileState};
use super::observe;
use super::opening::Opening;
use crate::file::identity::FileId;
use crate::file::watch::Watch;
use crate::options::Options;
use crate::queue::reply::reply;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::{block_on, in_closure, must_not_block};
use flatwater_base::time::later;

/// Returns an engine for the file of `options`, which are resolved: the open one, or a new one. Blocks, for
/// as long as the opening is wanted.
pub(crate) fn open(options: &Options, opening: &Opening) -> Result<Arc<Engine>> {
    let _in_use = InUse::new();
    let deadline = later(Instant::now(), options.busy_timeout);
    loop {
        let id = match join_or_claim(options, opening, deadline)? {
            Found::Open(engine) => return Ok(engine),
            Found::Claimed(id) => id,
        };
        let reservation = FileReservation(Some((id.clone(), options.path.clone())));
        let engine = Engine::open(options.clone(), opening)?;
        if let Some(engine) = reservation.keep(engine, &id) {
            return Ok(engine);
        }
    }
}

/// Returns true if the file is used here for writing, and no other SQLite library may open it in this process: from the
/// moment when its opening begins until its close is over.
pub(crate) fn refuses_second_copy(path: &Path) -> bool {
    let id = FileId::of(path);
    // A file that is being created was claimed by its path.
    let created = Options::new(path).anchored().ok().map(|options| FileId::Path(options.path));
    let files = FILES.lock();
    std::iter::once(&id).chain(&created).any(|id| files.entries.get(id).is_some_and(|entry| entry.is_guarded))
}

enum Found {
    Open(Arc<Engine>),
    /// This thread must open the file.
    Claimed(FileId),
}

/// Returns the engine that has the file open, or claims the file for opening.
fn join_or_claim(options: &Options, opening: &Opening, deadline: Instant) -> Result<Found> {
    loop {
        // Read again after each wait: the file may exist by now, or be another one.
        let id = FileId::of(&options.path);
        refuse_successor(&id, options)?;
        let mut files = FILES.lock();
        let mut refused = None;
        files.refuse_left(&id, options)?;
        if !files.is_claimed(&id, options) {
            match files.entries.get_mut(&id) {
                Some(entry @ Entry { state: FileState::Open(_), .. }) => {
                    // An engine outlives its `Open` entry, so the upgrade is expected to succeed.
                    let Some(engine) = entry.engine.upgrade() else { return Err(Error::closed().in_operation("open")) };
                    match engine.admits(options) {
                        Ok(()) => {
                            entry.join();
                            return Ok(Found::Open(engine));
                        }
                        Err(error) if in_closure() || entry.is_in_use() => return Err(error),
                        Err(error) => refused = Some(error),
                    }
                }
                _ => {
                    files.entries.insert(id.clone(), Entry::new(FileState::Claimed, Weak::new(), options));
                    return Ok(Found::Claimed(id));
                }
            }
        }
        if in_closure() {
            return Err(Error::new(
                ErrorCode::CallsItself,
                "a closure tried to open a database that is being opened or closed",
            )
            .with_hint("open it before the closure or after it")
            .in_operation("open"));
        }
        opening.is_wanted()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(refused.unwrap_or_else(|| still_claimed(options)));
        }
        drop(CHANGED.wait_timeout(files, left).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Refuses to open a file that replaced an open file at the same path: both would use the same WAL and wal-index.
fn refuse_successor(id: &FileId, options: &Options) -> Result<()> {
    let other = FILES.lock().replaced(id, options);
    let watch = other.as_ref().and_then(|engine| engine.watch());
    watch.map_or(Ok(()), Watch::check_file).map_err(|error| error.in_operation("open"))
}

fn still_claimed(options: &Options) -> Error {
    let sentence = format!("{} is still being opened or closed in this process", options.path.display());
    Error::new(ErrorCode::Closing, sentence)
        .with_hint(hint!["a close first finishes the submitted calls; " Open " waits for it up to " BusyTimeout])
        .in_operation("open")
}

/// The right to open or to close a file. Dropping it gives the right back.
pub(crate) struct FileReservation(Option<(FileId, PathBuf)>);

impl FileReservation {
    /// Registers the opened engine. Returns `None` if another thread opened the file by another name first: then this
    /// engine is closed again.
    fn keep(mut self, engine: Arc<Engine>, claimed: &FileId) -> Option<Arc<Engine>> {
        let id = engine.watch().and_then(|watch| watch.file().cloned()).unwrap_or_else(|| claimed.clone());
        let mut files = FILES.lock();
        if id != *claimed && files.entries.contains_key(&id) {
            drop(files);
            engine.begin_close();
            let wait = engine.context.options.close_wait;
            engine.close(None, self, wait);
            return None;
        }
        files.entries.remove(claimed);
        files.paths.insert(engine.path().to_owned(), id.clone());
        files.entries.insert(id, Entry::of_open(&engine));
        drop(files);
        file_table::begin_checks();
        observe::begin(&engine);
        self.0 = None;
        CHANGED.notify_all();
        Some(engine)
    }

    /// Refuses to open the file until the reservation ends, because `what` still uses it.
    pub(super) fn leave_behind(&self, what: &str) {
        let Some((id, path)) = &self.0 else { return };
        let mut files = FILES.lock();
        files.paths.insert(path.clone(), id.clone());
        if let Some(entry) = files.entries.get_mut(id) {
            entry.state = FileState::Left(what.into());
        }
        drop(files);
        CHANGED.notify_all();
    }
}

impl Drop for FileReservation {
    fn drop(&mut self) {
        let Some((id, path)) = self.0.take() else { return };
        let mut files = FILES.lock();
        files.entries.remove(&id);
        if files.paths.get(&path) == Some(&id) {
            files.paths.remove(&path);
        }
        drop(files);
        CHANGED.notify_all();
        file_table::end_checks_if_unneeded();
    }
}

/// Notes that a caller has its handle of the engine: from now on the options of the engine are in force for others.
pub(crate) fn deliver(engine: &Engine) {
    let Some(id) = engine.watch().and_then(|watch| watch.file()) else { return };
    if let Some(entry) = FILES.lock().entries.get_mut(id)
        && std::ptr::eq(entry.engine.as_ptr(), engine)
    {
        entry.undelivered -= 1;
        CHANGED.notify_all();
    }
}

/// Removes a handle from its engine, which its caller had or not. The last handle gets the reservation with which to close
/// the engine, unless the shutdown has it.
pub(crate) fn leave(engine: &Engine, was_delivered: bool) -> Option<FileReservation> {
    if let Some(id) = engine.watch().and_then(|watch| watch.file())
        && let Some(entry) = FILES.lock().entries.get_mut(id)
    {
        if !was_delivered && std::ptr::eq(entry.engine.as_ptr(), engine) {
            entry.undelivered -= 1;
        }
        CHANGED.notify_all();
        return match &mut entry.state {
            // After a shutdown the file may be open again.
            FileState::Open(_) if !std::ptr::eq(entry.engine.as_ptr(), engine) => None,
            FileState::Open(handles) if *handles > 1 => {
                *handles -= 1;
                None
            }
            _ => reserve(entry, engine, id),
        };
    }
    engine.begin_close().then_some(FileReservation(None))
}

/// Returns true if the engine closes when one more handle leaves it.
pub(crate) fn is_last(engine: &Engine) -> bool {
    let Some(id) = engine.watch().and_then(|watch| watch.file()) else { return true };
    let files = FILES.lock();
    let entry = files.entries.get(id).filter(|entry| std::ptr::eq(entry.engine.as_ptr(), engine));
    entry.is_some_and(|entry| matches!(entry.state, FileState::Open(1)))
}

/// Removes all handles from the engines that are chosen, and returns the engines with the reservations with which to close them. One
/// whose close has begun comes without a reservation.
pub(crate) fn leave_those(are_chosen: impl Fn(&Engine) -> bool) -> Vec<(Arc<Engine>, Option<FileReservation>)> {
    let mut files = FILES.lock();
    let leave = |(id, entry): (&FileId, &mut Entry)| {
        let engine = entry.engine.upgrade().filter(|engine| are_chosen(engine))?;
        let reservation = reserve(entry, &engine, id);
        Some((engine, reservation))
    };
    files.entries.iter_mut().filter_map(leave).collect()
}

/// Begins the close of an open file. `None` if it had begun.
fn reserve(entry: &mut Entry, engine: &Engine, id: &FileId) -> Option<FileReservation> {
    if !engine.begin_close() {
        return None;
    }
    if let FileState::Open(_) = entry.state {
        entry.state = FileState::Claimed;
    }
    Some(FileReservation(Some((id.clone(), engine.path().to_owned()))))
}

/// Returns the number of handles of the file.
#[cfg(test)]
pub(crate) fn handles(path: &Path) -> usize {
    match FILES.lock().entries.get(&FileId::of(path)) {
        Some(Entry { state: FileState::Open(handles), .. }) => *handles,
        _ => 0,
    }
}

/// How long work in progress may take before it is ended.
const EXIT_WAIT: Duration = Duration::from_millis(200);

/// Called when the process exits, if an encrypted database was opened. SQLCipher registers a handler that frees the keys and the heap of
/// all connections (`sqlcipher_extra_shutdown`), while threads still use them: a process would crash instead of ending. This is called
/// before that one. Plain databases are left as they are: the next open recovers them. The exit waits no longer than the close of a
/// database takes that has `EXIT_WAIT`.
///
/// ```text
/// main thread                             fw-writer
/// drops the last handle, returns          closes the connections
/// exit: closes, or waits for the close
///                                         the last connection is closed
/// exit: SQLCipher frees its memory
/// ```
pub(super) fn close_encrypted() {
    if must_not_block() {
        return;
    }
    let ends: Vec<_> = leave_those(Engine::is_encrypted)
        .into_iter()
        .map(|(engine, reservation)| {
            let (promise, ended) = reply();
            match reservation {
                Some(reservation) => {
                    engine.close(Some(promise), reservation, EXIT_WAIT.min(engine.context.options.close_wait))
                }
                None => engine.when_closed(Some(promise)),
            }
            ended
        })
        .collect();
    ends.into_iter().for_each(|ended| drop(block_on(ended)));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_closed_database_leaves_nothing_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("a.db")).resolve().unwrap();
        let engine = open(&options, &Opening::new()).unwrap();
        // Each worker has it.
        let context = Arc::downgrade(&engine.context);
        assert!(context.strong_count() > 1);
        engine.close(None, leave(&engine, false).unwrap(), Duration::ZERO);
        drop(engine);
        let end = Instant::now() + Duration::from_secs(60);
        while context.strong_count() > 0 {
            assert!(Instant::now() < end, "{} still refer to it", context.strong_count());
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_library_is_refused_from_the_begin_of_the_opening_to_the_end_of_the_close() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let options = Options::new(&path).resolve().unwrap();
        assert!(!refuses_second_copy(&path));
        let Ok(Found::Claimed(id)) = join_or_claim(&options, &Opening::new(), Instant::now()) else { panic!() };
        let reservation = FileReservation(Some((id, options.path.clone())));
        assert!(refuses_second_copy(&path), "there is no file yet");
        std::fs::write(&path, "").unwrap();
        assert!(refuses_second_copy(&path), "the file is there, and claimed by its path");
        drop(reservation);
        assert!(!refuses_second_copy(&path));

        let engine = open(&options, &Opening::new()).unwrap();
        assert!(refuses_second_copy(&path));
        let reservation = leave(&engine, false).unwrap();
        assert!(refuses_second_copy(&path), "it is being closed");
        engine.close(None, reservation, Duration::MAX);
        drop(engine);
        let end = Instant::now() + Duration::from_secs(60);
        while refuses_second_copy(&path) {
            assert!(Instant::now() < end);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_second_library_may_have_a_file_that_is_only_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        std::fs::write(&path, "").unwrap();
        let options = Options::new(&path).read_only(true).resolve().unwrap();
        let Ok(Found::Claimed(id)) = join_or_claim(&options, &Opening::new(), Instant::now()) else { panic!() };
        let _reservation = FileReservation(Some((id, options.path.clone())));
        assert!(!refuses_second_copy(&path));
    }
}
