//! The middle of a backup: writes go on, whatever ends it leaves no file and a database that works, and a process that
//! is killed leaves a partial file that is in nobody's way.
//!
//! Its own program, because it puts its own `pwrite` and `fsync` in the place of the C library's: writes of the partial
//! file are held at a page until the test lets them go on, or fail.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/syncs.rs"]
mod syncs;
#[path = "interposed/writes.rs"]
mod writes;

use std::ffi::{c_int, c_long};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::WalBlocker;
use flatwater::{Database, ErrorCode, ErrorKind, Options, rusqlite};
use futures::finish;

const PATH: &str = "FLATWATER_HELD_BACKUP";
/// The page at which a backup is held. The database has several times as many.
const PAGE: i64 = 1000;

/// How many more pages of a partial file are written before they are held, or fail with `ERROR`.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);
static IS_HELD: AtomicBool = AtomicBool::new(false);
/// The error of the pages that fail; 0 holds them. The error of the syncs that fail.
static ERROR: AtomicI32 = AtomicI32::new(0);
static SYNC_ERROR: AtomicI32 = AtomicI32::new(0);
static SYNCS: AtomicU64 = AtomicU64::new(0);

fn is_partial(fd: c_int) -> bool {
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    file.as_os_str().as_encoded_bytes().ends_with(b".partial")
}

fn fail(error: c_int) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = error };
}

fn writes(fd: c_int) -> bool {
    if LEFT.load(Ordering::SeqCst) == i64::MAX || !is_partial(fd) || LEFT.fetch_sub(1, Ordering::SeqCst) > 0 {
        return true;
    }
    let error = ERROR.load(Ordering::SeqCst);
    if error != 0 {
        fail(error);
        return false;
    }
    IS_HELD.store(true, Ordering::SeqCst);
    wait_until(|| LEFT.load(Ordering::SeqCst) == i64::MAX);
    IS_HELD.store(false, Ordering::SeqCst);
    true
}

fn sync(number: c_long, fd: c_int) -> c_int {
    if is_partial(fd) {
        SYNCS.fetch_add(1, Ordering::SeqCst);
        let error = SYNC_ERROR.load(Ordering::SeqCst);
        if error != 0 {
            fail(error);
            return -1;
        }
    }
    // SAFETY: the system call that the replaced function makes, with its argument.
    unsafe { libc::syscall(number, fd) as c_int }
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A database of some thousand pages, and a directory for its backups. One test at a time has one.
struct Held {
    _one_at_a_time: MutexGuard<'static, ()>,
    directory: tempfile::TempDir,
    db: Database,
}

impl Held {
    fn new(in_memory: bool) -> Self {
        Self::with(in_memory, |options| options)
    }

    fn with(in_memory: bool, set: impl FnOnce(Options) -> Options) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        ERROR.store(0, Ordering::SeqCst);
        SYNC_ERROR.store(0, Ordering::SeqCst);
        let directory = tempfile::tempdir().unwrap();
        let path = if in_memory { ":memory:".into() } else { directory.path().join("test.db") };
        let db = set(Options::new(path)).open().wait().unwrap();
        db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
        db.execute_many("INSERT INTO t VALUES (randomblob(4000))", (0..5000).map(|_| ())).wait().unwrap();
        Self { _one_at_a_time: one_at_a_time, directory, db }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("copy.db")
    }

    /// Runs a backup that is held in its middle.
    fn backup(&self) -> Running {
        Running::of(self.db.backup(self.path()))
    }

    fn copies(&self) -> Vec<String> {
        copies(self.directory.path())
    }

    /// The database works, a backup to the same path too, and nothing else is there.
    fn works(&self, rows: i64) {
        assert_eq!(self.copies(), [""; 0]);
        self.db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
        self.db.backup(self.path()).wait().unwrap();
        assert_eq!(rows_of(&self.path()), rows + 1);
        assert_eq!(self.copies(), ["copy.db"]);
        assert_eq!(self.db.stats().replaced_connections, 0);
    }
}

fn copies(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("copy.db")).collect()
}

fn rows_of(path: &Path) -> i64 {
    let plain = rusqlite::Connection::open(path).unwrap();
    assert_eq!(plain.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(), "ok");
    plain.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

/// A backup that runs.
struct Running(Option<std::thread::JoinHandle<flatwater::Result<()>>>);

impl Running {
    fn of(call: impl Future<Output = flatwater::Result<()>> + Send + 'static) -> Self {
        LEFT.store(PAGE, Ordering::SeqCst);
        let thread = std::thread::spawn(move || finish(call));
        wait_until(|| IS_HELD.load(Ordering::SeqCst));
        Self(Some(thread))
    }

    /// Lets it go on, and returns its result.
    fn end(mut self) -> flatwater::Result<()> {
        go_on();
        self.0.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        go_on();
    }
}

fn go_on() {
    LEFT.store(i64::MAX, Ordering::SeqCst);
}

#[test]
fn others_read_and_write_in_the_middle_of_a_backup_and_it_is_named() {
    let limits = CheckpointLimits::default().limit_bytes(1 << 20).hard_limit_bytes(64 << 20);
    let held = Held::with(false, |options| options.readers(1).checkpoint(Checkpoint::Managed(limits)));
    let (db, backup) = (&held.db, held.backup());
    let partial = held.copies();
    assert!(
        partial.len() == 1 && partial[0].starts_with("copy.db.") && partial[0].ends_with(".partial"),
        "{partial:?}"
    );
    let mut rows = 5000;
    while db.stats().wal.starved == 0 {
        db.execute("INSERT INTO t VALUES (randomblob(4000))", ()).wait().unwrap();
        rows += 1;
    }
    assert!(matches!(db.stats().wal.cause, Some(WalBlocker::Read { sql, .. }) if sql == "a backup"));
    assert_eq!(db.query_optional_value("SELECT count(*) FROM t", ()).wait().unwrap(), Some(rows));
    let syncs = SYNCS.load(Ordering::SeqCst);
    backup.end().unwrap();
    assert!(SYNCS.load(Ordering::SeqCst) > syncs, "it was on the disk before it got its name");
    assert_eq!(rows_of(&held.path()), 5000, "one point in time: that of the call");
    std::fs::remove_file(held.path()).unwrap();
    held.works(rows);
    while db.stats().wal.resets == 0 {
        db.execute("INSERT INTO t VALUES (randomblob(4000))", ()).wait().unwrap();
    }
}

#[test]
fn a_caller_that_leaves_ends_the_backup() {
    for in_memory in [false, true] {
        let held = Held::new(in_memory);
        let mut call = held.db.backup(held.path());
        LEFT.store(PAGE, Ordering::SeqCst);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::Pin::new(&mut call).poll(&mut context).is_pending());
        wait_until(|| IS_HELD.load(Ordering::SeqCst));
        drop(call);
        go_on();
        wait_until(|| held.copies().is_empty());
        held.works(5000);
    }
}

