//! What is known of the code that runs on this thread: whether it may wait, inside which transactions it is, and for how long it
//! has waited for the lock of a host's interpreter.
//!
//! Owns: the marks of this thread, and waiting for a future on it (one future, one thread). A thread is marked while it runs a
//! user's closure on a connection of this crate, and one that the crate started always; while the body of a transaction is polled,
//! and only then, it is inside that transaction, for as long as this is open, which may end before its body does. Invariants: a mark
//! is as before when the closure or the poll returns or panics; a task that a body spawned does not inherit its mark: it merely waits
//! for the transaction's end. Leaves out: any executor; transactions from `begin`, whose holder cannot be distinguished from any
//! other code; the lock of the host, whose functions add what they have waited, which on the thread of a caller that has the lock
//! they would not.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

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
pub fn block_on<F: Future>(future: F) -> F::Output {
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
pub fn in_closure() -> bool {
    IN_CLOSURE.get()
}

/// Marks this thread as one of this crate's own. Other threads wait for it, so it must not wait for a reply itself.
pub(super) fn is_ours() {
    IS_OURS.set(true);
}

/// Returns true on one of this crate's own threads.
pub fn is_worker() -> bool {
    IS_OURS.get()
}

/// Returns true where blocking on a reply could be waiting for itself.
pub fn must_not_block() -> bool {
    in_closure() || is_worker()
}

/// Runs `f`, which may call the user's code on a connection of this crate, with the mark set.
pub fn mark_closure<T>(f: impl FnOnce() -> T) -> T {
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
pub fn unmark_closure<T>(f: impl FnOnce() -> T) -> T {
    with_mark(false, f)
}

/// A transaction, as far as its body is concerned.
pub trait MayEnd: Send + Sync {
    /// Returns true if it has not ended.
    fn is_open(&self) -> bool;
}

type Inside = (usize, Arc<dyn MayEnd>);

thread_local! {
    /// The databases whose transaction bodies are being polled on this thread, outermost first, and the transactions.
    static INSIDE: RefCell<Vec<Inside>> = const { RefCell::new(Vec::new()) };
}

/// Returns true if the current code is part of the body of an open transaction on the database `id`.
pub fn is_inside(id: usize) -> bool {
    let is_open = |(of, transaction): &Inside| *of == id && transaction.is_open();
    // A `drop` may use a database at a thread's end, when the mark is already destroyed.
    INSIDE.try_with(|inside| inside.borrow().iter().any(is_open)).unwrap_or(false)
}

/// Runs `body`, and sets the mark for the transaction on the database `id` whenever `body` is polled.
pub async fn inside<F: Future>(id: usize, transaction: Arc<dyn MayEnd>, body: F) -> F::Output {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            let left = INSIDE.try_with(|inside| inside.borrow_mut().pop());
            // It may have been the last to hold the transaction, whose drop is not for here.
            drop(left);
        }
    }
    let mut body = pin!(body);
    poll_fn(|context| {
        let _ = INSIDE.try_with(|inside| inside.borrow_mut().push((id, transaction.clone())));
        let _leave = Leave;
        body.as_mut().poll(context)
    })
    .await
}

thread_local! {
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds a wait of this thread.
pub fn waited(time: Duration) {
    WAITED.set(WAITED.get() + time);
}

/// The time of one run.
#[derive(Debug, Clone, Copy)]
pub struct RunTime {
    began: Instant,
    waited_before: Duration,
}

impl RunTime {
    /// Begins to measure.
    pub fn begin() -> Self {
        Self { began: Instant::now(), waited_before: WAITED.get() }
    }

    /// Returns how long the run has taken until now.
    pub fn took(&self) -> Duration {
        self.began.elapsed().saturating_sub(WAITED.get() - self.waited_before)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn block_on_sleeps_until_it_is_woken() {
        let woken = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel::<std::task::Waker>();
        let other = thread::spawn({
            let woken = woken.clone();
            move || {
                let waker = receiver.recv().unwrap();
                woken.store(true, Ordering::Release);
                waker.wake();
            }
        });
        let mut polls = 0;
        block_on(std::future::poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                sender.send(context.waker().clone()).unwrap();
                return Poll::Pending;
            }
            assert!(woken.load(Ordering::Acquire), "it was polled again before it was woken");
            Poll::Ready(())
        }));
        assert_eq!(polls, 2);
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

    /// It ends when this is set.
    #[derive(Default)]
    struct Ended(AtomicBool);

    impl MayEnd for Ended {
        fn is_open(&self) -> bool {
            !self.0.load(Ordering::Relaxed)
        }
    }

    async fn inside<F: Future>(id: usize, body: F) -> F::Output {
        super::inside(id, Arc::new(Ended::default()), body).await
    }

    #[test]
    fn the_mark_counts_for_as_long_as_the_transaction_is_open() {
        let transaction = Arc::new(Ended::default());
        block_on(super::inside(7, transaction.clone(), async {
            inside(7, async { assert!(is_inside(7)) }).await;
            assert!(is_inside(7));
            transaction.0.store(true, Ordering::Relaxed);
            assert!(!is_inside(7));
        }));
    }

    #[test]
    fn the_mark_is_there_while_the_body_is_polled_and_nowhere_else() {
        block_on(inside(7, async {
            assert!(is_inside(7) && !is_inside(8));
            inside(8, async { assert!(is_inside(7) && is_inside(8)) }).await;
            assert!(!is_inside(8));
            std::thread::spawn(|| assert!(!is_inside(7))).join().unwrap();
        }));
        assert!(!is_inside(7));
    }

    /// Queries the mark in its `drop`; a panic there ends the process.
    struct Asks;

    impl Drop for Asks {
        fn drop(&mut self) {
            assert!(!is_inside(7));
            block_on(inside(7, async {}));
        }
    }

    #[test]
    fn drop_code_at_a_threads_end_may_ask_before_the_mark_is_gone_and_after() {
        thread_local! {
            static ASKS: RefCell<Option<Asks>> = const { RefCell::new(None) };
        }
        let leave = || ASKS.set(Some(Asks));
        let mark = || block_on(inside(8, async {}));
        std::thread::spawn(move || (leave(), mark())).join().unwrap();
        std::thread::spawn(move || (mark(), leave())).join().unwrap();
    }

    #[test]
    fn a_body_that_panics_takes_its_mark_along() {
        let panics = std::panic::catch_unwind(|| block_on(inside(7, async { panic!("expected") })));
        assert!(panics.is_err() && !is_inside(7));
    }

    #[test]
    fn a_wait_for_the_host_is_no_time_of_the_run() {
        let long = Duration::from_secs(3600);
        waited(long);
        let run = RunTime::begin();
        std::thread::sleep(Duration::from_millis(1));
        assert!(run.took() >= Duration::from_millis(1), "what was waited for before is not subtracted");
        waited(long);
        assert_eq!(run.took(), Duration::ZERO);
    }
}
