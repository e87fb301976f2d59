//! The runs of live queries: each is a request whose answer no task awaits.
//!
//! Owns: pushing the request, and going on with its answer on the thread that delivers it: the reader's, or the one that
//! pushed, which may be a caller's. A caller's thread, or the one that follows the commits of other processes, runs the query
//! itself if it is short. Invariants: each run that was started ends in the entries, whatever becomes of its request; the
//! thread that pushed runs one query at most, and delivers one small result. Leaves out: what the entries make of it.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::Shared;
use super::after_unlock::{Start, Todo};
use super::entry::Ran;
use super::follow::FOLLOWS;
use crate::connection::learn::live_query::LiveRun;
use crate::queue::reply::wake;
use crate::workers::Answer;
use crate::workers::request::{ReplyTo, Request};
use crate::workers::work::Work;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::background::run_with;
use flatwater_base::thread::current::is_worker;
use flatwater_base::thread::lock;
use flatwater_sql::dependencies::index::Id;

/// How the thread that pushes the request of a run and the one that ends it agree on who delivers the result.
///
/// ```text
/// who pushes                               who ends it
/// pushes the request
///                                          ends it: whoever pushes delivers it, so it is left there
/// finds it, and delivers it if it is small
/// ```
enum Push {
    /// The request is being pushed. A result that is there before that is over is delivered by this thread, if it wants to.
    Goes {
        delivers: bool,
    },
    /// The run has ended meanwhile.
    Ended(Result<Vec<LiveRun>>),
    Over,
}

/// Returns true if they are compared with other results in microseconds.
fn are_small(run: &Result<Vec<LiveRun>>) -> bool {
    run.iter().flatten().all(|run| run.rows.is_small())
}

