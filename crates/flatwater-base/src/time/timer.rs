//! The one timer of the process, thread `fw-timer`: deadlines of calls, idle limits of transactions, the time limit of
//! a close, the periodic check of open files; and an alarm that can be moved and cleared, of what has one limit, or one next try, at
//! a time.
//!
//! Owns: alarms in order of time, and the place of one that moves. The thread starts with the first alarm and ends when there has
//! been none for a while. Any thread may set an alarm, also the timer's, when one goes off. Invariants: an alarm runs at most once,
//! not before its time, and without any lock held; an alarm that was dropped does not start to run; an alarm never waits for a
//! reply, because the end of that wait may itself be an alarm, nor for a file system, because all other alarms wait meanwhile; while
//! a database is open the thread runs (`keep`), so that no alarm is lost because a thread cannot be started; setting an alarm wakes
//! the thread only if it would sleep past it, so that what sets and drops one for each call, as deadlines do, costs no wake-up. Of
//! a `Deadline` at most one alarm is set, and the one that was set last stays, because an alarm is set under the lock of its place;
//! it keeps alive nothing that it is about. That lock is held for nothing else; an alarm is dropped without it. A forked child has no
//! such thread and begins with an empty timer. Leaves out: alarms that come again (`recurring`); what happens when one goes off;
//! precision below about a millisecond.
//!
//! ```text
//! a thread                                 timer's thread
//! locks the place, sets an alarm
//!                                          the alarm goes off and sets the next one: waits for the lock
//! stores its alarm, unlocks
//!                                          stores the next one in the place of the one that went off
//! ```

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::{Origin, PerProcess};

use super::later;
use crate::thread::background::start_worker;
use crate::thread::lock;

type Action = Box<dyn FnOnce() + Send>;

struct TimerState {
    alarms: BTreeMap<(Instant, u64), Action>,
    next: u64,
    running: bool,
    /// When the thread, which sleeps, looks at the alarms again. `None` while it does not sleep: it looks before it does.
    looks_at: Option<Instant>,
}

impl TimerState {
    /// Returns true if the thread must be woken to look at the alarms by `when`. It need not be twice.
    fn wakes_for(&mut self, when: Instant) -> bool {
        let sleeps_past = self.looks_at.is_some_and(|looks_at| when < looks_at);
        if sleeps_past {
            self.looks_at = Some(when);
        }
        sleeps_past
    }
}

static STATE: PerProcess<TimerState> =
    PerProcess::new(|| TimerState { alarms: BTreeMap::new(), next: 0, running: false, looks_at: None });
static CHANGED: Condvar = Condvar::new();
const IDLE: Duration = Duration::from_secs(10);

/// An alarm that is set. Dropping it cancels it, unless it is already running.
#[derive(Debug)]
#[must_use]
pub struct Alarm((Instant, u64), Origin);

impl Alarm {
    /// Returns true until the alarm goes off.
    #[cfg(test)]
    pub(super) fn is_set(&self) -> bool {
        STATE.lock().alarms.contains_key(&self.0)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // A forked child has a timer of its own, with alarms of the same numbers.
        if self.1.is_inherited() {
            return;
        }
        let mut state = STATE.lock();
        let action = state.alarms.remove(&self.0);
        let was_last = action.is_some() && state.alarms.is_empty();
        drop(state);
        if was_last {
            // The thread may sleep until this alarm, which may be for ever.
            CHANGED.notify_one();
        }
        drop(action);
    }
}

/// Keeps the timer's thread, and starts it if it does not run. Dropping the alarm, which never goes off, lets the thread
/// end. Each open database has one.
///
/// # Errors
/// The system's error, if the thread cannot be started.
pub fn keep() -> io::Result<Alarm> {
    start(&mut STATE.lock())?;
    Ok(at(later(Instant::now(), Duration::MAX), || {}))
}

fn start(state: &mut TimerState) -> io::Result<()> {
    if !state.running {
        start_worker("fw-timer", run)?;
        state.running = true;
    }
    Ok(())
}

/// Runs `action` on the timer's thread at `when`. It must be short. If no database is open and the thread cannot be
/// started, it is started for the next alarm, and `action` runs then.
pub fn at(when: Instant, action: impl FnOnce() + Send + 'static) -> Alarm {
    let mut state = STATE.lock();
    let _ = start(&mut state);
    let key = (when, state.next);
    state.next += 1;
    state.alarms.insert(key, Box::new(action));
    let wakes = state.wakes_for(when);
    drop(state);
    if wakes {
        CHANGED.notify_one();
    }
    Alarm(key, Origin::here())
}

fn run() {
    let mut state = STATE.lock();
    loop {
        let now = Instant::now();
        let wait = match state.alarms.first_entry() {
            Some(first) if first.key().0 <= now => {
                let action = first.remove();
                drop(state);
                // This crate's alarms do not panic; if one did, the others must still run.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(action));
                state = STATE.lock();
                continue;
            }
            Some(first) => first.key().0 - now,
            None => IDLE,
        };
        state.looks_at = Some(later(now, wait));
        let (next, timeout) = CHANGED.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
        state = next;
        state.looks_at = None;
        if timeout.timed_out() && state.alarms.is_empty() {
            state.running = false;
            return;
        }
    }
}

/// An alarm that moves.
#[derive(Debug, Default)]
pub struct Deadline(Mutex<Option<Alarm>>);

