//! What a caller's thread is not made to do by others: to recover the wal-index, to wait for a process that stands still, to
//! read a schema, to find out what became of a failed write.
//!
//! Its own program, because it puts its own `pread`, `pwrite` and `usleep` in the place of the C library's, to count what
//! each thread does. Other processes are played by locks that belong to a descriptor, which the locks of this process's
//! SQLite conflict with, and by bytes that are written into the wal-index.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/reads.rs"]
mod interposed_reads;
#[path = "interposed/sleeps.rs"]
mod interposed_sleeps;
#[path = "interposed/writes.rs"]
mod interposed_writes;

use std::cell::Cell;
use std::ffi::c_int;
use std::fs::OpenOptions;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::calls::TimeoutEffect;
use flatwater::options::{Checkpoint, Inline, InlineLimits};
use flatwater::rusqlite::{self, ffi};
use flatwater::{Call, Database, Error, ErrorKind, Options};
use futures::finish;

/// Naps of SQLite, on any thread.
static NAPS: AtomicU32 = AtomicU32::new(0);
/// What is counted is counted for the whole program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

thread_local! {
    static READS: Cell<u32> = const { Cell::new(0) };
    static WRITES: Cell<u32> = const { Cell::new(0) };
    /// The write of this thread that fails, counted from 1; 0: none.
    static FAILS: Cell<u32> = const { Cell::new(0) };
    /// For so long, before it does.
    static FAILS_AFTER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn reads(_fd: c_int) {
    READS.set(READS.get() + 1);
}

fn writes(_fd: c_int) -> bool {
    WRITES.set(WRITES.get() + 1);
    let fails = WRITES.get() == FAILS.get();
    if fails {
        std::thread::sleep(FAILS_AFTER.get());
        // SAFETY: the C library's errno of this thread.
        unsafe { *libc::__errno_location() = libc::EIO };
    }
    !fails
}

fn naps() {
    NAPS.fetch_add(1, Ordering::SeqCst);
}

/// The wal-index as another process has it. Its descriptor is never closed: that would end all locks that this process has on
/// the file (<https://sqlite.org/howtocorrupt.html>).
struct Foreigner(RawFd);

const HEADER_BYTES: usize = 48;
const CHANGE_OF_SECOND_COPY: u64 = 56;
/// <https://sqlite.org/walformat.html#wal_locks>
const WRITE_LOCK: i64 = 120;
const READ_MARKS: std::ops::RangeInclusive<i64> = 124..=127;

impl Foreigner {
    fn new(path: &Path) -> Self {
        let mut shm = path.as_os_str().to_owned();
        shm.push("-shm");
        Self(OpenOptions::new().read(true).write(true).open(shm).unwrap().into_raw_fd())
    }

    fn with<T>(&self, f: impl FnOnce(&std::fs::File) -> T) -> T {
        use std::os::fd::FromRawFd;
        // SAFETY: the descriptor is open, and not closed below.
        let file = std::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(self.0) });
        f(&file)
    }

    fn headers(&self) -> [u8; 2 * HEADER_BYTES] {
        let mut bytes = [0; 2 * HEADER_BYTES];
        self.with(|file| file.read_exact_at(&mut bytes, 0)).unwrap();
        bytes
    }

    /// Dies between the two copies of the header that a commit writes.
    fn tear(&self) {
        let at = usize::try_from(CHANGE_OF_SECOND_COPY).unwrap();
        let change = u32::from_ne_bytes(self.headers()[at..at + 4].try_into().unwrap());
        self.with(|file| file.write_all_at(&(change + 1).to_ne_bytes(), CHANGE_OF_SECOND_COPY)).unwrap();
    }

    /// Lives after all, and writes the same copy twice.
    fn mend(&self) {
        let headers = self.headers();
        self.with(|file| file.write_all_at(&headers[..HEADER_BYTES], HEADER_BYTES as u64)).unwrap();
    }

    fn is_torn(&self) -> bool {
        let headers = self.headers();
        headers[..HEADER_BYTES] != headers[HEADER_BYTES..]
    }

    /// Takes the locks and stands still. Waits until nobody else has one.
    fn lock(&self, bytes: std::ops::RangeInclusive<i64>) {
        while !self.set(&bytes, libc::F_WRLCK) {
            std::thread::yield_now();
        }
    }

    fn unlock(&self, bytes: std::ops::RangeInclusive<i64>) {
        assert!(self.set(&bytes, libc::F_UNLCK));
    }

    fn set(&self, bytes: &std::ops::RangeInclusive<i64>, kind: c_int) -> bool {
        let lock = libc::flock {
            l_type: i16::try_from(kind).unwrap(),
            l_whence: 0,
            l_start: *bytes.start(),
            l_len: bytes.end() - bytes.start() + 1,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open, and the lock lives for the call.
        unsafe { libc::fcntl(self.0, libc::F_OFD_SETLK, &raw const lock) == 0 }
    }
}

