//! The one reply to a request, and the parts of a result that its caller gets before it.
//!
//! Owns: the place between a worker and a caller, the parts that were handed over and not taken, and how the caller is told: by its
//! waker, or through a mailbox. Runs on the worker's thread and on the caller's. Invariants: a reply is delivered at most once; a
//! caller whose worker is gone without a reply learns of it; a reply whose caller is gone is returned to the worker, or dropped with
//! the place if it was already there; parts are taken in the order in which they were handed over; a caller that found none and left
//! its mailbox is told of the next one, and one that does not wait is not told. No lock is held while a waiter is told, cloned or
//! dropped, nor while a reply is dropped: each of these may run the user's code. Leaves out: deadlines and cancellation, which belong
//! to the ticket.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use flatwater_sqlite::Origin;

use super::sync::{Arc, Mutex, lock};
use flatwater_base::thread::background::dispose;
use flatwater_base::thread::current::unmark_closure;

/// Where calls of a front end learn that their replies are there. A call names itself by a token of its own choice.
pub trait Mailbox: Send + Sync {
    /// Notes that the call is to be polled again. Called on a worker's thread. Must not block.
    fn ready(&self, token: u64);

    /// Wakes whoever reads the mailbox. Called once after a batch of notes, on the same thread.
    fn flush(&self);
}

/// Who waits for a reply.
pub(crate) enum Waiter {
    Task(Waker),
    Call(std::sync::Arc<dyn Mailbox>, u64),
}

impl From<Waker> for Waiter {
    fn from(waker: Waker) -> Self {
        Self::Task(waker)
    }
}

/// Tells waiters. Each belongs to a foreign runtime: one that panics must affect neither other callers nor a worker.
/// Several calls of one mailbox are told with one flush, when this is dropped at the latest.
#[derive(Default)]
pub(crate) struct Teller {
    to_flush: Option<std::sync::Arc<dyn Mailbox>>,
}

impl Teller {
    pub(crate) fn tell(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Task(waker) => foreign(|| waker.wake()),
            Waiter::Call(mailbox, token) => {
                foreign(|| mailbox.ready(token));
                if !self.to_flush.as_ref().is_some_and(|before| std::sync::Arc::ptr_eq(before, &mailbox)) {
                    self.flush();
                    self.to_flush = Some(mailbox);
                }
            }
        }
    }

    /// Called before this thread does anything that takes long.
    pub(crate) fn flush(&mut self) {
        if let Some(mailbox) = self.to_flush.take() {
            foreign(|| mailbox.flush());
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Tells these waiters.
pub(crate) fn wake(waiters: impl IntoIterator<Item = impl Into<Waiter>>) {
    let mut teller = Teller::default();
    waiters.into_iter().for_each(|waiter| teller.tell(waiter.into()));
}

/// Runs code of a foreign runtime, or what leads to it.
pub(crate) fn foreign(code: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unmark_closure(code)));
}

enum ReplyState<T> {
    Empty(Option<Waiter>),
    Full(T),
    /// The reply was taken, or the caller is gone.
    Done,
    /// The worker is gone without a reply.
    Broken,
}

/// The worker's side. Dropping it unfilled breaks the promise, which wakes the caller.
pub(crate) struct Promise<T>(Option<Arc<SharedReply<T>>>);

/// The caller's side: a future of the reply, or of `None` if the worker is gone without one.
pub(crate) struct Reply<T>(Arc<SharedReply<T>>);

/// What both sides share.
struct SharedReply<T> {
    slot: Mutex<ReplyState<T>>,
    /// In a forked child the worker's thread does not exist, and the lock may be one that it held.
    origin: Origin,
}

pub(crate) fn reply<T>() -> (Promise<T>, Reply<T>) {
    let place = Arc::new(SharedReply { slot: Mutex::new(ReplyState::Empty(None)), origin: Origin::here() });
    (Promise(Some(place.clone())), Reply(place))
}

impl<T> Promise<T> {
    /// Stores the reply for the caller and returns the waiter to tell. Returns the reply if the caller is gone.
    pub(crate) fn fill(mut self, answer: T) -> Result<Option<Waiter>, T> {
        let Some(place) = self.0.take() else { return Err(answer) };
        let mut slot = lock(&place.slot);
        match &mut *slot {
            ReplyState::Empty(waiter) => {
                let waiter = waiter.take();
                *slot = ReplyState::Full(answer);
                Ok(waiter)
            }
            _ => Err(answer),
        }
    }

