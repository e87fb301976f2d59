//! The live queries of one database.
//!
//! Owns: starting their runs, waking their subscribers, and looking for commits of others. It has no thread for that: a
//! change is applied on the thread that holds the writer slot, a query runs on a reader, its result is delivered on
//! that reader's thread, or by the one that released the slot, which may run a short query itself, and the timer looks
//! for commits of others, before which those of Flatwater are heard of (`follow`). Invariants: no lock is held while a
//! request is pushed or a waker runs; nothing here waits. Leaves out: which queries a change invalidates (`dependencies`,
//! `entries`), and the stream that a caller polls.

mod after_unlock;
pub(crate) mod diff;
mod entries;
mod entry;
mod follow;
mod run;
pub(crate) mod subscriber;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use flatwater_sqlite::Origin;

use crate::connection::learn::live_query::{Derived, LiveQuery, LiveRun};
use crate::stats::query_counters::LiveStats;
use crate::workers::context::Context;
use crate::workers::interfaces::ChangeListener;
use crate::workers::request::Request;
use entries::Entries;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::lock;
use flatwater_base::time::later;
use flatwater_base::time::recurring::Recurring;
use flatwater_base::time::timer::Deadline;
use flatwater_sql::dependencies::change::Change;
use flatwater_sql::dependencies::index::Id;
use follow::Follower;
use subscriber::Subscriber;

/// How long the result of a query without subscribers is kept.
const GRACE: Duration = Duration::from_secs(1);

/// After a run that failed for a reason that may pass, the first pause before another one. Each is twice as long as the one
/// before, up to the last.
const AGAIN: Duration = Duration::from_millis(100);
const DOUBLED: u32 = 6;

/// Pushes the request of a run.
pub(crate) type Push = Box<dyn Fn(Request) -> Result<()> + Send + Sync>;

/// Runs a live query at once, if it is known to be short. Gets what its statements read the last time. It does not wait.
pub(crate) type RunsHere = Box<dyn Fn(&LiveQuery, &[Option<Derived>]) -> Option<Vec<LiveRun>> + Send + Sync>;

/// Looks for commits of others, and reports a change of everything if there are any. It does not wait.
pub(crate) type LooksForOthers = Box<dyn Fn(&dyn ChangeListener) + Send + Sync>;

/// What live queries need of the other workers.
pub(crate) struct Powers {
    pub(crate) push: Push,
    pub(crate) run_here: RunsHere,
    pub(crate) look: LooksForOthers,
}

/// The live queries.
#[derive(Clone)]
pub(crate) struct LiveQueries(Arc<Shared>);

struct Shared {
    context: Arc<Context>,
    powers: Powers,
    /// That of the entries.
    is_watching: Arc<AtomicBool>,
    entries: Mutex<Entries>,
    /// Looks for commits of others.
    looks: Recurring,
    /// Goes off when it is time to run again what failed.
    again: Deadline,
    /// How often in a row that was set.
    failures: AtomicU32,
    follower: Follower,
}

impl LiveQueries {
    /// Creates it without any query. At most `at_once` queries run at a time.
    pub(crate) fn new(context: Arc<Context>, powers: Powers, at_once: usize) -> Self {
        let entries = Entries::new(at_once);
        let (is_watching, entries) = (entries.watching(), Mutex::new(entries));
        let (looks, again, failures) = (Recurring::default(), Deadline::default(), AtomicU32::new(0));
        let follower = Follower::default();
        Self(Arc::new(Shared { context, powers, is_watching, entries, looks, again, failures, follower }))
    }

    /// Returns what the writer reports to. It does not keep the live queries.
    pub(crate) fn listener(&self) -> Arc<dyn ChangeListener> {
        Arc::new(self.0.listener())
    }

