//! A disk that is slower than the writer: writes are delayed a little, each of them, before the WAL reaches its hard limit.
//!
//! Its own program, because it puts its own `pwrite` in the place of the C library's. In WAL mode only a checkpoint
//! writes the database file (<https://sqlite.org/wal.html>).
#![cfg(target_os = "linux")]

#[path = "interposed/writes.rs"]
mod writes;

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::WalStats;
use flatwater::{Options, rusqlite};

const LIMIT: u64 = 4 << 20;
const HARD: u64 = 8 * LIMIT;
/// How long the disk takes for a page of the database, in microseconds.
static PAGE_US: AtomicU64 = AtomicU64::new(0);

fn writes(fd: c_int) -> bool {
    let us = PAGE_US.load(Ordering::SeqCst);
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    if us > 0 && file.as_os_str().as_encoded_bytes().ends_with(b"test.db") {
        std::thread::sleep(Duration::from_micros(us));
    }
    true
}

#[test]
fn the_wal_of_a_writer_that_is_faster_than_the_disk_stays_below_its_hard_limit() {
    // On a machine with other work the writer may be the slower one, and a checkpointer that got no processor for long is
    // behind all the same.
    for time in 0.. {
        let (longest, wal) = write_to_a_disk(300 << (time % 4));
        assert_eq!(wal.failures, 0, "{wal:?}");
        if longest > LIMIT && longest < HARD && wal.slowed > 0 && wal.waits_for_room == 0 {
            break;
        }
        assert!(time < 40, "{longest} bytes: {wal:?}");
        println!("try {time}: {longest} bytes: {wal:?}");
    }
}

/// Writes until the WAL has started over a few times. Returns how long it got, and what is told of it.
fn write_to_a_disk(page_us: u64) -> (u64, WalStats) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let managed = CheckpointLimits::default().limit_bytes(LIMIT).hard_limit_bytes(HARD);
    let db = Options::new(&path).checkpoint(Checkpoint::Managed(managed)).open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    PAGE_US.store(page_us, Ordering::SeqCst);
    let (mut longest, mut rows) = (0, 0);
    while db.stats().wal.resets < 6 {
        db.execute("INSERT INTO t (b) VALUES (zeroblob(3000))", ()).wait().unwrap();
        rows += 1;
        longest = longest.max(std::fs::metadata(directory.path().join("test.db-wal")).unwrap().len());
    }
    PAGE_US.store(0, Ordering::SeqCst);
    let wal = db.stats().wal;
    db.close().wait().unwrap();
    let plain = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(plain.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), rows);
    (longest, wal)
}