#[test]
fn a_callback_that_panics_ends_the_backup() {
    for in_memory in [false, true] {
        let held = Held::new(in_memory);
        LEFT.store(PAGE, Ordering::SeqCst);
        let call = held.db.backup(held.path()).progress(|_| panic!("of the program"));
        let error = finish(call).unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Panicked));
        assert!(error.message().contains("of the program"), "{error}");
        go_on();
        wait_until(|| held.copies().is_empty());
        held.works(5000);
    }
}

#[test]
fn a_deadline_ends_the_backup() {
    for in_memory in [false, true] {
        let held = Held::new(in_memory);
        let timeout = Duration::from_millis(300);
        // Held until the deadline is over, so that it cannot be done before.
        let began = std::time::Instant::now();
        LEFT.store(PAGE, Ordering::SeqCst);
        let call = held.db.backup(held.path()).timeout(timeout);
        let thread = std::thread::spawn(move || finish(call));
        wait_until(|| began.elapsed() > 2 * timeout);
        go_on();
        let error = thread.join().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true), "{error}");
        held.works(5000);
    }
}

#[test]
fn the_read_limit_ends_the_backup() {
    let limits = CheckpointLimits::default().limit_bytes(1 << 20).hard_limit_bytes(64 << 20);
    let limit = Duration::from_millis(100);
    let held =
        Held::with(false, |options| options.checkpoint(Checkpoint::Managed(limits)).tuning(|t| t.read_limit(limit)));
    let backup = held.backup();
    let mut rows = 5000;
    while held.db.stats().wal.cut_off == 0 {
        held.db.execute("INSERT INTO t VALUES (randomblob(4000))", ()).wait().unwrap();
        rows += 1;
    }
    let error = backup.end().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}");
    // The next backup is in nobody's way, so it may take longer than the limit.
    held.db.checkpoint(CheckpointMode::Truncate).wait().unwrap();
    held.works(rows);
}

#[test]
fn a_close_ends_the_backup() {
    for in_memory in [false, true] {
        let held = Held::with(in_memory, |options| options.tuning(|t| t.close_wait(Duration::ZERO)));
        let backup = held.backup();
        // The close cannot end a thread that the disk holds, so it leaves the backup behind and says so.
        let error = held.db.clone().close().wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert_eq!(backup.end().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(held.copies(), [""; 0]);
    }
}

#[test]
fn a_backup_for_which_the_disk_has_no_space_leaves_nothing() {
    for in_memory in [false, true] {
        for (error, kind) in [(libc::ENOSPC, ErrorKind::Full), (libc::EIO, ErrorKind::Io)] {
            let held = Held::new(in_memory);
            ERROR.store(error, Ordering::SeqCst);
            LEFT.store(PAGE, Ordering::SeqCst);
            let failed = held.db.backup(held.path()).wait().unwrap_err();
            go_on();
            assert_eq!(failed.kind(), kind, "{failed}");
            assert!(failed.message().contains("copy.db") && failed.hint().is_some(), "{failed}");
            held.works(5000);
        }
    }
}

#[test]
fn a_backup_that_is_not_on_the_disk_gets_no_name() {
    let held = Held::new(false);
    SYNC_ERROR.store(libc::EIO, Ordering::SeqCst);
    let error = held.db.backup(held.path()).wait().unwrap_err();
    SYNC_ERROR.store(0, Ordering::SeqCst);
    assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Io, true), "{error}");
    held.works(5000);
}

#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let directory = Path::new(&path);
    LEFT.store(PAGE, Ordering::SeqCst);
    let db = Options::new(directory.join("test.db")).open().wait().unwrap();
    db.backup(directory.join("copy.db")).wait().unwrap();
}

#[test]
fn a_process_that_is_killed_leaves_a_partial_file_that_is_in_nobodys_way() {
    let held = Held::new(false);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored"])
        .env(PATH, held.directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let length = |name: &String| std::fs::metadata(held.directory.path().join(name)).map_or(0, |file| file.len());
    wait_until(|| held.copies().iter().any(|name| length(name) > 100 * 4096));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = held.copies();
    assert!(left.len() == 1 && left[0].starts_with("copy.db.") && left[0].ends_with(".partial"), "{left:?}");
    held.db.backup(held.path()).wait().unwrap();
    assert_eq!(rows_of(&held.path()), 5000);
    assert_eq!(held.copies().len(), 2);
}
