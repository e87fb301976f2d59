//! The budget of a thread: for how long results that were there at once have held it, so that the event loop gets its turn.
//!
//! Owns: the end of each thread's share. An inline run counts, and so does the time between two results if it is short: the thread
//! did not return to its event loop in between, or only for a moment. Of a longer time between them counts what the thread worked:
//! a task that computes between its calls holds the event loop as well. Runs on the thread that polls. Invariant: once the
//! share is used up, each result suspends its task once, until a task goes on that has suspended. So a task that polls several
//! futures suspends when all of them have. Leaves out: waking, what runs, and what suspends (`pause`, and the calls).

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use flatwater_sqlite::thread_cpu_time;

/// For so long results hold a thread that does not suspend.
const SHARE: Duration = Duration::from_millis(1);
/// A longer gap between two results is no work of theirs: the event loop may have waited for something else meanwhile.
const GAP: Duration = Duration::from_micros(100);

/// The results since the thread had its last share.
#[derive(Clone, Copy)]
struct HeldThread {
    /// When the last one ended.
    end: Instant,
    /// When the share is used up. A long gap moves it.
    full: Instant,
    /// The CPU time of the thread after its first long gap.
    worked_before: Option<Duration>,
    /// The thread has worked for a whole share since then.
    has_worked: bool,
}

impl HeldThread {
    /// The first result.
    fn new(began: Instant, time: Duration) -> Self {
        Self { end: began + time, full: began + SHARE, worked_before: None, has_worked: false }
    }

    /// Adds a result. The clock of the thread's CPU time is read only after a long gap, because that is a system call.
    fn add(&mut self, began: Instant, time: Duration, cpu_time: impl Fn() -> Option<Duration>) {
        if began > self.end + GAP {
            let now = cpu_time();
            let worked = self.worked_before.zip(now).map(|(before, now)| now.saturating_sub(before));
            self.full += began.saturating_duration_since(self.end);
            self.worked_before = self.worked_before.or(now);
            self.has_worked = worked.is_some_and(|worked| worked >= SHARE);
        }
        self.end = began + time;
    }
}

thread_local! {
    static HELD: RefCell<Option<HeldThread>> = const { RefCell::new(None) };
    static HOST_TELLS: Cell<bool> = const { Cell::new(false) };
}

/// Adds an inline run that began at `began` and held this thread for `time`.
pub(crate) fn spend(began: Instant, time: Duration) {
    HELD.with_borrow_mut(|held| match held {
        Some(held) => held.add(began, time, thread_cpu_time),
        None => *held = Some(HeldThread::new(began, time)),
    });
}

/// Adds a result that was there at `now`, without an inline run.
pub(crate) fn count(now: Instant) {
    spend(now, Duration::ZERO);
}

/// Returns true if this thread has used up its share, so that other tasks must get their turn.
pub(crate) fn is_spent() -> bool {
    HELD.with_borrow(|held| held.as_ref().is_some_and(|held| held.end >= held.full || held.has_worked))
}

/// Returns true if the inline work alone uses up the share after `more` of it.
pub(crate) fn is_spent_with(more: Duration) -> bool {
    HELD.with_borrow(|held| held.as_ref().map_or(more >= SHARE, |held| held.end + more >= held.full))
}

/// Gives this thread another share: a task goes on that had suspended for the others, or gave up what had suspended it, or nothing
/// else runs here. Does nothing
/// where the host says itself when its event loop had its turn.
pub(crate) fn renew() {
    if !HOST_TELLS.get() {
        HELD.set(None);
    }
}

/// A task of this thread that suspends does not return to the event loop: other tasks go on before that. From now on only
/// [`had_turn`] gives this thread another share.
pub(crate) fn host_tells() {
    HOST_TELLS.set(true);
}

/// The event loop of this thread had its turn.
pub(crate) fn had_turn() {
    HELD.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_share_and_gets_another_when_it_is_renewed() {
        let now = Instant::now();
        assert!(!is_spent());
        spend(now, SHARE / 2);
        assert!(!is_spent());
        assert!(is_spent_with(SHARE / 2));
        spend(now + SHARE / 2, SHARE / 2);
        assert!(is_spent());
        renew();
        assert!(!is_spent());
        std::thread::spawn(|| assert!(!is_spent(), "each thread has its own")).join().unwrap();
    }

    #[test]
    fn where_the_host_tells_of_its_turns_a_task_that_goes_on_renews_nothing() {
        let thread = || {
            host_tells();
            spend(Instant::now(), SHARE);
            renew();
            assert!(is_spent());
            had_turn();
            assert!(!is_spent());
        };
        std::thread::spawn(thread).join().unwrap();
    }

    #[test]
    fn what_lies_between_two_runs_counts_unless_it_is_long() {
        let mut now = Instant::now();
        renew();
        for _ in 0..10 {
            assert!(!is_spent());
            spend(now, GAP / 10);
            now += GAP + GAP / 10;
        }
        assert!(is_spent(), "ten runs of 10 us and nine gaps of 100 us");
        renew();
        for _ in 0..90 {
            spend(now, GAP / 10);
            now += GAP * 2;
        }
        assert!(
            HELD.with_borrow(|held| held.is_some_and(|held| held.end < held.full)),
            "90 runs of 10 us, with long gaps"
        );
        renew();
    }

    #[test]
    fn what_the_thread_worked_in_long_gaps_counts_and_what_it_slept_does_not() {
        let runs = |count: u32, work: Duration| {
            let began = Instant::now();
            let mut held = HeldThread::new(began, GAP / 10);
            (1..count).for_each(|n| held.add(began + 20 * GAP * n, GAP / 10, || Some(work * n)));
            held
        };
        assert!(!runs(11, SHARE / 10).has_worked, "nine tenths of a share since the first gap");
        assert!(runs(12, SHARE / 10).has_worked);
        let sleeps = runs(90, SHARE / 1_000);
        assert!(!sleeps.has_worked && sleeps.end < sleeps.full);
        let began = Instant::now();
        let mut without_a_clock = HeldThread::new(began, GAP / 10);
        (1..90).for_each(|n| without_a_clock.add(began + 2 * GAP * n, GAP / 10, || None));
        assert!(!without_a_clock.has_worked && without_a_clock.end < without_a_clock.full);
    }
}
