//! The budget of a thread: for how long results that were there at once have held it, so that the event loop gets its
//! turn; and the pause of a task that may be ready each time it is polled, so that others get theirs.
//!
//! Owns: the end of each thread's share, and of the turn of others after it. An inline run counts, and so does the time
//! between two results if it is short: the thread did not return to its event loop in between, or only for a moment. Of
//! a longer time between them counts what the thread worked: a task that computes between its calls holds the event
//! loop as well. Runs on the thread that polls. Invariants: once the share is used up, each result suspends its task;
//! the thread gets another share when the others had their turn, and the event loop itself too (`EventLoop`). So a task
//! that polls several futures suspends when all of them have. What has suspended first goes on first, whatever happened
//! meanwhile. A task suspends before it takes something, so a poll that is given up loses nothing. Leaves out: what runs.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use flatwater_sqlite::thread_cpu_time;

/// For so long results hold a thread that does not suspend.
const SHARE: Duration = Duration::from_millis(1);
/// A longer gap between two results is no work of theirs: the event loop may have waited for something else meanwhile.
const GAP: Duration = Duration::from_micros(100);
/// The turn of the others takes so many polls of what has suspended, or more until the first one of them is polled again.
///
/// A runtime may poll tasks that are ready many times before it looks at its timers and sockets, and at tasks that other threads
/// have woken: Tokio does so after [61 polls](https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html#method.event_interval).
/// A task that suspends once for each share would let it do that every 61 ms. With 16 polls it is every 4 ms.
const TURN: u32 = 16;
/// The tasks that have suspended go on in about this time, each with its share, where their number is that of all tasks that wait.
const ROUND: Duration = Duration::from_millis(10);
/// No share is shorter: a turn costs about a tenth of it.
const SHORTEST: Duration = Duration::from_micros(100);

/// What is known of the event loop of a thread: when it has its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventLoop {
    /// After an unknown number of polls.
    Unknown,
    /// Between two polls of what has suspended, and so have all tasks that are ready.
    BetweenPolls,
    /// Its host tells when.
    HostTells,
}

