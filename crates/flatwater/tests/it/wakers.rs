//! When a caller is woken, the writer is free: a write made by its waker runs at once, on the thread that calls the
//! waker.
//!
//! Leaves out: wakers that panic (`foreign_code`).

use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use flatwater::rusqlite::{self, Transaction};
use flatwater::{Checkpoint, Database, Error, params};
use futures_util::StreamExt;

use crate::inline_transactions::unhurried;
use crate::support::{TestFile, run};

/// The time after which a test counts as hung. It only detects hangs.
const HANGS: Duration = Duration::from_secs(120);
const INSERT: &str = "INSERT INTO t (x) VALUES (?)";

/// A waker that writes, and records whether the write ran at once.
struct Writes {
    db: Database,
    tell: Mutex<Sender<bool>>,
}

impl Writes {
    fn writes_at_once(&self) -> bool {
        let before = self.db.stats().inline.writes;
        let mut write = self.db.execute(INSERT, (-1,));
        let _ = Pin::new(&mut write).poll(&mut Context::from_waker(Waker::noop()));
        self.db.stats().inline.writes > before
    }
}

impl Wake for Writes {
    fn wake(self: Arc<Self>) {
        self.tell.lock().unwrap().send(self.writes_at_once()).unwrap();
    }
}

struct Bench {
    _file: TestFile,
    db: Database,
    waker: Waker,
    told: Receiver<bool>,
    /// How often a waker's write ran at once.
    found_free: usize,
}

impl Bench {
    fn new() -> Self {
        let file = TestFile::new();
        // The first write into a WAL that starts over is never inline, so it does not start over.
        let db = unhurried(file.options().checkpoint(Checkpoint::External)).open().wait().unwrap();
        db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, x NOT NULL)").wait().unwrap();
        db.execute(INSERT, (0,)).wait().unwrap();
        let (tell, told) = channel();
        let writes = Arc::new(Writes { db: db.clone(), tell: Mutex::new(tell) });
        let began = Instant::now();
        while !writes.writes_at_once() {
            assert!(began.elapsed() < HANGS, "no write runs at once");
            short_again(&db);
        }
        Self { _file: file, db, waker: writes.into(), told, found_free: 0 }
    }

    /// Returns the result of the future. Each time the future suspends, waits for its waker.
    fn finish<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                return answer;
            }
            self.found_free += usize::from(self.told.recv_timeout(HANGS).expect("the waker hangs"));
        }
    }

    /// Repeats the call until its waker found the writer free.
    fn until_woken(&mut self, mut call: impl FnMut(&mut Self)) {
        let (before, began) = (self.found_free, Instant::now());
        while self.found_free == before {
            assert!(began.elapsed() < HANGS, "the writer is never free when a caller is woken");
            short_again(&self.db);
            call(self);
        }
    }
}

/// Short writes may use the queue for a while. Calls that a waker polls only once do not change that.
fn short_again(db: &Database) {
    db.execute(INSERT, (0,)).wait().unwrap();
}

/// Each kind of call that the writer's thread completes. A call is repeated if it completed before it could suspend, or
/// if its waker was called while short writes use the queue, which may be faster for a while on a busy machine.
#[test]
fn whoever_is_woken_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    let fails = |_: &Transaction<'_>| Err::<(), _>(Error::from(rusqlite::Error::InvalidQuery));
    bench.until_woken(|bench| {
        bench.finish(db.alone().execute("INSERT INTO t (x) SELECT 1", ())).unwrap();
    });
    bench.until_woken(|bench| drop(bench.finish(db.execute("INSERT INTO t (x) SELECT NULL", ())).unwrap_err()));
    bench.until_woken(|bench| drop(bench.finish(db.query("INSERT INTO t (x) SELECT 2 RETURNING id", ())).unwrap()));
    bench.until_woken(|bench| assert_eq!(bench.finish(db.execute_many(INSERT, [(3,), (4,)])).unwrap(), 2));
    bench.until_woken(|bench| {
        bench.finish(db.batch([(INSERT, params![5]), (INSERT, params![6])])).unwrap();
    });
    bench.until_woken(|bench| bench.finish(db.execute_script("INSERT INTO t (x) VALUES (7)")).unwrap());
    bench.until_woken(|bench| {
        bench.finish(db.write_with(|tx| tx.execute(INSERT, [8]).map_err(Error::from))).unwrap();
    });
    bench.until_woken(|bench| drop(bench.finish(db.write_with(fails)).unwrap_err()));
    let begun = || {
        run(async {
            let tx = db.begin().await.unwrap();
            tx.execute(INSERT, (9,)).await.unwrap();
            tx
        })
    };
    bench.until_woken(|bench| bench.finish(begun().commit()).unwrap());
    bench.until_woken(|bench| bench.finish(begun().rollback()).unwrap());
    db.close().wait().unwrap();
}

/// On whichever thread the task is woken: on that of the write, if the query has ended by then, or on the reader's.
#[test]
fn whoever_is_told_of_a_result_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    let mut live = db.live("SELECT count(*) FROM t WHERE x = 0", ());
    bench.until_woken(|bench| {
        while let Poll::Ready(result) = live.poll_next_unpin(&mut Context::from_waker(&bench.waker)) {
            result.unwrap().unwrap();
        }
        db.execute(INSERT, (0,)).wait().unwrap();
        bench.found_free += usize::from(bench.told.recv_timeout(HANGS).expect("nobody is told"));
    });
    drop(live);
    db.close().wait().unwrap();
}
