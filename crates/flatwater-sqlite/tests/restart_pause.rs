//! What a restart does while the writer waits for it: nothing but the little that came in while it was prepared.
//!
//! Its own program, because it puts its own `pwrite`, `fsync` and `fdatasync` in the place of the C library's. In WAL
//! mode only a checkpoint writes the database file (<https://sqlite.org/wal.html>).
#![cfg(target_os = "linux")]

#[path = "interposed/syncs.rs"]
mod syncs;
#[path = "interposed/writes.rs"]
mod writes;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use flatwater::{Options, rusqlite};

/// Pages of the database that are written and not synced.
static DIRTY: AtomicI64 = AtomicI64::new(0);
/// The most of them that a sync met while the writer waited, and the pages written meanwhile.
static DIRTY_IN_PAUSE: AtomicI64 = AtomicI64::new(0);
static WRITTEN_IN_PAUSE: AtomicI64 = AtomicI64::new(0);
/// From now on each checkpoint stops at its first write until it is told to go on. It has synced the WAL before.
static STOPS: AtomicBool = AtomicBool::new(false);
static BEGINS: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

fn is_database(fd: c_int) -> bool {
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    file.as_os_str().as_encoded_bytes().ends_with(b"test.db")
}

fn is_checkpointer() -> bool {
    std::thread::current().name() == Some("fw-checkpoint")
}

fn sync(number: libc::c_long, fd: c_int) -> c_int {
    if is_database(fd) {
        let dirty = DIRTY.swap(0, Ordering::SeqCst);
        if !is_checkpointer() {
            DIRTY_IN_PAUSE.fetch_max(dirty, Ordering::SeqCst);
        }
    } else {
        BEGINS.store(true, Ordering::SeqCst);
    }
    // SAFETY: the system call that the replaced function makes, with its argument.
    unsafe { libc::syscall(number, fd) as c_int }
}

fn writes(fd: c_int) -> bool {
    if is_database(fd) {
        DIRTY.fetch_add(1, Ordering::SeqCst);
        if !is_checkpointer() {
            WRITTEN_IN_PAUSE.fetch_add(1, Ordering::SeqCst);
        } else if STOPS.load(Ordering::SeqCst) && BEGINS.swap(false, Ordering::SeqCst) {
            STOPPED.store(true, Ordering::SeqCst);
            wait_until(|| !STOPPED.load(Ordering::SeqCst));
        }
    }
    true
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_restart_copies_and_syncs_what_it_can_before_the_writer_waits() {
    const ROWS: i64 = 400;
    let insert = "INSERT INTO t (b) VALUES (zeroblob(6000))";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let handle = Options::new(&path).open().wait().unwrap();
    let db = handle.clone();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    // A reader keeps everything from being copied.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    db.execute_many(insert, (0..ROWS).map(|_| ())).wait().unwrap();
    wait_until(|| handle.stats().wal.starved > 0);
    [&DIRTY_IN_PAUSE, &WRITTEN_IN_PAUSE].iter().for_each(|count| count.store(0, Ordering::SeqCst));
    STOPS.store(true, Ordering::SeqCst);
    reader.execute_batch("COMMIT").unwrap();
    // Rows that come in while it copies, so that no checkpoint is complete.
    while handle.stats().wal.resets == 0 {
        if STOPPED.load(Ordering::SeqCst) {
            (0..3).for_each(|_| drop(db.execute(insert, ()).wait()));
            STOPPED.store(false, Ordering::SeqCst);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    STOPS.store(false, Ordering::SeqCst);
    let (dirty, written) = (DIRTY_IN_PAUSE.load(Ordering::SeqCst), WRITTEN_IN_PAUSE.load(Ordering::SeqCst));
    assert!(dirty <= 40 && written <= 40, "{dirty} pages synced and {written} written while the writer waited");
    db.close().wait().unwrap();
}
