//! The queue in front of a writer, and the token, which is the writer's connection.
//!
//! Owns: the waiting requests and, while no thread holds it, the token. Taking the token moves the connection out, giving it
//! back moves it in, both under the queue's one lock, so there are never two holders. What is done in between is the writer
//! slot (`workers::writer`). Runs on the threads of callers and on the writer's thread. Invariants: requests leave in the
//! order in which they were pushed, except the crate's own requests, which are pushed to the front; no caller overtakes
//! a request, because the token is lent to a caller's thread only while the queue is empty; giving the token back while
//! requests wait wakes the writer's thread, or returns that a writer's thread must be started; a request that is held
//! holds up those behind it, but neither the crate's own nor a close.
//!
//! ```text
//! caller's thread                         writer thread
//! takes the token (queue is empty)
//!                                         finds a request pushed meanwhile, but no token: parks
//! gives the token back: request waits,
//! so it notifies                          wakes, takes token and requests
//! ```
//!
//! Leaves out: what requests mean, which requests form a group, and starting threads.

pub(crate) mod bounded;
pub(crate) mod metrics;
pub(crate) mod reply;
mod sync;
pub(crate) mod ticket;

use std::time::Duration;

use crate::queue::bounded::{Bounded, LinePlace};
use crate::queue::sync::{Condvar, Mutex, MutexGuard, lock};

pub(crate) struct Queue<T, C> {
    state: Mutex<QueueState<T, C>>,
    /// Only the writer's thread waits on it.
    work: Condvar,
}

struct QueueState<T, C> {
    waiting: Bounded<T>,
    /// The request that the next holder of the token runs first, and alone.
    handed_over: Option<T>,
    /// The connection, while no thread holds it.
    token: Option<C>,
    worker: Worker,
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// There is no writer's thread; a call that leaves work behind must start one.
    Absent,
    Busy,
    Parked,
    /// It waits until the first request may run. More requests do not wake it, except the crate's own.
    Held,
}

/// The queue accepts no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// Whether the caller must start the writer's thread. Exactly one caller gets `Yes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Start {
    No,
    Yes,
}

impl<T, C> Queue<T, C> {
    pub(crate) fn new(limit: usize, token: C) -> Self {
        let state = QueueState {
            waiting: Bounded::new(limit),
            handed_over: None,
            token: Some(token),
            worker: Worker::Absent,
            closed: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new() }
    }

