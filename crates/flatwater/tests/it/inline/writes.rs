//! Inline writes: the same errors as on a worker, applied once, no caller blocked, and the WAL stays short.

use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability, Inline, InlineLimits};
use flatwater::rusqlite;
use flatwater::{Database, Error, ErrorKind, Options};

use crate::support::{TestFile, integer, run, unhurried, until};

const COUNT: &str = "INSERT INTO counted (n, v) VALUES (?, ?)";

/// Opens a database with a table in which a write that is applied twice fails, and whose `COUNT` runs inline.
async fn counted(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE counted (n UNIQUE NOT NULL, v)", ()).await.unwrap();
    for number in 1.. {
        if db.stats().inline.writes > 0 {
            break;
        }
        db.execute(COUNT, (-number, 0)).await.unwrap();
    }
    db
}

#[test]
fn an_inline_write_of_one_row_is_never_interrupted_and_applied_once() {
    let file = TestFile::new();
    run(async {
        let db = counted(file.options()).await;
        let mut number = 0;
        let before = db.stats().inline;
        while db.stats().inline.writes < before.writes + 300 {
            number += 1;
            let executed = db.execute(COUNT, (number, "x".repeat(number % 3000))).await.unwrap();
            assert_eq!(executed.changes, 1);
        }
        let after = db.stats().inline;
        assert_eq!(after.interrupted, before.interrupted);
        let plain = file.plain();
        let found = integer(&plain, "SELECT count(*) FROM counted WHERE n > 0");
        assert_eq!(usize::try_from(found), Ok(number));
        db.close().await.unwrap();
    });
}

