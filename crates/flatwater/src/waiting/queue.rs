//! The queue in front of a writer, and the token: the right to its connection.
//!
//! Owns: waiting requests and, while nobody holds it, the connection itself. The token *is* the connection: taking it
//! moves it out, giving it back moves it in, both under the queue's one lock, so two holders cannot exist. Invariants:
//! requests leave in the order they came; nobody overtakes them, because the token is lent to a caller's thread only
//! while the queue is empty; whoever gives the token back while requests wait wakes the writer, or learns that a writer
//! thread is to be started. No lock is held while a waker runs.
//!
//! ```text
//! caller's thread                         writer thread
//! takes the token (queue is empty)
//!                                         finds a request pushed meanwhile, but no token: parks
//! gives the token back: request waits,
//! so it notifies                          wakes, takes token and requests
//! ```
//!
//! Leaves out: what requests mean, which of them go together, and starting threads.

use std::task::{Context, Poll};
use std::time::Duration;

use super::bounded::{Bounded, Place};
use super::reply::wake as wake_callers;
use super::sync::{Condvar, Mutex, lock};

pub(crate) struct Queue<T, C> {
    state: Mutex<State<T, C>>,
    /// Only the writer thread waits on it.
    work: Condvar,
}

struct State<T, C> {
    waiting: Bounded<T>,
    /// The connection, while nobody holds it.
    token: Option<C>,
    worker: Worker,
    closed: bool,
    /// The last request of a closed queue, until everybody who stood in the line before it has pushed.
    last: Option<T>,
    /// The line waits no longer.
    dismissed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// No thread; whoever leaves work behind must start one.
    Absent,
    Busy,
    Parked,
}

/// The queue takes no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// Whether the caller has to start the writer thread. Exactly one caller is told so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Start {
    No,
    Yes,
}

impl<T, C> Queue<T, C> {
    pub(crate) fn new(limit: usize, token: C) -> Self {
        let state = State {
            waiting: Bounded::new(limit),
            token: Some(token),
            worker: Worker::Absent,
            closed: false,
            last: None,
            dismissed: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new() }
    }

    /// Pushes `item` as soon as there is a place, in order of arrival. Takes the item out of its option when it does.
    pub(crate) fn poll_push(
        &self,
        place: &mut Place,
        item: &mut Option<T>,
        context: &Context<'_>,
    ) -> Poll<Result<Start, Closed>> {
        let mut state = lock(&self.state);
        if state.closed && (place.is_none() || state.dismissed) {
            let wake = state.waiting.leave(place);
            drop(state);
            wake_callers(wake);
            return Poll::Ready(Err(Closed));
        }
        if !state.waiting.admit(place, context.waker()) {
            return Poll::Pending;
        }
        if let Some(item) = item.take() {
            state.waiting.push(item);
        }
        state.push_last();
        let start = state.rouse();
        drop(state);
        Poll::Ready(Ok(self.notify(start)))
    }

    /// The caller behind `place` is gone.
    pub(crate) fn leave(&self, place: &mut Place) -> Start {
        if place.is_none() {
            return Start::No;
        }
        let mut state = lock(&self.state);
        let wake = state.waiting.leave(place);
        let start = if state.push_last() { state.rouse() } else { Rouse::Nobody };
        drop(state);
        wake_callers(wake);
        self.notify(start)
    }

