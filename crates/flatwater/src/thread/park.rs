//! Waiting for a future on a plain thread, and knowing the threads on which nobody may wait.
//!
//! Owns: `block_on` for calls that are waited for, and the mark of threads that run a closure of the user on one of our
//! connections. Leaves out: any executor; one future, one thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

/// The thread's own token does not tell: whoever parks inside a poll, such as drop code that waits, uses it up.
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

/// Runs `future` to its end on this thread, which sleeps meanwhile.
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

/// True on a thread that is inside a closure or an SQL function of the user on one of our connections: waiting for that
/// connection there would wait for itself.
pub(crate) fn in_closure() -> bool {
    IN_CLOSURE.get()
}

/// This thread is a worker's: others wait for it, so it must not wait for anybody's answer.
pub(crate) fn mark_own_thread() {
    IS_OURS.set(true);
}

/// True where blocking on an answer could wait for itself.
pub(crate) fn must_not_block() -> bool {
    in_closure() || IS_OURS.get()
}

/// Runs what may call code of the user on one of our connections, marked as such.
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

/// Runs foreign code that is no closure on a connection, such as wakers, without the mark.
pub(crate) fn unmark_closure<T>(f: impl FnOnce() -> T) -> T {
    with_mark(false, f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_on_sleeps_until_it_is_woken() {
        let (promise, reply) = crate::queue::reply::reply();
        let other = thread::spawn(move || promise.fill(3).unwrap().into_iter().for_each(std::task::Waker::wake));
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
