//! The open files of this process: one file, one engine, however often and by whatever name it is opened.
//!
//! Owns: who has which file open, opening it once, and the look at all of them every few seconds, on the timer's
//! thread. Used by whoever opens and closes, which may block. Invariants, all under one lock that is never held while
//! anything is opened or closed: a file has at most one engine; it is opened again only when it is closed; the last
//! handle that leaves, and no other, begins to close it. Leaves out: databases in memory, which are never shared.
//!
//! ```text
//! thread A: open("new.db")                 thread B: open("link to new.db")
//! no such file: claims its path
//! SQLite creates the file
//!                                          the file is there: claims its inode, opens it too
//! finds its inode claimed: closes its
//! own engine, and waits for B's            done: both handles are of B's engine
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::{InUse, generation};

use super::embedded::Engine;
use crate::file::copies::mappings;
use crate::file::identity::FileId;
use crate::types::error::{Error, Result};
use crate::types::options::Options;
use crate::types::time::later;
use crate::waiting::park::in_closure;
use crate::waiting::timer::{self, Alarm};

/// How often all open files are looked at.
const LOOK: Duration = Duration::from_secs(3);

enum Entry {
    /// Somebody opens it, or it is being closed.
    Claimed,
    /// With the number of handles that `open` gave out and that have not left.
    Open(Weak<Engine>, usize),
}

struct Files {
    entries: HashMap<FileId, Entry>,
    /// The next look; `None` while no file is open.
    look: Option<Alarm>,
    /// The generation of the process the entries are of.
    generation: u32,
}

static FILES: Mutex<Option<Files>> = Mutex::new(None);
/// Signalled when a claim ends.
static CHANGED: Condvar = Condvar::new();

fn with<T>(f: impl FnOnce(&mut Files) -> T) -> T {
    f(files().as_mut().expect("made when it was locked"))
}

fn files() -> MutexGuard<'static, Option<Files>> {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.as_ref().is_none_or(|files| files.generation != generation()) {
        std::mem::forget(files.take());
        *files = Some(Files { entries: HashMap::new(), look: None, generation: generation() });
    }
    files
}

/// An engine for the file of `options`, which are resolved: the one that is open, or a new one. Blocks.
pub(super) fn open(options: &Options) -> Result<Arc<Engine>> {
    let _in_use = InUse::new();
    loop {
        let id = FileId::of(&options.path);
        if let Some(engine) = join_or_claim(&id, options)? {
            return Ok(engine);
        }
        let claim = Claim(Some(id.clone()));
        let engine = Engine::open(options.clone())?;
        if let Some(engine) = claim.keep(engine, &id) {
            return Ok(engine);
        }
    }
}

/// The engine that has the file open, or `None` once the file is claimed by this thread.
fn join_or_claim(id: &FileId, options: &Options) -> Result<Option<Arc<Engine>>> {
    let mut files = files();
    loop {
        let entries = &mut files.as_mut().expect("made when it was locked").entries;
        refuse_successor(entries, id, options)?;
        match entries.get_mut(id) {
            None => {
                entries.insert(id.clone(), Entry::Claimed);
                return Ok(None);
            }
            Some(Entry::Open(engine, handles)) => {
                // An engine lives longer than its entry says that it is open.
                let Some(engine) = engine.upgrade() else { return Err(Error::closed().in_operation("open")) };
                engine.admits(options)?;
                *handles += 1;
                return Ok(Some(engine));
            }
            Some(Entry::Claimed) if in_closure() => {
                return Err(Error::misuse("a closure on a database opened a file that is just being opened or closed")
                    .hint("open it before or after")
                    .in_operation("open"));
            }
            Some(Entry::Claimed) => files = CHANGED.wait(files).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Another file has come to stand where an open one stood: both would use the files beside it.
fn refuse_successor(entries: &HashMap<FileId, Entry>, id: &FileId, options: &Options) -> Result<()> {
    let others = entries.iter().filter(|(other, _)| *other != id);
    let engines = others.filter_map(|(_, entry)| match entry {
        Entry::Open(engine, _) => engine.upgrade(),
        Entry::Claimed => None,
    });
    for engine in engines {
        if let Some(watch) = engine.watch().filter(|watch| watch.path() == options.path) {
            return Err(watch.refuse_moved().in_operation("open"));
        }
    }
    Ok(())
}

/// The right to open or to close a file. Dropping it gives it back.
pub(super) struct Claim(Option<FileId>);

impl Claim {
    /// Enters the engine that was opened. `None` if somebody else was faster by another name: then it is closed again.
    fn keep(mut self, engine: Arc<Engine>, claimed: &FileId) -> Option<Arc<Engine>> {
        let id = engine.watch().and_then(|watch| watch.file().cloned()).unwrap_or_else(|| claimed.clone());
        let kept = with(|files| {
            if id != *claimed && files.entries.contains_key(&id) {
                return false;
            }
            files.entries.remove(claimed);
            files.entries.insert(id, Entry::Open(Arc::downgrade(&engine), 1));
            if files.look.is_none() {
                files.look = next_look();
            }
            true
        });
        if kept {
            self.0 = None;
            CHANGED.notify_all();
            return Some(engine);
        }
        engine.close(None, self);
        None
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(id) = self.0.take() else { return };
        let alarm = with(|files| {
            files.entries.remove(&id);
            let is_last = !files.entries.values().any(|entry| matches!(entry, Entry::Open(..)));
            is_last.then(|| files.look.take()).flatten()
        });
        drop(alarm);
        CHANGED.notify_all();
    }
}

/// A handle leaves its engine. The last one gets the claim with which to close it.
pub(super) fn leave(engine: &Engine) -> Option<Claim> {
    let Some(id) = engine.watch().and_then(|watch| watch.file()) else { return Some(Claim(None)) };
    with(|files| match files.entries.get_mut(id) {
        Some(Entry::Open(_, handles)) if *handles > 1 => {
            *handles -= 1;
            None
        }
        Some(entry) => {
            *entry = Entry::Claimed;
            Some(Claim(Some(id.clone())))
        }
        None => Some(Claim(None)),
    })
}

/// Without a timer thread, which only a machine out of threads lacks, nobody looks.
fn next_look() -> Option<Alarm> {
    timer::at(later(Instant::now(), LOOK), look_at_all).ok()
}

/// On the timer's thread.
fn look_at_all() {
    // A child that is forked meanwhile may find locks of this module taken for ever.
    let _in_use = InUse::new();
    let engines: Vec<_> = with(|files| {
        let open = files.entries.values().filter_map(|entry| match entry {
            Entry::Open(engine, _) => engine.upgrade(),
            Entry::Claimed => None,
        });
        open.collect()
    });
    let mappings = mappings();
    for watch in engines.iter().filter_map(|engine| engine.watch()) {
        // What it finds it remembers.
        let _ = watch.look(&mappings);
    }
    drop(engines);
    crate::file::guard::close_kept();
    let next = next_look();
    let before = with(|files| {
        let is_open = files.entries.values().any(|entry| matches!(entry, Entry::Open(..)));
        std::mem::replace(&mut files.look, next.filter(|_| is_open))
    });
    drop(before);
}