/// Something that has suspended so that others get their turn. It may go on, and be dropped, on any thread.
#[derive(Debug)]
pub struct Suspended {
    since: Instant,
    /// The number of its thread's poll at which it was polled last.
    polled: u64,
    /// How many have suspended on the thread of this one. `None`: that thread ends.
    on_thread: Option<Arc<AtomicU32>>,
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if let Some(number) = &self.on_thread {
            number.fetch_sub(1, Ordering::Relaxed);
            SUSPENDED_ANYWHERE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

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
    /// How many polls of what has suspended there were since the share was used up.
    polls: u32,
    /// Of what was polled since then: when the first one suspended, and its last poll.
    first: Option<(Instant, u64)>,
}

impl HeldThread {
    /// The first result.
    fn new(began: Instant, time: Duration, share: Duration) -> Self {
        Self { end: began + time, full: began + share, worked_before: None, has_worked: false, polls: 0, first: None }
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

    fn is_spent(&self) -> bool {
        self.end >= self.full || self.has_worked
    }

    /// Counts a poll of something that has suspended. Returns true if the turn of the others is over, also because there was no
    /// result for a whole share, and nothing else comes before it.
    ///
    /// ```text
    /// two tasks that take turns, if whoever is polled when the turn is over went on
    /// polls of the turn    1  2  3 ... 15  16   1  2 ... 15  16
    /// the task that is     B  A  B ...  B   A   B  A ...  B   A
    /// polled                                goes on           goes on, and B never does
    /// ```
    fn ends_turn(&mut self, suspended: &mut Suspended, now: Instant) -> bool {
        self.polls += 1;
        let poll = POLLS.get() + 1;
        POLLS.set(poll);
        // What is polled twice while the first one is not has no first one before it: that is polled elsewhere, or by nobody.
        let is_first = self.first.is_none_or(|(since, polled)| suspended.since <= since || suspended.polled > polled);
        if is_first {
            self.first = Some((suspended.since, poll));
        }
        suspended.polled = poll;
        is_first && (self.polls >= TURN || now > self.end + SHARE)
    }
}

/// How many have suspended on all threads that count them.
static SUSPENDED_ANYWHERE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static HELD: RefCell<Option<HeldThread>> = const { RefCell::new(None) };
    static EVENT_LOOP: Cell<EventLoop> = const { Cell::new(EventLoop::Unknown) };
    /// The number of polls of what has suspended.
    static POLLS: Cell<u64> = const { Cell::new(0) };
    /// How many have suspended here.
    static SUSPENDED: Arc<AtomicU32> = Arc::default();
    /// How long results have held this thread without a longer gap, whatever its share is: when the last one ended, and when they
    /// have held it for a whole share.
    static BUSY: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

/// Adds an inline run that began at `began` and held this thread for `time`.
pub fn spend(began: Instant, time: Duration) {
    let (full, is_busy) = busy_after(began, time);
    let end = began + time;
    BUSY.set(Some((end, if is_busy { end + SHARE } else { full })));
    HELD.with_borrow_mut(|held| match held {
        Some(held) => held.add(began, time, thread_cpu_time),
        None => *held = Some(HeldThread::new(began, time, share())),
    });
}

/// The share that begins now.
fn share() -> Duration {
    // While a thread ends there may be no number any more.
    let here = SUSPENDED.try_with(|number| number.load(Ordering::Relaxed)).unwrap_or(0);
    share_beside(EVENT_LOOP.get(), here, SUSPENDED_ANYWHERE.load(Ordering::Relaxed))
}

/// The share of a thread with `here` of the tasks that have suspended `anywhere`.
///
/// If all are here, nobody else runs them: the thread is the only one of its runtime, or the only one that has anything to do.
/// Threads that take each other's tasks keep the whole share, because a task of theirs does not wait for all shares of its thread.
fn share_beside(event_loop: EventLoop, here: u32, anywhere: u32) -> Duration {
    match event_loop {
        EventLoop::BetweenPolls => {}
        EventLoop::Unknown if here == anywhere => {}
        EventLoop::Unknown | EventLoop::HostTells => return SHARE,
    }
    (ROUND / here.saturating_add(1)).clamp(SHORTEST, SHARE)
}

/// Adds a result that was there at `now`, without an inline run.
pub fn count(now: Instant) {
    spend(now, Duration::ZERO);
}

/// Returns true if this thread has used up its share, so that other tasks must get their turn.
pub fn is_spent() -> bool {
    HELD.with_borrow(|held| held.as_ref().is_some_and(HeldThread::is_spent))
}

/// Returns true if results have kept this thread busy for a whole share with one that began at `began` and took `time`. Of the
/// results in that time it is true of the last one only, and the next ones begin to count anew.
pub fn is_busy_with(began: Instant, time: Duration) -> bool {
    busy_after(began, time).1
}

/// When results will have kept this thread busy for a whole share, and whether they have with this one.
fn busy_after(began: Instant, time: Duration) -> (Instant, bool) {
    let full = match BUSY.get() {
        Some((end, full)) if began <= end + GAP => full,
        _ => began + SHARE,
    };
    (full, began + time >= full)
}

/// Something suspends, so that others get their turn.
pub fn suspend() -> Suspended {
    let on_thread = SUSPENDED.try_with(Arc::clone).ok();
    if let Some(number) = &on_thread {
        number.fetch_add(1, Ordering::Relaxed);
        SUSPENDED_ANYWHERE.fetch_add(1, Ordering::Relaxed);
    }
    Suspended { since: Instant::now(), polled: 0, on_thread }
}

/// Something that has suspended is polled at `now`. Returns true if it goes on: the thread has time left, or the others had their
/// turn and it gets another share.
pub fn goes_on(suspended: &mut Suspended, now: Instant) -> bool {
    if EVENT_LOOP.get() != EventLoop::Unknown {
        renew();
        return true;
    }
    HELD.with_borrow_mut(|held| match held {
        Some(spent) if spent.is_spent() => {
            let is_over = spent.ends_turn(suspended, now);
            if is_over {
                *held = None;
            }
            is_over
        }
        _ => true,
    })
}

/// Gives this thread another share: a task gave up what had suspended it, or nothing else runs here. Does nothing where the host
/// says itself when its event loop had its turn.
pub fn renew() {
    if EVENT_LOOP.get() != EventLoop::HostTells {
        HELD.set(None);
    }
}

/// A task of this thread that suspends does not return to the event loop: other tasks go on before that. From now on only
/// [`had_turn`] gives this thread another share.
pub fn host_tells() {
    EVENT_LOOP.set(EventLoop::HostTells);
}

/// The event loop of this thread has its turn between two polls of the same task, and so have all tasks that are ready.
pub fn turns_between_polls() {
    EVENT_LOOP.set(EventLoop::BetweenPolls);
}

/// The event loop of this thread had its turn.
pub fn had_turn() {
    HELD.set(None);
}

/// Suspends a task, so that others have their turn.
#[derive(Debug, Default)]
pub struct Pause {
    suspended: Option<Suspended>,
}

impl Pause {
    /// Returns true if other tasks are to have their turn first.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.suspended.is_some() {
            return !self.is_over(now);
        }
        count(now);
        self.suspended = is_spent().then(suspend);
        self.suspended.is_some()
    }

    /// Returns true if nothing is suspended, or the others had their turn.
    pub fn is_over(&mut self, now: Instant) -> bool {
        self.suspended.take_if(|suspended| goes_on(suspended, now));
        self.suspended.is_none()
    }