struct Bench {
    db: Database,
    path: PathBuf,
    /// Keeps the frames of the WAL from being copied.
    old: rusqlite::Connection,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

const FIND: &str = "SELECT x FROM t WHERE id = ?";
const INSERT: &str = "INSERT INTO t (x) VALUES (?)";
/// More than a text that is avoided would take to be tried again.
const TRIES: u32 = 10_000;
/// Of a snapshot that begins and a lookup.
const FEW_READS: u32 = 10;
const COUNT: &str = "SELECT count(*) FROM t";

fn integer(connection: &rusqlite::Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

impl Bench {
    fn new(configure: impl FnOnce(Options) -> Options) -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let db = configure(Options::new(&path).readers(1)).open().wait().unwrap();
        let blocking = db.clone();
        blocking
            .execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE); CREATE TABLE other (x)")
            .wait()
            .unwrap();
        let old = rusqlite::Connection::open(&path).unwrap();
        old.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        for x in 0..600 {
            blocking.execute(INSERT, (x,)).wait().unwrap();
        }
        for id in 1..=20 {
            blocking.query(FIND, (id,)).wait().unwrap();
        }
        let bench = Self { db, path, old, _directory: directory, _alone: alone };
        bench.until_inline(|stats| stats.reads, || drop(finish(bench.db.query(FIND, (7,))).unwrap()));
        bench
    }

    /// Does something until it ran on this thread. Now and then somebody else has the connection.
    fn until_inline(&self, count: impl Fn(&flatwater::stats::InlineStats) -> u64, mut something: impl FnMut()) {
        let before = count(&self.db.stats().inline);
        let is_inline = (0..TRIES).any(|_| {
            something();
            count(&self.db.stats().inline) > before
        });
        assert!(is_inline, "it never runs on this thread");
    }

    fn foreigner(&self) -> Foreigner {
        Foreigner::new(&self.path)
    }

    fn plain(&self) -> rusqlite::Connection {
        let plain = rusqlite::Connection::open(&self.path).unwrap();
        plain.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        plain
    }

    /// The answer to everything but a lost commit.
    fn holds(&self, rows: i64) {
        assert_eq!(integer(&self.plain(), COUNT), rows);
        assert_eq!(self.db.query_optional_value::<i64>(COUNT, ()).wait().unwrap(), Some(rows));
        assert_eq!(integer(&self.old, COUNT), 0, "an old snapshot stays what it is");
    }

    fn close(self) {
        self.old.execute_batch("COMMIT").unwrap();
        self.db.close().wait().unwrap();
        let plain = rusqlite::Connection::open(&self.path).unwrap();
        let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(checked, "ok");
    }
}

fn limits(time: Duration) -> Inline {
    Inline::Auto(InlineLimits::default().time(time))
}

/// One poll, and what this thread read and wrote in it.
fn poll<T>(call: &mut Call<T>) -> (Poll<Result<T, Error>>, u32, u32) {
    READS.set(0);
    WRITES.set(0);
    let poll = Pin::new(call).poll(&mut Context::from_waker(Waker::noop()));
    (poll, READS.get(), WRITES.get())
}

/// The answer of a call after a first poll.
fn rest<T>(poll: Poll<Result<T, Error>>, call: Call<T>) -> Result<T, Error> {
    match poll {
        Poll::Ready(answer) => answer,
        Poll::Pending => finish(call),
    }
}