    /// Adds the item to the queue, or to the end of the line. Returns its place in the line. Returns the item if the
    /// queue is closed.
    pub(crate) fn push(&self, item: T) -> Result<(LinePlace, Start), (Closed, T)> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err((Closed, item));
        }
        let place = state.waiting.push(item);
        Ok((place, self.rouse_for(state)))
    }

    /// Adds the item in front of all others. Returns the item if the queue is closed.
    pub(crate) fn push_first(&self, item: T) -> Result<Start, (Closed, T)> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err((Closed, item));
        }
        state.waiting.put_back(item);
        state.is_not_held();
        Ok(self.rouse_for(state))
    }

    /// Removes the item at `place`, because its caller is gone. Returns it if it was still in the line.
    pub(crate) fn leave(&self, place: LinePlace) -> Option<T> {
        place.and_then(|_| lock(&self.state).waiting.leave(place))
    }

    /// Closes the queue to new requests; `last` comes after all requests pushed before. Only the first call has an
    /// effect.
    pub(crate) fn close(&self, last: T) -> Result<Start, Closed> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        state.closed = true;
        state.waiting.admit_all(Some(last));
        state.is_not_held();
        Ok(self.rouse_for(state))
    }

    /// Lends the token to a caller's thread, if the token is free and no request waits.
    pub(crate) fn borrow_idle(&self) -> Option<C> {
        let mut state = lock(&self.state);
        if state.closed || state.has_work() { None } else { state.token.take() }
    }

    /// Gives the token back. Returns whether the caller must start the writer's thread.
    pub(crate) fn give_back(&self, token: C) -> Start {
        let mut state = lock(&self.state);
        state.token = Some(token);
        if state.has_work() { self.rouse_for(state) } else { Start::No }
    }

    /// Gives the token back; its next holder runs `item` before anything else. Works on a closed queue too.
    pub(crate) fn hand_over(&self, token: C, item: T) -> Start {
        let mut state = lock(&self.state);
        debug_assert!(state.token.is_none() && state.handed_over.is_none(), "only the holder hands over");
        state.token = Some(token);
        state.handed_over = Some(item);
        self.rouse_for(state)
    }

    /// Waits for a request and the token, and takes the token. Called by the writer's thread. While `hold` returns a
    /// time for the first request, waits for that long and asks again; the token is free meanwhile. A request that was
    /// handed over is not held, nor is any after a close. If there is no request, waits for the time that `idle` returns.
    /// If nothing came in that time, calls `rests`, without the lock; unless that returns true, returns `None`: the thread
    /// must then end.
    pub(crate) fn wait(
        &self,
        mut idle: impl FnMut() -> Duration,
        mut rests: impl FnMut() -> bool,
        mut hold: impl FnMut(&T) -> Option<Duration>,
    ) -> Option<C> {
        let mut state = lock(&self.state);
        loop {
            if state.has_work() && state.token.is_some() {
                let Some(time) = state.waiting.front().filter(|_| state.may_hold()).and_then(&mut hold) else {
                    state.worker = Worker::Busy;
                    return state.token.take();
                };
                state.worker = Worker::Held;
                state = self.park(state, time).0;
                continue;
            }
            state.worker = Worker::Parked;
            let (next, timed_out) = self.park(state, idle());
            state = next;
            if timed_out && state.is_without_work() {
                drop(state);
                let goes_on = rests();
                state = lock(&self.state);
                if !goes_on && state.is_without_work() {
                    state.worker = Worker::Absent;
                    return None;
                }
            }
        }
    }

    /// Takes requests from the front while `take` returns true. Called by the writer's thread, which holds the token. A
    /// request that was handed over is taken alone.
    pub(crate) fn take_while(&self, into: &mut Vec<T>, mut take: impl FnMut(&T) -> bool) {
        let mut state = lock(&self.state);
        if let Some(first) = state.handed_over.take() {
            return into.push(first);
        }
        while state.waiting.front().is_some_and(&mut take) {
            into.extend(state.waiting.pop());
        }
    }

    /// Removes the requests that `take` returns true for, unless they are in the line.
    pub(crate) fn take_out(&self, take: impl FnMut(&T) -> bool) -> Vec<T> {
        lock(&self.state).waiting.take_out(take)
    }

    /// Puts requests back to the front, in their order. Called by the writer's thread, which holds the token.
    pub(crate) fn put_back(&self, items: impl DoubleEndedIterator<Item = T>) {
        let mut state = lock(&self.state);
        for item in items.rev() {
            state.waiting.put_back(item);
        }
    }

    /// Records that the writer's thread could not be started: the next call that leaves work behind, or that asks with
    /// `rouse` or `stir`, gets `Start::Yes`.
    /// Returns true if there will be no such call, because the queue is closed: then the caller must do the remaining
    /// work.
    pub(crate) fn start_failed(&self) -> bool {
        let mut state = lock(&self.state);
        state.worker = Worker::Absent;
        state.closed
    }

    /// Called after `start_failed`. Returns whether the caller must start the writer's thread, because requests wait.
    pub(crate) fn rouse(&self) -> Start {
        let state = lock(&self.state);
        if state.has_work() { self.rouse_for(state) } else { Start::No }
    }

    /// Has the writer's thread ask again how long it may be idle. Returns whether the caller must start one for that.
    pub(crate) fn stir(&self) -> Start {
        let start = lock(&self.state).rouse_worker();
        self.notify(start)
    }

    /// The number of requests that wait.
    pub(crate) fn len(&self) -> usize {
        let state = lock(&self.state);
        state.waiting.len() + usize::from(state.handed_over.is_some())
    }

    /// Called when there is work. The writer's thread learns of it, if the token is free for that thread.
    fn rouse_for(&self, mut state: MutexGuard<'_, QueueState<T, C>>) -> Start {
        let rouse = if state.token.is_none() { Rouse::Nobody } else { state.rouse_worker() };
        drop(state);
        self.notify(rouse)
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
        state: MutexGuard<'a, QueueState<T, C>>,
        idle: Duration,
    ) -> (MutexGuard<'a, QueueState<T, C>>, bool) {
        let (state, timeout) = self.work.wait_timeout(state, idle).unwrap_or_else(std::sync::PoisonError::into_inner);
        (state, timeout.timed_out())
    }

    /// The model has no clock: a wait of zero ends at once, any other wait ends only when it is notified.
    #[cfg(flatwater_loom)]
    fn park<'a>(
        &self,
        state: MutexGuard<'a, QueueState<T, C>>,
        idle: Duration,
    ) -> (MutexGuard<'a, QueueState<T, C>>, bool) {
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

impl<T, C> QueueState<T, C> {
    fn has_work(&self) -> bool {
        self.handed_over.is_some() || !self.waiting.is_empty()
    }

    /// Returns true if the writer's thread, which sleeps, has nothing to do.
    fn is_without_work(&self) -> bool {
        self.worker == Worker::Parked && (!self.has_work() || self.token.is_none())
    }

    fn may_hold(&self) -> bool {
        self.handed_over.is_none() && !self.closed
    }

    /// Called when there is work that does not wait until the first request may run.
    fn is_not_held(&mut self) {
        if self.worker == Worker::Held {
            self.worker = Worker::Parked;
        }
    }

    fn rouse_worker(&mut self) -> Rouse {
        match self.worker {
            Worker::Busy | Worker::Held => Rouse::Nobody,
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

    fn push(queue: &Queue<u32, ()>, item: u32) -> Start {
        queue.push(item).unwrap().1
    }

    fn take_all(queue: &Queue<u32, ()>) -> Vec<u32> {
        let mut taken = Vec::new();
        queue.take_while(&mut taken, |_| true);
        taken
    }

    #[test]
    fn the_first_push_starts_the_writer_and_the_token_is_its_own() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Start::Yes);
        assert_eq!(push(&queue, 2), Start::No);
        assert!(queue.borrow_idle().is_none(), "nobody overtakes the queue");
        queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
        assert_eq!(take_all(&queue), [1, 2]);
        assert!(queue.borrow_idle().is_none(), "the writer holds the token");
        assert_eq!(queue.give_back(()), Start::No);
        assert!(queue.borrow_idle().is_some());
    }

    #[test]
    fn an_idle_writer_ends_and_the_next_push_starts_another() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Start::Yes);
        queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
        take_all(&queue);
        assert_eq!(queue.give_back(()), Start::No);
        assert!(queue.wait(|| Duration::ZERO, || false, |_| None).is_none());
        assert_eq!(push(&queue, 2), Start::Yes);
    }

    #[test]
    fn a_thread_that_is_stirred_asks_again_how_long_it_may_be_idle() {
        let queue = std::sync::Arc::new(Queue::<u32, ()>::new(8, ()));
        assert_eq!(queue.stir(), Start::Yes, "there is no thread");
        assert_eq!(queue.stir(), Start::No, "somebody starts it");
        let (asked, is_idle) = std::sync::mpsc::channel();
        let waiting = queue.clone();
        let thread = std::thread::spawn(move || {
            let mut times = vec![Duration::ZERO, Duration::from_secs(3600)];
            let idle = || {
                asked.send(()).unwrap();
                times.pop().unwrap()
            };
            assert!(waiting.wait(idle, || false, |_| None).is_none());
        });
        is_idle.recv().unwrap();
        assert!(queue.borrow_idle().is_some(), "it is stirred although another one has the token");
        assert_eq!(queue.stir(), Start::No);
        thread.join().unwrap();
        assert_eq!(queue.stir(), Start::Yes);
    }

    #[test]
    fn after_close_only_what_was_pushed_before_is_left() {
        let queue = Queue::new(1, ());
        let _ = push(&queue, 1);
        let (place, _) = queue.push(2).unwrap();
        let (gone, _) = queue.push(3).unwrap();
        assert_eq!(queue.leave(gone), Some(3));
        assert!(queue.close(9).is_ok());
        assert_eq!(queue.close(9), Err(Closed));
        assert_eq!(queue.push(4), Err((Closed, 4)), "a refused item comes back");
        assert_eq!(queue.leave(place), None, "it is in by now");
        assert_eq!(take_all(&queue), [1, 2, 9]);
    }

    /// Meanwhile nobody overtakes the request, and what is not held wakes the thread at once.
    #[test]
    fn a_held_request_waits_while_the_token_is_free() {
        let queue = std::sync::Arc::new(Queue::new(8, ()));
        assert_eq!(push(&queue, 1), Start::Yes);
        let (held, is_held) = std::sync::mpsc::channel();
        let waiting = queue.clone();
        let thread = std::thread::spawn(move || {
            let hold = |item: &u32| {
                held.send(*item).unwrap();
                (*item == 1).then_some(Duration::from_secs(3600))
            };
            waiting.wait(|| Duration::ZERO, || false, hold).unwrap();
        });
        assert_eq!(is_held.recv(), Ok(1));
        // Pushed under the lock, so the thread is parked.
        assert_eq!(push(&queue, 2), Start::No);
        assert!(queue.borrow_idle().is_none());
        assert!(is_held.try_recv().is_err(), "another request does not wake the thread");
        assert_eq!(queue.push_first(9), Ok(Start::No));
        assert_eq!(is_held.recv(), Ok(9));
        thread.join().unwrap();
        assert_eq!(take_all(&queue), [9, 1, 2]);
    }

    #[test]
    fn nothing_is_held_after_a_close() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Start::Yes);
        assert!(queue.close(9).is_ok());
        queue.wait(|| Duration::ZERO, || false, |_| Some(Duration::from_secs(3600))).unwrap();
        assert_eq!(take_all(&queue), [1, 9]);
    }

    #[test]
    fn without_a_thread_the_next_push_tries_again_and_after_a_close_nobody_can() {
        let queue = Queue::new(8, ());
        assert_eq!(push(&queue, 1), Start::Yes);
        assert_eq!(queue.close(9), Ok(Start::No), "somebody is about to start the thread");
        assert!(queue.start_failed(), "and has to do what is left");
        queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
        assert_eq!(take_all(&queue), [1, 9]);
        let open = Queue::new(8, ());
        assert_eq!(push(&open, 1), Start::Yes);
        assert!(!open.start_failed());
        assert_eq!(push(&open, 2), Start::Yes);
        assert!(!open.start_failed());
        assert_eq!(open.rouse(), Start::Yes, "what waits is not left to the next push");
    }

    #[test]
    fn what_is_handed_over_comes_first_and_alone_and_nobody_borrows_the_token_before() {
        let queue = Queue::new(8, ());
        queue.borrow_idle().unwrap();
        assert_eq!(push(&queue, 1), Start::No);
        assert_eq!(queue.hand_over((), 7), Start::Yes);
        assert_eq!(queue.push_first(2), Ok(Start::No));
        assert_eq!(queue.len(), 3);
        assert!(queue.borrow_idle().is_none());
        queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
        assert_eq!(take_all(&queue), [7]);
        assert_eq!(queue.give_back(()), Start::No, "the thread is here");
        queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
        assert_eq!(take_all(&queue), [2, 1]);
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
        assert_eq!(take_all(&queue), [2, 3, 4]);
    }
}

