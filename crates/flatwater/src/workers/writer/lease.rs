//! The writer's lease: the read transaction that its connection keeps from one short write to the next.
//!
//! Owns: beginning and ending it as `lease` decides, and the alarm that sees to it when nobody writes. Invariants:
//! only writes on their callers' threads run under it, each of which commits by itself; it ends with one that fails, and
//! before a worker uses the connection; a token that is given back with a lease finds an alarm set, or the lease ends.
//! Leaves out: when leases begin and end.
//!
//! ```text
//! caller's thread                         timer's thread
//! has the token
//!                                         goes off: not used since the last look, but no token to be had
//! used = true; finds the alarm set
//! gives the token back with a lease
//!                                         the alarm is not set; used: sets it
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::{WalHeader, WalState};

use super::Writer;
use super::connection::WriterConnection;
use super::slot::Slot;
use crate::inline::outcome::Fallback;
use crate::lease::{Lease, Run};
use crate::sql::seen::Left;
use crate::time::timer::{self, Alarm};

/// A lease is renewed at this age: what is written under it cannot be copied out of the WAL before it ends, and what is
/// left for a reset is to be little.
const AGE_US: u64 = 250;
/// How often a look is taken whether a lease is still used.
const LOOK: Duration = Duration::from_millis(5);

/// How a write came to its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// By the lease.
    Continued,
    /// By a new lease, or by itself.
    Begun,
    /// It is held so that the schema is the one that was compared, and is to be let go after the write.
    ForThisWrite,
}

/// Guarded by the token. What is known of others' commits is the change counter of the WAL alone: SQLite itself looks
/// before it writes.
pub(super) struct WriterLease {
    state: Lease<u32, AGE_US>,
    /// The change counter when the last write began.
    entered: u32,
    is_possible: bool,
}

impl WriterLease {
    pub(super) fn new(is_possible: bool) -> Self {
        Self { state: Lease::None, entered: 0, is_possible }
    }
}

impl WriterConnection {
    /// Before a write, in a stay: continues the lease, renews it, begins one, or sees to it that there is none. The write then
    /// meets the schema that is known, or is not to be made.
    pub(super) fn enter_lease(&mut self, state: &WalState, left: &Left, now: Instant) -> Result<Entered, Fallback> {
        let change = state.change();
        let mut run = Run::Alone;
        if self.lease.is_possible {
            self.lease.entered = change;
            let (ended, next) = self.lease.state.enter(|noted| *noted == change, || Some(change), false, now);
            if ended.is_some() {
                self.let_go();
            }
            run = next;
        }
        match run {
            Run::Continue => Ok(Entered::Continued),
            Run::Begin => match self.hold(state, left) {
                Ok(()) => Ok(Entered::Begun),
                Err(why) => {
                    self.lease.state.drop_it();
                    Err(why)
                }
            },
            Run::Alone if self.has_seen_schema(state, left) => Ok(Entered::Begun),
            Run::Alone => self.hold(state, left).map(|()| Entered::ForThisWrite),
        }
    }

    /// After a write that ended well, which left the WAL so; one that failed has ended the lease.
    pub(super) fn leave_lease(&mut self, header: Option<&WalHeader>, now: Instant) {
        if !self.lease.is_possible {
            return;
        }
        // A second commit was somebody else's. What this takes wrongly for its own SQLite refuses at the next write.
        if let Some(change) = header.map(|header| header.change)
            && change.wrapping_sub(self.lease.entered) <= 1
        {
            self.lease.state.wrote(change);
        }
        if self.lease.state.leave(true, false, now).is_some() {
            self.let_go();
        }
    }

    /// Ends it whatever the reason.
    pub(super) fn end_lease(&mut self) {
        if self.lease.state.drop_it() {
            self.let_go();
        }
    }
}

/// Sees to a lease that nobody uses. In one order for all: hence SeqCst.
#[derive(Default)]
pub(super) struct Watch {
    /// The token was given back with a lease since the last look.
    used: AtomicBool,
    /// An alarm is set, or about to look.
    is_set: AtomicBool,
    alarm: Mutex<Option<Alarm>>,
}

impl Writer {
    /// The token is about to be given back.
    pub(super) fn watch_lease(&self, writer: &mut WriterConnection) {
        if !writer.lease.state.is_held() {
            return;
        }
        let watch = &self.0.lease_watch;
        watch.used.store(true, Ordering::SeqCst);
        if !watch.is_set.load(Ordering::SeqCst) && !self.set_alarm() {
            writer.end_lease();
        }
    }

    /// Sets the alarm, unless it is set. False if it cannot be, which only a machine out of threads says.
    fn set_alarm(&self) -> bool {
        let watch = &self.0.lease_watch;
        // Held until the alarm is in its place: one that goes off before that is set anew after it.
        let mut place = watch.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if watch.is_set.swap(true, Ordering::SeqCst) {
            return true;
        }
        let shared = Arc::downgrade(&self.0);
        let alarm = timer::at(Instant::now() + LOOK, move || {
            if let Some(shared) = shared.upgrade() {
                Writer(shared).look();
            }
        });
        *place = alarm.ok();
        if place.is_none() {
            watch.is_set.store(false, Ordering::SeqCst);
        }
        place.is_some()
    }

    /// On the timer's thread.
    fn look(&self) {
        let watch = &self.0.lease_watch;
        let was_used = watch.used.swap(false, Ordering::SeqCst);
        if !was_used && let Some(mut slot) = Slot::acquire_idle(self) {
            slot.run(|writer, _| writer.end_lease());
        }
        watch.is_set.store(false, Ordering::SeqCst);
        // Whoever gave the token back meanwhile may have found the alarm set.
        if was_used || watch.used.load(Ordering::SeqCst) {
            self.set_alarm();
        }
    }
}