#[test]
fn a_recovery_that_is_due_is_a_workers_and_loses_nothing() {
    // Both with and without a time that is over at once.
    for time in [Duration::from_nanos(1), Duration::from_millis(5)] {
        for leases in [true, false] {
            let bench = Bench::new(|options| options.tuning(|t| t.leases(leases).inline(limits(time))));
            let foreigner = bench.foreigner();
            for round in 0..20 {
                let mut call = bench.db.query(FIND, (7,));
                foreigner.tear();
                let (polled, reads, _) = poll(&mut call);
                assert!(reads <= FEW_READS, "a recovery reads the whole WAL: {reads}");
                assert_eq!(rest(polled, call).unwrap().len(), 1);
                assert!(!foreigner.is_torn(), "the worker recovered the wal-index");
                bench.holds(600 + 2 * round);

                let mut call = bench.db.execute(INSERT, (1_000 + round,));
                foreigner.tear();
                let (polled, reads, _) = poll(&mut call);
                assert!(reads <= FEW_READS, "a recovery reads the whole WAL: {reads}");
                assert_eq!(rest(polled, call).unwrap().changes, 1);
                bench.db.execute(INSERT, (2_000 + round,)).wait().unwrap();
                bench.holds(600 + 2 * round + 2);
            }
            bench.close();
        }
    }
}

/// Each of the locks that a process may stand still with, and that keep a snapshot from beginning.
#[test]
fn a_process_that_stands_still_holds_up_nobody_beyond_his_deadline() {
    for (locks, dies) in [(WRITE_LOCK..=WRITE_LOCK, true), (READ_MARKS, false)] {
        // Nobody copies the frames, so that a snapshot needs a mark.
        let bench = Bench::new(|options| options.checkpoint(Checkpoint::External));
        let foreigner = bench.foreigner();
        bench.old.execute_batch("COMMIT").unwrap();
        foreigner.lock(locks.clone());
        if dies {
            foreigner.tear();
        }
        NAPS.store(0, Ordering::SeqCst);
        let short = Duration::from_millis(100);
        let soon = bench.db.with_timeout(short);
        let mut read = soon.query(FIND, (7,));
        let (polled, reads, _) = poll(&mut read);
        assert!(polled.is_pending() && reads == 0);
        let error = finish(read).unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        let mut write = soon.execute(INSERT, (5_000,));
        let (polled, reads, writes) = poll(&mut write);
        assert!(polled.is_pending() && reads == 0 && writes == 0);
        let error = finish(write).unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        let closure = finish(soon.read_with(|c| Ok::<_, Error>(integer(c, COUNT))));
        assert_eq!(closure.unwrap_err().kind(), ErrorKind::Timeout);
        let closure = finish(soon.write_with(|c| Ok::<_, Error>(c.execute("DELETE FROM t", [])?)));
        assert_eq!(closure.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(NAPS.load(Ordering::SeqCst), 0, "SQLite slept, which no deadline ends");
        if dies {
            foreigner.mend();
        }
        foreigner.unlock(locks);
        assert_eq!(bench.db.query_optional_value::<i64>(COUNT, ()).wait().unwrap(), Some(600));
        finish(bench.db.execute(INSERT, (5_000,))).unwrap();
        bench.old.execute_batch("BEGIN").unwrap();
        bench.close();
    }
}

/// What Flatwater asks SQLite for itself, beside the statement of the call.
#[test]
fn statements_of_our_own_wait_no_longer_than_their_calls() {
    let bench = Bench::new(|options| options.checkpoint(Checkpoint::External));
    let foreigner = bench.foreigner();
    bench.old.execute_batch("COMMIT").unwrap();
    // It is looked at before its second use.
    const SECOND_USE: &str = "INSERT INTO other VALUES (?)";
    finish(bench.db.execute(SECOND_USE, (1,))).unwrap();
    foreigner.lock(READ_MARKS);
    NAPS.store(0, Ordering::SeqCst);
    let soon = bench.db.with_timeout(Duration::from_millis(100));
    finish(soon.execute(SECOND_USE, (2,))).unwrap_err();
    finish(soon.query("SELECT * FROM othr", ())).unwrap_err();
    finish(soon.query("EXPLAIN SELECT * FROM other", ())).unwrap_err();
    finish(soon.execute_script("CREATE TABLE more (a); CREATE TABLE again (a)")).unwrap_err();
    finish(soon.execute_many(SECOND_USE, [(3,), (4,)])).unwrap_err();
    assert_eq!(NAPS.load(Ordering::SeqCst), 0, "SQLite slept, which no deadline ends");
    foreigner.unlock(READ_MARKS);
    finish(bench.db.execute(SECOND_USE, (2,))).unwrap();
    bench.old.execute_batch("BEGIN").unwrap();
    bench.close();
}

#[test]
fn an_open_waits_for_a_process_that_stands_still_as_long_as_it_may() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let plain = rusqlite::Connection::open(&path).unwrap();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let foreigner = Foreigner::new(&path);
    foreigner.lock(READ_MARKS);
    NAPS.store(0, Ordering::SeqCst);
    let options = Options::new(&path).busy_timeout(Duration::from_millis(100));
    let error = options.clone().open().wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(NAPS.load(Ordering::SeqCst), 0, "SQLite slept, which no option ends");
    foreigner.unlock(READ_MARKS);
    options.open().wait().unwrap().close().wait().unwrap();
}

