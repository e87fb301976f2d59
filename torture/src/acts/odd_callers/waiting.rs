//! Waits for a future on a thread without a runtime, and detects a hang and a missing wake-up.

use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::finding::Finding;

/// A call that does not complete within this time counts as hung.
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

/// Runs the future to its end on this thread. Polls it only when it was woken.
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
        // A blocking wait inside a poll on this thread may have consumed the thread's unpark token.
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

/// Polls once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits for a condition. Returns false if it does not become true.
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

/// Waits until `answer` returns a value.
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

/// Panics without a message on the terminal.
pub(crate) fn panic_quietly() -> ! {
    resume_unwind(Box::new("a panic on purpose"))
}
