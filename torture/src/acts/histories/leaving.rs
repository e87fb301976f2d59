//! A caller that drops a call: the future is polled a number of times and then dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::op::Leave;

/// Resolves to `None` if the future was dropped before it was ready.
pub(super) struct Leaving<F> {
    future: Option<Pin<Box<F>>>,
    /// The remaining polls, and whether they follow each other immediately.
    polls: Option<(u32, bool)>,
}

/// Wraps a future that its caller drops as `leave` says.
pub(super) fn leaving<F: Future>(future: F, leave: Leave) -> Leaving<F> {
    let polls = if let Leave::After { polls, at_once } = leave { Some((polls, at_once)) } else { None };
    Leaving { future: Some(Box::pin(future)), polls }
}

impl<F: Future> Future for Leaving<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((0, _)) = self.polls {
            self.future = None;
        }
        let Some(future) = &mut self.future else { return Poll::Ready(None) };
        let polled = future.as_mut().poll(context).map(Some);
        if let (Poll::Pending, Some((left, at_once))) = (&polled, &mut self.polls) {
            *left -= 1;
            if *at_once || *left == 0 {
                context.waker().wake_by_ref();
            }
        }
        polled
    }
}
