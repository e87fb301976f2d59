//! The parts of a result that a caller gets before the reply.
//!
//! Owns: the parts that a worker handed over and the caller has not taken, and how the caller is told. Runs on the
//! worker's thread and on the caller's. Invariants: parts are taken in the order in which they were handed over; a
//! caller that found none and left its mailbox is told of the next one; a caller that does not wait is not told. No lock is
//! held while a waiter is told or dropped. Leaves out: the reply, which comes after all parts (`reply`).

use std::collections::VecDeque;

use super::reply::{Mailbox, Waiter, wake};
use super::sync::{Mutex, lock};
use crate::thread::background::dispose;

/// More parts than this are dropped on another thread: they may take as much memory as a large block.
const FEW: usize = 12;

pub(crate) struct Parts<T: Send + 'static>(Mutex<PartsState<T>>);

struct PartsState<T> {
    parts: VecDeque<T>,
    waiter: Option<Waiter>,
}

impl<T: Send + 'static> Default for Parts<T> {
    fn default() -> Self {
        Self(Mutex::new(PartsState { parts: VecDeque::new(), waiter: None }))
    }
}

impl<T: Send + 'static> Parts<T> {
    /// Hands a part over, and tells the caller if it waits. Called on a worker's thread.
    pub(crate) fn hand_over(&self, part: T) {
        let mut state = lock(&self.0);
        state.parts.push_back(part);
        let waiter = state.waiter.take();
        drop(state);
        wake(waiter);
    }

    /// Takes the next part. If there is none and a mailbox is given, the mailbox is told of the next one.
    pub(crate) fn take(&self, mailbox: Option<(&std::sync::Arc<dyn Mailbox>, u64)>) -> Option<T> {
        let waiter = mailbox.map(|(mailbox, token)| Waiter::Call(mailbox.clone(), token));
        let mut state = lock(&self.0);
        let part = state.parts.pop_front();
        let unused = if part.is_none() { std::mem::replace(&mut state.waiter, waiter) } else { waiter };
        drop(state);
        drop(unused);
        part
    }
}

impl<T: Send + 'static> Drop for Parts<T> {
    /// The last one to have them may run an event loop.
    fn drop(&mut self) {
        let parts = std::mem::take(&mut lock(&self.0).parts);
        if parts.len() > FEW {
            dispose(parts);
        }
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Notes the tokens that it is told.
    #[derive(Default)]
    struct Notes(Mutex<Vec<u64>>);

    impl Mailbox for Notes {
        fn ready(&self, token: u64) {
            self.0.lock().unwrap().push(token);
        }

        fn flush(&self) {}
    }

    #[test]
    fn parts_arrive_in_order_and_only_a_caller_that_waits_is_told() {
        let notes = Arc::<Notes>::default();
        let mailbox = notes.clone() as Arc<dyn Mailbox>;
        let parts = Parts::default();
        assert_eq!(parts.take(Some((&mailbox, 1))), None);
        for part in 0..3 {
            parts.hand_over(part);
        }
        assert_eq!([(); 3].map(|()| parts.take(Some((&mailbox, 2)))), [Some(0), Some(1), Some(2)]);
        assert_eq!(parts.take(None), None);
        parts.hand_over(3);
        assert_eq!(*notes.0.lock().unwrap(), [1]);
    }

    #[test]
    fn many_parts_that_are_not_taken_are_dropped_elsewhere() {
        struct Part(std::sync::mpsc::Sender<std::thread::ThreadId>);
        impl Drop for Part {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).unwrap();
            }
        }
        let dropped_by = |count| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let parts = Parts::default();
            (0..count).for_each(|_| parts.hand_over(Part(sender.clone())));
            drop(sender);
            drop(parts);
            receiver.into_iter().collect::<Vec<_>>()
        };
        let here = std::thread::current().id();
        assert_eq!(dropped_by(FEW), vec![here; FEW]);
        let many = dropped_by(1000);
        assert!(many.len() == 1000 && !many.contains(&here));
    }
}

/// Run by `make loom`.
#[cfg(all(test, flatwater_loom))]
mod model {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::super::reply::{reply, wake};
    use super::*;

    struct Counts(AtomicUsize);

    impl Mailbox for Counts {
        fn ready(&self, _: u64) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }

        fn flush(&self) {}
    }

    /// A caller that looks at the reply first and at the parts then finds something, or is told; and when it finds the
    /// reply, the part is there.
    #[test]
    fn a_part_is_found_or_told_and_comes_before_the_reply() {
        loom::model(|| {
            let parts = std::sync::Arc::new(Parts::default());
            let (promise, reply) = reply::<i32>();
            let counts = std::sync::Arc::new(Counts(AtomicUsize::new(0)));
            let mailbox = counts.clone() as std::sync::Arc<dyn Mailbox>;
            let handed = parts.clone();
            let worker = thread::spawn(move || {
                handed.hand_over(1);
                wake(promise.fill(2).unwrap_or_default());
            });
            let replied = reply.poll_for(&mailbox, 1).is_ready();
            let part = parts.take(Some((&mailbox, 1)));
            assert!(!replied || part.is_some(), "the reply came before the part");
            worker.join().unwrap();
            if !replied && part.is_none() {
                assert!(counts.0.load(Ordering::SeqCst) > 0, "nothing was told");
            }
            assert!(part.is_some() || parts.take(None).is_some());
        });
    }
}
