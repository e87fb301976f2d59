//! What a caller's thread is held up for when the file is read slowly: a disk that is cold, a row of 20 MB. One read,
//! whatever the statement would have to read.
//!
//! Its own program, because it puts its own `pread` in the place of the C library's. It counts the reads of a thread and
//! lets each take longer than a stay may.
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

/// Longer than a stay may take.
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
        // Two are enough to see that a thread waits for more than one.
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
        let options = Options::new(&path)
            .tuning(|t| t.checkpoint(Checkpoint::External))
            .readers(1)
            .tuning(|t| t.inline(Inline::Auto(limits)));
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

    /// Polls the call while reads are slow, answers whether it was given up after a read, and waits for the rest. It may also be
    /// given up before a read, because this thread did not run for a while on a machine with other work.
    fn is_given_up<T>(&self, mut call: Call<T>) -> bool {
        let (moved, slow) = (self.db.stats().inline.moved, Slow::begin());
        let poll = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        drop(slow);
        let reads = READS.get();
        assert!(reads <= 1, "a poll waited for {reads} reads");
        let is_given_up = self.db.stats().inline.moved > moved && reads == 1;
        match poll {
            Poll::Ready(answer) => drop(answer.unwrap()),
            Poll::Pending => drop(call.wait().unwrap()),
        }
        is_given_up
    }

    /// Makes calls on a cold cache until one is tried on this thread and given up after a read. After three of them none is tried
    /// for a second.
    fn gives_up_after_a_read<T>(&self, mut call: impl FnMut(i64) -> Call<T>) {
        let given_up = (100..20_000).any(|id| {
            self.forget_pages();
            self.is_given_up(call(id))
        });
        assert!(given_up, "none was tried on this thread");
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

#[test]
fn a_cold_cache_holds_the_caller_for_one_read_at_most() {
    let bench = known();
    let rows = || bench.db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap().unwrap();
    let before = rows();
    let (mut inserted, mut deleted) = (0, 0);
    let db = &bench.handle;
    bench.gives_up_after_a_read(|id| db.query(FIND, (id,)));
    bench.gives_up_after_a_read(|id| db.execute(UPDATE, ("z", id)));
    bench.gives_up_after_a_read(|id| {
        deleted += 1;
        db.execute(DELETE, (id,))
    });
    bench.gives_up_after_a_read(|_| {
        inserted += 1;
        db.execute(INSERT, ("z",))
    });
    assert_eq!(rows(), before + inserted - deleted, "what was given up is done once");
    bench.close();
}

#[test]
fn a_read_that_is_given_up_in_a_transaction_leaves_the_transaction_as_it_is() {
    let bench = known();
    let given_up = (100..1_000).any(|id| {
        bench.forget_pages();
        let transaction = finish(bench.handle.begin()).unwrap();
        transaction.execute(UPDATE, ("kept", 99)).wait().unwrap();
        let given_up = bench.is_given_up(transaction.query(FIND, (10_000 + id,)));
        finish(transaction.commit()).unwrap();
        given_up
    });
    assert!(given_up, "none was tried on this thread");
    assert_eq!(bench.db.query_optional_value::<String>(FIND, (99,)).wait().unwrap().unwrap(), "kept");
    bench.close();
}

#[test]
fn a_row_of_20_mb_holds_the_caller_for_one_read_at_most() {
    const FIND: &str = "SELECT b FROM t WHERE id = ?";
    const ROW: i64 = 1_000_000;
    let bench = Bench::new("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)");
    let db = &bench.handle;
    for id in 1..=20 {
        bench.db.execute("INSERT INTO t VALUES (?, 'a', 'b')", (id,)).wait().unwrap();
        bench.db.query(FIND, (id,)).wait().unwrap();
        bench.db.execute(DELETE, (id,)).wait().unwrap();
    }
    let insert =
        "INSERT INTO t SELECT ?1, zeroblob(20000000), 'behind it' WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = ?1)";
    bench.db.execute(insert, (ROW,)).wait().unwrap();
    bench.gives_up_after_a_read(|_| db.query(FIND, (ROW,)));
    assert_eq!(bench.db.query_optional_value::<String>(FIND, (ROW,)).wait().unwrap().unwrap(), "behind it");
    bench.gives_up_after_a_read(|_| {
        // One that was not tried on this thread has deleted it.
        bench.db.execute(insert, (ROW,)).wait().unwrap();
        // However often it is tried, the WAL has one row.
        bench.handle.checkpoint(CheckpointMode::Truncate).wait().unwrap();
        bench.forget_pages();
        db.execute(DELETE, (ROW,))
    });
    bench.close();
}

/// To roll back, SQLite reads the first page again. If that read comes too late it must not make the pages that were
/// never committed look as if they had been.
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
