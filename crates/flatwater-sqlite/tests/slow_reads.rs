//! What a caller's thread is held up for when the file is read slowly: a disk that is cold, a row of 20 MB. The reads of one
//! run, after which the next uses of its text are a worker's.
//!
//! Its own program, because it puts its own `pread` in the place of the C library's. It counts the reads of a thread and
//! lets the first ones take longer than a run may.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/reads.rs"]
mod interposed_reads;
#[path = "interposed/writes.rs"]
mod interposed_writes;

use std::cell::Cell;
use std::ffi::c_int;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, Inline, InlineLimits};
use flatwater::{Call, Database, ErrorKind, Options, rusqlite};
use futures::finish;

/// Longer than a run may take.
const READ: Duration = Duration::from_millis(20);

static SLOW: AtomicBool = AtomicBool::new(false);
/// The disk is full, which takes long to find out.
static FULL: AtomicBool = AtomicBool::new(false);
/// They are slow for the whole program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    /// Since reads became slow.
    static READS: Cell<u32> = const { Cell::new(0) };
    static FAILED_WRITES: Cell<u32> = const { Cell::new(0) };
}

fn reads(_fd: c_int) {
    if SLOW.load(Ordering::SeqCst) {
        READS.set(READS.get() + 1);
        // Two are enough to make a run slow.
        if READS.get() <= 2 {
            std::thread::sleep(READ);
        }
    }
}

fn writes(_fd: c_int) -> bool {
    let is_full = FULL.load(Ordering::SeqCst);
    if is_full {
        FAILED_WRITES.set(FAILED_WRITES.get() + 1);
        std::thread::sleep(READ);
        // SAFETY: the C library's errno of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSPC };
    }
    !is_full
}

/// While it lives reads are slow.
struct Slow;

impl Slow {
    fn begin() -> Self {
        READS.set(0);
        SLOW.store(true, Ordering::SeqCst);
        Self
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        SLOW.store(false, Ordering::SeqCst);
    }
}

/// A database whose file has been opened, and its path.
struct Bench {
    db: Database,
    handle: Database,
    path: PathBuf,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    fn new(schema: &str) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let limits = InlineLimits::default().time(READ / 4);
        // Nothing else happens to the WAL.
        let options =
            Options::new(&path).checkpoint(Checkpoint::External).readers(1).tuning(|t| t.inline(Inline::Auto(limits)));
        let handle = options.open().wait().unwrap();
        let db = handle.clone();
        db.execute_script(schema).wait().unwrap();
        db.execute("CREATE TABLE other (x)", ()).wait().unwrap();
        Self { db, handle, path, _directory: directory, _alone: alone }
    }

    /// Somebody else commits, which voids every cache.
    fn forget_pages(&self) {
        let other = rusqlite::Connection::open(&self.path).unwrap();
        other.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        other.execute("INSERT INTO other VALUES (1)", []).unwrap();
    }

    /// Polls the call while reads are slow, and waits for the rest. Returns how many reads this thread waited for.
    fn reads_of<T>(mut call: Call<T>) -> u32 {
        let slow = Slow::begin();
        let poll = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        drop(slow);
        let reads = READS.get();
        match poll {
            Poll::Ready(answer) => drop(answer.unwrap()),
            Poll::Pending => drop(call.wait().unwrap()),
        }
        reads
    }

    /// Makes calls on a cold cache until one has read on this thread, and the next one has not. After three slow ones none is
    /// tried for a second. No poll waits for more than `most` reads.
    fn is_a_workers_after_a_slow_run<T>(&self, most: u32, mut call: impl FnMut(i64) -> Call<T>) {
        let mut reads = |id| {
            self.forget_pages();
            let reads = Self::reads_of(call(id));
            assert!(reads <= most, "a poll waited for {reads} reads");
            reads
        };
        let is_a_workers = (100..10_000).any(|id| reads(2 * id) > 0 && reads(2 * id + 1) == 0);
        assert!(is_a_workers, "none was tried on this thread");
    }

    /// How many calls were not tried because runs of their text had been slow.
    fn held_back(&self) -> u64 {
        self.db.stats().inline.queued_backoff
    }

    fn close(self) {
        self.db.close().wait().unwrap();
        let plain = rusqlite::Connection::open(&self.path).unwrap();
        let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
    }
}

const FIND: &str = "SELECT x FROM t WHERE id = ?";
const INSERT: &str = "INSERT INTO t (x) VALUES (?)";
const UPDATE: &str = "UPDATE t SET x = ? WHERE id = ?";
const DELETE: &str = "DELETE FROM t WHERE id = ?";

