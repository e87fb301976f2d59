//! Hearing of the commits of other processes that use Flatwater, as soon as they happen.
//!
//! Owns: the thread `fw-follow`, which sleeps until a commit is told through the turnstile's file, and looks for it then.
//! There is one for a database with live queries, if there is a place for it; it ends when there are none any more.
//! Invariant: nothing depends on it, because the timer looks for commits of others too, if later; so it may run a short query
//! itself. Leaves out: what a look does.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use flatwater_sqlite::{TurnFile, Word};

use super::Shared;
use crate::workers::context::Context;
use flatwater_base::thread::background::{Linger, start_worker};
use flatwater_base::thread::lock;

/// How often the thread checks whether there is anything to follow.
const CHECK: Duration = Duration::from_secs(1);
/// The pause after a look: commits that come in a stream are looked for once in this time.
const PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    /// This thread waits for commits of other processes. Nobody waits for this thread.
    pub(super) static FOLLOWS: Cell<bool> = const { Cell::new(false) };
}

/// The thread.
#[derive(Default)]
pub(super) struct Follower {
    runs: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Follower {
    /// Has the thread check at once. It may sleep at the file, too: who closes that wakes it.
    pub(super) fn wake(&self) {
        let thread = lock(&self.thread).clone();
        thread.inspect(Thread::unpark);
    }
}

impl Shared {
    /// Starts the thread, if it does not run. Called when there is a live query.
    pub(super) fn follow(self: &Arc<Self>) {
        if self.context.turnstile.is_none() || self.follower.runs.swap(true, Ordering::SeqCst) {
            return;
        }
        let (live, context, place) = (Arc::downgrade(self), self.context.clone(), Linger::follow());
        if !place.has_place() || start_worker("fw-follow", move || follow(&live, &context, place)).is_err() {
            self.follower.runs.store(false, Ordering::SeqCst);
        }
    }

    /// Returns false if the thread must end.
    ///
    /// ```text
    /// fw-follow                                a caller
    /// finds no live query
    ///                                          subscribes; the thread runs
    /// runs = false
    /// finds a live query: goes on, unless
    /// another thread has started
    /// ```
    fn still_follows(&self) -> bool {
        let is_watching = || self.is_watching.load(Ordering::SeqCst);
        if is_watching() {
            return true;
        }
        self.follower.runs.store(false, Ordering::SeqCst);
        is_watching() && !self.follower.runs.swap(true, Ordering::SeqCst)
    }
}

/// Runs the thread.
fn follow(live: &Weak<Shared>, context: &Context, _place: Linger) {
    let Some(turnstile) = &context.turnstile else { return };
    FOLLOWS.set(true);
    let mut seen = None;
    while let Some(shared) = live.upgrade().filter(|live| live.still_follows()) {
        *lock(&shared.follower.thread) = Some(thread::current());
        let Some((file, announced)) =
            turnstile.follow().and_then(|file| Some((file.clone(), file.counters().ok()?.commit)))
        else {
            drop(shared);
            thread::park_timeout(CHECK);
            continue;
        };
        if seen.replace(announced).is_some_and(|seen| seen != announced) {
            turnstile.heard();
            (shared.powers.look)(&shared.listener());
            drop(shared);
            thread::park_timeout(PAUSE);
        } else {
            drop(shared);
            sleep(&file, announced);
        }
    }
    turnstile.follow_no_more();
}

/// Sleeps until something else is told, or for a while.
fn sleep(file: &TurnFile, announced: u32) {
    if file.wait(Word::Commit, announced, u32::MAX, CHECK).is_err() {
        thread::park_timeout(CHECK);
    }
}