    /// Takes no more, except from those who stand in the line already; `last` comes after them. Only the first call does
    /// anything.
    pub(crate) fn close(&self, last: T) -> Result<Start, Closed> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        state.closed = true;
        state.last = Some(last);
        let start = if state.push_last() { state.rouse() } else { Rouse::Nobody };
        drop(state);
        Ok(self.notify(start))
    }

    /// A closed queue waits for its line no longer.
    pub(crate) fn dismiss(&self) -> Start {
        let mut state = lock(&self.state);
        state.dismissed = true;
        let line = state.waiting.dismiss();
        let start = if state.push_last() { state.rouse() } else { Rouse::Nobody };
        drop(state);
        wake_callers(line);
        self.notify(start)
    }

    /// Lends the token to a caller's thread, if it is free and nobody waits.
    pub(crate) fn borrow_idle(&self) -> Option<C> {
        let mut state = lock(&self.state);
        if state.closed || !state.waiting.is_empty() { None } else { state.token.take() }
    }

    /// Gives the token back.
    pub(crate) fn give_back(&self, token: C) -> Start {
        let mut state = lock(&self.state);
        state.token = Some(token);
        if state.waiting.is_empty() {
            return Start::No;
        }
        let start = state.rouse();
        drop(state);
        self.notify(start)
    }

    /// For the writer thread: waits for a request and the token, and takes the token. `None`: nothing came for `idle`
    /// (or ever, if the thread is to end); the thread must end now.
    pub(crate) fn wait(&self, idle: Duration) -> Option<C> {
        let mut state = lock(&self.state);
        loop {
            if !state.waiting.is_empty()
                && let Some(token) = state.token.take()
            {
                state.worker = Worker::Busy;
                return Some(token);
            }
            state.worker = Worker::Parked;
            let (next, timed_out) = self.park(state, idle);
            state = next;
            if timed_out && state.worker == Worker::Parked && (state.waiting.is_empty() || state.token.is_none()) {
                state.worker = Worker::Absent;
                return None;
            }
        }
    }

    /// For the writer thread, holding the token: takes requests from the front for as long as `take` says so.
    pub(crate) fn take_while(&self, into: &mut Vec<T>, mut take: impl FnMut(&T) -> bool) {
        let mut wake = Vec::new();
        let mut state = lock(&self.state);
        while state.waiting.front().is_some_and(&mut take) {
            let Some((item, waker)) = state.waiting.pop() else { break };
            into.push(item);
            wake.extend(waker);
        }
        drop(state);
        wake_callers(wake);
    }

    /// For the writer thread, holding the token: puts requests back to the front, in their order.
    pub(crate) fn put_back(&self, items: impl DoubleEndedIterator<Item = T>) {
        let mut state = lock(&self.state);
        for item in items.rev() {
            state.waiting.put_back(item);
        }
    }

    /// The thread that was to be started could not be: the next one who leaves work behind is told to try again.
    pub(crate) fn start_failed(&self) {
        lock(&self.state).worker = Worker::Absent;
    }

    /// Requests that wait now.
    pub(crate) fn len(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    fn notify(&self, start: Rouse) -> Start {
        match start {
            Rouse::Nobody => Start::No,
            Rouse::Notify => {
                self.work.notify_one();
                Start::No
            }
            Rouse::Start => Start::Yes,
        }
    }

    #[cfg(not(flatwater_loom))]
    fn park<'a>(
        &self,
        state: super::sync::MutexGuard<'a, State<T, C>>,
        idle: Duration,
    ) -> (super::sync::MutexGuard<'a, State<T, C>>, bool) {
        let (state, timeout) = self.work.wait_timeout(state, idle).unwrap_or_else(std::sync::PoisonError::into_inner);
        (state, timeout.timed_out())
    }

    /// The model has no clock: a wait of zero ends at once, any other only when it is notified.
    #[cfg(flatwater_loom)]
    fn park<'a>(
        &self,
        state: super::sync::MutexGuard<'a, State<T, C>>,
        idle: Duration,
    ) -> (super::sync::MutexGuard<'a, State<T, C>>, bool) {
        if idle.is_zero() {
            return (state, true);
        }
        (self.work.wait(state).unwrap(), false)
    }
}

enum Rouse {
    Nobody,
    Notify,
    Start,
}

impl<T, C> State<T, C> {
    /// Pushes the last request, if it is there and nobody comes before it.
    fn push_last(&mut self) -> bool {
        if self.waiting.has_line() && !self.dismissed {
            return false;
        }
        let last = self.last.take();
        let pushes = last.is_some();
        last.into_iter().for_each(|last| self.waiting.push(last));
        pushes
    }

