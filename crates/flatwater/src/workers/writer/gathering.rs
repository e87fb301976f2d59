//! Whether a group waits for more writes before it is committed.
//!
//! Owns: the decision, from what was seen so far. At `full` durability a commit waits for the disk, and writes that come
//! while it does need another one. Callers that write at the same time, or one that does not await each write, submit the
//! next within microseconds. So a group takes in what has come while it ran; and where others write too, it waits for a
//! moment, a fraction of the time that a commit takes. A caller that awaits one write after the other meets none of this:
//! its writes are alone. Guarded by the writer slot. Pure, except for `look`, which runs on the thread that holds the slot.
//! Leaves out: which writes may join (`choice`).

use std::time::{Duration, Instant};

use flatwater_base::thread::cores;

/// A group waits for at most this fraction of a commit.
const FRACTION: u32 = 4;
/// Who submits writes one after the other is faster than this.
const LONGEST: Duration = Duration::from_micros(50);

#[derive(Debug)]
pub(crate) struct Gathering {
    /// A commit waits for the disk.
    is_dear: bool,
    /// Running average of the time of a commit; zero before the first.
    commit: Duration,
    /// The last commit was of several writes, or more came while it was made.
    in_company: bool,
}

impl Gathering {
    pub(crate) fn new(is_dear: bool) -> Self {
        Self { is_dear, commit: Duration::ZERO, in_company: false }
    }

    /// Returns true if groups take in what comes while they run.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_dear
    }

    /// Returns true if a write that is there alone is likely to be followed by others.
    pub(crate) fn expects_others(&self) -> bool {
        self.is_dear && self.in_company
    }

    /// How long a group of so many writes waits for another one.
    pub(crate) fn time(&self, members: usize) -> Duration {
        if self.is_dear && (members > 1 || self.in_company) {
            (self.commit / FRACTION).min(LONGEST)
        } else {
            Duration::ZERO
        }
    }

    /// Records the commit of so many writes. `more` have come by its end.
    pub(crate) fn committed(&mut self, members: usize, time: Duration, more: usize) {
        self.commit = if self.commit.is_zero() { time } else { (self.commit * 7 + time) / 8 };
        self.in_company = members > 1 || more > 0;
    }

    /// Records the commit of a write by itself.
    pub(crate) fn committed_alone(&mut self, more: usize) {
        self.in_company = more > 0;
    }

    /// Polls until `found` returns true, for at most this time. Returns whether it did. It does not yield the processor: on a
    /// busy machine this thread would get it back after milliseconds, and the group has the lock of the file. On a machine
    /// with one processor nobody else submits meanwhile.
    pub(crate) fn look(time: Duration, found: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while cores() != Some(1) && began.elapsed() < time {
            if found() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_micros(100);

    #[test]
    fn who_writes_alone_waits_for_nobody() {
        let mut gathering = Gathering::new(true);
        for _ in 0..10 {
            assert_eq!((gathering.expects_others(), gathering.time(1)), (false, Duration::ZERO));
            gathering.committed_alone(0);
        }
    }

    #[test]
    fn a_group_waits_for_a_fraction_of_its_commit_and_never_long() {
        let mut gathering = Gathering::new(true);
        assert_eq!(gathering.time(2), Duration::ZERO, "no commit was timed");
        gathering.committed(2, COMMIT, 0);
        assert_eq!((gathering.time(2), gathering.time(1)), (COMMIT / 4, COMMIT / 4));
        (0..100).for_each(|_| gathering.committed(2, COMMIT * 1_000, 0));
        assert_eq!(gathering.time(2), LONGEST);
    }

    #[test]
    fn one_write_is_expected_to_be_followed_by_others_until_it_was_alone() {
        let mut gathering = Gathering::new(true);
        gathering.committed_alone(1);
        assert!(gathering.expects_others());
        gathering.committed(1, COMMIT, 0);
        assert!(!gathering.expects_others());
        gathering.committed(2, COMMIT, 0);
        assert!(gathering.expects_others());
    }

    #[test]
    fn where_commits_are_cheap_nothing_is_waited_for() {
        let mut gathering = Gathering::new(false);
        gathering.committed(100, COMMIT, 100);
        assert!(!gathering.goes_on() && !gathering.expects_others());
        assert_eq!(gathering.time(100), Duration::ZERO);
    }

    #[test]
    fn it_looks_until_it_finds_something_or_the_time_is_over() {
        assert_eq!(Gathering::look(Duration::from_secs(3600), || true), cores() != Some(1));
        assert!(!Gathering::look(Duration::ZERO, || true));
        assert!(!Gathering::look(COMMIT, || false));
    }
}
