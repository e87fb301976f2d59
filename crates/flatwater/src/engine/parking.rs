//! Which databases have connections, if more are open than may have some; and the files of those that have none, and live queries.
//!
//! Owns: listing the engines that have connections, parking those that were not used since the hand of the clock last passed, and
//! waiting for room; and looking at the files of parked databases with live queries, because there is no connection that shows commits.
//! Runs on the threads that call, for a moment, on those that open connections, which may block, on `fw-park`, and on `fw-parked`, which
//! looks at files and lives as long as there are some to look at. Invariants: an engine with connections is listed, or is about to be;
//! whoever opens connections while there are far too many waits until others are parked, unless all that have some are held by their
//! callers; a database whose files have changed since it was parked gets its connections again, which runs all of its live queries. One
//! lock guards each list, and is never held while an engine is parked or dropped. Leaves out: the list (`eviction`), and closing the
//! connections (`workers::writer`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::Engine;
use super::eviction::{Clock, Hand, Visited};
use crate::file::guard;
use crate::file::identity::Stamp;
use crate::file::second_library::mappings;
use crate::file::watch::Watch;
use crate::workers::checkpoint::Checkpointer;
use crate::workers::interfaces::TakesOver;
use crate::workers::readers::Readers;
use crate::workers::writer::{Parked, Writer};
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::background;

/// How long `park` waits for the checkpointer to end what it does.
const CHECKPOINT: Duration = Duration::from_millis(100);
/// How often one that waits for room looks whether its caller still waits.
const LOOK: Duration = Duration::from_millis(5);

/// What the hand of the clock needs to know of an engine.
#[derive(Default)]
pub(super) struct Use {
    /// Set by each call, cleared by the hand.
    used: AtomicBool,
    is_listed: AtomicBool,
}

static CLOCK: PerProcess<Clock<Weak<Engine>>> = PerProcess::new(Clock::default);
/// Signalled when there may be room, and when there will be none.
static ROOM: Condvar = Condvar::new();

/// The right to open connections. Dropping it ends the opening: what has connections is listed by then.
pub(crate) struct Permit(());

impl Drop for Permit {
    fn drop(&mut self) {
        CLOCK.lock().opening -= 1;
        ROOM.notify_all();
    }
}

/// Sets how many databases of the process may have connections at a time. Does not block.
pub(crate) fn set_max_open(databases: usize) {
    CLOCK.lock().may_have(databases.max(1));
    look();
    ROOM.notify_all();
}

/// Waits until there is room for the connections of one more database, or `is_over`, or all that have connections are held by
/// their callers, who may be waiting for this one. Blocks.
///
/// ```text
/// a task                                    this thread
/// has transactions open in 2 * max_open
/// databases, and writes to one more
///                                           there is no room; each is visited by the hand, and held
///                                           opens its connections: beyond the bound
/// the write is answered; commits
/// ```
///
/// # Errors
/// `Busy`, if it is over.
pub(crate) fn wait_for_room(is_over: &dyn Fn() -> bool) -> Result<Permit> {
    let mut clock = CLOCK.lock();
    if !clock.has_room() {
        clock.waiting += 1;
        // A hand that is on its way may have visited one before it was free.
        let until = clock.in_vain + 2;
        let mut ended = false;
        while !(clock.has_room() || clock.in_vain >= until || ended) {
            drop(clock);
            look();
            clock = ROOM.wait_timeout(CLOCK.lock(), LOOK).unwrap_or_else(PoisonError::into_inner).0;
            ended = is_over();
        }
        clock.waiting -= 1;
        if ended {
            return Err(no_room(clock.most()));
        }
    }
    clock.opening += 1;
    Ok(Permit(()))
}

fn no_room(most: usize) -> Error {
    Error::new(
        ErrorCode::TooManyOpen,
        format!("twice as many databases as the limit of {most} have connections, and all are in use"),
    )
    .with_hint(hint!["raise the limit with " SetMaxOpen ", if the process may have more descriptors"])
}

impl Engine {
    /// Called by each call that begins: the engine is in use.
    #[inline]
    pub(super) fn touch(&self) {
        if !self.recent.used.load(Ordering::Relaxed) {
            self.recent.used.store(true, Ordering::Relaxed);
        }
    }

    /// Called when the engine is open: puts it into the list now, and whenever it has connections again.
    pub(super) fn may_be_parked(self: &Arc<Self>) {
        // A database that is not visible in the file system may be gone with its last connection.
        let is_visible = |watch: &&Watch| watch.file().is_some_and(|file| file.inode().is_some());
        let Some(watch) = self.watch().filter(is_visible).filter(|_| self.writer.is_some()) else { return };
        let engine = Arc::downgrade(self);
        let room = |is_over: &dyn Fn() -> bool| Ok(Box::new(wait_for_room(is_over)?) as Box<dyn Send>);
        watch.parked.tell(Box::new(room), Box::new(move || drop(engine.upgrade().inspect(list))));
        list(self);
    }
}

/// Puts the engine into the list, and has others parked if the list is too long.
fn list(engine: &Arc<Engine>) {
    engine.touch();
    if engine.recent.is_listed.swap(true, Ordering::SeqCst) {
        return;
    }
    CLOCK.lock().list(Arc::downgrade(engine));
    look();
}

/// Called when the engine is closed: takes it from the list.
pub(super) fn unlist(engine: &Engine) {
    CLOCK.lock().entries.retain(|listed| !std::ptr::eq(listed.as_ptr(), engine));
    ROOM.notify_all();
}

