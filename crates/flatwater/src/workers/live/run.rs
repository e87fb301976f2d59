//! The runs of live queries: each is a request whose answer no task awaits.
//!
//! Owns: pushing the request, and taking its answer on the thread that delivers it: the reader's, or the one that pushed,
//! which may be a caller's. Invariants: each run that was started ends in the registry, whatever becomes of its request; the
//! thread that pushed delivers one small result at most. Leaves out: what the registry makes of it.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use super::Shared;
use super::after_unlock::{Start, Todo};
use super::entry::Ran;
use crate::connection::learn::live_query::LiveRun;
use crate::dependencies::index::Id;
use crate::error::{Error, Result};
use crate::queue::reply::{Reply, reply, wake};
use crate::thread::background::run_with;
use crate::workers::Answer;
use crate::workers::request::{Request, Work};

/// A run in flight, as the waker of its reply.
struct InFlight {
    live: Weak<Shared>,
    id: Id,
    awaited: Mutex<Awaited>,
}

struct Awaited {
    /// Until the run has ended.
    reply: Option<Reply<Result<Answer>>>,
    is_pushed: bool,
    /// The request is gone without an answer.
    is_lost: bool,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer if it is there; otherwise it is woken when it is. What becomes of a request that is not pushed yet,
    /// the push tells.
    fn look(self: &Arc<Self>) -> Option<Result<Vec<LiveRun>>> {
        let waker = Waker::from(self.clone());
        let mut awaited = self.lock();
        let polled = Pin::new(awaited.reply.as_mut()?).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(answer) = polled else { return None };
        if answer.is_none() && !awaited.is_pushed {
            awaited.is_lost = true;
            return None;
        }
        let reply = awaited.reply.take();
        drop(awaited);
        drop(reply);
        Some(answer.unwrap_or_else(|| Err(lost())).and_then(Answer::live))
    }

    /// Notes whether the request was pushed. Returns the end of a run that no thread will answer.
    fn is_pushed(&self, pushed: Result<()>) -> Option<Result<Vec<LiveRun>>> {
        let mut awaited = self.lock();
        awaited.is_pushed = true;
        let error = match pushed {
            Ok(()) if !awaited.is_lost => return None,
            Ok(()) => lost(),
            Err(error) => error,
        };
        let reply = awaited.reply.take();
        drop(awaited);
        reply.map(|_| Err(error))
    }
}

/// Returns true if they are compared with other results in microseconds.
fn are_small(run: &Result<Vec<LiveRun>>) -> bool {
    run.iter().flatten().all(|run| run.rows.is_small())
}

impl Wake for InFlight {
    fn wake(self: Arc<Self>) {
        let Some(run) = self.look() else { return };
        if let Some(live) = self.live.upgrade() {
            let todo = live.finish(self.id, run);
            live.perform(todo);
        }
    }
}

#[cold]
fn lost() -> Error {
    Error::misuse("the run of a live query was lost, because it was withdrawn or to a panic inside Flatwater")
}