/// Run by `make loom`: every interleaving of a few threads.
#[cfg(all(test, flatwater_loom))]
mod model {
    use super::*;
    use crate::queue::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    struct Shared {
        queue: Queue<usize, usize>,
        done: AtomicUsize,
        inside: AtomicUsize,
    }

    fn shared() -> Arc<Shared> {
        Arc::new(Shared { queue: Queue::new(4, 0), done: AtomicUsize::new(0), inside: AtomicUsize::new(0) })
    }

    /// The borrowed token. Dropping it gives the token back, as the last thing its holder does.
    struct Lent<'a> {
        shared: &'a Arc<Shared>,
        token: Option<usize>,
    }

    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            let Some(token) = self.token.take() else { return };
            if self.shared.queue.give_back(token) == Start::Yes {
                writer(self.shared);
            }
        }
    }

    /// One of two callers, which push or run inline; a caller that gets `Start::Yes` runs the writer. Each piece of
    /// work is done once, by one holder at a time, and no work is left behind without a thread to do it.
    fn caller(shared: &Arc<Shared>, inline: bool) {
        if inline && let Some(token) = shared.queue.borrow_idle() {
            let _lent = Lent { shared, token: Some(token) };
            work(shared);
            return;
        }
        let (_, start) = shared.queue.push(1).unwrap();
        if start == Start::Yes {
            writer(shared);
        }
    }

    fn work(shared: &Shared) {
        assert_eq!(shared.inside.fetch_add(1, Ordering::SeqCst), 0, "two holders of the token");
        shared.done.fetch_add(1, Ordering::SeqCst);
        shared.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// A writer's thread that ends as soon as it is idle.
    fn writer(shared: &Shared) {
        while let Some(token) = shared.queue.wait(|| Duration::ZERO, || false, |_| None) {
            let mut taken = Vec::new();
            shared.queue.take_while(&mut taken, |_| true);
            for _ in taken {
                work(shared);
            }
            // The thread that runs the writer is `Busy`, so `give_back` does not ask it to start another.
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

    /// The last request runs even if the token is lent when the queue is closed, and the token is not lent afterwards.
    #[test]
    fn a_close_while_the_token_is_lent() {
        loom::model(|| {
            let shared = shared();
            let inline = {
                let shared = shared.clone();
                thread::spawn(move || {
                    if let Some(token) = shared.queue.borrow_idle() {
                        let _lent = Lent { shared: &shared, token: Some(token) };
                        work(&shared);
                        return 1;
                    }
                    0
                })
            };
            if shared.queue.close(1).unwrap() == Start::Yes {
                writer(&shared);
            }
            assert!(shared.queue.borrow_idle().is_none());
            let stays = inline.join().unwrap();
            assert_eq!(shared.done.load(Ordering::SeqCst), stays + 1, "the close was left behind");
            assert!(lock(&shared.queue.state).token.is_some());
        });
    }

    /// A caller's thread hands a request over. No other thread does any work before that request.
    #[test]
    fn nobody_comes_between_a_holder_and_what_it_hands_over() {
        loom::model(|| {
            let shared = shared();
            let token = shared.queue.borrow_idle().unwrap();
            let other = {
                let shared = shared.clone();
                thread::spawn(move || {
                    if let Some(token) = shared.queue.borrow_idle() {
                        let _lent = Lent { shared: &shared, token: Some(token) };
                        assert_eq!(shared.done.load(Ordering::SeqCst), 1, "it was not done first");
                        work(&shared);
                    } else if shared.queue.push(2).unwrap().1 == Start::Yes {
                        writer(&shared);
                    }
                })
            };
            if shared.queue.hand_over(token, 1) == Start::Yes {
                let token = shared.queue.wait(|| Duration::ZERO, || false, |_| None).unwrap();
                let mut taken = Vec::new();
                shared.queue.take_while(&mut taken, |_| true);
                assert_eq!(taken, [1]);
                work(&shared);
                assert_eq!(shared.queue.give_back(token), Start::No);
                writer(&shared);
            }
            other.join().unwrap();
            assert_eq!(shared.done.load(Ordering::SeqCst), 2, "work was left behind");
        });
    }

    /// A parked writer's thread gets the one pushed request, also when a caller's thread holds the token meanwhile. A
    /// missed notification would be a deadlock in the model.
    #[test]
    fn a_parked_writer_misses_nothing() {
        loom::model(|| {
            let shared = shared();
            lock(&shared.queue.state).worker = Worker::Busy;
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let token = shared.queue.wait(|| Duration::MAX, || false, |_| None).unwrap();
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
            let (_, start) = shared.queue.push(1).unwrap();
            assert_eq!(start, Start::No);
            writer.join().unwrap();
            inline.join().unwrap();
        });
    }

    /// A writer's thread that holds the first request back for ever gets one that is pushed to the front. Another
    /// request does not have to wake it.
    #[test]
    fn a_held_writer_is_woken_by_what_is_not_held() {
        loom::model(|| {
            let shared = shared();
            lock(&shared.queue.state).worker = Worker::Busy;
            assert_eq!(shared.queue.push(1).unwrap().1, Start::No);
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared
                        .queue
                        .wait(|| Duration::MAX, || false, |item| (*item != 9).then_some(Duration::MAX))
                        .unwrap();
                    let mut taken = Vec::new();
                    shared.queue.take_while(&mut taken, |item| *item == 9);
                    assert_eq!(taken, [9]);
                })
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || assert!(shared.queue.push(2).is_ok()))
            };
            assert_eq!(shared.queue.push_first(9), Ok(Start::No));
            writer.join().unwrap();
            other.join().unwrap();
        });
    }
}
