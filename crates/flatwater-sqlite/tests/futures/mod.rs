//! Waiting for a future on a plain thread.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Polls until there is an answer.
pub(crate) fn finish<F: Future>(future: F) -> F::Output {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
