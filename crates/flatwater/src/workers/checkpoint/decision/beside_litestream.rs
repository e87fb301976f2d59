//! The decision beside Litestream, which copies the WAL to another place and checkpoints it by itself.
//!
//! Owns: what differs from a WAL that only Flatwater checkpoints. Runs on the checkpointer's thread. Invariants: a WAL that Litestream
//! keeps short is left alone; a longer one is truncated or left as it is, and is not copied to its end by a step that leaves it so.
//! Leaves out: why (`docs/design/checkpoints.md`), and how a WAL is truncated without a moment at which it could be restarted
//! otherwise (`pin`).

use std::time::{Duration, Instant};

use super::{IDLE, Observed, Policy, Step, left};

/// The only step is to truncate a WAL that is longer than Litestream lets it become. While Litestream runs it blocks that.
pub(super) fn next(policy: &Policy, seen: &Observed, now: Instant) -> Step {
    if seen.frames < policy.restart_frames() {
        return Step::Rest(IDLE);
    }
    match left(policy.restart_after, now) {
        Duration::ZERO => Step::Shorten(policy.budget()),
        blocked => Step::Rest(blocked),
    }
}

/// The number of frames at which that is due.
pub(super) fn wake_at(policy: &Policy, now: Instant) -> u32 {
    if left(policy.restart_after, now).is_zero() { policy.restart_frames() } else { u32::MAX }
}

#[cfg(test)]
mod tests {
    use super::super::{BUDGET, RETRY};
    use super::*;
    use crate::file::disk::Disk;

    const LIMIT: u32 = 8192;

    fn seen(frames: u32, copied: u32, idle: Duration) -> Observed {
        let disk = Disk { wal: frames, database: 10_000, free: u32::MAX };
        Observed { frames, copied, idle, disk, beside_litestream: true }
    }

    #[test]
    fn only_a_long_wal_is_touched_and_that_is_truncated() {
        let policy = Policy::new(LIMIT);
        let now = Instant::now();
        for idle in [0, 10, 2_000, 60_000].map(Duration::from_millis) {
            for copied in [0, 1_000] {
                assert_eq!(policy.next(&seen(1_000, copied, idle), now), Step::Rest(IDLE));
            }
            assert_eq!(policy.next(&seen(7_000, 0, idle), now), Step::Shorten(BUDGET));
            assert_eq!(policy.next(&seen(7_000, 7_000, idle), now), Step::Shorten(BUDGET));
        }
        assert_eq!(policy.wake_at(&seen(10, 0, Duration::ZERO), now), policy.restart_frames());
    }

    #[test]
    fn what_is_blocked_waits_longer_each_time_and_nothing_else_is_done_meanwhile() {
        let mut policy = Policy::new(LIMIT);
        let now = Instant::now();
        policy.was_blocked(now);
        let long = seen(9_000, 0, Duration::ZERO);
        assert_eq!(policy.next(&long, now), Step::Rest(RETRY));
        assert_eq!(policy.wake_at(&long, now), u32::MAX);
        assert_eq!(policy.next(&long, now + RETRY), Step::Shorten(BUDGET * 2));
        policy.was_blocked(now);
        assert_eq!(policy.next(&long, now), Step::Rest(RETRY * 2));
        policy.was_restarted(Duration::from_millis(5), now);
        assert_eq!(policy.next(&seen(1, 0, Duration::ZERO), now), Step::Rest(IDLE));
    }
}