#[cold]
fn lost() -> Error {
    Error::new(ErrorCode::Internal, "the run of a live query was withdrawn, or a panic inside Flatwater ended it")
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
        self.note_end(&run);
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
        let delivers = delivers && is_small;
        // The other threads serve all callers.
        if delivers
            && (!is_worker() || FOLLOWS.get())
            && let Some(run) = (self.powers.run_here)(&query, &known)
        {
            return Some(Ok(run));
        }
        let push = Arc::new(Mutex::new(Push::Goes { delivers }));
        let (live, pushed) = (Arc::downgrade(self), push.clone());
        let ended = ReplyTo::then(move |answer| {
            let is_lost = answer.is_none();
            let run = answer.unwrap_or_else(|| Err(lost())).and_then(Answer::live);
            let mut push = lock(&pushed);
            match *push {
                // What the push returns says more about a request that is gone.
                Push::Goes { delivers } if delivers || is_lost => return *push = Push::Ended(run),
                _ => drop(push),
            }
            if let Some(live) = live.upgrade() {
                live.ended(id, run);
            }
        });
        let done = (self.powers.push)(Request::new(ticket, Work::Live(query, known), ended));
        match (done, std::mem::replace(&mut *lock(&push), Push::Over)) {
            (Err(error), _) => Some(Err(error)),
            (Ok(()), Push::Ended(run)) if are_small(&run) => Some(run),
            (Ok(()), Push::Ended(run)) => self.end_elsewhere(id, run),
            (Ok(()), _) => None,
        }
    }

    fn ended(self: &Arc<Self>, id: Id, run: Result<Vec<LiveRun>>) {
        let todo = self.finish(id, run);
        self.perform(todo);
    }

    /// Ends a run on a thread of its own. Returns its end if none can be started.
    fn end_elsewhere(self: &Arc<Self>, id: Id, run: Result<Vec<LiveRun>>) -> Option<Result<Vec<LiveRun>>> {
        let live = self.clone();
        run_with("fw-live", run, move |run| live.ended(id, run)).err()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{OnceLock, Weak};
    use std::task::{Context, Wake, Waker};
    use std::thread;
    use std::time::Duration;

    use super::super::diff::tests::delivery;
    use super::super::{LiveQueries, Powers, Subscription};
    use super::*;
    use crate::connection::learn::live_query::{Derived, LivePart, LiveQuery};
    use crate::options::Options;
    use crate::queue::reply::Teller;
    use crate::workers::context::Context as EngineContext;
    use crate::workers::interfaces::ChangeListener;
    use flatwater_base::thread::background::start_worker;
    use flatwater_base::values::params::Params;
    use flatwater_sql::dependencies::change::Change;
    use flatwater_sql::dependencies::reads::Reads;
    use flatwater_sql::statement_info::StatementInfo;

    const HANGS: Duration = Duration::from_secs(60);

    /// Live queries of which each has ended its run when the request was pushed. Its result has as many rows as `rows` says.
    struct AtOnce {
        live: LiveQueries,
        listener: Arc<dyn ChangeListener>,
        rows: Arc<Mutex<i64>>,
        /// How often a thread was asked to run a query itself.
        asked: Arc<AtomicUsize>,
        /// For each run: whether the thread that had its answer ended it.
        ended: Receiver<bool>,
    }

    fn at_once() -> AtOnce {
        let rows = Arc::new(Mutex::new(0));
        let (sender, ended) = channel();
        let rows_of_run = rows.clone();
        let made: Arc<OnceLock<Weak<Shared>>> = Arc::default();
        let shared = made.clone();
        let push = move |Request { reply_to, .. }: Request| {
            let in_flight = || shared.get().and_then(Weak::upgrade).map(|live| live.lock().in_flight());
            let mut rows = rows_of_run.lock().unwrap();
            *rows += 1;
            let values: Vec<[i64; 2]> = (0..*rows).map(|id| [id, id]).collect();
            drop(rows);
            let result = delivery(1, &[&values]).result.unwrap()[0].clone();
            let derived = Derived::of(Reads::Tables(Vec::new()));
            let run = LiveRun { rows: (*result).clone(), derived, found: Vec::new() };
            let before = in_flight();
            reply_to.fill(Ok(Answer::Live(vec![run])), &mut Teller::default());
            sender.send(in_flight() < before).unwrap();
            Ok(())
        };
        let asked: Arc<AtomicUsize> = Arc::default();
        let counted = asked.clone();
        let run_here = move |_: &LiveQuery, _: &[_]| {
            counted.fetch_add(1, Ordering::SeqCst);
            None
        };
        let powers = Powers { push: Box::new(push), run_here: Box::new(run_here), look: Box::new(|_| {}) };
        let options = Options::new(":memory:").resolve().unwrap();
        let live = LiveQueries::new(EngineContext::new(options), powers, 4);
        made.set(Arc::downgrade(&live.0)).unwrap();
        AtOnce { listener: live.listener(), live, rows, asked, ended }
    }

    impl AtOnce {
        fn subscribe(&self, sql: &str) -> Subscription {
            let text = Arc::new(StatementInfo::new(sql));
            let query = Arc::new(LiveQuery([LivePart { text, params: Params::default() }].into()));
            let subscription = self.live.subscribe(query, false).unwrap();
            assert!(take(&subscription, Waker::noop()));
            subscription
        }

        /// Commits something that invalidates all queries. Returns for each run whether the thread that had its answer
        /// ended it.
        fn commit(&self) -> Vec<bool> {
            while self.ended.try_recv().is_ok() {}
            self.listener.publish(&Change::Everything);
            self.listener.start();
            self.ended.try_iter().collect()
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
        let (sender, receiver) = channel();
        let waker = Waker::from(Arc::new(Names(Mutex::new(sender))));
        assert!(!take(&one, &waker));
        *bench.rows.lock().unwrap() = 10_000;
        assert_eq!(bench.commit(), [false]);
        assert_eq!(receiver.recv_timeout(HANGS).unwrap().as_deref(), Some("fw-live"));
        assert!(take(&one, Waker::noop()));
        assert_eq!(bench.commit(), [true], "the last result is large");
    }

    #[test]
    fn of_our_own_threads_only_the_one_that_follows_commits_runs_a_query_itself() {
        let bench = at_once();
        let _one = bench.subscribe("SELECT 1");
        let asked_on_one_that = |follows| {
            let (listener, asked, (sender, receiver)) = (bench.listener.clone(), bench.asked.clone(), channel());
            let commits = move || {
                FOLLOWS.set(follows);
                let before = asked.load(Ordering::SeqCst);
                listener.publish(&Change::Everything);
                listener.start();
                sender.send(asked.load(Ordering::SeqCst) - before).unwrap();
            };
            start_worker("fw-test", commits).unwrap();
            receiver.recv_timeout(HANGS).unwrap()
        };
        assert_eq!((asked_on_one_that(false), asked_on_one_that(true)), (0, 1));
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
