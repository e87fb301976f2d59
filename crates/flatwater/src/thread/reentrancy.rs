//! Knowing that the current task is inside a transaction body, so that it does not wait for itself.
//!
//! Owns: a mark that is set on this thread while the body of a transaction is polled, and only then. It counts for as long
//! as the transaction is open, which may end before its body does. A task that the body spawned does not inherit the mark:
//! it merely waits for the transaction's end. Leaves out: transactions from `begin`, whose holder cannot be distinguished
//! from any other code.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

/// A transaction, as far as its body is concerned.
pub(crate) trait MayEnd: Send + Sync {
    fn is_open(&self) -> bool;
}

type Inside = (usize, Arc<dyn MayEnd>);

thread_local! {
    /// The databases whose transaction bodies are being polled on this thread, outermost first, and the transactions.
    static INSIDE: RefCell<Vec<Inside>> = const { RefCell::new(Vec::new()) };
}

/// Returns true if the current code is part of the body of an open transaction on the database `id`.
pub(crate) fn is_inside(id: usize) -> bool {
    let is_open = |(of, transaction): &Inside| *of == id && transaction.is_open();
    // A `drop` may use a database at a thread's end, when the mark is already destroyed.
    INSIDE.try_with(|inside| inside.borrow().iter().any(is_open)).unwrap_or(false)
}

/// Runs `body`, and sets the mark for the transaction on the database `id` whenever `body` is polled.
pub(crate) async fn inside<F: Future>(id: usize, transaction: Arc<dyn MayEnd>, body: F) -> F::Output {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::thread::block_on::block_on;

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
}
