//! When a connection keeps its read transaction open from one use to the next, and when that ends. Pure: the state of
//! the WAL and the time are inputs.
//!
//! Owns: the lease of one connection. Invariant: a lease records the state of the WAL from before its snapshot was
//! taken, or the state that its own commit made, and is used only while that state is still the published one; so no
//! other connection committed in between, and the snapshot is the newest. Leaves out: the transaction itself.
//!
//! ```text
//!            the state of the last use, a moment ago            leave, within all limits
//!   NONE ---> SEEN -------------------------------------> HELD ------------------------> HELD ...
//!              ^                                             |
//!              +------- changed, idle, old, release, other -----+
//! ```

use std::time::{Duration, Instant};

use crate::options::{Checkpoint, Options};

/// A lease ends after this long without a use.
const IDLE: Duration = Duration::from_millis(5);

/// Why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A connection committed, or the WAL was restarted.
    Changed,
    Idle,
    Old,
    /// The checkpointer asked for it.
    Checkpoint,
    /// A failure, a closure, or the end of the connection.
    Other,
}

/// The transaction in which a statement runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseRun {
    /// In its own transaction.
    Alone,
    /// In a new transaction that stays open.
    Begin,
    /// In the transaction that is already open.
    Continue,
}

/// The lease of one connection; `S` is the state of the WAL. A lease ends at some age, however often it is used, because a
/// checkpoint may wait for the snapshot to end. Uses that are too far apart take no lease.
#[derive(Debug)]
pub(crate) enum Lease<S> {
    None,
    /// The last use began at this state of the WAL, or made it, at this time.
    Seen(S, Instant),
    Held {
        /// The state published before the snapshot was taken, or the state that the lease's own commit made.
        state: S,
        used: Instant,
        /// `idle`: when the lease ends unless it is used before. `old`: when it ends in any case.
        idle: Instant,
        old: Instant,
    },
}

impl<S: Copy + PartialEq> Lease<S> {
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// Begins a use. `live` returns the state that is published now, `None` where no lease is possible, and `is_live`
    /// whether the given state is still the published one; `release` says that leases must end; `age` is at which a new
    /// lease ends. Returns why a held lease ended, and how the statement runs.
    pub(crate) fn enter(
        &mut self,
        age: Duration,
        is_live: impl FnOnce(&S) -> bool,
        live: impl FnOnce() -> Option<S>,
        release: bool,
        now: Instant,
    ) -> (Option<Ended>, LeaseRun) {
        let ended = match self {
            Self::Held { state, used, .. } if is_live(state) => {
                let used = *used;
                let Some(ended) = self.due(release, now) else { return (None, LeaseRun::Continue) };
                self.end(used);
                Some(ended)
            }
            Self::Held { .. } => {
                *self = Self::None;
                Some(Ended::Changed)
            }
            _ => None,
        };
        let Some(live) = live() else {
            *self = Self::None;
            return (ended, LeaseRun::Alone);
        };
        let again = matches!(self, Self::Seen(state, at) if *state == live && now.duration_since(*at) < age.min(IDLE));
        if again && !release {
            *self = Self::Held { state: live, used: now, idle: now + IDLE, old: now + age };
            return (ended, LeaseRun::Begin);
        }
        *self = Self::Seen(live, now);
        (ended, LeaseRun::Alone)
    }

    /// Records that the last use committed, which made this state.
    pub(crate) fn wrote(&mut self, now: S) {
        if let Self::Seen(state, _) | Self::Held { state, .. } = self {
            *state = now;
        }
    }

    /// Ends a use, successful or not. Returns why the lease ends with it, if it does.
    pub(crate) fn leave(&mut self, well: bool, release: bool, now: Instant) -> Option<Ended> {
        if !self.is_held() {
            return None;
        }
        if !well {
            *self = Self::None;
            return Some(Ended::Other);
        }
        if let Self::Held { used, idle, .. } = self {
            (*used, *idle) = (now, now + IDLE);
        }
        self.due(release, now).inspect(|_| self.end(now))
    }

    /// Checks a lease that is not in use. Returns why the lease ends, if it does.
    pub(crate) fn rest(&mut self, release: bool, now: Instant) -> Option<Ended> {
        self.due(release, now).inspect(|_| *self = Self::None)
    }

    /// Why a held lease must end now.
    fn due(&self, release: bool, now: Instant) -> Option<Ended> {
        let Self::Held { idle, old, .. } = self else { return None };
        if release {
            Some(Ended::Checkpoint)
        } else if now >= *idle {
            Some(Ended::Idle)
        } else if now >= *old {
            Some(Ended::Old)
        } else {
            None
        }
    }

