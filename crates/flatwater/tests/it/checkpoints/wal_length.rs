//! Checkpoints: the WAL stays short without delaying commits, and the cause of a blocked checkpoint is reported.

use std::task::Poll;
use std::time::Duration;

use flatwater::calls::{CheckpointMode, TimeoutEffect};
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::WalBlocker;
use flatwater::{Database, ErrorKind, Options};

use crate::support::{ENDLESS, TestFile, count, empty_table, integer, run, until};

const INSERT: &str = "INSERT INTO t VALUES (randomblob(8000))";
const LIMIT: u64 = 4 << 20;

fn small(file: &TestFile) -> Options {
    file.options()
        .checkpoint(Checkpoint::Managed(CheckpointLimits::default().limit_bytes(LIMIT).hard_limit_bytes(8 * LIMIT)))
}

async fn write(db: &Database, rows: usize) {
    for _ in 0..rows {
        db.execute(INSERT, ()).await.unwrap();
    }
}

fn wal_bytes(file: &TestFile) -> u64 {
    std::fs::metadata(file.beside("-wal")).map_or(0, |wal| wal.len())
}

#[test]
fn the_wal_stays_short_under_a_steady_writer_and_overlapping_readers() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        write(&db, 100).await;
        let ends = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (db, ends) = (db.clone(), ends.clone());
                tokio::spawn(async move {
                    while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                        db.query("SELECT sum(length(a)) FROM t WHERE rowid < 300", ()).await.unwrap();
                    }
                })
            })
            .collect();
        let mut longest = 0;
        for _ in 0..40 {
            write(&db, 100).await;
            longest = longest.max(wal_bytes(&file));
        }
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            reader.await.unwrap();
        }
        // On a machine without a free processor a write of ours may have started it over before the checkpointer could.
        let mut rows = 4100;
        while db.stats().wal.resets == 0 {
            write(&db, 1).await;
            rows += 1;
        }
        let wal = db.stats().wal;
        assert!(wal.copies > 0 && wal.failures == 0, "{wal:?}");
        assert!(longest <= 9 * LIMIT, "{longest} bytes: {wal:?}");
        assert_eq!(count(&db).await, rows);
        db.close().await.unwrap();
        assert!(!file.beside("-wal").exists());
    });
}

#[test]
fn a_read_that_never_ends_is_named_and_can_be_cut_off() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file).tuning(|t| t.read_limit(Duration::from_millis(100)))).await;
        write(&db, 10).await;
        let endless = format!("SELECT * FROM t, ({ENDLESS})");
        let read = tokio::spawn(db.query(&endless, ()));
        until(|| db.stats().wal.oldest_read.is_some()).await;
        while !read.is_finished() {
            write(&db, 10).await;
        }
        let error = read.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SnapshotTooOld, "{error}");
        let wal = db.stats().wal;
        assert_eq!(wal.cut_off, 1);
        assert!(matches!(&wal.cause, Some(WalBlocker::Read { sql, .. }) if sql.contains("SELECT * FROM t")), "{wal:?}");
        let resets = wal.resets;
        while db.stats().wal.resets == resets {
            write(&db, 10).await;
        }
    });
}

#[test]
fn a_foreign_reader_is_told_and_the_wal_comes_back_when_it_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        write(&db, 10).await;
        let other = file.plain();
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        while db.stats().wal.starved == 0 {
            write(&db, 10).await;
        }
        assert_eq!(db.stats().wal.cause, Some(WalBlocker::Foreign));
        other.execute_batch("COMMIT").unwrap();
        let resets = db.stats().wal.resets;
        while db.stats().wal.resets == resets {
            write(&db, 1).await;
        }
        assert_eq!(integer(&other, "SELECT count(*) FROM t"), count(&db).await);
    });
}

#[test]
fn writers_wait_at_the_hard_limit_and_never_for_ever() {
    let file = TestFile::new();
    run(async {
        let options = file.options();
        let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(512 << 10);
        let db = empty_table(options.checkpoint(Checkpoint::Managed(managed))).await;
        write(&db, 10).await;
        let other = file.plain();
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        while db.stats().wal.waits_for_room < 3 {
            write(&db, 1).await;
        }
        other.execute_batch("COMMIT").unwrap();
        let resets = db.stats().wal.resets;
        until(|| db.stats().wal.resets > resets).await;
        write(&db, 1).await;
    });
}

