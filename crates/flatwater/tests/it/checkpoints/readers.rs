//! Reads that stay open: the WAL grows, the cause is reported, and the WAL is short again after the read has ended,
//! without further action.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::WalBlocker;
use flatwater::{Database, ErrorKind, Options};

use crate::support::{ENDLESS, TestFile, count, empty_table, run, until};

const INSERT: &str = "INSERT INTO t VALUES (randomblob(8000))";
const LIMIT: u64 = 1 << 20;
/// The number of frames of 4 KiB pages that fit into the limit.
const LIMIT_FRAMES: u32 = 254;

fn small(file: &TestFile) -> Options {
    file.options()
        .checkpoint(Checkpoint::Managed(CheckpointLimits::default().limit_bytes(LIMIT).hard_limit_bytes(64 * LIMIT)))
}

async fn write(db: &Database, rows: usize) {
    for _ in 0..rows {
        db.execute(INSERT, ()).await.unwrap();
    }
}

/// Blocks a restart several times by `read`, which begins after the first rows.
async fn starved<T>(db: &Database, read: impl AsyncFnOnce() -> T) -> T {
    write(db, 10).await;
    let read = read().await;
    until(|| db.stats().wal.oldest_read.is_some()).await;
    while db.stats().wal.starved == 0 {
        write(db, 1).await;
    }
    read
}

/// Waits until the WAL is short again, while there are no writes.
async fn gets_short_again(db: &Database) {
    until(|| db.stats().wal.frames < LIMIT_FRAMES / 2).await;
    let wal = db.stats().wal;
    assert_eq!((wal.failures, wal.backlog < LIMIT_FRAMES), (0, true), "{wal:?}");
}

#[test]
fn a_long_query_is_named_and_the_wal_is_short_when_its_caller_has_left() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        let endless = format!("SELECT * FROM t, ({ENDLESS})");
        let read = starved(&db, async || tokio::spawn(db.query(&endless, ()))).await;
        while db.stats().wal.frames < 2 * LIMIT_FRAMES {
            write(&db, 1).await;
        }
        let wal = db.stats().wal;
        let Some(WalBlocker::Read { age, sql }) = &wal.cause else { panic!("{wal:?}") };
        assert!(sql.starts_with("SELECT * FROM t") && !age.is_zero(), "{wal:?}");
        assert_eq!((wal.resets, wal.cut_off), (0, 0), "{wal:?}");
        read.abort();
        assert!(read.await.unwrap_err().is_cancelled());
        gets_short_again(&db).await;
        // It stays so.
        write(&db, 300).await;
        until(|| db.stats().wal.frames < LIMIT_FRAMES).await;
    });
}

#[test]
fn a_closure_that_reads_for_long_is_named_and_the_wal_is_short_when_it_has_ended() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        let (end, ended) = mpsc::channel::<()>();
        let reader = db.clone();
        let look = async move {
            let body = move |connection: &flatwater::rusqlite::Connection| {
                let look = || connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
                let seen = look().unwrap();
                ended.recv().unwrap();
                assert_eq!(look().unwrap(), seen, "one point in time");
                Ok::<_, flatwater::Error>(seen)
            };
            reader.read_with(body).await
        };
        let read = starved(&db, async || tokio::spawn(look)).await;
        assert!(
            matches!(db.stats().wal.cause, Some(WalBlocker::Read { sql, .. }) if sql == "a closure of `read_with`")
        );
        end.send(()).unwrap();
        assert!(read.await.unwrap().unwrap() < count(&db).await);
        gets_short_again(&db).await;
    });
}

/// The transaction holds the lock that the restart needs, and its snapshot must remain. The restart waits for it, and
/// no read is reported as the cause.
#[test]
fn a_transaction_that_only_reads_keeps_the_restart_waiting_until_it_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        write(&db, 20).await;
        let mut resets = 0;
        for _ in 0..3 {
            let tx = db.begin().await.unwrap();
            let seen: Option<i64> = tx.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap();
            let writes: Vec<_> = (0..100).map(|_| tokio::spawn(db.execute(INSERT, ()))).collect();
            until(|| db.stats().writes_waiting >= 100).await;
            assert_eq!(tx.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap(), seen);
            tx.commit().await.unwrap();
            for write in writes {
                write.await.unwrap().unwrap();
            }
            while db.stats().wal.resets <= resets {
                write(&db, 1).await;
            }
            resets = db.stats().wal.resets;
        }
        let wal = db.stats().wal;
        assert_eq!((wal.failures, wal.starved), (0, 0), "{wal:?}");
        gets_short_again(&db).await;
    });
}

#[test]
fn only_the_read_that_is_too_old_is_cut_off() {
    const READ_LIMIT: Duration = Duration::from_millis(200);
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file).readers(4).tuning(|t| t.read_limit(READ_LIMIT))).await;
        write(&db, 10).await;
        let endless = format!("SELECT * FROM t, ({ENDLESS})");
        let offender = tokio::spawn(db.query(&endless, ()));
        until(|| db.stats().wal.oldest_read.is_some()).await;
        let ends = Arc::new(AtomicBool::new(false));
        let innocent: Vec<_> = (0..2)
            .map(|_| {
                let (db, ends) = (db.clone(), ends.clone());
                tokio::spawn(async move {
                    let mut slow = 0;
                    while !ends.load(Ordering::Relaxed) {
                        let began = Instant::now();
                        let read = db.query("SELECT sum(length(a)) FROM t WHERE rowid < 50", ()).await;
                        // On a machine with other work a short read may take as long.
                        let is_slow = began.elapsed() >= READ_LIMIT;
                        slow += u64::from(is_slow);
                        if let Err(error) = read {
                            assert!(is_slow && error.kind() == ErrorKind::SnapshotTooOld, "{error}");
                        }
                    }
                    slow
                })
            })
            .collect();
        while !offender.is_finished() {
            write(&db, 1).await;
        }
        assert_eq!(offender.await.unwrap().unwrap_err().kind(), ErrorKind::SnapshotTooOld);
        ends.store(true, Ordering::Relaxed);
        let mut most = 1;
        for reader in innocent {
            most += reader.await.unwrap();
        }
        // The checkpointer counts a read after it has ended it.
        until(|| db.stats().wal.cut_off > 0).await;
        let cut_off = db.stats().wal.cut_off;
        assert!(cut_off <= most, "{cut_off}, and {most} at most");
        gets_short_again(&db).await;
    });
}

#[test]
fn a_stream_that_nobody_reads_is_cut_off_like_a_long_read() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file).tuning(|t| t.read_limit(Duration::from_millis(200)))).await;
        db.execute(
            "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 90000) SELECT x FROM n",
            (),
        )
        .await
        .unwrap();
        let mut stalled = db.stream("SELECT a FROM t", ());
        assert!(stalled.next().await.unwrap().is_ok());
        let snapshot = db.snapshot().await.unwrap();
        // Counted after they were ended.
        while db.stats().wal.cut_off < 2 {
            write(&db, 1).await;
        }
        until(|| db.stats().readers_held == 0).await;
        let mut last = None;
        while let Some(row) = stalled.next().await {
            last = Some(row);
        }
        assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::SnapshotTooOld);
        assert_eq!(snapshot.query("SELECT a FROM t", ()).await.unwrap_err().kind(), ErrorKind::SnapshotTooOld);
        assert_eq!(db.stats().wal.cut_off, 2);
        gets_short_again(&db).await;
    });
}