    /// Subscribes to a query. The subscription ends when the returned value is dropped.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn subscribe(&self, query: Arc<LiveQuery>, gets_differences: bool) -> Result<Subscription> {
        let place = Subscriber::new(gets_differences);
        let mut entries = self.0.lock();
        if entries.is_closed {
            return Err(Error::closed());
        }
        let is_first = entries.is_empty();
        let (id, todo) = entries.subscribe(query.clone(), place.clone());
        drop(entries);
        if is_first {
            self.0.look_later();
            self.0.follow();
        }
        self.0.perform(todo);
        Ok(Subscription { live: self.clone(), query, id, place, origin: Origin::here() })
    }

    /// Returns true if there is a live query.
    pub(crate) fn is_watching(&self) -> bool {
        self.0.is_watching.load(Ordering::SeqCst)
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        let todo = self.0.lock().close();
        self.0.looks.end();
        self.0.follower.wake();
        self.0.perform(todo);
    }

    pub(crate) fn stats(&self) -> LiveStats {
        self.0.lock().stats()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }

    fn listener(self: &Arc<Self>) -> Listener {
        Listener { is_watching: self.is_watching.clone(), live: Arc::downgrade(self) }
    }

    /// Starts the runs that may start now.
    fn start_waiting(self: &Arc<Self>) {
        let todo = self.lock().start_waiting();
        self.perform(todo);
    }

    /// Has the powers look for commits of others, as long as there is a live query.
    fn look_later(self: &Arc<Self>) {
        let live = Arc::downgrade(self);
        self.looks.by(later(Instant::now(), self.context.options.live_poll), move || {
            let live = live.upgrade().filter(|live| live.is_watching.load(Ordering::SeqCst))?;
            (live.powers.look)(&live.listener());
            Some(later(Instant::now(), live.context.options.live_poll))
        });
    }

    /// Notes how a run ended. If it failed for a reason that may pass, sets the alarm at which what failed runs again: there
    /// may be no commit that causes that.
    fn note_end(self: &Arc<Self>, run: &Result<Vec<LiveRun>>) {
        if run.is_ok() {
            return self.failures.store(0, Ordering::Relaxed);
        }
        if !run.as_ref().is_err_and(entry::may_pass) {
            return;
        }
        let doubled = self.failures.fetch_add(1, Ordering::Relaxed).min(DOUBLED);
        self.again.set(later(Instant::now(), AGAIN * (1 << doubled)), self, |live| {
            let todo = live.lock().run_failed();
            live.perform(todo);
        });
    }

    fn unsubscribe(self: &Arc<Self>, id: Id, place: &Arc<Subscriber>) {
        let mut entries = self.lock();
        if !entries.unsubscribe(id, place) {
            return;
        }
        if let Some(entry) = entries.entry(id) {
            entry.grace.set(later(Instant::now(), GRACE), self, move |live| live.forget(id));
        }
    }

    /// Removes the entry, unless it has a subscriber again.
    fn forget(&self, id: Id) {
        let forgotten = self.lock().remove_unused(id);
        drop(forgotten);
    }
}

/// The live queries, as the writer and the timer report changes to them.
struct Listener {
    is_watching: Arc<AtomicBool>,
    live: Weak<Shared>,
}

impl ChangeListener for Listener {
    fn is_watching(&self) -> bool {
        self.is_watching.load(Ordering::SeqCst)
    }

    fn publish(&self, change: &Change) {
        if let Some(live) = self.live.upgrade() {
            live.lock().publish(change, Instant::now());
        }
    }

    fn start(&self) {
        if let Some(live) = self.live.upgrade() {
            live.start_waiting();
        }
    }
}

/// A subscriber's right to the results of a live query.
pub(crate) struct Subscription {
    live: LiveQueries,
    pub(crate) query: Arc<LiveQuery>,
    id: Id,
    pub(crate) place: Arc<Subscriber>,
    origin: Origin,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // In a forked child the lock may be held by a thread that the child does not have.
        if !self.origin.is_inherited() {
            self.live.0.unsubscribe(self.id, &self.place);
        }
    }
}