/// Parks the engine, if it is not in use. Blocks.
fn park(engine: &Arc<Engine>) -> Visited {
    let Some(writer) = engine.writer.as_ref().filter(|_| !engine.is_closed()) else { return Visited::Parked };
    let Some(watch) = engine.watch() else { return Visited::Held };
    if watch.parked.is_set() {
        return Visited::Parked;
    }
    let (readers, checkpointer) = (engine.readers.as_ref(), engine.checkpointer.as_ref());
    if writer.ongoing().has_transaction()
        || readers.is_some_and(|readers| readers.held() > 0)
        || engine.own.are_open()
        || watch.refusal().is_some()
    {
        return Visited::Held;
    }
    if writer.is_active()
        || readers.is_some_and(Readers::are_in_use)
        || !checkpointer.is_none_or(|checkpointer| checkpointer.rest(CHECKPOINT))
    {
        return Visited::Busy;
    }
    let Some(_none) = engine.own.keep_closed() else { return Visited::Held };
    let are_closed = || {
        readers.is_none_or(|readers| readers.connections() == 0)
            && checkpointer.is_none_or(Checkpointer::is_resting)
            && !watch.has_second_copy(mappings)
    };
    let Some(parked) = writer.park(are_closed) else { return Visited::Busy };
    engine.context.recorder.counts.parked.count();
    // Commits of others are to be noticed, if there are live queries.
    match parked {
        _ if !engine.live.is_watching() => {}
        Parked::Alone(stamp) => watch_files(engine, stamp),
        // Others use the file: its connections are opened again, and all live queries run.
        Parked::BesideOthers => writer.look_again(),
    }
    Visited::Parked
}

/// Has engines parked if there are too many with connections. Called when one gets connections, and every few seconds: all may
/// have been in use. Does not block.
pub(super) fn look() {
    let failed = || {
        CLOCK.lock().parker_failed();
        ROOM.notify_all();
    };
    while CLOCK.lock().starts_parker() && background::run("fw-park", park_others, failed) {}
}

/// Parks engines that are not in use until few enough are left, or the hand has passed each twice.
fn park_others() {
    let mut hand = Hand::default();
    loop {
        let next = CLOCK.lock().next(&mut hand);
        ROOM.notify_all();
        let Some(engine) = next else { return };
        let visited = engine.upgrade().map_or(Visited::Parked, |engine| visit(&engine));
        CLOCK.lock().visited(&mut hand, visited);
        if visited == Visited::Parked {
            guard::close_kept();
        }
    }
}

/// Parks the engine if it was not used since the hand last passed. Otherwise puts it back.
fn visit(engine: &Arc<Engine>) -> Visited {
    let Use { used, is_listed } = &engine.recent;
    let was_used = used.swap(false, Ordering::SeqCst);
    // When the engine has connections again, it is put into the list again.
    is_listed.store(false, Ordering::SeqCst);
    let visited = if was_used { Visited::Busy } else { park(engine) };
    if visited != Visited::Parked && !is_listed.swap(true, Ordering::SeqCst) {
        CLOCK.lock().entries.push_back(Arc::downgrade(engine));
    }
    visited
}

#[derive(Default)]
struct ParkedFiles {
    engines: Vec<(Weak<Engine>, Stamp)>,
    is_watched: bool,
}

static PARKED: PerProcess<ParkedFiles> = PerProcess::new(ParkedFiles::default);

/// Watches the files of an engine that was parked with this stamp, until it has connections again.
fn watch_files(engine: &Arc<Engine>, stamp: Stamp) {
    let mut parked = PARKED.lock();
    parked.engines.retain(|(other, _)| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(engine)));
    parked.engines.push((Arc::downgrade(engine), stamp));
    if std::mem::replace(&mut parked.is_watched, true) {
        return;
    }
    drop(parked);
    background::run("fw-parked", look_on, give_up);
}

/// Nobody looks at the files: the databases get their connections again.
fn give_up() {
    let mut parked = PARKED.lock();
    parked.is_watched = false;
    let left = std::mem::take(&mut parked.engines);
    drop(parked);
    left.iter().filter_map(|(engine, _)| engine.upgrade()).for_each(|engine| give_connections(&engine));
}

/// Looks at the files again and again, while there are any to look at.
fn look_on() {
    while let Some(pause) = pause() {
        std::thread::sleep(pause);
        let engines = std::mem::take(&mut PARKED.lock().engines);
        for (engine, stamp) in engines {
            let is_parked = |engine: &Engine| engine.watch().is_some_and(|watch| watch.parked.is_set());
            let is_watched =
                |engine: &Arc<Engine>| !engine.is_closed() && engine.live.is_watching() && is_parked(engine);
            let Some(engine) = engine.upgrade().filter(is_watched) else { continue };
            if Stamp::of(engine.path()) != stamp {
                give_connections(&engine);
                continue;
            }
            let mut parked = PARKED.lock();
            // It may have been parked again meanwhile.
            if !parked.engines.iter().any(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(&engine))) {
                parked.engines.push((Arc::downgrade(&engine), stamp));
            }
        }
    }
}

/// Returns the time until the next look; `None` if there is nothing to look at: then the thread must end.
fn pause() -> Option<Duration> {
    let mut parked = PARKED.lock();
    let engines: Vec<_> = parked.engines.iter().filter_map(|(engine, _)| engine.upgrade()).collect();
    let pause = engines.iter().map(|engine| engine.context.options.live_poll).min();
    parked.is_watched = pause.is_some();
    // Before the engines: each may be the last of its own.
    drop(parked);
    pause
}

fn give_connections(engine: &Engine) {
    engine.writer.iter().for_each(Writer::look_again);
}