    /// Called when there is work: who has to be told of it, if the token is free for the writer to take.
    fn rouse(&mut self) -> Rouse {
        if self.token.is_none() {
            return Rouse::Nobody;
        }
        match self.worker {
            Worker::Busy => Rouse::Nobody,
            Worker::Parked => {
                self.worker = Worker::Busy;
                Rouse::Notify
            }
            Worker::Absent => {
                self.worker = Worker::Busy;
                Rouse::Start
            }
        }
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;
    use std::task::Waker;

    fn push(queue: &Queue<u32, ()>, item: u32) -> Poll<Result<Start, Closed>> {
        queue.poll_push(&mut None, &mut Some(item), &Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_first_push_starts_the_writer_and_the_token_is_its_own() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Poll::Ready(Ok(Start::Yes)));
        assert_eq!(push(&queue, 2), Poll::Ready(Ok(Start::No)));
        assert!(queue.borrow_idle().is_none(), "nobody overtakes the queue");
        queue.wait(Duration::ZERO).unwrap();
        let mut taken = Vec::new();
        queue.take_while(&mut taken, |_| true);
        assert_eq!(taken, [1, 2]);
        assert!(queue.borrow_idle().is_none(), "the writer holds the token");
        assert_eq!(queue.give_back(()), Start::No);
        assert!(queue.borrow_idle().is_some());
    }

    #[test]
    fn an_idle_writer_ends_and_the_next_push_starts_another() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Poll::Ready(Ok(Start::Yes)));
        queue.wait(Duration::ZERO).unwrap();
        queue.take_while(&mut Vec::new(), |_| true);
        assert_eq!(queue.give_back(()), Start::No);
        assert!(queue.wait(Duration::ZERO).is_none());
        assert_eq!(push(&queue, 2), Poll::Ready(Ok(Start::Yes)));
    }

    #[test]
    fn after_close_only_what_was_pushed_before_is_left() {
        let queue = Queue::new(1, ());
        let _ = push(&queue, 1);
        let mut place = None;
        let mut item = Some(2);
        let context = Context::from_waker(Waker::noop());
        assert!(queue.poll_push(&mut place, &mut item, &context).is_pending());
        assert!(queue.close(9).is_ok());
        assert_eq!(queue.close(9), Err(Closed));
        let mut late = Some(3);
        assert_eq!(queue.poll_push(&mut None, &mut late, &context), Poll::Ready(Err(Closed)));
        assert_eq!(late, Some(3), "a refused item stays with its caller");
        let mut taken = Vec::new();
        queue.take_while(&mut taken, |_| true);
        assert_eq!(taken, [1], "the last one waits for the line");
        assert!(queue.poll_push(&mut place, &mut item, &context).is_ready());
        queue.take_while(&mut taken, |_| true);
        assert_eq!(taken, [1, 2, 9]);
    }

    #[test]
    fn a_closed_queue_waits_for_its_line_until_it_is_dismissed() {
        let queue = Queue::new(1, ());
        let _ = push(&queue, 1);
        let context = Context::from_waker(Waker::noop());
        let (mut gone, mut forgotten) = (None, None);
        assert!(queue.poll_push(&mut gone, &mut Some(2), &context).is_pending());
        assert!(queue.poll_push(&mut forgotten, &mut Some(3), &context).is_pending());
        assert!(queue.close(9).is_ok());
        let _ = queue.leave(&mut gone);
        let mut taken = Vec::new();
        queue.take_while(&mut taken, |_| true);
        assert_eq!(taken, [1]);
        let _ = queue.dismiss();
        queue.take_while(&mut taken, |_| true);
        assert_eq!(taken, [1, 9]);
        assert_eq!(queue.poll_push(&mut forgotten, &mut Some(3), &context), Poll::Ready(Err(Closed)));
    }

    #[test]
    fn what_is_put_back_comes_first_and_in_order() {
        let queue = Queue::new(8, ());
        for item in 1..=4 {
            let _ = push(&queue, item);
        }
        let mut taken = Vec::new();
        queue.take_while(&mut taken, |item| *item < 4);
        queue.put_back(taken.drain(1..));
        let mut rest = Vec::new();
        queue.take_while(&mut rest, |_| true);
        assert_eq!(rest, [2, 3, 4]);
    }
}