    /// When a lease that is not in use must end; with a release, a time in the past.
    pub(crate) fn until(&self, release: bool) -> Option<Instant> {
        let Self::Held { used, idle, old, .. } = self else { return None };
        Some(if release { *used } else { *idle.min(old) })
    }

    /// Ends the lease for another reason. Returns true if there was a lease.
    pub(crate) fn drop_it(&mut self) -> bool {
        matches!(std::mem::replace(self, Self::None), Self::Held { .. })
    }

    /// Ends the snapshot; the next use at the same state may take a new one.
    fn end(&mut self, used: Instant) {
        if let Self::Held { state, .. } = self {
            *self = Self::Seen(*state, used);
        }
    }
}

/// Returns true if leases are possible. They are not if another process or the user checkpoints, because that
/// checkpoint would wait for them; nor with attached files, whose commits do not change the header of the main file; nor
/// on a network file system, because the timer's thread ends leases, and may wait for no server.
pub(crate) fn are_possible(options: &Options, journal: &str) -> bool {
    options.leases
        && journal == "wal"
        && !options.assume_immutable
        && options.attach.is_empty()
        && !options.allow_network_filesystem
        && matches!(options.checkpoint, Checkpoint::Managed(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use LeaseRun::{Alone, Begin, Continue};

    #[test]
    fn the_timers_thread_ends_no_lease_on_a_network_file_system() {
        let options = Options::new("a.db");
        assert!(are_possible(&options, "wal"));
        assert!(!are_possible(&options.tuning(|t| t.allow_network_filesystem(true)), "wal"));
    }

    /// A read from `at` to `to` ms, at a state, with or without a release at its beginning and end, and the expected
    /// results.
    type Read = (u64, u64, Option<u32>, [bool; 2], (Option<Ended>, LeaseRun), Option<Ended>);

    const CALM: [bool; 2] = [false, false];
    const AGE: Duration = Duration::from_millis(50);
    type Lease = super::Lease<u32>;

    fn check(name: &str, reads: &[Read]) {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let mut lease = Lease::None;
        for (number, (from, to, live, release, enters, leaves)) in reads.iter().enumerate() {
            let entered = lease.enter(AGE, |state| *live == Some(*state), || *live, release[0], at(*from));
            assert_eq!(entered, *enters, "{name}: enter {number}");
            let left = lease.leave(true, release[1], at(*to));
            assert_eq!(left, *leaves, "{name}: leave {number}");
        }
    }

    #[test]
    fn a_lease_is_taken_at_the_second_read_with_no_commit_between_and_ends_with_the_next_commit() {
        check(
            "reads only",
            &[
                (0, 0, Some(1), CALM, (None, Alone), None),
                (1, 1, Some(1), CALM, (None, Begin), None),
                (2, 2, Some(1), CALM, (None, Continue), None),
                (3, 3, Some(2), CALM, (Some(Ended::Changed), Alone), None),
                (4, 4, Some(2), CALM, (None, Begin), None),
                (5, 5, Some(1), CALM, (Some(Ended::Changed), Alone), None),
            ],
        );
        check(
            "a commit before each read",
            &[(0, 0, Some(1), CALM, (None, Alone), None), (1, 1, Some(2), CALM, (None, Alone), None)],
        );
    }

    #[test]
    fn without_a_header_there_is_no_lease() {
        check("never one", &[(0, 0, None, CALM, (None, Alone), None), (1, 1, None, CALM, (None, Alone), None)]);
        check(
            "none for a moment",
            &[
                (0, 0, Some(1), CALM, (None, Alone), None),
                (0, 0, Some(1), CALM, (None, Begin), None),
                (0, 0, None, CALM, (Some(Ended::Changed), Alone), None),
                (0, 0, Some(1), CALM, (None, Alone), None),
            ],
        );
    }

    #[test]
    fn a_lease_is_renewed_at_its_age_however_often_it_is_read() {
        let mut reads = vec![(0, 0, Some(1), CALM, (None, Alone), None), (1, 1, Some(1), CALM, (None, Begin), None)];
        reads.extend((2..51).map(|ms| (ms, ms, Some(1), CALM, (None, Continue), None)));
        reads.push((51, 51, Some(1), CALM, (Some(Ended::Old), Begin), None));
        reads.push((52, 52, Some(1), CALM, (None, Continue), None));
        reads.push((53, 102, Some(1), CALM, (None, Continue), Some(Ended::Old)));
        check("old", &reads);
    }

    #[test]
    fn a_release_request_ends_a_lease_and_keeps_others_from_being_taken() {
        check(
            "release",
            &[
                (0, 0, Some(1), CALM, (None, Alone), None),
                (0, 0, Some(1), CALM, (None, Begin), None),
                (0, 0, Some(1), [false, true], (None, Continue), Some(Ended::Checkpoint)),
                (0, 0, Some(1), [true, true], (None, Alone), None),
                (0, 0, Some(1), CALM, (None, Begin), None),
                (0, 0, Some(1), [true, true], (Some(Ended::Checkpoint), Alone), None),
                (0, 0, Some(2), [true, false], (None, Alone), None),
            ],
        );
    }

    #[test]
    fn reads_that_are_far_apart_take_none_and_a_read_that_is_long_keeps_its_own() {
        check(
            "apart",
            &[
                (0, 0, Some(1), CALM, (None, Alone), None),
                (5, 5, Some(1), CALM, (None, Alone), None),
                (9, 30, Some(1), CALM, (None, Begin), None),
                (34, 34, Some(1), CALM, (None, Continue), None),
                (39, 39, Some(1), CALM, (Some(Ended::Idle), Alone), None),
            ],
        );
    }

    #[test]
    fn a_lease_at_rest_is_due_when_it_is_idle_old_or_unwelcome() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let held = |since, used| Lease::Held { state: 1, used: at(used), idle: at(used) + IDLE, old: at(since) + AGE };
        assert_eq!(held(0, 0).rest(false, at(4)), None);
        assert_eq!(held(0, 0).rest(false, at(5)), Some(Ended::Idle));
        assert_eq!(held(0, 49).rest(false, at(50)), Some(Ended::Old));
        assert_eq!(held(0, 0).rest(false, at(90)), Some(Ended::Idle), "the alarm was late");
        assert_eq!(held(0, 0).rest(true, at(0)), Some(Ended::Checkpoint));
        assert_eq!(Lease::Seen(1, zero).rest(true, at(90)), None);
        assert_eq!((held(0, 3).until(false), held(0, 48).until(false)), (Some(at(8)), Some(at(50))));
        assert_eq!((held(0, 3).until(true), Lease::Seen(1, zero).until(true)), (Some(at(3)), None));
        let mut ended = held(0, 0);
        assert!(ended.rest(false, at(5)).is_some() && !ended.is_held());
    }

    #[test]
    fn commits_of_its_own_keep_a_lease_and_those_of_others_end_it() {
        let now = Instant::now();
        let mut lease = Lease::None;
        let mut write = |live: u32, made: u32| {
            let (ended, run) = lease.enter(AGE, |state| *state == live, || Some(live), false, now);
            lease.wrote(made);
            assert_eq!(lease.leave(true, false, now), None);
            (ended, run)
        };
        assert_eq!(write(1, 2), (None, Alone));
        assert_eq!(write(2, 3), (None, Begin), "nobody else wrote since");
        assert_eq!(write(3, 4), (None, Continue));
        assert_eq!(write(4, 4), (None, Continue), "it changed nothing");
        assert_eq!(write(5, 6), (Some(Ended::Changed), Alone), "somebody else wrote");
        assert_eq!(write(7, 8), (None, Alone), "and again");
        assert_eq!(write(8, 9), (None, Begin));
    }

    #[test]
    fn uses_that_are_further_apart_than_the_age_of_a_lease_take_none() {
        let zero = Instant::now();
        let (mut lease, age) = (Lease::None, Duration::from_millis(1));
        let mut at = |us| {
            let now = zero + Duration::from_micros(us);
            let entered = lease.enter(age, |_| true, || Some(1), false, now);
            assert_eq!(lease.leave(true, false, now), None);
            entered
        };
        assert_eq!((at(0), at(1_000), at(2_000)), ((None, Alone), (None, Alone), (None, Alone)));
        assert_eq!((at(2_600), at(3_200)), ((None, Begin), (None, Continue)));
        assert_eq!(at(3_800), (Some(Ended::Old), Begin), "used 600 us ago");
        assert_eq!(at(5_500), (Some(Ended::Old), Alone));
    }

    #[test]
    fn a_failed_read_ends_its_lease() {
        let now = Instant::now();
        let mut lease = Lease::Held { state: 1, used: now, idle: now + IDLE, old: now + AGE };
        assert_eq!(lease.leave(false, false, now), Some(Ended::Other));
        assert_eq!(lease.enter(AGE, |state| *state == 1, || Some(1), false, now), (None, Alone));
        assert_eq!(lease.leave(false, false, now), None);
    }
}
