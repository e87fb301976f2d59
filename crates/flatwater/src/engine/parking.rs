//! Which databases have connections, if more are open than may have some.
//!
//! Owns: the list of the engines that have connections, in the order of a clock, and parking those that were not used
//! since the hand last passed. Runs on the threads that call, for a moment, and on `fw-park`, which may block.
//! Invariants: no call waits for another engine to be parked; an engine with connections is in the list, or is about to
//! be. One lock guards the list, and is never held while an engine is parked or dropped. Leaves out: closing the
//! connections (`workers::writer`), and opening them again.

use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::Engine;
use crate::file::copies::mappings;
use crate::file::guard;
use crate::file::watch::Watch;
use crate::thread::park::start_own;
use crate::workers::checkpoint::Checkpointer;
use crate::workers::readers::Readers;
use crate::workers::take_over::TakesOver;

/// How long `park` waits for the checkpointer to end what it does.
const CHECKPOINT: Duration = Duration::from_millis(100);

/// What the hand of the clock needs to know of an engine.
#[derive(Default)]
pub(super) struct Use {
    /// Set by each call, cleared by the hand.
    used: AtomicBool,
    is_listed: AtomicBool,
}

#[derive(Default)]
struct Clock {
    /// The engine that the hand meets next is the first.
    engines: VecDeque<Weak<Engine>>,
    /// How many engines were put into the list up to now.
    listed: u64,
    /// A thread is parking engines.
    is_parking: bool,
    /// How many engines may be in the list, as the last one said.
    most: usize,
}

static CLOCK: PerProcess<Clock> = PerProcess::new(Clock::default);

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
        watch.tell_unparked(Box::new(move || {
            engine.upgrade().inspect(Self::list);
        }));
        self.list();
    }

    /// Puts the engine into the list, and has others parked if the list is too long.
    fn list(self: &Arc<Self>) {
        self.touch();
        if self.recent.is_listed.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut clock = CLOCK.lock();
        clock.engines.push_back(Arc::downgrade(self));
        clock.listed += 1;
        clock.most = self.options.max_open;
        drop(clock);
        look();
    }

    /// Called when the engine is closed: takes it from the list.
    pub(super) fn unlist(&self) {
        CLOCK.lock().engines.retain(|engine| !std::ptr::eq(engine.as_ptr(), self));
    }

    /// Parks the engine, if it is not in use. Blocks.
    fn park(&self) -> bool {
        let Some(writer) = self.writer.as_ref().filter(|_| !self.is_closed()) else { return true };
        if self.watch().is_some_and(Watch::is_parked) {
            return true;
        }
        let (readers, checkpointer) = (self.readers.as_ref(), self.checkpointer.as_ref());
        if writer.is_active() || readers.is_some_and(Readers::are_in_use) || self.live.is_watching() {
            return false;
        }
        if !checkpointer.is_none_or(|checkpointer| checkpointer.rest(CHECKPOINT)) {
            return false;
        }
        let are_closed = || {
            readers.is_none_or(|readers| readers.connections() == 0)
                && checkpointer.is_none_or(Checkpointer::is_resting)
                && !self.watch().is_some_and(|watch| watch.has_second_copy(mappings))
        };
        let is_parked = writer.park(are_closed);
        if is_parked {
            self.recorder.parked();
        }
        is_parked
    }
}

/// Has engines parked if there are too many with connections. Called when one gets connections, and every few seconds: all may
/// have been in use. Does not block.
pub(super) fn look() {
    let mut clock = CLOCK.lock();
    let parks = clock.engines.len() > clock.most && !clock.is_parking;
    clock.is_parking |= parks;
    let most = clock.most;
    drop(clock);
    if !parks {
        return;
    }
    let started = start_own("fw-park", move || {
        if catch_unwind(|| park_others(most)).is_err() {
            CLOCK.lock().is_parking = false;
        }
    });
    if started.is_err() {
        CLOCK.lock().is_parking = false;
    }
}

/// Parks engines that are not in use until at most `most` are left, or the hand has passed each twice.
fn park_others(most: usize) {
    let mut hand = Hand::default();
    while let Some(engine) = hand.next(most) {
        let Some(engine) = engine.upgrade() else { continue };
        let Use { used, is_listed } = &engine.recent;
        let was_used = used.swap(false, Ordering::SeqCst);
        // When the engine has connections again, it is put into the list again.
        is_listed.store(false, Ordering::SeqCst);
        if was_used || !engine.park() {
            engine.relist();
        } else {
            guard::close_kept();
        }
    }
}

/// The hand of the clock, while engines are parked.
#[derive(Default)]
struct Hand {
    /// The number of engines that it still meets.
    steps: usize,
    /// How many engines had been listed when the steps were counted.
    listed: u64,
}

impl Hand {
    /// Takes the next engine from the list. Returns `None` if few enough are left, or the hand has passed each twice
    /// since the last one was listed.
    fn next(&mut self, most: usize) -> Option<Weak<Engine>> {
        let mut clock = CLOCK.lock();
        if self.listed != clock.listed {
            *self = Self { steps: clock.engines.len() * 2, listed: clock.listed };
        }
        let engine = if clock.engines.len() > most && self.steps > 0 { clock.engines.pop_front() } else { None };
        self.steps = self.steps.saturating_sub(1);
        clock.is_parking = engine.is_some();
        engine
    }
}

impl Engine {
    /// Puts an engine back that has connections.
    fn relist(self: &Arc<Self>) {
        if !self.recent.is_listed.swap(true, Ordering::SeqCst) {
            CLOCK.lock().engines.push_back(Arc::downgrade(self));
        }
    }
}