#[test]
fn a_schema_that_another_process_changed_is_read_by_a_worker() {
    let bench = Bench::new(|options| options.tuning(|t| t.inline(limits(Duration::from_secs(1)))));
    let plain = bench.plain();
    let tables: String = (0..500).map(|n| format!("CREATE TABLE t{n} (a, b, c, d, e, f, g, h);")).collect();
    plain.execute_batch(&tables).unwrap();
    for round in 0..20 {
        // Each connection knows the schema of before, and its texts.
        bench.until_inline(|stats| stats.reads, || drop(finish(bench.db.query(FIND, (7,))).unwrap()));
        let mut x = round * 1_000 + 10_000;
        bench.until_inline(
            |stats| stats.writes,
            || {
                x += 1;
                finish(bench.db.execute(INSERT, (x,))).unwrap();
            },
        );
        plain.execute_batch(&format!("CREATE TABLE more{round} (a)")).unwrap();
        let mut read = bench.db.query(FIND, (7,));
        let (polled, reads, _) = poll(&mut read);
        assert!(reads <= FEW_READS, "the schema has many pages: {reads}");
        assert_eq!(rest(polled, read).unwrap().len(), 1);
        plain.execute_batch(&format!("CREATE TABLE again{round} (a)")).unwrap();
        let mut write = bench.db.execute(INSERT, (x + 1,));
        let (polled, reads, _) = poll(&mut write);
        assert!(reads <= FEW_READS, "the schema has many pages: {reads}");
        assert_eq!(rest(polled, write).unwrap().changes, 1);
    }
    bench.close();
}

/// A look at the cookie is enough.
#[test]
fn rows_that_another_process_writes_keep_nothing_from_running_here() {
    let bench = Bench::new(|options| options.tuning(|t| t.inline(limits(Duration::from_secs(1)))));
    let plain = bench.plain();
    let mut x = 10_000;
    for _ in 0..20 {
        bench.until_inline(
            |stats| stats.reads,
            || {
                plain.execute("INSERT INTO other VALUES (1)", []).unwrap();
                assert_eq!(finish(bench.db.query(FIND, (7,))).unwrap().len(), 1);
            },
        );
        bench.until_inline(
            |stats| stats.writes,
            || {
                x += 1;
                plain.execute("INSERT INTO other VALUES (1)", []).unwrap();
                finish(bench.db.execute(INSERT, (x,))).unwrap();
            },
        );
    }
    bench.close();
}

/// What a restart would find: the files without the wal-index, as they are now.
fn after_a_restart(path: &Path) -> i64 {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    for end in ["", "-wal"] {
        let with_end = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        std::fs::copy(with_end(path), with_end(&copy)).unwrap();
    }
    integer(&rusqlite::Connection::open(copy).unwrap(), COUNT)
}