thread_local! {
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

/// The right of this thread to deliver a result that is there when it has pushed the request.
struct MayDeliver(bool);

impl MayDeliver {
    fn take() -> Self {
        Self(!DELIVERS.replace(true))
    }
}

impl Drop for MayDeliver {
    fn drop(&mut self) {
        DELIVERS.set(!self.0);
    }
}

impl Shared {
    /// Starts the runs and wakes the tasks. Called without the lock.
    pub(super) fn perform(self: &Arc<Self>, mut todo: Todo) {
        // This thread may be a caller's: it delivers the result of one run at most. A waker may write, and so start a run.
        let may_deliver = MayDeliver::take();
        let mut delivers = may_deliver.0 && todo.starts.len() == 1;
        while let Some(start) = todo.starts.pop_front() {
            let id = start.id;
            if let Some(ended) = self.start(start, std::mem::take(&mut delivers)) {
                let mut more = self.finish(id, ended);
                todo.starts.append(&mut more.starts);
                todo.wakers.append(&mut more.wakers);
                // The rest of it is freed here.
            }
        }
        wake(todo.wakers);
    }

    fn finish(self: &Arc<Self>, id: Id, run: Result<Vec<LiveRun>>) -> Todo {
        self.ended(&run);
        let last = self.lock().last(id);
        let ran = Ran::new(run, last.as_ref());
        let mut todo = self.lock().finish(id, ran, Instant::now());
        let Some(behind) = todo.behind.take() else { return todo };
        wake(todo.wakers);
        let (puts, wakers) = behind.deliver();
        todo = self.lock().delivered(id, &puts);
        todo.wakers.extend(wakers);
        todo
    }

    /// Pushes the request of a run. Returns the end of the run if no other thread will tell it. If this thread delivers,
    /// that is also the case if the run has already ended and has a small result, which saves waking the task from
    /// another thread.
    fn start(self: &Arc<Self>, start: Start, delivers: bool) -> Option<Result<Vec<LiveRun>>> {
        let Start { id, query, known, ticket, is_small } = start;
        let (promise, reply) = reply();
        let awaited = Mutex::new(Awaited { reply: Some(reply), is_pushed: false, is_lost: false });
        let in_flight = Arc::new(InFlight { live: Arc::downgrade(self), id, awaited });
        let delivers = delivers && is_small;
        if !delivers {
            let ended = in_flight.look();
            debug_assert!(ended.is_none(), "it ends after it began");
        }
        let pushed = (self.powers.push)(Request::new(ticket, Work::Live(query, known), promise));
        let unanswered = in_flight.is_pushed(pushed);
        if unanswered.is_some() || !delivers {
            return unanswered;
        }
        let ended = in_flight.look()?;
        if are_small(&ended) { Some(ended) } else { self.finish_elsewhere(id, ended) }
    }

    /// Ends a run on a thread of its own. Returns its end if none can be started.
    fn finish_elsewhere(self: &Arc<Self>, id: Id, run: Result<Vec<LiveRun>>) -> Option<Result<Vec<LiveRun>>> {
        let live = self.clone();
        let finish = move |run| {
            let todo = live.finish(id, run);
            live.perform(todo);
        };
        run_with("fw-live", run, finish).err()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    use super::super::diff::tests::delivery;
    use super::super::{LiveQueries, Powers, Subscription};
    use super::*;
    use crate::connection::learn::live_query::Derived;
    use crate::dependencies::change::Change;
    use crate::dependencies::reads::Reads;
    use crate::sql::catalogue::StatementInfo;
    use crate::values::params::Params;
    use crate::workers::listener::ChangeListener;
    use crate::workers::request::{LivePart, LiveQuery};

    const HANGS: Duration = Duration::from_secs(60);

    /// Live queries of which each has ended its run when the request was pushed. Its result has as many rows as `rows` says.
    struct AtOnce {
        live: LiveQueries,
        listener: Arc<dyn ChangeListener>,
        rows: Arc<Mutex<i64>>,
        /// For each run: whether its end was awaited when it came.
        awaited: Receiver<bool>,
    }

    fn at_once() -> AtOnce {
        let rows = Arc::new(Mutex::new(0));
        let (tell, awaited) = channel();
        let rows_of_run = rows.clone();
        let push = move |Request { promise, .. }: Request| {
            let mut rows = rows_of_run.lock().unwrap();
            *rows += 1;
            let values: Vec<[i64; 2]> = (0..*rows).map(|id| [id, id]).collect();
            drop(rows);
            let result = delivery(1, &[&values]).result.unwrap()[0].clone();
            let derived = Derived::of(Reads::Tables(Vec::new()));
            let run = LiveRun { rows: (*result).clone(), derived, found: Vec::new() };
            let waiter = promise.fill(Ok(Answer::Live(vec![run]))).ok().flatten();
            tell.send(waiter.is_some()).unwrap();
            wake(waiter);
            Ok(())
        };
        let powers = Powers { push: Box::new(push), look: Box::new(|_| {}), turnstile: None };
        let live = LiveQueries::new(powers, 4, Duration::from_secs(3600));
        AtOnce { listener: live.listener(), live, rows, awaited }
    }

    impl AtOnce {
        fn subscribe(&self, sql: &str) -> Subscription {
            let text = Arc::new(StatementInfo::new(sql));
            let query = Arc::new(LiveQuery([LivePart { text, params: Params::default() }].into()));
            let subscription = self.live.subscribe(query, false).unwrap();
            assert!(take(&subscription, Waker::noop()));
            subscription
        }

        /// Commits something that meets all queries. Returns whether the end of each run was awaited when it came.
        fn commit(&self) -> Vec<bool> {
            while self.awaited.try_recv().is_ok() {}
            self.listener.publish(&Change::Everything);
            self.listener.start();
            self.awaited.try_iter().collect()
        }
    }

    /// Takes the result, if it is there.
    fn take(subscription: &Subscription, waker: &Waker) -> bool {
        subscription.place.poll(&mut Context::from_waker(waker), |_| true).is_ready()
    }

    /// Sends the name of the thread on which it is woken.
    struct Names(Mutex<std::sync::mpsc::Sender<Option<String>>>);

    impl Wake for Names {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().send(thread::current().name().map(str::to_owned)).unwrap();
        }
    }

    #[test]
    fn a_small_result_that_is_there_is_delivered_by_the_thread_that_pushed_the_request() {
        let bench = at_once();
        let one = bench.subscribe("SELECT 1");
        assert_eq!(bench.commit(), [false]);
        assert!(take(&one, Waker::noop()));
    }

    #[test]
    fn of_several_runs_none_is_delivered_by_it() {
        let bench = at_once();
        let (one, two) = (bench.subscribe("SELECT 1"), bench.subscribe("SELECT 2"));
        assert_eq!(bench.commit(), [true, true]);
        assert!(take(&one, Waker::noop()) && take(&two, Waker::noop()));
        let many: Vec<Subscription> = (0..20).map(|_| bench.subscribe("SELECT 2")).collect();
        drop(one);
        bench.commit();
        assert_eq!(bench.commit(), [true], "many subscribers are to be woken");
        assert!(many.iter().all(|other| take(other, Waker::noop())));
    }

    #[test]
    fn a_large_result_is_delivered_by_another_thread() {
        let bench = at_once();
        let one = bench.subscribe("SELECT 1");
        let (tell, told) = channel();
        let waker = Waker::from(Arc::new(Names(Mutex::new(tell))));
        assert!(!take(&one, &waker));
        *bench.rows.lock().unwrap() = 10_000;
        assert_eq!(bench.commit(), [false]);
        assert_eq!(told.recv_timeout(HANGS).unwrap().as_deref(), Some("fw-live"));
        assert!(take(&one, Waker::noop()));
        assert_eq!(bench.commit(), [true], "the last result is large");
    }

    /// A waker that commits, once.
    struct Commits(Mutex<Option<Arc<dyn ChangeListener>>>);

    impl Wake for Commits {
        fn wake(self: Arc<Self>) {
            let Some(listener) = self.0.lock().unwrap().take() else { return };
            listener.publish(&Change::Everything);
            listener.start();
        }
    }

    #[test]
    fn a_commit_of_a_waker_is_not_delivered_inside_of_it() {
        let bench = at_once();
        let one = bench.subscribe("SELECT 1");
        assert!(!take(&one, &Waker::from(Arc::new(Commits(Mutex::new(Some(bench.listener.clone())))))));
        assert_eq!(bench.commit(), [false, true]);
        assert!(take(&one, Waker::noop()));
        assert_eq!(bench.commit(), [false], "the next one is");
    }
}
