//! What a checkpoint does when the disk fails it: a full disk is told and tried again, a failed sync ends writing.
//!
//! Its own program, because it puts its own `pwrite`, `fsync` and `fdatasync` in the place of the C library's. In WAL
//! mode only a checkpoint writes the database file, and with `synchronous=NORMAL` only checkpoints sync
//! (<https://sqlite.org/wal.html>).
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/syncs.rs"]
mod syncs;
#[path = "interposed/writes.rs"]
mod writes;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, ErrorKind, Options, rusqlite};
use futures::finish;

/// How many of the next calls on files with this end fail, and with which error number.
struct Failing {
    end: &'static str,
    /// Only where writes are run, which is not the checkpointer's thread.
    of_writers: bool,
    left: AtomicI64,
    errno: AtomicI32,
}

impl Failing {
    const fn new(end: &'static str, of_writers: bool) -> Self {
        Self { end, of_writers, left: AtomicI64::new(0), errno: AtomicI32::new(0) }
    }

    fn set(&self, calls: i64, errno: c_int) {
        self.errno.store(errno, Ordering::SeqCst);
        self.left.store(calls, Ordering::SeqCst);
    }

    fn fails(&self, fd: c_int) -> bool {
        if self.left.load(Ordering::SeqCst) <= 0 {
            return false;
        }
        if self.of_writers && std::thread::current().name() == Some("fw-checkpoint") {
            return false;
        }
        let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        let fails = file.as_os_str().as_encoded_bytes().ends_with(self.end.as_bytes())
            && self.left.fetch_sub(1, Ordering::SeqCst) > 0;
        if fails {
            // SAFETY: the C library's errno of this thread.
            unsafe { *libc::__errno_location() = self.errno.load(Ordering::SeqCst) };
        }
        fails
    }
}

static DATABASE_WRITES: Failing = Failing::new("test.db", false);
static DATABASE_SYNCS: Failing = Failing::new("test.db", false);
static WAL_SYNCS: Failing = Failing::new("test.db-wal", false);
static WRITERS_SYNCS: Failing = Failing::new("test.db", true);
/// The first commit after a restart syncs the WAL's new header.
static HEADER_SYNCS: Failing = Failing::new("test.db-wal", true);

fn sync(number: libc::c_long, fd: c_int) -> c_int {
    if [&DATABASE_SYNCS, &WRITERS_SYNCS, &WAL_SYNCS, &HEADER_SYNCS].iter().any(|failing| failing.fails(fd)) {
        return -1;
    }
    // SAFETY: the system call that the replaced function makes, with its argument.
    unsafe { libc::syscall(number, fd) as c_int }
}

fn writes(fd: c_int) -> bool {
    !DATABASE_WRITES.fails(fd)
}

const INSERT: &str = "INSERT INTO t (b) VALUES (zeroblob(6000))";

fn options(path: &Path) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(256 << 20);
    Options::new(path).checkpoint(Checkpoint::Managed(managed))
}

/// A database whose checkpointer runs.
struct Bench {
    path: PathBuf,
    handle: Database,
    db: Database,
    rows: i64,
}

impl Bench {
    fn write(&mut self) {
        self.db.execute(INSERT, ()).wait().unwrap();
        self.rows += 1;
    }

    fn write_until(&mut self, condition: impl Fn(&flatwater::stats::WalStats) -> bool) {
        while !condition(&self.handle.stats().wal) {
            self.write();
        }
    }

    fn count(&self) -> i64 {
        self.db.query_optional_value("SELECT count(*) FROM t", ()).wait().unwrap().unwrap()
    }
}

