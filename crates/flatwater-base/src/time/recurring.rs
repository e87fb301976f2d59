//! A tick that comes again for as long as it is wanted, such as a look at what is idle.
//!
//! Owns: the alarm of the next tick, and what was asked for while one runs. Any thread asks for ticks and ends them; a
//! tick runs on the timer's thread, without a lock. Invariants: at most one tick is set or runs, for a tick has a
//! number, and what goes off with another one does nothing; after `by` a tick begins, at the time that was asked for or
//! before, unless `end` comes first; after `end` no tick begins, and one that runs is the last; the ticks end with
//! their owner. One lock guards the place, and is held to set an alarm and for nothing else. Leaves out: what a tick
//! does; whether it keeps its owner alive, which it should not.
//!
//! ```text
//! a thread                                 timer's thread
//!                                          the tick finds nothing to do: no other one is wanted
//! there is something to do again: asks
//! for a tick; one runs, so this is noted
//!                                          the tick ends: sets the one that is noted
//! ```
//!
//! ```text
//! a thread                                 timer's thread
//!                                          the tick wants another one
//! ends the ticks: the number is another
//!                                          finds another number: sets nothing
//! ```

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::timer::{self, Alarm};
use crate::thread::lock;

/// Dropping it ends the ticks.
#[derive(Debug, Default)]
pub struct Recurring(SharedTicks);

type SharedTicks = Arc<Mutex<Ticks>>;

#[derive(Debug, Default)]
struct Ticks {
    /// Of the tick that is set or runs.
    number: u64,
    runs: bool,
    /// When a tick is due that is set, or was asked for while one runs.
    due: Option<Instant>,
    alarm: Option<Alarm>,
}

impl Ticks {
    /// Asks for a tick. Returns true if its alarm must be set.
    fn is_asked_for(&mut self, when: Instant) -> bool {
        let is_earlier = self.due.is_none_or(|due| when < due);
        self.due = if is_earlier { Some(when) } else { self.due };
        is_earlier && !self.runs
    }

    /// The alarm with this number goes off. Returns false if it was replaced.
    fn begins(&mut self, number: u64) -> bool {
        let is_current = self.number == number;
        (self.runs, self.due) = if is_current { (true, None) } else { (self.runs, self.due) };
        is_current
    }

    /// The tick ends, and wants another one at `next`. Returns when that must be set.
    fn ends(&mut self, number: u64, next: Option<Instant>) -> Option<Instant> {
        if self.number != number {
            return None;
        }
        self.runs = false;
        self.due = self.due.into_iter().chain(next).min();
        self.due
    }

    fn end(&mut self) -> Option<Alarm> {
        std::mem::replace(self, Self { number: self.number + 1, ..Self::default() }).alarm
    }
}

impl Recurring {
    /// Asks for a tick at `when`, or before if one is set. It returns when the next one is due, if there is one. It is short,
    /// and the same for all calls: the closure may be dropped.
    pub fn by(&self, when: Instant, tick: impl FnMut() -> Option<Instant> + Send + 'static) {
        let mut place = lock(&self.0);
        if place.is_asked_for(when) {
            let before = set(&self.0, &mut place, when, tick);
            drop(place);
            drop(before);
        }
    }

    /// Ends the ticks, until one is asked for again.
    pub fn end(&self) {
        let before = lock(&self.0).end();
        drop(before);
    }
}

/// Sets the alarm under the lock. Returns the one before, to be dropped without it.
fn set(
    shared: &SharedTicks,
    place: &mut Ticks,
    when: Instant,
    tick: impl FnMut() -> Option<Instant> + Send + 'static,
) -> Option<Alarm> {
    place.number += 1;
    let (shared, number) = (Arc::downgrade(shared), place.number);
    let goes_off = move || {
        if let Some(shared) = shared.upgrade() {
            run(&shared, number, tick);
        }
    };
    place.alarm.replace(timer::at(when, goes_off))
}

