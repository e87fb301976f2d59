//! Which databases have connections, if more are open than may have some.
//!
//! Owns: the list of the engines that have connections, in the order of a clock, and parking those that were not used
//! since the hand last passed. Runs on the threads that call, for a moment, and on `fw-park`, which may block.
//! Invariants: no call waits for another engine to be parked; an engine with connections is in the list, or is about to
//! be. One lock guards the list, and is never held while an engine is parked or dropped. Leaves out: closing the
//! connections (`workers::writer`), and opening them again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::Engine;
use crate::file::copies::mappings;
use crate::file::guard;
use crate::file::watch::Watch;
use crate::thread::park::mark_own_thread;
use crate::workers::checkpoint::Checkpointer;

/// How long `park` waits for the checkpointer to end what it does.
const CHECKPOINT: Duration = Duration::from_millis(100);

/// What the hand of the clock needs to know of an engine.
#[derive(Default)]
pub(super) struct InUse {
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
}

static CLOCK: PerProcess<Clock> = PerProcess::new(Clock::default);

impl Engine {
    /// Called by each call that begins: the engine is in use.
    #[inline]
    pub(super) fn touch(self: &Arc<Self>) {
        let InUse { used, is_listed } = &self.in_use;
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
        if !is_listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    /// Puts the engine into the list, and has others parked if the list is too long.
    #[cold]
    fn list(self: &Arc<Self>) {
        if self.watch.is_none() || self.writer.is_none() || self.in_use.is_listed.swap(true, Ordering::SeqCst) {
            return;
        }
        let most = self.options.max_open;
        let mut clock = CLOCK.lock();
        clock.engines.push_back(Arc::downgrade(self));
        clock.listed += 1;
        let parks = clock.engines.len() > most && !clock.is_parking;
        clock.is_parking |= parks;
        drop(clock);
        if !parks {
            return;
        }
        let spawned = std::thread::Builder::new().name("fw-park".into()).spawn(move || {
            mark_own_thread();
            park_others(most);
        });
        if spawned.is_err() {
            // The next engine that is listed tries again.
            CLOCK.lock().is_parking = false;
        }
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
        let checkpointer = self.checkpointer.as_ref();
        let is_shared = || self.watch().is_some_and(|watch| watch.has_second_copy(&mappings()));
        if is_shared() || !checkpointer.is_none_or(|checkpointer| checkpointer.rest(CHECKPOINT)) {
            return false;
        }
        let are_closed = || {
            self.readers.as_ref().is_none_or(|readers| readers.connections() == 0)
                && checkpointer.is_none_or(Checkpointer::is_resting)
        };
        let is_parked = writer.park(are_closed);
        if is_parked {
            self.recorder.parked();
        }
        is_parked
    }
}

/// Parks engines that are not in use until at most `most` are left, or the hand has passed each twice.
fn park_others(most: usize) {
    let mut hand = Hand::default();
    while let Some(engine) = hand.next(most) {
        let Some(engine) = engine.upgrade() else { continue };
        let InUse { used, is_listed } = &engine.in_use;
        let was_used = used.swap(false, Ordering::SeqCst);
        // A call that begins from here on puts the engine into the list again.
        is_listed.store(false, Ordering::SeqCst);
        if was_used || !engine.park() {
            engine.relist();
        }
    }
    guard::close_kept();
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
        if !self.in_use.is_listed.swap(true, Ordering::SeqCst) {
            CLOCK.lock().engines.push_back(Arc::downgrade(self));
        }
    }
}