fn with_database(test: impl FnOnce(&mut Bench)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    [&DATABASE_WRITES, &DATABASE_SYNCS, &WRITERS_SYNCS, &WAL_SYNCS, &HEADER_SYNCS]
        .iter()
        .for_each(|failing| failing.set(0, 0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let handle = options(&path).open().wait().unwrap();
    let db = handle.clone();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    let mut bench = Bench { path, handle, db, rows: 0 };
    bench.write_until(|wal| wal.resets >= 1);
    test(&mut bench);
    bench.db.close().wait().unwrap();
    let plain = rusqlite::Connection::open(&bench.path).unwrap();
    let checked: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    let rows: i64 = plain.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!((checked.as_str(), rows), ("ok", bench.rows));
}

fn wal_bytes(path: &Path) -> u64 {
    std::fs::metadata(format!("{}-wal", path.display())).map_or(0, |wal| wal.len())
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_checkpoint_that_finds_the_disk_full_is_told_and_tried_again_while_writers_go_on() {
    with_database(|bench| {
        let before = bench.handle.stats().wal;
        DATABASE_WRITES.set(i64::MAX, libc::ENOSPC);
        bench.write_until(|wal| wal.failures >= before.failures + 3);
        assert_eq!(bench.count(), bench.rows);
        for _ in 0..200 {
            bench.write();
        }
        let failed = bench.handle.stats().wal;
        // A file that nobody starts over holds what was written meanwhile.
        assert!(wal_bytes(&bench.path) > 200 * 6000 && failed.resets <= before.resets + 1, "{failed:?}");
        DATABASE_WRITES.set(0, 0);
        // Nobody writes: it is tried again by itself.
        wait_until(|| bench.handle.stats().wal.resets > failed.resets);
        wait_until(|| bench.handle.stats().wal.frames < 64);
        bench.write_until(|wal| wal.resets > failed.resets + 1);
        assert_eq!(bench.count(), bench.rows);
    });
}

/// It rests in between, and longer each time: a disk stays full for longer than a checkpoint takes.
#[test]
fn a_checkpoint_that_fails_again_and_again_is_not_tried_without_a_pause() {
    with_database(|bench| {
        DATABASE_WRITES.set(i64::MAX, libc::ENOSPC);
        let before = bench.handle.stats().wal.failures;
        let began = std::time::Instant::now();
        bench.write_until(|wal| wal.failures >= before + 5);
        // 20, 40, 80 and 160 ms lie between the five, and whatever else takes long.
        assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
        DATABASE_WRITES.set(0, 0);
    });
}

fn is_refusal(error: &flatwater::Error) -> bool {
    error.hint().is_some_and(|advice| advice.contains("reopen the file"))
}

/// One failed sync, and every later one says that all is well: what the system forgot is not written by them.
fn nothing_is_written_after(sync: &'static Failing, errno: c_int) {
    with_database(|bench| {
        sync.set(1, errno);
        let rows = bench.rows;
        let refused = loop {
            assert!(bench.rows < rows + 5000, "it goes on writing");
            match bench.db.execute(INSERT, ()).wait() {
                Ok(_) => {
                    bench.rows += 1;
                    // Lets the checkpointer reach the end of the WAL.
                    std::thread::sleep(Duration::from_millis(1));
                }
                // The write whose own sync it was is told what failed, and the next one that nothing is written any more.
                Err(error) if error.sqlite_name() == Some("SQLITE_IOERR_FSYNC") && !is_refusal(&error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    break bench.db.execute(INSERT, ()).wait().unwrap_err();
                }
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
        assert!(refused.message().contains("sync"), "{refused}");
        assert!(is_refusal(&refused), "{refused}");
        assert_eq!(bench.count(), bench.rows, "reads go on");
        assert_eq!(bench.db.execute(INSERT, ()).wait().unwrap_err().kind(), ErrorKind::Io);
        bench.db.close().wait().unwrap();
        assert!(wal_bytes(&bench.path) > 0, "nothing is copied any more");
        bench.handle = options(&bench.path).open().wait().unwrap();
        bench.db = bench.handle.clone();
        bench.write();
        assert_eq!(bench.count(), bench.rows);
        bench.write_until(|wal| wal.resets >= 2);
    });
}

#[test]
fn a_failed_sync_of_the_database_ends_writing_until_it_is_opened_again() {
    nothing_is_written_after(&DATABASE_SYNCS, libc::EIO);
}

#[test]
fn a_failed_sync_of_the_wal_ends_writing_until_it_is_opened_again() {
    nothing_is_written_after(&WAL_SYNCS, libc::EIO);
}

#[test]
fn a_failed_sync_of_the_first_commit_after_a_restart_ends_writing_too() {
    nothing_is_written_after(&HEADER_SYNCS, libc::EIO);
}

/// Pages that found no place at the time they were written back are as lost as on a broken disk: Linux marks them clean
/// too. PostgreSQL makes no difference either (<https://wiki.postgresql.org/wiki/Fsync_Errors>).
#[test]
fn a_sync_that_finds_the_disk_full_ends_writing_as_any_failed_sync_does() {
    nothing_is_written_after(&DATABASE_SYNCS, libc::ENOSPC);
    nothing_is_written_after(&WAL_SYNCS, libc::ENOSPC);
}

#[test]
fn a_failed_sync_of_an_asked_for_checkpoint_ends_writing_too() {
    with_database(|bench| {
        WRITERS_SYNCS.set(1, libc::EIO);
        // The checkpointer may have copied all there is.
        let error = loop {
            bench.write();
            match finish(bench.handle.checkpoint(CheckpointMode::Truncate)) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(bench.db.execute(INSERT, ()).wait().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(bench.count(), bench.rows);
    });
}
