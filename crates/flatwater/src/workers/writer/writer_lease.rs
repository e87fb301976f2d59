//! The writer's lease: the read transaction that its connection keeps open from one short write to the next.
//!
//! Owns: beginning and ending the lease as `lease` decides, and the tick that ends a lease that is not used. Runs on
//! the thread that holds the slot, and on the timer's thread. Invariants: only inline runs use the lease, and each of
//! their writes commits by itself; the lease ends with a write that fails, and before a worker uses the connection;
//! when the token is given back with a lease, a tick follows. Leaves out: when leases begin and end.
//!
//! ```text
//! caller's thread                         timer's thread
//! has the token
//!                                         looks: not used since the last look, but no token to be had
//! used = true; it was not: asks for a look
//! gives the token back with a lease
//!                                         no other look is wanted, but one was asked for: there is one
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_sqlite::{WalHeader, WalState};

use super::Writer;
use super::inline_access::{hold, let_go};
use super::known_schema::has_seen_schema;
use super::slot::Slot;
use super::state::WriterLease;
use super::writer_connection::WriterConnection;
use crate::lease::{Lease, LeaseRun};
use flatwater_base::inline::outcome::Fallback;
use flatwater_base::time::recurring::Recurring;
use flatwater_sql::catalogue::LeftWal;

/// A lease is renewed at this age, or when as many short writes may have taken their time, if that is longer. Frames that
/// are written under it cannot be copied out of the WAL before it ends, and few of them may be left when the WAL is to be
/// restarted.
const AGE: Duration = Duration::from_micros(250);
const SHORT_WRITES: u32 = 5;
/// How often the timer checks whether a lease is still used. The age is never longer.
const LOOK: Duration = Duration::from_millis(5);

/// How a write got its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entered {
    /// From the lease.
    Continued,
    /// From a new lease, or from its own transaction.
    Begun,
    /// From a read transaction that keeps the schema as it was compared, and that must end after the write.
    ForThisWrite,
}

impl WriterLease {
    /// The state of a connection whose short writes may take so long each.
    pub(crate) fn new(short: Duration) -> Self {
        Self { age: Some(short.saturating_mul(SHORT_WRITES).clamp(AGE, LOOK)), ..Self::impossible() }
    }

    pub(crate) fn impossible() -> Self {
        Self { state: Lease::None, entered: 0, age: None }
    }
}

/// Called before a write in an inline run: continues the lease, renews it, begins one, or ensures that there is
/// none. After `Ok` the write sees the schema that is known; after an error it must not run.
pub(crate) fn enter_lease(
    writer: &mut WriterConnection,
    state: &WalState,
    left: &LeftWal,
    now: Instant,
) -> Result<Entered, Fallback> {
    let change = state.change();
    if writer.lease.age.is_some() && writer.context.is_beside_litestream() {
        writer.end_lease();
        writer.lease = WriterLease::impossible();
    }
    let mut run = LeaseRun::Alone;
    if let Some(age) = writer.lease.age {
        writer.lease.entered = change;
        let (ended, next) = writer.lease.state.enter(age, |noted| *noted == change, || Some(change), false, now);
        if ended.is_some() {
            let_go(writer);
        }
        run = next;
    }
    match run {
        LeaseRun::Continue => Ok(Entered::Continued),
        LeaseRun::Begin => match hold(writer, state, left) {
            Ok(()) => Ok(Entered::Begun),
            Err(why) => {
                writer.lease.state.drop_it();
                Err(why)
            }
        },
        LeaseRun::Alone if has_seen_schema(writer, state, left) => Ok(Entered::Begun),
        LeaseRun::Alone => hold(writer, state, left).map(|()| Entered::ForThisWrite),
    }
}

/// Called after a write that succeeded and left the WAL with this header. A write that failed has ended the lease
/// already.
pub(crate) fn leave_lease(writer: &mut WriterConnection, header: Option<&WalHeader>, now: Instant) {
    if writer.lease.age.is_none() {
        return;
    }
    // A second commit came from another connection. If another connection's commit is taken for this write's own,
    // SQLite refuses the next write.
    if let Some(change) = header.map(|header| header.change)
        && change.wrapping_sub(writer.lease.entered) <= 1
    {
        writer.lease.state.wrote(change);
    }
    if writer.lease.state.leave(true, false, now).is_some() {
        let_go(writer);
    }
}

/// Ends a lease that is not used.
#[derive(Default)]
pub(crate) struct Watch {
    /// The token was given back with a lease since the last look. Who sets it asks for a look, unless it was set: hence
    /// SeqCst.
    used: AtomicBool,
    looks: Recurring,
}

impl Writer {
    /// Called before the token is given back: if a lease is held, ensures that the timer looks at it.
    pub(crate) fn watch_lease(&self, writer: &WriterConnection) {
        let watch = &self.0.lease_watch;
        if writer.lease.state.is_held() && !watch.used.swap(true, Ordering::SeqCst) {
            let of = Arc::downgrade(&self.0);
            watch.looks.by(Instant::now() + LOOK, move || look(&Self(of.upgrade()?)));
        }
    }
}

/// Ends the lease, unless it was used since the last look: then there is another one. Runs on the timer's thread.
fn look(writer: &Writer) -> Option<Instant> {
    if writer.0.lease_watch.used.swap(false, Ordering::SeqCst) {
        return Some(Instant::now() + LOOK);
    }
    if let Some(mut slot) = Slot::acquire_idle(writer) {
        slot.run(|connection, _| connection.end_lease());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_as_long_as_five_short_writes_and_at_least_250_us() {
        let age = |us| WriterLease::new(Duration::from_micros(us)).age;
        assert_eq!(age(50), Some(AGE), "by default");
        assert_eq!((age(0), age(100), age(u64::MAX)), (Some(AGE), Some(AGE * 2), Some(LOOK)));
        assert_eq!(WriterLease::impossible().age, None);
    }
}