    /// Stores the reply and tells the caller. If the caller is gone, the reply is dropped.
    pub(crate) fn answer(self, answer: T) {
        if let Ok(waiter) = self.fill(answer) {
            wake(waiter);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let Some(place) = self.0.take().filter(|place| !place.origin.is_inherited()) else { return };
        let mut slot = lock(&place.slot);
        let waiter = match &mut *slot {
            ReplyState::Empty(waiter) => {
                let waiter = waiter.take();
                *slot = ReplyState::Broken;
                waiter
            }
            _ => None,
        };
        drop(slot);
        wake(waiter);
    }
}

impl<T> Reply<T> {
    /// Returns true if there is nothing to wait for any more.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(*lock(&self.0.slot), ReplyState::Empty(_))
    }

    /// Returns true if this process was forked since the request.
    pub(crate) fn is_inherited(&self) -> bool {
        self.0.origin.is_inherited()
    }

    /// Returns a closure that tells the waiting caller without delivering a reply.
    pub(crate) fn nudge(&self) -> impl FnOnce() + Send + use<T>
    where
        T: Send + 'static,
    {
        let place = self.0.clone();
        move || {
            let waiter = match &mut *lock(&place.slot) {
                ReplyState::Empty(waiter) => waiter.take(),
                _ => None,
            };
            wake(waiter);
        }
    }

    /// Takes the reply, or leaves the waiter that `make` returns. `is_same` says that the one of before is as good.
    fn poll_by(&self, is_same: impl Fn(&Waiter) -> bool, make: impl Fn() -> Waiter) -> Poll<Option<T>> {
        if self.is_inherited() {
            return Poll::Ready(None);
        }
        let mut own = None;
        loop {
            let mut slot = lock(&self.0.slot);
            let before = match std::mem::replace(&mut *slot, ReplyState::Done) {
                ReplyState::Full(answer) => return Poll::Ready(Some(answer)),
                ReplyState::Done | ReplyState::Broken => return Poll::Ready(None),
                ReplyState::Empty(before) => before,
            };
            if before.as_ref().is_some_and(&is_same) {
                *slot = ReplyState::Empty(before);
                return Poll::Pending;
            }
            if own.is_some() {
                *slot = ReplyState::Empty(own);
                drop(slot);
                drop(before);
                return Poll::Pending;
            }
            *slot = ReplyState::Empty(before);
            drop(slot);
            own = Some(make());
        }
    }

    /// Takes the reply if it is there.
    pub(crate) fn look(&self) -> Poll<Option<T>> {
        self.poll_by(|_| true, || Waiter::Task(Waker::noop().clone()))
    }

    /// Takes the reply, or has the call told through the mailbox when it is there.
    pub(crate) fn poll_for(&self, mailbox: &std::sync::Arc<dyn Mailbox>, token: u64) -> Poll<Option<T>> {
        self.poll_by(|_| false, || Waiter::Call(mailbox.clone(), token))
    }
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let waker = context.waker();
        let is_same = |before: &Waiter| matches!(before, Waiter::Task(before) if before.will_wake(waker));
        self.poll_by(is_same, || Waiter::Task(waker.clone()))
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        let left = std::mem::replace(&mut *lock(&self.0.slot), ReplyState::Done);
        drop(left);
    }
}

/// More parts than this are dropped on another thread: they may take as much memory as a large block.
const FEW: usize = 12;

pub(crate) struct Parts<T: Send + 'static>(Mutex<PartsState<T>>);

struct PartsState<T> {
    parts: VecDeque<T>,
    waiter: Option<Waiter>,
}

impl<T: Send + 'static> Default for Parts<T> {
    fn default() -> Self {
        Self(Mutex::new(PartsState { parts: VecDeque::new(), waiter: None }))
    }
}

impl<T: Send + 'static> Parts<T> {
    /// Hands a part over, and tells the caller if it waits. Called on a worker's thread.
    pub(crate) fn hand_over(&self, part: T) {
        let mut state = lock(&self.0);
        state.parts.push_back(part);
        let waiter = state.waiter.take();
        drop(state);
        wake(waiter);
    }

    /// Hands a part over in place of those that were not taken.
    pub(crate) fn replace(&self, part: T) {
        let before = std::mem::take(&mut lock(&self.0).parts);
        drop(before);
        self.hand_over(part);
    }

    /// Takes the next part. If there is none and a mailbox is given, the mailbox is told of the next one.
    pub(crate) fn take(&self, mailbox: Option<(&std::sync::Arc<dyn Mailbox>, u64)>) -> Option<T> {
        self.take_or_wait(mailbox.map(|(mailbox, token)| Waiter::Call(mailbox.clone(), token)))
    }

    /// Takes the next part. If there is none, the waiter is told of the next one.
    pub(crate) fn take_or_wait(&self, waiter: Option<Waiter>) -> Option<T> {
        let mut state = lock(&self.0);
        let part = state.parts.pop_front();
        let unused = if part.is_none() { std::mem::replace(&mut state.waiter, waiter) } else { waiter };
        drop(state);
        drop(unused);
        part
    }
}

