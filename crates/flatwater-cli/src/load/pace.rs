//! How long a transaction of an import inserts.
//!
//! Owns: the bound of the time for which others cannot write, and keeping to it. Pure. Invariant: in WAL mode the time aimed at includes the
//! commit, which takes the longer the more was inserted. Leaves out: inserting.

use std::time::Duration;

/// A service that writes beside an import has 99 % of its writes done within this.
const WRITE_P99: Duration = Duration::from_millis(5);
/// Its write waits for one transaction of the import, and then for two threads to be woken, to each of which a busy machine may give its
/// processor a time slice late. So a transaction has a quarter.
const HELD: Duration = WRITE_P99.checked_div(4).expect("a quarter of it");
/// In other journal modes each transaction is synced to the disk more than once, and nobody reads meanwhile.
const LONG: Duration = Duration::from_secs(1);

pub(super) struct Pace {
    /// For how long the lock may be held; `None` in journal modes other than WAL.
    held: Option<Duration>,
    /// For how long the next transaction inserts.
    time: Duration,
}

impl Pace {
    pub(super) fn new(is_wal: bool) -> Self {
        // The first commit may be a slow one.
        if is_wal { Self { held: Some(HELD), time: HELD / 2 } } else { Self { held: None, time: LONG } }
    }

    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// Notes that a transaction has inserted for so long, and held the lock for so long in all. The next ones insert for the share of the
    /// bound that this one did, by a step towards it: the time in all has that of a wake in it, which is now and then a long one.
    pub(super) fn took(&mut self, inserting: Duration, all: Duration) {
        let Some(held) = self.held else { return };
        let share = inserting.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        self.time = (self.time * 7 + held.mul_f64(share.clamp(0.1, 1.0))) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_transaction_with_its_commit_is_as_long_as_it_may_be() {
        let mut pace = Pace::new(true);
        for _ in 0..100 {
            let inserting = pace.time();
            // A commit takes a quarter of the time again.
            pace.took(inserting, inserting.mul_f64(1.25));
            assert!(pace.time().mul_f64(1.25) <= HELD + MS / 1000, "{:?}", pace.time());
        }
        assert!(pace.time().mul_f64(1.25) > HELD.mul_f64(0.95), "{:?}", pace.time());
    }

    #[test]
    fn one_slow_commit_says_little_and_many_make_transactions_shorter() {
        let mut pace = Pace::new(true);
        let before = pace.time();
        pace.took(MS, 4 * MS);
        assert!(pace.time() < before && pace.time() > before.mul_f64(0.8), "{:?}", pace.time());
        (0..100).for_each(|_| pace.took(MS, 4 * MS));
        assert!(pace.time() < HELD.mul_f64(0.26), "{:?}", pace.time());
        (0..100).for_each(|_| pace.took(Duration::ZERO, Duration::ZERO));
        assert!(pace.time() >= HELD / 10);
    }

    #[test]
    fn in_another_journal_mode_transactions_are_long() {
        let mut pace = Pace::new(false);
        pace.took(MS, 4 * MS);
        assert_eq!(pace.time(), LONG);
    }
}