impl Deadline {
    /// Sets the alarm in the place of the one before, if that has not gone off yet. `action` is as in [`at`], and does
    /// not run if `of` is gone.
    pub fn set<T: Send + Sync + 'static>(
        &self,
        when: Instant,
        of: &Arc<T>,
        action: impl FnOnce(Arc<T>) + Send + 'static,
    ) {
        let of = Arc::downgrade(of);
        let if_alive = move || {
            if let Some(of) = of.upgrade() {
                action(of);
            }
        };
        self.store(|| at(when, if_alive));
    }

    /// Takes the alarm back, unless it is going off. The next one may be set meanwhile, and is taken back then.
    pub fn clear(&self) {
        let before = lock(&self.0).take();
        drop(before);
    }

    fn store(&self, set: impl FnOnce() -> Alarm) {
        let mut place = lock(&self.0);
        let before = place.replace(set());
        drop(place);
        drop(before);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Keeps the timer's thread busy until the returned sender is dropped, so that alarms set and cancelled meanwhile
    /// do not run.
    fn keep_busy() -> mpsc::Sender<()> {
        let (begins, began) = mpsc::channel();
        let (ends, ended) = mpsc::channel::<()>();
        let busy = move || {
            begins.send(()).unwrap();
            let _ = ended.recv();
        };
        let alarm = at(Instant::now(), busy);
        began.recv().unwrap();
        drop(alarm);
        ends
    }

    #[test]
    fn alarms_go_off_in_order_and_not_before_their_time() {
        let busy = keep_busy();
        let (send, receive) = mpsc::channel();
        let now = Instant::now();
        let alarms: Vec<_> = [30, 10, 20]
            .map(|ms| {
                let send = send.clone();
                at(now + Duration::from_millis(ms), move || send.send((ms, Instant::now())).unwrap())
            })
            .into();
        drop(busy);
        let fired: Vec<_> = (0..3).map(|_| receive.recv().unwrap()).collect();
        assert_eq!(fired.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [10, 20, 30]);
        assert!(fired.iter().all(|(ms, at)| *at >= now + Duration::from_millis(*ms)));
        drop(alarms);
    }

    #[test]
    fn the_thread_is_woken_for_what_it_would_sleep_past_and_once() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut state = TimerState { alarms: BTreeMap::new(), next: 0, running: true, looks_at: None };
        assert!(!state.wakes_for(at(0)), "it does not sleep");
        state.looks_at = Some(at(20));
        assert_eq!([30, 20, 10, 10, 15, 5].map(|ms| state.wakes_for(at(ms))), [false, false, true, false, false, true]);
    }

    #[test]
    fn an_alarm_before_the_one_that_is_slept_for_is_not_late() {
        let (send, receive) = mpsc::channel();
        let first = at(later(Instant::now(), Duration::from_secs(3600)), || unreachable!("it is far away"));
        // The thread goes to sleep until then, or for less if other tests have alarms.
        while STATE.lock().looks_at.is_none() {
            std::thread::yield_now();
        }
        let second = at(Instant::now(), move || send.send(()).unwrap());
        receive.recv_timeout(Duration::from_secs(60)).unwrap();
        drop((first, second));
    }

    #[test]
    fn nobody_may_wait_on_the_timers_thread() {
        let (send, receive) = mpsc::channel();
        let alarm = at(Instant::now(), move || send.send(crate::thread::current::must_not_block()).unwrap());
        assert!(receive.recv().unwrap());
        drop(alarm);
    }

    #[test]
    fn an_alarm_that_was_taken_back_stays_silent() {
        let busy = keep_busy();
        let (send, receive) = mpsc::channel();
        let silent = send.clone();
        let first = at(Instant::now() + Duration::from_millis(20), move || silent.send("taken back").unwrap());
        let _second = at(Instant::now() + Duration::from_millis(40), move || send.send("kept").unwrap());
        drop(first);
        drop(busy);
        assert_eq!(receive.recv().unwrap(), "kept");
    }

    fn is_set(place: &Deadline) -> bool {
        lock(&place.0).as_ref().is_some_and(Alarm::is_set)
    }

    #[test]
    fn an_alarm_that_goes_off_before_it_is_stored_does_not_lose_the_one_it_sets() {
        let place = Arc::new(Deadline::default());
        let (begins, began) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let next = place.clone();
        let went_off = move || {
            begins.send(()).unwrap();
            next.set(Instant::now() + Duration::from_secs(3600), &next, |_| {});
            ends.send(()).unwrap();
        };
        let set = || {
            let alarm = at(Instant::now(), went_off);
            began.recv().unwrap();
            // What goes off can only wait here: it has not stored the next one.
            assert!(place.0.try_lock().is_err(), "an alarm is set under the lock of its place");
            alarm
        };
        place.store(set);
        ended.recv().unwrap();
        assert!(is_set(&place));
        place.clear();
        assert!(!is_set(&place));
    }

    #[test]
    fn an_alarm_about_what_is_gone_does_nothing() {
        let (ends, ended) = mpsc::channel();
        let (place, of) = (Deadline::default(), Arc::new(()));
        place.set(Instant::now() + Duration::from_millis(5), &of, move |_| ends.send(()).unwrap());
        drop(of);
        assert!(ended.recv().is_err(), "the action is dropped");
    }
}
