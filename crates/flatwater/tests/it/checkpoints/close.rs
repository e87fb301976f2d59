//! The last checkpoint, at the close: it takes bounded time. If it cannot copy the WAL, the WAL remains and nothing is
//! lost.

use std::time::Duration;

use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Options, params};

use crate::support::{TestFile, count, empty_table, integer, run};

const ROWS: i64 = 2000;

/// Options with which no checkpoint runs before the close.
fn lazy(file: &TestFile) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(1 << 30).hard_limit_bytes(1 << 31);
    file.options().checkpoint(Checkpoint::Managed(managed))
}

/// Closes a database whose content is completely in its WAL. Calls `before` before the close. Returns whether the WAL
/// still exists.
fn close_with_a_long_wal<T>(file: &TestFile, options: Options, before: impl FnOnce() -> T) -> (bool, T) {
    run(async {
        let db = empty_table(options).await;
        let rows: Vec<_> = (0..ROWS).map(|_| params![vec![7u8; 4000]]).collect();
        db.execute_many("INSERT INTO t VALUES (?)", rows).await.unwrap();
        let held = before();
        db.close().await.unwrap();
        (file.beside("-wal").exists(), held)
    })
}

fn reopens(file: &TestFile) {
    run(async {
        let db = file.open().await;
        assert_eq!(count(&db).await, ROWS);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
    });
    assert!(!file.beside("-wal").exists());
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), ROWS + 1);
}

#[test]
fn the_last_to_close_copies_the_wal_and_takes_it_away() {
    let file = TestFile::new();
    let (is_left, ()) = close_with_a_long_wal(&file, lazy(&file), || ());
    assert!(!is_left);
    reopens(&file);
}

#[test]
fn a_close_beside_a_foreign_reader_leaves_the_wal_and_loses_nothing() {
    let file = TestFile::new();
    let (is_left, other) = close_with_a_long_wal(&file, lazy(&file), || {
        let other = file.plain();
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        other
    });
    assert!(is_left, "somebody reads it");
    assert_eq!(integer(&other, "SELECT count(*) FROM t"), ROWS);
    // It never gets to copy the WAL: as if it had been killed.
    let copy = TestFile::new();
    for suffix in ["", "-wal"] {
        std::fs::copy(file.beside(suffix), copy.beside(suffix)).unwrap();
    }
    assert_eq!(integer(&copy.plain(), "SELECT count(*) FROM t"), ROWS);
    other.execute_batch("COMMIT").unwrap();
    drop(other);
    reopens(&file);
}

/// The test passes whether or not the copy finishes in that time.
#[test]
fn a_close_that_has_no_time_loses_nothing() {
    for wait in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(100), Duration::from_millis(1)] {
        let file = TestFile::new();
        close_with_a_long_wal(&file, lazy(&file).tuning(|t| t.close_wait(wait)), || ());
        reopens(&file);
    }
}
