//! Waiting for a future on a plain thread, and the threads on which waiting is not allowed.
//!
//! Owns: `block_on` for calls that are waited for, and the mark of threads that run a user's closure on a connection of
//! this crate, or that the crate started. Runs on the caller's thread. Invariant: the previous mark is restored when the closure returns or panics.
//! Leaves out: any executor; one future, one thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

/// The thread's own park token is not enough: code that parks inside a poll, such as a `drop` that waits, consumes it.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs `future` to completion on this thread, which sleeps while the future is pending.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = unpark.clone().into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                while !unpark.woken.swap(false, Ordering::Acquire) {
                    thread::park();
                }
            }
        }
    }
}

thread_local! {
    static IN_CLOSURE: Cell<bool> = const { Cell::new(false) };
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that is inside a user's closure or SQL function on a connection of this crate. A call that
/// waited for that connection there would wait for itself.
pub(crate) fn in_closure() -> bool {
    IN_CLOSURE.get()
}

/// Marks this thread as one of this crate's own. Other threads wait for it, so it must not wait for a reply itself.
pub(super) fn is_ours() {
    IS_OURS.set(true);
}

/// Returns true on one of this crate's own threads.
pub(crate) fn is_worker() -> bool {
    IS_OURS.get()
}

/// Returns true where blocking on a reply could be waiting for itself.
pub(crate) fn must_not_block() -> bool {
    in_closure() || is_worker()
}

/// Runs `f`, which may call the user's code on a connection of this crate, with the mark set.
pub(crate) fn mark_closure<T>(f: impl FnOnce() -> T) -> T {
    with_mark(true, f)
}

fn with_mark<T>(mark: bool, f: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_CLOSURE.set(self.0);
        }
    }
    let _restore = Restore(IN_CLOSURE.replace(mark));
    f()
}

/// Runs foreign code that is not a closure on a connection, such as wakers, without the mark.
pub(crate) fn unmark_closure<T>(f: impl FnOnce() -> T) -> T {
    with_mark(false, f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_on_sleeps_until_it_is_woken() {
        let (promise, reply) = crate::queue::reply::reply();
        let other = thread::spawn(move || crate::queue::reply::wake(promise.fill(3).unwrap()));
        assert_eq!(block_on(reply), Some(3));
        other.join().unwrap();
    }

    #[test]
    fn what_waits_inside_a_poll_does_not_use_the_wake_up_of_the_poll_up() {
        let mut polls = 0;
        let twice = std::future::poll_fn(|context| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            thread::park();
            Poll::Pending
        });
        block_on(twice);
        assert_eq!(polls, 2);
    }

    #[test]
    fn a_closure_is_marked_while_it_runs_also_if_it_panics() {
        assert!(mark_closure(in_closure));
        let _ = std::panic::catch_unwind(|| mark_closure(|| panic!("expected")));
        assert!(!in_closure());
    }
}
