//! Waiting for a future on a plain thread, and knowing a hang and a wake-up that never came.

use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::round::Finding;

/// A call that is not answered within this time hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Runs the future to its end on this thread. It is polled when it was woken, and not otherwise.
pub(crate) fn finish<F: Future>(what: &str, future: F) -> Result<F::Output, Finding> {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(true) });
    let waker = Waker::from(unpark.clone());
    let mut context = Context::from_waker(&waker);
    let until = Instant::now() + HANGS;
    loop {
        if unpark.woken.swap(false, Ordering::SeqCst)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return Ok(output);
        }
        // What waits inside a poll, on this very thread, may have used the thread's token up.
        if unpark.woken.load(Ordering::SeqCst) {
            continue;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let is_ready = future.as_mut().poll(&mut context).is_ready();
            let how = if is_ready { "was answered, and its caller never woken" } else { "never ends" };
            return Err(Finding::new(format!("a call {how}: {what}")));
        }
        thread::park_timeout(left);
    }
}

/// Polls once, with a waker that nobody is behind.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits for a condition; false if it did not come.
pub(crate) fn until(condition: impl Fn() -> bool) -> bool {
    let until = Instant::now() + HANGS;
    while !condition() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    true
}

/// Waits until there is an answer.
pub(crate) fn until_some<T>(answer: impl Fn() -> Option<T>) -> Option<T> {
    let found = std::cell::RefCell::new(None);
    until(|| {
        let answer = answer();
        let is_there = answer.is_some();
        found.replace(answer);
        is_there
    });
    found.into_inner()
}

/// A panic that says nothing on the terminal.
pub(crate) fn panic_quietly() -> ! {
    resume_unwind(Box::new("a panic on purpose"))
}
