//! The one reply to a request.
//!
//! Owns: the slot between a worker and a caller's future. Runs on the worker's thread and on the caller's. Invariants:
//! a reply is delivered at most once; a caller whose worker is gone without a reply learns of it; a reply whose caller
//! is gone is returned to the worker, or dropped with the slot if it was already in the slot. No lock is held while a
//! waker runs, is cloned or is dropped, nor while a reply is dropped: each of these may run the user's code. Leaves
//! out: deadlines and cancellation, which belong to the ticket.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use flatwater_sqlite::is_stranded;

use super::sync::{Arc, Mutex, lock};
use crate::thread::park::unmark_closure;

/// Wakes callers. A waker belongs to a foreign runtime: a waker that panics must affect neither other callers nor a
/// worker.
pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unmark_closure(|| waker.wake())));
    }
}

enum Slot<T> {
    Empty(Option<Waker>),
    Full(T),
    /// The reply was taken, or the caller is gone.
    Done,
    /// The worker is gone without a reply.
    Broken,
}

/// The worker's side. Dropping it unfilled breaks the promise, which wakes the caller.
pub(crate) struct Promise<T>(Option<Arc<Mutex<Slot<T>>>>);

/// The caller's side: a future of the reply, or of `None` if the worker is gone without one.
pub(crate) struct Reply<T>(Arc<Mutex<Slot<T>>>);

pub(crate) fn reply<T>() -> (Promise<T>, Reply<T>) {
    let slot = Arc::new(Mutex::new(Slot::Empty(None)));
    (Promise(Some(slot.clone())), Reply(slot))
}

impl<T> Promise<T> {
    /// Stores the reply for the caller and returns the waker to wake. Returns the reply if the caller is gone.
    pub(crate) fn fill(mut self, answer: T) -> Result<Option<Waker>, T> {
        let Some(slot) = self.0.take() else { return Err(answer) };
        let mut slot = lock(&slot);
        match &mut *slot {
            Slot::Empty(waker) => {
                let waker = waker.take();
                *slot = Slot::Full(answer);
                Ok(waker)
            }
            _ => Err(answer),
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let Some(slot) = self.0.take() else { return };
        if is_stranded() {
            return;
        }
        let mut slot = lock(&slot);
        let waker = match &mut *slot {
            Slot::Empty(waker) => {
                let waker = waker.take();
                *slot = Slot::Broken;
                waker
            }
            _ => None,
        };
        drop(slot);
        wake(waker);
    }
}

impl<T> Reply<T> {
    /// Returns true if there is nothing to wait for any more.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(*lock(&self.0), Slot::Empty(_))
    }
}

impl<T: Send + 'static> Reply<T> {
    /// Returns a closure that wakes the waiting caller without delivering a reply.
    pub(crate) fn nudge(&self) -> impl FnOnce() + Send + use<T> {
        let slot = self.0.clone();
        move || {
            let waker = match &mut *lock(&slot) {
                Slot::Empty(waker) => waker.take(),
                _ => None,
            };
            wake(waker);
        }
    }
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        // In a forked child the worker's thread does not exist, and the lock may be one that it held.
        if is_stranded() {
            return Poll::Ready(None);
        }
        let mut own = None;
        loop {
            let mut slot = lock(&self.0);
            let before = match std::mem::replace(&mut *slot, Slot::Done) {
                Slot::Full(answer) => return Poll::Ready(Some(answer)),
                Slot::Done | Slot::Broken => return Poll::Ready(None),
                Slot::Empty(before) => before,
            };
            if before.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *slot = Slot::Empty(before);
                return Poll::Pending;
            }
            if own.is_some() {
                *slot = Slot::Empty(own);
                drop(slot);
                drop(before);
                return Poll::Pending;
            }
            *slot = Slot::Empty(before);
            drop(slot);
            own = Some(context.waker().clone());
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if is_stranded() {
            return;
        }
        let left = std::mem::replace(&mut *lock(&self.0), Slot::Done);
        drop(left);
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;

    fn poll<T>(reply: &mut Reply<T>) -> Poll<Option<T>> {
        Pin::new(reply).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_arrives_once() {
        let (promise, mut reply) = reply();
        assert_eq!(poll(&mut reply), Poll::Pending);
        assert!(promise.fill(5).unwrap().is_some());
        assert_eq!(poll(&mut reply), Poll::Ready(Some(5)));
        assert_eq!(poll(&mut reply), Poll::Ready(None));
    }

    #[test]
    fn an_answer_nobody_waits_for_comes_back() {
        let (promise, reply) = reply();
        drop(reply);
        assert_eq!(promise.fill(5).unwrap_err(), 5);
    }

    /// A waker that fills the promise when it is dropped.
    struct Fills(Option<Promise<i32>>);

    impl std::task::Wake for Fills {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Fills {
        fn drop(&mut self) {
            assert!(self.0.take().unwrap().fill(5).is_ok());
        }
    }

    #[test]
    fn a_waker_that_is_replaced_is_dropped_without_a_lock() {
        let (promise, mut reply) = reply();
        let fills = Arc::new(Fills(Some(promise))).into();
        assert_eq!(Pin::new(&mut reply).poll(&mut Context::from_waker(&fills)), Poll::Pending);
        drop(fills);
        assert_eq!(poll(&mut reply), Poll::Pending);
        assert_eq!(poll(&mut reply), Poll::Ready(Some(5)));
    }

    #[test]
    fn a_broken_promise_is_told() {
        let (promise, mut reply) = reply::<i32>();
        assert_eq!(poll(&mut reply), Poll::Pending);
        drop(promise);
        assert_eq!(poll(&mut reply), Poll::Ready(None));
    }
}

/// Run by `make loom`.
#[cfg(all(test, flatwater_loom))]
mod model {
    use super::*;
    use loom::thread;

    /// The value is received exactly once: by the caller, by the worker, or by the drop of the slot.
    #[test]
    fn an_answer_is_delivered_or_comes_back() {
        loom::model(|| {
            let (promise, reply) = reply::<Arc<()>>();
            let value = Arc::new(());
            let sent = value.clone();
            let worker = thread::spawn(move || drop(promise.fill(sent)));
            drop(reply);
            worker.join().unwrap();
            assert_eq!(Arc::strong_count(&value), 1);
        });
    }

    #[test]
    fn a_waiting_caller_is_woken() {
        loom::model(|| {
            let (promise, reply) = reply::<i32>();
            let worker = thread::spawn(move || {
                if let Ok(waker) = promise.fill(7) {
                    waker.into_iter().for_each(Waker::wake);
                }
            });
            assert_eq!(loom::future::block_on(reply), Some(7));
            worker.join().unwrap();
        });
    }
}