impl<T: Send + 'static> Drop for Parts<T> {
    /// The last one to have them may run an event loop.
    fn drop(&mut self) {
        let parts = std::mem::take(&mut lock(&self.0).parts);
        if parts.len() > FEW {
            dispose(parts);
        }
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod tests {
    use super::*;

    fn poll<T>(reply: &mut Reply<T>) -> Poll<Option<T>> {
        Pin::new(reply).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_arrives_once() {
        let (promise, mut reply) = reply();
        assert_eq!(poll(&mut reply), Poll::Pending);
        assert!(promise.fill(5).unwrap().is_some());
        assert_eq!(poll(&mut reply), Poll::Ready(Some(5)));
        assert_eq!(poll(&mut reply), Poll::Ready(None));
    }

    #[test]
    fn an_answer_nobody_waits_for_comes_back() {
        let (promise, reply) = reply();
        drop(reply);
        assert_eq!(promise.fill(5).err(), Some(5));
    }

    /// A waker that fills the promise when it is dropped.
    struct Fills(Option<Promise<i32>>);

    impl std::task::Wake for Fills {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Fills {
        fn drop(&mut self) {
            assert!(self.0.take().unwrap().fill(5).is_ok());
        }
    }

    #[test]
    fn a_waker_that_is_replaced_is_dropped_without_a_lock() {
        let (promise, mut reply) = reply();
        let fills = Arc::new(Fills(Some(promise))).into();
        assert_eq!(Pin::new(&mut reply).poll(&mut Context::from_waker(&fills)), Poll::Pending);
        drop(fills);
        assert_eq!(poll(&mut reply), Poll::Pending);
        assert_eq!(poll(&mut reply), Poll::Ready(Some(5)));
    }

    /// Notes what it is told, in order; `None` is a flush.
    #[derive(Default)]
    struct Notes(Mutex<Vec<Option<u64>>>);

    impl Mailbox for Notes {
        fn ready(&self, token: u64) {
            lock(&self.0).push(Some(token));
        }

        fn flush(&self) {
            lock(&self.0).push(None);
        }
    }

    #[test]
    fn calls_of_one_mailbox_are_notified_with_one_flush() {
        let notes = [Arc::<Notes>::default(), Arc::default()];
        let boxes = notes.clone().map(|notes| notes as Arc<dyn Mailbox>);
        let mut teller = Teller::default();
        for (mailbox, token) in [(0, 7), (0, 8), (1, 9), (0, 10)] {
            let (promise, reply) = reply();
            assert_eq!(reply.poll_for(&boxes[mailbox], token), Poll::Pending);
            teller.tell(promise.fill(5).unwrap().unwrap());
            assert_eq!(reply.poll_for(&boxes[mailbox], token), Poll::Ready(Some(5)));
        }
        drop(teller);
        assert_eq!(*lock(&notes[0].0), [Some(7), Some(8), None, Some(10), None]);
        assert_eq!(*lock(&notes[1].0), [Some(9), None]);
    }

    #[test]
    fn a_mailbox_is_notified_of_a_broken_promise_and_of_a_nudge() {
        let notes = Arc::<Notes>::default();
        let mailbox = notes.clone() as Arc<dyn Mailbox>;
        let (promise, reply) = reply::<i32>();
        assert_eq!(reply.poll_for(&mailbox, 1), Poll::Pending);
        reply.nudge()();
        assert_eq!(reply.poll_for(&mailbox, 2), Poll::Pending);
        drop(promise);
        assert_eq!(reply.poll_for(&mailbox, 3), Poll::Ready(None));
        assert_eq!(*lock(&notes.0), [Some(1), None, Some(2), None]);
    }

    #[test]
    fn a_broken_promise_is_notified() {
        let (promise, mut reply) = reply::<i32>();
        assert_eq!(poll(&mut reply), Poll::Pending);
        drop(promise);
        assert_eq!(poll(&mut reply), Poll::Ready(None));
    }
}

/// Run by `make loom`.
#[cfg(all(test, flatwater_loom))]
mod model {
    use super::*;
    use loom::thread;

    /// The value is received exactly once: by the caller, by the worker, or by the drop of the slot.
    #[test]
    fn an_answer_is_delivered_or_comes_back() {
        loom::model(|| {
            let (promise, reply) = reply::<Arc<()>>();
            let value = Arc::new(());
            let sent = value.clone();
            let worker = thread::spawn(move || drop(promise.fill(sent)));
            drop(reply);
            worker.join().unwrap();
            assert_eq!(Arc::strong_count(&value), 1);
        });
    }

    struct Counts(loom::sync::atomic::AtomicUsize);

    impl Mailbox for Counts {
        fn ready(&self, token: u64) {
            self.0.fetch_add(token as usize, loom::sync::atomic::Ordering::SeqCst);
        }

        fn flush(&self) {}
    }

    /// Either the caller finds the reply when it looks, or it is told afterwards.
    #[test]
    fn a_call_is_notified_of_its_reply_or_finds_it() {
        loom::model(|| {
            let (promise, reply) = reply::<i32>();
            let counts = std::sync::Arc::new(Counts(loom::sync::atomic::AtomicUsize::new(0)));
            let mailbox = counts.clone() as std::sync::Arc<dyn Mailbox>;
            let worker = thread::spawn(move || wake(promise.fill(7).unwrap_or_default()));
            let found = reply.poll_for(&mailbox, 1).is_ready();
            worker.join().unwrap();
            let notified = counts.0.load(loom::sync::atomic::Ordering::SeqCst);
            assert_eq!(usize::from(found) + notified, 1);
            assert!(found || reply.poll_for(&mailbox, 1).is_ready());
        });
    }

    #[test]
    fn a_waiting_caller_is_woken() {
        loom::model(|| {
            let (promise, reply) = reply::<i32>();
            let worker = thread::spawn(move || {
                if let Ok(waiter) = promise.fill(7) {
                    wake(waiter);
                }
            });
            assert_eq!(loom::future::block_on(reply), Some(7));
            worker.join().unwrap();
        });
    }

    /// A caller that looks at the reply first and at the parts then finds something, or is told; and when it finds the
    /// reply, the part is there.
    #[test]
    fn a_part_is_found_or_notified_and_comes_before_the_reply() {
        loom::model(|| {
            let parts = std::sync::Arc::new(Parts::default());
            let (promise, reply) = reply::<i32>();
            let counts = std::sync::Arc::new(Counts(loom::sync::atomic::AtomicUsize::new(0)));
            let mailbox = counts.clone() as std::sync::Arc<dyn Mailbox>;
            let handed = parts.clone();
            let worker = thread::spawn(move || {
                handed.hand_over(1);
                wake(promise.fill(2).unwrap_or_default());
            });
            let replied = reply.poll_for(&mailbox, 1).is_ready();
            let part = parts.take(Some((&mailbox, 1)));
            assert!(!replied || part.is_some(), "the reply came before the part");
            worker.join().unwrap();
            if !replied && part.is_none() {
                assert!(counts.0.load(loom::sync::atomic::Ordering::SeqCst) > 0, "nothing was told");
            }
            assert!(part.is_some() || parts.take(None).is_some());
        });
    }
}

#[cfg(all(test, not(flatwater_loom)))]
mod parts_tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Notes the tokens that it is told.
    #[derive(Default)]
    struct Notes(Mutex<Vec<u64>>);

    impl Mailbox for Notes {
        fn ready(&self, token: u64) {
            self.0.lock().unwrap().push(token);
        }

        fn flush(&self) {}
    }

    #[test]
    fn parts_arrive_in_order_and_only_a_caller_that_waits_is_notified() {
        let notes = Arc::<Notes>::default();
        let mailbox = notes.clone() as Arc<dyn Mailbox>;
        let parts = Parts::default();
        assert_eq!(parts.take(Some((&mailbox, 1))), None);
        for part in 0..3 {
            parts.hand_over(part);
        }
        assert_eq!([(); 3].map(|()| parts.take(Some((&mailbox, 2)))), [Some(0), Some(1), Some(2)]);
        assert_eq!(parts.take(None), None);
        parts.hand_over(3);
        assert_eq!(*notes.0.lock().unwrap(), [1]);
    }

    #[test]
    fn many_parts_that_are_not_taken_are_dropped_elsewhere() {
        struct Part(std::sync::mpsc::Sender<std::thread::ThreadId>);
        impl Drop for Part {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).unwrap();
            }
        }
        let dropped_by = |count| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let parts = Parts::default();
            (0..count).for_each(|_| parts.hand_over(Part(sender.clone())));
            drop(sender);
            drop(parts);
            receiver.into_iter().collect::<Vec<_>>()
        };
        let here = std::thread::current().id();
        assert_eq!(dropped_by(FEW), vec![here; FEW]);
        let many = dropped_by(1000);
        assert!(many.len() == 1000 && !many.contains(&here));
    }
}