/// A tree of three levels, and texts that are known to be short.
fn known() -> Bench {
    let bench = Bench::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x);
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
            INSERT INTO t SELECT i, randomblob(900) FROM n;",
    );
    for id in 1..=20 {
        bench.db.query(FIND, (id,)).wait().unwrap();
        bench.db.execute(INSERT, ("x",)).wait().unwrap();
        bench.db.execute(UPDATE, ("y", id)).wait().unwrap();
        bench.db.execute(DELETE, (id,)).wait().unwrap();
    }
    // The pages are read from the database's file.
    bench.handle.checkpoint(CheckpointMode::Truncate).wait().unwrap();
    bench
}

/// The first page, and those from the root to the row.
const PAGES: u32 = 4;

#[test]
fn a_cold_cache_holds_the_caller_for_the_depth_of_a_tree_and_then_a_worker_reads() {
    let bench = known();
    let rows = || bench.db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap().unwrap();
    let before = rows();
    let (mut inserted, mut deleted) = (0, 0);
    let db = &bench.handle;
    bench.is_a_workers_after_a_slow_run(PAGES, |id| db.query(FIND, (id,)));
    assert!(bench.held_back() > 0);
    bench.is_a_workers_after_a_slow_run(PAGES, |id| db.execute(UPDATE, ("z", id)));
    bench.is_a_workers_after_a_slow_run(PAGES, |id| {
        deleted += 1;
        db.execute(DELETE, (id,))
    });
    bench.is_a_workers_after_a_slow_run(PAGES, |_| {
        inserted += 1;
        db.execute(INSERT, ("z",))
    });
    assert_eq!(rows(), before + inserted - deleted, "each is done once");
    bench.close();
}

#[test]
fn a_slow_read_in_a_transaction_leaves_the_transaction_as_it_is() {
    let bench = known();
    let is_held_back = (100..1_000).any(|id| {
        bench.forget_pages();
        let transaction = finish(bench.handle.begin()).unwrap();
        transaction.execute(UPDATE, ("kept", 99)).wait().unwrap();
        let reads = Bench::reads_of(transaction.query(FIND, (10_000 + id,)));
        let held_back = bench.held_back();
        transaction.query(FIND, (99,)).wait().unwrap();
        let is_held_back = bench.held_back() == held_back + 1;
        finish(transaction.commit()).unwrap();
        reads > 0 && is_held_back
    });
    assert!(is_held_back, "none was tried on this thread");
    assert_eq!(bench.db.query_optional_value::<String>(FIND, (99,)).wait().unwrap().unwrap(), "kept");
    bench.close();
}

#[test]
fn a_row_of_20_mb_holds_a_caller_once() {
    const FIND: &str = "SELECT b FROM t WHERE id = ?";
    const ROW: i64 = 1_000_000;
    let bench = Bench::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)");
    let db = &bench.handle;
    for id in 1..=20 {
        bench.db.execute("INSERT INTO t VALUES (?, 'a', 'b')", (id,)).wait().unwrap();
        bench.db.query(FIND, (id,)).wait().unwrap();
    }
    bench.db.execute("INSERT INTO t VALUES (?, zeroblob(20000000), 'behind it')", (ROW,)).wait().unwrap();
    bench.is_a_workers_after_a_slow_run(u32::MAX, |_| db.query(FIND, (ROW,)));
    assert!(bench.held_back() > 0);
    assert_eq!(bench.db.query_optional_value::<String>(FIND, (ROW,)).wait().unwrap().unwrap(), "behind it");
    bench.close();
}

/// To roll back, SQLite reads the first page again, after the time of the run. Pages that were never committed must not look
/// as if they had been.
#[test]
fn a_write_that_fails_late_leaves_nothing_in_the_cache() {
    let bench = Bench::new("CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    let insert = "INSERT INTO t VALUES (?, ?)";
    for id in 1..=20 {
        bench.db.execute(insert, (id, "short")).wait().unwrap();
    }
    // So long a row takes pages of its own, of which the first page keeps count.
    let row = vec![7_u8; 20_000];
    let mut failed = 0;
    for id in 100..1_000 {
        FAILED_WRITES.set(0);
        FULL.store(true, Ordering::SeqCst);
        let mut call = bench.handle.execute(insert, (id, row.clone()));
        let poll = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        let stayed = FAILED_WRITES.get() > 0;
        if let Poll::Ready(answer) = poll {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Full);
        } else {
            assert_eq!(call.wait().unwrap_err().kind(), ErrorKind::Full);
        }
        FULL.store(false, Ordering::SeqCst);
        bench.db.execute(insert, (id, row.clone())).wait().unwrap();
        failed += u32::from(stayed);
        if failed == 3 {
            break;
        }
        // It was slow: until it is known to be short again.
        for other in 0..40 {
            bench.db.execute(insert, (id * 1_000 + other, "short")).wait().unwrap();
        }
    }
    assert_eq!(failed, 3, "too few were tried on this thread");
    bench.close();
}
