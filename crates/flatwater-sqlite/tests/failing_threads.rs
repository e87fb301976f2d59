//! What the engine does while the system has no thread for it: what cannot wait fails with an error that says so, and
//! what waits is served when there is a thread again, without another call.
//!
//! Its own program, because it puts its own `pthread_create` in the place of the C library's. That needs `unsafe`, so it
//! stands here and not with the engine's tests. A test that fails waits for ever.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/threads.rs"]
mod threads;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use flatwater::live::LiveRows;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, ErrorKind, Live, Options, Result};
use futures::finish;
use futures_core::Stream;

static REFUSES: AtomicBool = AtomicBool::new(false);
static REFUSED: AtomicU32 = AtomicU32::new(0);

fn may_start() -> bool {
    let refuses = REFUSES.load(Ordering::SeqCst);
    REFUSED.fetch_add(u32::from(refuses), Ordering::SeqCst);
    !refuses
}

/// No thread can be started, until this is dropped.
struct NoThreads(u32);

impl NoThreads {
    fn begin() -> Self {
        REFUSES.store(true, Ordering::SeqCst);
        Self(REFUSED.load(Ordering::SeqCst))
    }

    /// Waits until another thread could not be started.
    fn refuse_one(&mut self) {
        let before = std::mem::replace(&mut self.0, REFUSED.load(Ordering::SeqCst));
        while REFUSED.load(Ordering::SeqCst) == before {
            thread::yield_now();
        }
        self.0 = REFUSED.load(Ordering::SeqCst);
    }
}

impl Drop for NoThreads {
    fn drop(&mut self) {
        REFUSES.store(false, Ordering::SeqCst);
    }
}

/// Runs one test at a time, on a database with one row.
fn with_database(options: impl FnOnce(Options) -> Options, test: impl FnOnce(Database)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let db = options(Options::new(directory.path().join("test.db"))).open().wait().unwrap();
    db.execute("CREATE TABLE t (n)", ()).wait().unwrap();
    db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    test(db.clone());
    db.close().wait().unwrap();
}

fn next(live: &mut Live) -> Result<i64> {
    let rows: Option<Result<LiveRows>> = finish(poll_fn(|context| Pin::new(&mut *live).poll_next(context)));
    rows.expect("the stream goes on").map(|rows| rows.iter().next().unwrap().get(0).unwrap())
}

#[test]
fn a_live_query_without_a_thread_fails_once_and_then_has_the_newest_result() {
    with_database(
        |options| options,
        |db| {
            let mut live = db.live("SELECT n FROM t", ());
            let mut none = NoThreads::begin();
            let error = next(&mut live).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.message().contains("thread cannot be started") && error.hint().is_some(), "{error}");
            // On this thread, which may block.
            db.execute("UPDATE t SET n = 2", ()).wait().unwrap();
            none.refuse_one();
            drop(none);
            assert_eq!(next(&mut live).unwrap(), 2);
        },
    );
}

#[test]
fn a_write_that_waited_for_the_connection_runs_when_there_is_a_thread_again() {
    with_database(
        |options| options,
        |db| {
            let (holds, held) = channel();
            let (releases, released) = channel();
            let holder = thread::spawn({
                let db = db.clone();
                let hold = move |_: &flatwater::rusqlite::Transaction<'_>| {
                    holds.send(()).unwrap();
                    released.recv().unwrap();
                    Ok::<_, flatwater::Error>(())
                };
                move || db.write_with(hold).wait().unwrap()
            });
            held.recv().unwrap();
            let mut waits = pin!(db.execute("INSERT INTO t VALUES (2)", ()));
            assert!(matches!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
            let mut none = NoThreads::begin();
            releases.send(()).unwrap();
            none.refuse_one();
            drop(none);
            assert_eq!(finish(waits).unwrap().changes, 1);
            holder.join().unwrap();
        },
    );
}

#[test]
fn a_read_that_waited_for_a_connection_runs_when_there_is_a_thread_again() {
    with_database(
        |options| options.tuning(|t| t.extra_readers(1)),
        |db| {
            let (holds, held) = channel();
            let (releases, released) = channel();
            let holder = thread::spawn({
                let db = db.clone();
                let hold = move |_: &flatwater::rusqlite::Connection| {
                    holds.send(()).unwrap();
                    released.recv().unwrap();
                    Ok::<_, flatwater::Error>(())
                };
                move || db.read_with(hold).wait().unwrap()
            });
            held.recv().unwrap();
            let mut waits = pin!(db.read_with(|_| Ok::<_, flatwater::Error>(7)));
            assert!(matches!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
            let mut none = NoThreads::begin();
            releases.send(()).unwrap();
            none.refuse_one();
            drop(none);
            assert_eq!(finish(waits).unwrap(), 7);
            holder.join().unwrap();
        },
    );
}

#[test]
fn a_wal_that_grew_without_a_checkpointer_is_copied_when_there_is_a_thread_again() {
    let managed = CheckpointLimits::default().limit_bytes(1 << 20);
    with_database(
        |options| options.checkpoint(Checkpoint::Managed(managed)),
        |db| {
            let mut none = NoThreads::begin();
            db.execute("INSERT INTO t VALUES (zeroblob(3000000))", ()).wait().unwrap();
            none.refuse_one();
            drop(none);
            while db.stats().wal.copies == 0 {
                thread::yield_now();
            }
        },
    );
}
