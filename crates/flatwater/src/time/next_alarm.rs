//! The next alarm of one thing: of what looks at something again and again, or has one limit at a time.
//!
//! Owns: the place of that alarm. Any thread may set it, also the timer's, when the alarm goes off. Invariants: at most
//! one alarm is set; the one that was set last is the one that stays, because an alarm is set under the lock of its place.
//! That lock is held for nothing else; an alarm is dropped without it. Leaves out: what happens when the alarm goes off.
//!
//! ```text
//! a thread                                 timer's thread
//! locks the place, sets an alarm
//!                                          the alarm goes off and sets the next one: waits for the lock
//! stores its alarm, unlocks
//!                                          stores the next one in the place of the one that went off
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::timer::{self, Alarm};

#[derive(Debug, Default)]
pub(crate) struct NextAlarm(Mutex<Option<Alarm>>);

impl NextAlarm {
    /// Sets the alarm in the place of the one before, if that has not gone off yet. `action` is as in [`timer::at`].
    pub(crate) fn set(&self, when: Instant, action: impl FnOnce() + Send + 'static) {
        self.store(|| timer::at(when, action));
    }

    /// Takes the alarm back, unless it is going off. The next one may be set meanwhile, and is taken back then.
    pub(crate) fn clear(&self) {
        let before = self.lock().take();
        drop(before);
    }

    fn store(&self, set: impl FnOnce() -> Alarm) {
        let mut place = self.lock();
        let before = place.replace(set());
        drop(place);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Alarm>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;

    fn is_set(place: &NextAlarm) -> bool {
        place.lock().as_ref().is_some_and(Alarm::is_set)
    }

    #[test]
    fn an_alarm_that_goes_off_before_it_is_stored_does_not_lose_the_one_it_sets() {
        let place = Arc::new(NextAlarm::default());
        let (begins, began) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let next = place.clone();
        let went_off = move || {
            begins.send(()).unwrap();
            next.set(Instant::now() + Duration::from_secs(3600), || {});
            ends.send(()).unwrap();
        };
        let set = || {
            let alarm = timer::at(Instant::now(), went_off);
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
}