/// Runs a tick on the timer's thread.
fn run(shared: &SharedTicks, number: u64, mut tick: impl FnMut() -> Option<Instant> + Send + 'static) {
    if !lock(shared).begins(number) {
        return;
    }
    let next = tick();
    let mut place = lock(shared);
    if let Some(when) = place.ends(number, next) {
        // The one before has gone off, so that nothing is dropped with it.
        let _ = set(shared, &mut place, when, tick);
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    const HANGS: Duration = Duration::from_secs(60);

    fn now() -> Instant {
        Instant::now()
    }

    fn never() -> Instant {
        now() + Duration::from_secs(3600)
    }

    fn is_set(ticks: &Recurring) -> bool {
        lock(&ticks.0).alarm.as_ref().is_some_and(Alarm::is_set)
    }

    /// Waits for the end of the tick that runs.
    fn wait(ticks: &Recurring) {
        while lock(&ticks.0).runs {
            std::thread::yield_now();
        }
    }

    /// A tick that says when it begins, and ends with what it is told.
    fn directed() -> (impl FnMut() -> Option<Instant> + Send, Receiver<()>, Sender<Option<Instant>>) {
        let (begins, began) = channel();
        let (ends, ended) = channel();
        let tick = move || {
            begins.send(()).unwrap();
            ended.recv().unwrap()
        };
        (tick, began, ends)
    }

    #[test]
    fn a_tick_comes_again_while_it_wants_to() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(now(), tick);
        for _ in 0..3 {
            began.recv_timeout(HANGS).unwrap();
            ends.send(Some(now())).unwrap();
        }
        began.recv_timeout(HANGS).unwrap();
        ends.send(None).unwrap();
        wait(&ticks);
        assert!(!is_set(&ticks));
    }

    #[test]
    fn what_is_asked_for_while_a_tick_runs_is_not_lost() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(now(), tick);
        began.recv_timeout(HANGS).unwrap();
        ticks.by(never(), || unreachable!("the tick is there"));
        ends.send(None).unwrap();
        wait(&ticks);
        assert!(is_set(&ticks));
    }

    #[test]
    fn the_end_of_the_ticks_is_not_undone_by_the_one_that_runs() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(now(), tick);
        began.recv_timeout(HANGS).unwrap();
        ticks.end();
        ends.send(Some(now())).unwrap();
        assert!(began.recv_timeout(HANGS).is_err(), "the tick is dropped");
        assert!(!is_set(&ticks));
    }

    #[test]
    fn a_tick_that_ends_late_does_not_touch_those_that_began_after_it() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(now(), tick);
        began.recv_timeout(HANGS).unwrap();
        ticks.end();
        ticks.by(never(), || None);
        ends.send(Some(now())).unwrap();
        assert!(began.recv_timeout(HANGS).is_err(), "the tick is dropped");
        assert!(is_set(&ticks));
    }

    #[test]
    fn a_tick_that_is_set_is_moved_to_an_earlier_time_and_to_no_later_one() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(never(), || unreachable!("it was moved"));
        ticks.by(now(), tick);
        began.recv_timeout(HANGS).unwrap();
        ends.send(Some(now() + Duration::from_millis(5))).unwrap();
        ticks.by(never(), || unreachable!("the tick is there"));
        began.recv_timeout(HANGS).unwrap();
        ends.send(None).unwrap();
    }

    #[test]
    fn the_ticks_end_with_their_owner() {
        let (tick, began, ends) = directed();
        let ticks = Recurring::default();
        ticks.by(now(), tick);
        began.recv_timeout(HANGS).unwrap();
        drop(ticks);
        ends.send(Some(now())).unwrap();
        assert!(began.recv_timeout(HANGS).is_err(), "the tick is dropped");
    }
}

/// `make loom`: every interleaving of a thread that has something to be done with the tick that does it.
#[cfg(all(test, flatwater_loom))]
mod model {
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    use super::*;

    #[derive(Default)]
    struct Shared {
        is_wanted: AtomicBool,
        place: Mutex<Ticks>,
    }

    impl Shared {
        /// Wants something; the first one to do so asks for a tick, as the writer's lease does.
        fn wants(&self, when: Instant) {
            if !self.is_wanted.swap(true, Ordering::SeqCst) {
                let mut place = self.place.lock().unwrap();
                place.number += u64::from(place.is_asked_for(when));
            }
        }

        /// The alarm with this number goes off: its tick does what is wanted.
        fn goes_off(&self, number: u64, next: Option<Instant>) {
            if !self.place.lock().unwrap().begins(number) {
                return;
            }
            self.is_wanted.store(false, Ordering::SeqCst);
            let mut place = self.place.lock().unwrap();
            place.number += u64::from(place.ends(number, next).is_some());
        }

        fn is_set(&self) -> bool {
            self.place.lock().unwrap().due.is_some()
        }
    }

    fn shared() -> (Arc<Shared>, u64, Instant) {
        let (shared, when) = (Arc::new(Shared::default()), Instant::now());
        assert!(shared.place.lock().unwrap().is_asked_for(when));
        (shared, 0, when)
    }

    #[test]
    fn what_is_wanted_while_a_tick_runs_has_a_tick_after_it() {
        loom::model(|| {
            let (shared, number, when) = shared();
            let timer = {
                let shared = shared.clone();
                thread::spawn(move || shared.goes_off(number, None))
            };
            shared.wants(when);
            timer.join().unwrap();
            assert!(shared.is_set() || !shared.is_wanted.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn no_tick_is_set_after_the_end_of_them_and_a_new_one_stays() {
        for begins_again in [false, true] {
            loom::model(move || {
                let (shared, number, when) = shared();
                let timer = {
                    let shared = shared.clone();
                    thread::spawn(move || shared.goes_off(number, Some(when)))
                };
                assert!(shared.place.lock().unwrap().end().is_none());
                if begins_again {
                    shared.wants(when);
                }
                timer.join().unwrap();
                assert_eq!(shared.is_set(), begins_again);
            });
        }
    }
}