/// Run by `make loom`: every interleaving of these few threads.
#[cfg(all(test, flatwater_loom))]
mod model {
    use super::super::sync::Arc;
    use super::*;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;
    use std::task::Waker;

    struct Shared {
        queue: Queue<usize, usize>,
        done: AtomicUsize,
        inside: AtomicUsize,
    }

    fn shared() -> Arc<Shared> {
        Arc::new(Shared { queue: Queue::new(4, 0), done: AtomicUsize::new(0), inside: AtomicUsize::new(0) })
    }

    /// Two callers push or run inline; whoever is told to start the writer runs it. Each piece of work is done once,
    /// by one holder at a time, and none is left behind without anybody to do it.
    fn caller(shared: &Arc<Shared>, inline: bool) {
        if inline && let Some(token) = shared.queue.borrow_idle() {
            work(shared);
            if shared.queue.give_back(token) == Start::Yes {
                writer(shared);
            }
            return;
        }
        let context = Context::from_waker(Waker::noop());
        let pushed = shared.queue.poll_push(&mut None, &mut Some(1), &context);
        if pushed == Poll::Ready(Ok(Start::Yes)) {
            writer(shared);
        }
    }

    fn work(shared: &Shared) {
        assert_eq!(shared.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders of the token");
        shared.done.fetch_add(1, Ordering::SeqCst);
        shared.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// A writer thread that ends as soon as it is idle.
    fn writer(shared: &Shared) {
        while let Some(token) = shared.queue.wait(Duration::ZERO) {
            let mut taken = Vec::new();
            shared.queue.take_while(&mut taken, |_| true);
            for _ in taken {
                work(shared);
            }
            // The thread that runs the writer is Busy, so it is never told to start another.
            assert_eq!(shared.queue.give_back(token), Start::No);
        }
    }

    fn check(inline: [bool; 2]) {
        loom::model(move || {
            let shared = shared();
            let other = {
                let shared = shared.clone();
                thread::spawn(move || caller(&shared, inline[0]))
            };
            caller(&shared, inline[1]);
            other.join().unwrap();
            assert_eq!(shared.done.load(Ordering::SeqCst), 2, "work was left behind");
            let state = lock(&shared.queue.state);
            assert!(state.waiting.is_empty() && state.token.is_some());
        });
    }

    #[test]
    fn two_queued_writes() {
        check([false, false]);
    }

    #[test]
    fn an_inline_write_and_a_queued_one() {
        check([true, false]);
    }

    #[test]
    fn two_inline_writes() {
        check([true, true]);
    }

    /// A parked writer gets the one request that is pushed, also when a caller's thread holds the token meanwhile. If it
    /// were forgotten the model would end in a deadlock.
    #[test]
    fn a_parked_writer_misses_nothing() {
        loom::model(|| {
            let shared = shared();
            lock(&shared.queue.state).worker = Worker::Busy;
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let token = shared.queue.wait(Duration::MAX).unwrap();
                    let mut taken = Vec::new();
                    shared.queue.take_while(&mut taken, |_| true);
                    assert_eq!(taken, [1]);
                    work(&shared);
                    assert_eq!(shared.queue.give_back(token), Start::No);
                })
            };
            let inline = {
                let shared = shared.clone();
                thread::spawn(move || {
                    if let Some(token) = shared.queue.borrow_idle() {
                        work(&shared);
                        assert_eq!(shared.queue.give_back(token), Start::No);
                    }
                })
            };
            let context = Context::from_waker(Waker::noop());
            let pushed = shared.queue.poll_push(&mut None, &mut Some(1), &context);
            assert_eq!(pushed, Poll::Ready(Ok(Start::No)));
            writer.join().unwrap();
            inline.join().unwrap();
        });
    }
}
