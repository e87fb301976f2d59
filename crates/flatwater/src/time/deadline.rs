//! One alarm that can be moved and cleared: of what has one limit, or one next try, at a time.
//!
//! Owns: the place of that alarm. Any thread may set it, also the timer's, when the alarm goes off. Invariants: at most
//! one alarm is set; the one that was set last is the one that stays, because an alarm is set under the lock of its
//! place; it keeps alive nothing that it is about. That lock is held for nothing else; an alarm is dropped without it.
//! Leaves out: what happens when the alarm goes off; an alarm that is set again and again (`recurring`).
//!
//! ```text
//! a thread                                 timer's thread
//! locks the place, sets an alarm
//!                                          the alarm goes off and sets the next one: waits for the lock
//! stores its alarm, unlocks
//!                                          stores the next one in the place of the one that went off
//! ```

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::timer::{self, Alarm};
use crate::thread::lock;

#[derive(Debug, Default)]
pub(crate) struct Deadline(Mutex<Option<Alarm>>);

impl Deadline {
    /// Sets the alarm in the place of the one before, if that has not gone off yet. `action` is as in [`timer::at`], and does
    /// not run if `of` is gone.
    pub(crate) fn set<T: Send + Sync + 'static>(
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
        self.store(|| timer::at(when, if_alive));
    }

    /// Takes the alarm back, unless it is going off. The next one may be set meanwhile, and is taken back then.
    pub(crate) fn clear(&self) {
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

    #[test]
    fn an_alarm_about_what_is_gone_does_nothing() {
        let (ends, ended) = mpsc::channel();
        let (place, of) = (Deadline::default(), Arc::new(()));
        place.set(Instant::now() + Duration::from_millis(5), &of, move |_| ends.send(()).unwrap());
        drop(of);
        assert!(ended.recv().is_err(), "the action is dropped");
    }
}