#[test]
fn what_became_of_a_failed_write_is_found_out_by_the_writers_thread_before_anybody_writes() {
    // The second is so late that a page which SQLite reads to roll back is read after the time of the run.
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        let bench = Bench::new(|options| options.tuning(|t| t.inline(limits(Duration::from_millis(10)))));
        let (mut x, mut rows, mut failed) = (10_000, 600, 0);
        while failed < 8 {
            x += 10;
            FAILS.set(1 + failed % 4);
            FAILS_AFTER.set(delay);
            let mut write = bench.db.execute(INSERT, (x,));
            let (polled, _, writes) = poll(&mut write);
            let was_here = writes >= FAILS.replace(0);
            if !was_here {
                rest(polled, write).unwrap();
                rows += 1;
                continue;
            }
            assert_eq!(writes, 1 + failed % 4, "nothing was written after the failure");
            let mut next = bench.db.execute(INSERT, (x + 1,));
            let (polled_next, ..) = poll(&mut next);
            let error = rest(polled, write).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            rest(polled_next, next).unwrap();
            (rows, failed) = (rows + 1, failed + 1);
            bench.holds(rows);
            assert_eq!(after_a_restart(&bench.path), rows, "what was reported as failed is gone");
        }
        bench.close();
    }
}

#[test]
fn what_reads_an_attached_file_never_runs_here() {
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("other.db");
    let plain = rusqlite::Connection::open(&other).unwrap();
    plain.execute_batch("CREATE TABLE a (id INTEGER PRIMARY KEY, x); INSERT INTO a VALUES (1, 2)").unwrap();
    let bench = Bench::new(|options| options.tuning(|t| t.attach("other", &other)));
    for _ in 0..50 {
        let mut call = bench.db.query("SELECT x FROM other.a WHERE id = 1", ());
        let (polled, reads, _) = poll(&mut call);
        assert_eq!(reads, 0);
        assert_eq!(rest(polled, call).unwrap().len(), 1);
    }
    bench.until_inline(|stats| stats.reads, || drop(finish(bench.db.query(FIND, (7,))).unwrap()));
    bench.close();
}

/// Who is not to blame is tried again at once.
#[test]
fn a_write_that_fails_for_what_is_in_the_table_is_tried_here_the_next_time() {
    let bench = Bench::new(|options| options.tuning(|t| t.inline(limits(Duration::from_secs(1)))));
    let mut x = 10_000;
    let is_tried_again = (0..TRIES).any(|_| {
        let before = bench.db.stats().inline;
        assert_eq!(finish(bench.db.execute(INSERT, (1,))).unwrap_err().kind(), ErrorKind::Constraint);
        let was_tried = bench.db.stats().inline.moved > before.moved;
        x += 1;
        finish(bench.db.execute(INSERT, (x,))).unwrap();
        was_tried && bench.db.stats().inline.writes > before.writes
    });
    assert!(is_tried_again, "it was sent to a worker for what was in the table");
    bench.close();
}

/// Whoever opens or closes a database has the mutex that guards all files of the process.
#[test]
fn a_read_needs_no_mutex_of_the_whole_process() {
    let bench = Bench::new(|options| options.tuning(|t| t.leases(false)));
    let (held, is_held) = mpsc::channel();
    let (let_go, is_let_go) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        // SAFETY: a static mutex of SQLite, which is entered and left by this thread.
        unsafe {
            let mutex = ffi::sqlite3_mutex_alloc(ffi::SQLITE_MUTEX_STATIC_VFS1);
            ffi::sqlite3_mutex_enter(mutex);
            held.send(()).unwrap();
            is_let_go.recv().unwrap();
            ffi::sqlite3_mutex_leave(mutex);
        }
    });
    is_held.recv().unwrap();
    let (answered, answer) = mpsc::channel();
    let db = bench.db.clone();
    let reader = std::thread::spawn(move || {
        let before = db.stats().inline.reads;
        while db.stats().inline.reads == before {
            finish(db.query(FIND, (7,))).unwrap();
        }
        answered.send(()).unwrap();
    });
    let in_time = answer.recv_timeout(Duration::from_secs(300));
    let_go.send(()).unwrap();
    holder.join().unwrap();
    reader.join().unwrap();
    assert_eq!(in_time, Ok(()), "it waited for somebody who opens or closes");
    bench.close();
}