#[test]
fn a_write_with_a_loop_runs_inline_and_one_that_turns_out_long_is_undone_and_done_by_a_worker() {
    const RAISE: &str = "UPDATE t SET b = b + 1 WHERE a > 0";
    const ROWS: i64 = 100_000;
    let file = TestFile::new();
    run(async {
        let limits = InlineLimits::default().time(Duration::from_millis(2));
        let db = file.options().tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
        let mut runs = 0;
        while db.stats().inline.interrupted == 0 {
            db.execute("DELETE FROM t WHERE a > 3", ()).await.unwrap();
            db.execute("INSERT OR IGNORE INTO t VALUES (1, 0), (2, 0), (3, 0)", ()).await.unwrap();
            db.execute("UPDATE t SET b = ?", (runs,)).await.unwrap();
            let writes = db.stats().inline.writes;
            while db.stats().inline.writes == writes {
                assert_eq!(db.execute(RAISE, ()).await.unwrap().changes, 3);
                runs += 1;
            }
            let many = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 4 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT x, 0 FROM n";
            db.execute(many, (ROWS,)).await.unwrap();
            assert_eq!(db.execute(RAISE, ()).await.unwrap().changes as i64, ROWS);
            runs += 1;
            let raised: (i64, i64) = db
                .query_one_as("SELECT count(*), sum(CASE WHEN a <= 3 THEN b = ? ELSE b = 1 END) FROM t", (runs,))
                .await
                .unwrap();
            assert_eq!(raised, (ROWS, ROWS), "each row once");
        }
        // In a transaction an interrupt would end the transaction.
        let tx = db.begin().await.unwrap();
        let before = db.stats().inline;
        tx.execute(RAISE, ()).await.unwrap();
        let after = db.stats().inline;
        assert_eq!((after.writes, after.interrupted), (before.writes, before.interrupted));
        tx.rollback().await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn failures_read_like_a_workers_and_leave_nothing() {
    let (ours, theirs) = (TestFile::new(), TestFile::new());
    run(async {
        let inline = counted(unhurried(ours.options())).await;
        let worker = theirs.options().tuning(|t| t.inline(Inline::Never)).open().await.unwrap();
        worker.execute("CREATE TABLE counted (n UNIQUE NOT NULL, v)", ()).await.unwrap();
        worker.execute(COUNT, (-1, 0)).await.unwrap();
        let rows = integer(&ours.plain(), "SELECT count(*) FROM counted");
        // Until some were tried on this thread.
        while inline.stats().inline.moved == 0 {
            for (number, value) in [(Some(-1), String::new()), (None, String::new())] {
                let ours = inline.execute(COUNT, (number, &*value)).await.unwrap_err();
                assert_eq!(ours, worker.execute(COUNT, (number, &*value)).await.unwrap_err());
            }
        }
        assert_eq!(integer(&ours.plain(), "SELECT count(*) FROM counted"), rows);
        // Larger than a stay may touch, and nothing is wrong with it.
        let large = "INSERT INTO counted (n, v) VALUES (?, ?) RETURNING length(v)";
        for number in 0..8 {
            let length = if number == 7 { 100_000 } else { 1 };
            let answer = inline.query_optional_value::<i64>(large, (number, "y".repeat(length))).await.unwrap();
            assert_eq!(answer, Some(length as i64));
        }
        inline.close().await.unwrap();
        worker.close().await.unwrap();
    });
}

#[test]
fn a_foreign_lock_blocks_no_caller_and_its_write_is_done_once() {
    let file = TestFile::new();
    // One thread: a caller that waited for the lock would keep it from being let go.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = counted(unhurried(file.options().busy_timeout(Duration::from_secs(60)))).await;
        let foreign = file.plain();
        let mut writes = 0;
        while db.stats().inline.moved < 3 {
            assert!(writes < 5000, "none is tried: {:?}", db.stats().inline);
            let number = writes;
            writes += 1;
            foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
            let (executed, ()) = tokio::join!(db.execute(COUNT, (number, 1)), async {
                until(|| db.stats().writes_waiting == 0).await;
                foreign.execute_batch("COMMIT").unwrap();
            });
            assert_eq!(executed.unwrap().changes, 1);
        }
        assert_eq!(integer(&foreign, "SELECT count(*) FROM counted WHERE n >= 0"), writes);
        drop(foreign);
        db.close().await.unwrap();

        let db = unhurried(file.options().busy_timeout(Duration::ZERO)).open().await.unwrap();
        let foreign = file.plain();
        for number in 10_000..10_010 {
            db.execute(COUNT, (number, 1)).await.unwrap();
        }
        foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..20 {
            let error = db.execute(COUNT, (20_000, 1)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
        }
        foreign.execute_batch("COMMIT").unwrap();
        db.execute(COUNT, (20_000, 1)).await.unwrap();
        drop(foreign);
        db.close().await.unwrap();
    });
}

#[test]
fn a_limit_that_a_closure_set_holds_in_a_stay() {
    let file = TestFile::new();
    run(async {
        let db = counted(unhurried(file.options())).await;
        let limit = rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH;
        db.write_with(move |c| c.set_limit(limit, 1000).map_err(Error::from)).await.unwrap();
        let before = db.stats().inline.writes;
        for number in 0.. {
            if db.stats().inline.writes > before + 3 {
                break;
            }
            db.execute(COUNT, (number, 1)).await.unwrap();
            let error = db.execute(COUNT, (-1000, "z".repeat(2000))).await.unwrap_err();
            assert_eq!(error.sqlite_code().map(|code| code & 0xff), Some(rusqlite::ffi::SQLITE_TOOBIG));
        }
        let left = db.write_with(move |c| c.limit(limit).map_err(Error::from)).await.unwrap();
        assert_eq!(left, 1000);
        db.close().await.unwrap();
    });
}

#[test]
fn a_durable_write_and_one_without_a_log_never_stay() {
    let file = TestFile::new();
    run(async {
        for (options, text) in [
            (unhurried(file.options()).durability(Durability::Full), COUNT),
            (unhurried(Options::new(":memory:")), COUNT),
        ] {
            let db = options.open().await.unwrap();
            db.execute("CREATE TABLE counted (n UNIQUE NOT NULL, v)", ()).await.unwrap();
            for number in 0..30 {
                db.execute(text, (number, 1)).await.unwrap();
            }
            assert_eq!(db.stats().inline.writes, 0);
            db.close().await.unwrap();
        }
    });
}

#[test]
fn the_wal_starts_over_under_inline_writes_and_none_is_lost() {
    let file = TestFile::new();
    run(async {
        let small = CheckpointLimits::default().limit_bytes(1 << 20).hard_limit_bytes(4 << 20);
        let db = counted(unhurried(file.options().checkpoint(Checkpoint::Managed(small)))).await;
        let mut number = 0;
        let before = db.stats();
        loop {
            number += 1;
            db.execute(COUNT, (number, vec![0_u8; 2000])).await.unwrap();
            let now = db.stats();
            if now.wal.resets >= before.wal.resets + 3 && now.inline.writes >= before.inline.writes + 500 {
                break;
            }
        }
        db.close().await.unwrap();
        assert!(!file.beside("-wal").exists());
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM counted WHERE n > 0"), number);
    });
}

#[test]
fn a_wal_that_is_too_long_is_waited_for_by_the_writers_thread_and_by_no_caller() {
    let file = TestFile::new();
    run(async {
        let small = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(512 << 10);
        let db = counted(unhurried(file.options().checkpoint(Checkpoint::Managed(small)))).await;
        let (reads, begins) = mpsc::channel();
        let (ends, end) = mpsc::channel::<()>();
        let reader = db.clone();
        let read = tokio::spawn(async move {
            let closure = move |c: &rusqlite::Connection| {
                let _ = reads.send(integer(c, "SELECT count(*) FROM counted"));
                let _ = end.recv();
                Ok::<_, Error>(())
            };
            reader.read_with(closure).await
        });
        until(|| begins.try_recv().is_ok()).await;
        let mut number = 0;
        let mut write = async || {
            number += 1;
            db.execute(COUNT, (number, vec![0_u8; 2000])).await.unwrap();
            db.stats()
        };
        while write().await.wal.waits_for_room == 0 {}
        let before = db.stats().inline;
        // Twice as many as a try of the queue takes. One may pass while the checkpointer is about to use the slot.
        for _ in 0..12 {
            write().await;
        }
        let during = db.stats().inline;
        assert!(during.writes < before.writes + 4 && during.queued > before.queued + 8, "{before:?} {during:?}");
        ends.send(()).unwrap();
        read.await.unwrap().unwrap();
        while write().await.inline.writes <= during.writes {}
        db.close().await.unwrap();
    });
}

#[test]
fn a_handle_that_only_reads_writes_nothing_however_short_it_is_for_others() {
    let file = TestFile::new();
    run(async {
        let db = counted(unhurried(file.options())).await;
        let reads = unhurried(file.options()).read_only(true).open().await.unwrap();
        let before = db.stats().inline.writes;
        let rows = integer(&file.plain(), "SELECT count(*) FROM counted");
        for refused in [
            reads.execute(COUNT, (1000, 1)).await.map(drop),
            reads.execute(COUNT, (1001, 1)).wait().map(drop),
            reads.prepare(COUNT).await.unwrap().execute((1002, 1)).await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Misuse);
        }
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM counted"), rows);
        assert_eq!(db.stats().inline.writes, before);
        let stays = db.stats().inline.reads;
        while db.stats().inline.reads == stays {
            reads.query("SELECT v FROM counted WHERE n = 1000", ()).await.unwrap();
        }
        reads.close().await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn a_write_whose_time_was_over_says_whether_it_was_applied() {
    let file = TestFile::new();
    run(async {
        let db = counted(unhurried(file.options())).await;
        for number in 0..50 {
            match db.with_timeout(Duration::from_micros(number * 10)).execute(COUNT, (number as i64, 0)).await {
                Ok(executed) => assert_eq!(executed.changes, 1),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Timeout);
                    let found: Option<i64> = db
                        .query_optional_value("SELECT count(*) FROM counted WHERE n = ?", (number as i64,))
                        .await
                        .unwrap();
                    if error.applied() == Some(TimeoutEffect::No) {
                        assert_eq!(found, Some(0));
                    }
                }
            }
        }
        db.close().await.unwrap();
    });
}

/// If asynchronous callers began a trial of the queue, it also ends for blocking callers, which never use the queue.
#[test]
fn blocking_writes_run_at_once_again_after_a_try_of_the_queue() {
    let file = TestFile::new();
    // The checkpointer does not use the slot in between.
    let db = run(counted(unhurried(file.options()).checkpoint(Checkpoint::External)));
    let mut number = 1_000_000;
    for _ in 0..3 {
        // Until this thread has had its share, with which a try begins.
        let yields = db.stats().inline.yields;
        while db.stats().inline.yields == yields {
            number += 1;
            let mut write = db.execute(COUNT, (number, ""));
            if Pin::new(&mut write).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                run(write).unwrap();
            }
        }
        let before = db.stats().inline.writes;
        let is_inline = (0..100_000).any(|_| {
            number += 1;
            db.execute(COUNT, (number, "")).wait().unwrap();
            db.stats().inline.writes > before
        });
        assert!(is_inline, "they go through the queue for ever");
    }
    run(db.close()).unwrap();
}