    /// Suspends the task in any case.
    pub fn give(&mut self, context: &Context<'_>) {
        self.suspended = Some(suspend());
        wake(context);
    }

    /// Suspends the task if other tasks are to have their turn first.
    pub fn poll(&mut self, now: Instant, context: &Context<'_>) -> Poll<()> {
        if !self.is_due(now) {
            return Poll::Ready(());
        }
        wake(context);
        Poll::Pending
    }
}

/// Has the task polled again after the others. A waker is code of a foreign runtime: its panic is not passed on to who polls.
pub fn wake(context: &Context<'_>) {
    let _ = catch_unwind(AssertUnwindSafe(|| context.waker().wake_by_ref()));
}

/// Who was suspended and is given up goes on elsewhere.
impl Drop for Pause {
    fn drop(&mut self) {
        if self.suspended.is_some() {
            renew();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Runs a test on a thread of its own.
    fn on_a_thread<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(test).join().unwrap()
    }

    /// How many polls of what has suspended the turn of the others takes.
    fn turn(suspended: &mut Suspended, now: Instant) -> u32 {
        1 + (0..1_000).take_while(|_| !goes_on(suspended, now)).count() as u32
    }

    #[test]
    fn a_thread_has_its_share_and_gets_another_when_it_is_renewed() {
        let now = Instant::now();
        assert!(!is_spent());
        spend(now, SHARE / 2);
        assert!(!is_spent());
        spend(now + SHARE / 2, SHARE / 2);
        assert!(is_spent());
        renew();
        assert!(!is_spent());
        on_a_thread(|| assert!(!is_spent(), "each thread has its own"));
    }

    #[test]
    fn what_has_suspended_goes_on_after_many_polls_or_a_share_of_time() {
        on_a_thread(|| {
            let now = Instant::now();
            for _ in 0..3 {
                spend(now, SHARE);
                assert_eq!(turn(&mut suspend(), now + SHARE), TURN);
                assert!(!is_spent(), "another share");
            }
            spend(now, SHARE);
            let mut one = suspend();
            assert!(!goes_on(&mut one, now + SHARE * 2) && goes_on(&mut one, now + SHARE * 2 + GAP));
            assert!(goes_on(&mut one, now), "it has suspended on another thread");
            spend(now, SHARE / 2);
            assert!(goes_on(&mut one, now), "and this one has time left");
            spend(now + SHARE / 2, SHARE / 2);
            assert!(is_spent());
        });
    }

    #[test]
    fn however_many_take_turns_what_has_suspended_first_goes_on_first() {
        on_a_thread(|| {
            let mut now = Instant::now();
            for number in [1, 2, 3, 8, 16, 17, 32, 100] {
                renew();
                spend(now, SHARE);
                let mut waiting: std::collections::VecDeque<_> = (0..number).map(|task| (task, suspend())).collect();
                let mut went_on = Vec::new();
                let mut polls = 0;
                while went_on.len() < 3 * number {
                    let (task, mut suspended) = waiting.pop_front().unwrap();
                    polls += 1;
                    if goes_on(&mut suspended, now) {
                        went_on.push(task);
                        spend(now, SHARE);
                        now += SHARE;
                        suspended = suspend();
                    }
                    waiting.push_back((task, suspended));
                }
                let rounds: Vec<_> = (0..3).flat_map(|_| 0..number).collect();
                assert_eq!(went_on, rounds, "{number}");
                assert!(polls <= 3 * number * (TURN as usize + number), "{polls} polls of {number}");
            }
        });
    }

    #[test]
    fn one_that_is_not_polled_here_any_more_holds_up_nothing() {
        on_a_thread(|| {
            let now = Instant::now();
            spend(now, SHARE);
            let (mut first, mut second) = (suspend(), suspend());
            assert!(!goes_on(&mut first, now) && !goes_on(&mut second, now));
            assert_eq!(turn(&mut second, now), TURN - 2, "and it would have gone on with the first one's poll");
            spend(now, SHARE);
            let mut third = suspend();
            assert_eq!(turn(&mut third, now), TURN, "the first one is not polled at all");
        });
    }

    #[test]
    fn where_the_host_tells_of_its_turns_a_task_that_goes_on_renews_nothing() {
        on_a_thread(|| {
            host_tells();
            spend(Instant::now(), SHARE);
            renew();
            assert!(goes_on(&mut suspend(), Instant::now()) && is_spent());
            had_turn();
            assert!(!is_spent());
        });
    }

    #[test]
    fn where_each_poll_follows_a_turn_the_share_follows_how_many_have_suspended() {
        on_a_thread(|| {
            turns_between_polls();
            let share = |others: u32| {
                let others: Vec<_> = (0..others).map(|_| suspend()).collect();
                let share = share();
                on_a_thread(|| drop(others));
                share
            };
            assert_eq!(
                [0, 9, 19, 49, 99, 1_000].map(share),
                [SHARE, SHARE, ROUND / 20, ROUND / 50, SHORTEST, SHORTEST]
            );
            let others: Vec<_> = (0..19).map(|_| suspend()).collect();
            let now = Instant::now();
            spend(now, SHARE / 2);
            assert!(is_spent());
            assert_eq!(turn(&mut suspend(), now), 1);
            drop(others);
            spend(now, SHARE / 2);
            assert!(!is_spent());
        });
    }

    #[test]
    fn elsewhere_it_does_if_all_that_have_suspended_are_on_this_thread() {
        assert_eq!(
            [0, 9, 19, 1_000].map(|here| share_beside(EventLoop::Unknown, here, here)),
            [SHARE, SHARE, ROUND / 20, SHORTEST]
        );
        assert_eq!(share_beside(EventLoop::Unknown, 19, 20), SHARE, "another thread has tasks as well");
        assert_eq!(share_beside(EventLoop::BetweenPolls, 19, 20), ROUND / 20, "it has an event loop of its own");
        assert_eq!(share_beside(EventLoop::HostTells, 19, 19), SHARE);
    }

    #[test]
    fn what_goes_on_or_is_given_up_on_another_thread_is_counted_no_more() {
        on_a_thread(|| {
            let here = || SUSPENDED.with(|number| number.load(Ordering::Relaxed));
            let (one, other) = (suspend(), suspend());
            assert_eq!(here(), 2);
            on_a_thread(|| drop(one));
            assert_eq!(here(), 1);
            drop(other);
            assert_eq!(here(), 0);
        });
    }

    #[test]
    fn a_thread_is_busy_once_for_each_share_of_results_without_long_gaps_however_often_it_is_renewed() {
        on_a_thread(|| {
            let mut now = Instant::now();
            let mut busy = |gap: Duration| {
                let is_busy = |_: &u32| {
                    let is_busy = is_busy_with(now, GAP / 10);
                    spend(now, GAP / 10);
                    renew();
                    now += GAP / 10 + gap;
                    is_busy
                };
                (0..1_000).filter(is_busy).count()
            };
            assert_eq!(busy(Duration::ZERO), 10, "10 ms");
            assert_eq!(busy(GAP * 2), 0, "there was something else to do");
        });
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
            let mut held = HeldThread::new(began, GAP / 10, SHARE);
            (1..count).for_each(|n| held.add(began + 20 * GAP * n, GAP / 10, || Some(work * n)));
            held
        };
        assert!(!runs(11, SHARE / 10).has_worked, "nine tenths of a share since the first gap");
        assert!(runs(12, SHARE / 10).has_worked);
        let sleeps = runs(90, SHARE / 1_000);
        assert!(!sleeps.has_worked && sleeps.end < sleeps.full);
        let began = Instant::now();
        let mut without_a_clock = HeldThread::new(began, GAP / 10, SHARE);
        (1..90).for_each(|n| without_a_clock.add(began + 2 * GAP * n, GAP / 10, || None));
        assert!(!without_a_clock.has_worked && without_a_clock.end < without_a_clock.full);
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Polls until it goes on.
    fn end(pause: &mut Pause, now: Instant) {
        assert!((0..100).any(|_| !pause.is_due(now)));
    }

    #[test]
    fn a_turn_is_given_once_however_often_the_share_is_used_up() {
        let thread = || {
            let (mut pause, mut now) = (Pause::default(), Instant::now());
            assert!(!pause.is_due(now));
            for _ in 0..3 {
                spend(now, SECOND);
                now += SECOND;
                assert!(pause.is_due(now));
                spend(now, SECOND);
                now += SECOND;
                end(&mut pause, now);
                assert!(!pause.is_due(now), "the share is a new one");
            }
        };
        std::thread::spawn(thread).join().unwrap();
    }

    #[test]
    fn one_that_is_given_up_suspends_nothing_after_it() {
        let thread = || {
            let now = Instant::now() + SECOND;
            spend(now - SECOND, SECOND);
            assert!(Pause::default().is_due(now));
            assert!(!Pause::default().is_due(now));
        };
        std::thread::spawn(thread).join().unwrap();
    }

    #[test]
    fn all_that_one_poll_asks_for_suspends_before_one_of_them_goes_on() {
        let thread = || {
            let (mut one, mut other, now) = (Pause::default(), Pause::default(), Instant::now() + SECOND);
            spend(now - SECOND, SECOND);
            assert!(one.is_due(now) && other.is_due(now));
            end(&mut other, now);
            assert!(!one.is_due(now));
        };
        std::thread::spawn(thread).join().unwrap();
    }
}