/// A delayed write waits in the queue, so its deadline passes there, and reads and a close pass it.
#[test]
fn a_write_whose_deadline_passes_while_it_is_delayed_is_not_applied() {
    let file = TestFile::new();
    run(async {
        let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(512 << 10);
        let db = empty_table(file.options().checkpoint(Checkpoint::Managed(managed))).await;
        write(&db, 10).await;
        let other = file.plain();
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        while db.stats().wal.waits_for_room == 0 {
            write(&db, 1).await;
        }
        let mut rows = count(&db).await;
        let late = loop {
            match db.with_timeout(Duration::from_millis(10)).execute(INSERT, ()).await {
                Ok(_) => rows += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((late.kind(), late.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{late}");
        // Each is submitted by its first poll, and most of them wait.
        let mut calls = Vec::new();
        for _ in 0..50 {
            let mut call = db.execute(INSERT, ());
            match futures_util::poll!(&mut call) {
                Poll::Ready(done) => drop(done.unwrap()),
                Poll::Pending => calls.push(tokio::spawn(call)),
            }
        }
        // Reads are not delayed.
        assert!(count(&db).await <= rows + 50);
        let handle = db.clone();
        db.close().await.unwrap();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert!(handle.stats().writes_waiting == 0);
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), rows + 50);
    });
}

#[test]
fn a_pause_of_the_writer_is_used_and_an_asked_for_checkpoint_is_done_at_once() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        write(&db, 400).await;
        until(|| db.stats().wal.resets > 0).await;
        assert!(wal_bytes(&file) > 1 << 20, "the file keeps its length");
        write(&db, 5).await;
        let done = db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        assert_eq!((done.frames, done.copied), (0, 0));
        assert_eq!(wal_bytes(&file), 0);
        let reader = file.options().read_only(true).open().await.unwrap();
        assert_eq!(reader.checkpoint(CheckpointMode::Passive).await.unwrap_err().kind(), ErrorKind::Misuse);
        let other = file.plain();
        write(&db, 1).await;
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        write(&db, 1).await;
        let busy = db.with_timeout(Duration::from_millis(20)).checkpoint(CheckpointMode::Restart).await.unwrap_err();
        assert!([ErrorKind::Busy, ErrorKind::Timeout].contains(&busy.kind()), "{busy}");
    });
}

#[test]
fn a_wal_that_another_program_keeps_short_is_left_alone() {
    for litestream in [false, true] {
        let file = TestFile::new();
        run(async {
            let options = if litestream {
                file.plain().execute_batch("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq)").unwrap();
                // With the default limits so long a WAL is cut.
                let limits = CheckpointLimits::default().limit_bytes(128 << 20);
                file.options().checkpoint(Checkpoint::Managed(limits))
            } else {
                file.options().checkpoint(Checkpoint::External)
            };
            let db = empty_table(options).await;
            write(&db, 2000).await;
            let before = std::fs::metadata(file.path()).unwrap().len();
            assert_eq!((db.stats().wal.copies, db.stats().wal.resets), (0, 0));
            db.close().await.unwrap();
            assert_eq!(std::fs::metadata(file.path()).unwrap().len(), before, "nothing was copied");
            assert!(wal_bytes(&file) > 8 << 20);
            assert_eq!(count(&file.open().await).await, 2000);
        });
    }
}

#[test]
fn the_wal_of_an_attached_file_is_copied_by_the_commits_that_find_it_long() {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE o (a)").unwrap();
    run(async {
        let db = file.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        let _pins = other.plain();
        for _ in 0..3000 {
            db.execute("INSERT INTO other.o VALUES (randomblob(3000))", ()).await.unwrap();
        }
        let wal = std::fs::metadata(other.beside("-wal")).unwrap().len();
        assert!(wal < 8 << 20, "{wal} bytes");
        db.close().await.unwrap();
        assert_eq!(integer(&other.plain(), "SELECT count(*) FROM o"), 3000);
    });
}

/// Whatever made it long; here it is a transaction. The writer never pauses for as long as it takes to truncate an idle file.
#[test]
fn a_file_that_grew_beyond_the_limit_is_short_soon_after_the_last_write() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        let large = "INSERT INTO t SELECT randomblob(8000) FROM generate_rows";
        let rows =
            "WITH RECURSIVE generate_rows(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM generate_rows WHERE x < 4000)";
        db.execute(format!("{rows} {large}"), ()).await.unwrap();
        assert!(wal_bytes(&file) > LIMIT);
        until(|| db.stats().wal.resets > 0 && wal_bytes(&file) <= LIMIT).await;
    });
}
