//! Commits and writes that fail: nothing acknowledged is lost, nothing is applied twice, nothing half-done is left.
//!
//! Its own program, because the failures are switched on for the whole process.
#![cfg(target_os = "linux")]

#[path = "faults/own.rs"]
mod own;
#[allow(dead_code, reason = "the other program uses the rest")]
#[path = "it/support.rs"]
mod support;
#[allow(dead_code, reason = "the other program uses the rest")]
#[path = "it/calls/woken.rs"]
mod woken;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::calls::TimeoutEffect;
use flatwater::options::{Durability, Inline, InlineLimits};
use flatwater::values::ExecuteResult;
use flatwater::{Database, Error, ErrorKind, Options, params};
use flatwater_sqlite::fault::{fail_commits, fail_reads, fail_writes};
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use support::{TestFile, grouped, run, wait_until};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const INSERT: &str = "INSERT INTO t (n, note) VALUES (?, ?)";

/// A failure hits whatever writes meanwhile, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database with a table and a trigger that counts each row that was ever inserted and kept.
async fn open(options: Options) -> Database {
    let db = grouped(options).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, n UNIQUE, note);
         CREATE TABLE applied (n PRIMARY KEY, times);
         CREATE TRIGGER count AFTER INSERT ON t BEGIN
             INSERT INTO applied VALUES (new.n, 1) ON CONFLICT DO UPDATE SET times = times + 1;
         END",
    )
    .await
    .unwrap();
    // Learnt under this schema, and known to be short and groupable.
    for tens in 1.. {
        let before = db.stats().members;
        for outcome in insert_together(&db, -10 * tens..-10 * tens + 10, || ()).await {
            outcome.unwrap();
        }
        if db.stats().members - before == 10 {
            break;
        }
    }
    db
}

/// Submits the rows at once, behind a transaction, so that they are one group, which meets the fault.
async fn insert_together<F>(
    db: &Database,
    rows: std::ops::Range<i64>,
    fault: impl FnOnce() -> F,
) -> Vec<Result<ExecuteResult, Error>> {
    let blocker = db.begin().await.unwrap();
    let count = usize::try_from(rows.end - rows.start).unwrap();
    let mut calls = FuturesOrdered::new();
    rows.for_each(|n| calls.push_back(db.execute(INSERT, (n, "x".repeat(500)))));
    let (fault, outcomes) = futures_util::join!(
        async {
            while db.stats().writes_waiting < count {
                tokio::task::yield_now().await;
            }
            let fault = fault();
            blocker.rollback().await.unwrap();
            fault
        },
        calls.collect::<Vec<_>>()
    );
    drop(fault);
    outcomes
}

fn present(file: &TestFile) -> Vec<i64> {
    let plain = file.plain();
    let mut statement = plain.prepare("SELECT n FROM t WHERE n >= 0 ORDER BY n").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn applied_twice(file: &TestFile) -> i64 {
    file.plain().query_row("SELECT count(*) FROM applied WHERE times <> 1", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_group_whose_commit_fails_is_replayed_one_by_one() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options()).await;
        let mut known = Vec::new();
        for round in 0..4 {
            let outcomes = insert_together(&db, round * 10..round * 10 + 10, || fail_commits(1)).await;
            assert!(outcomes.iter().all(Result::is_ok), "the second try of each succeeds");
            known.extend(round * 10..round * 10 + 10);
            assert_eq!(present(&file), known);
            assert_eq!(applied_twice(&file), 0);
        }
        let stats = db.stats();
        assert_eq!((stats.failed_commits, stats.replays), (4, 40));
        db.close().await.unwrap();
        assert_eq!(present(&file), known);
    });
}

#[test]
fn a_group_whose_fence_fails_too_says_that_it_does_not_know() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options()).await;
        let outcomes = insert_together(&db, 0..10, || fail_commits(2)).await;
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CommitUnknown);
            assert!(error.hint().is_some() && !error.is_retryable());
        }
        assert_eq!(db.stats().replaced_connections, 1);
        let outcomes = insert_together(&db, 10..20, || ()).await;
        assert!(outcomes.iter().all(Result::is_ok), "the replaced connection works");
        assert_eq!(present(&file), (10..20).collect::<Vec<_>>());
        db.close().await.unwrap();
    });
}

#[test]
fn a_live_query_follows_what_became_of_failed_commits() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options()).await;
        let mut count = db.live("SELECT count(*) FROM t WHERE n >= 0", ());
        let mut last = count.next().await.unwrap().unwrap().read::<(i64,)>().unwrap()[0].0;
        let mut rows = 0;
        for (round, failures) in [1, 2, 1, 2, 0].into_iter().enumerate() {
            let first = 10 * i64::try_from(round).unwrap();
            let outcomes = insert_together(&db, first..first + 10, || fail_commits(failures)).await;
            rows += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            // Those whose outcome is unknown are not there, for nothing was restarted.
            assert_eq!(present(&file).len(), rows);
            while last != i64::try_from(rows).unwrap() {
                last = count.next().await.unwrap().unwrap().read::<(i64,)>().unwrap()[0].0;
            }
        }
        assert_eq!((rows, db.stats().replaced_connections), (30, 2));
        drop(count);
        db.close().await.unwrap();
    });
}

#[test]
fn a_full_disk_fails_what_does_not_fit_and_the_rest_goes_on() {
    full_or_broken_disk(ENOSPC, ErrorKind::Full);
}

#[test]
fn a_failing_write_fails_its_members_and_the_rest_goes_on() {
    full_or_broken_disk(EIO, ErrorKind::Io);
}

/// Writes to the files fail from the `passing`-th on, `failing` times.
fn full_or_broken_disk(errno: i32, kind: ErrorKind) {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options()).await;
        let mut known = Vec::<i64>::new();
        let mut failures = 0;
        for round in 0..40 {
            let fault = || fail_writes(round % 20, 1 + round % 7, errno);
            let outcomes = insert_together(&db, round * 10..round * 10 + 10, fault).await;
            for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
                failures += 1;
                // A fence that fails too leaves the outcome unknown; the error says so and the content decides.
                assert!(error.kind() == kind || error.kind() == ErrorKind::CommitUnknown, "{error}");
            }
            let there = present(&file);
            for (n, outcome) in (round * 10..).zip(&outcomes) {
                match outcome {
                    Ok(_) => assert!(there.contains(&n), "{n} was acknowledged and is lost"),
                    Err(error) if error.kind() == ErrorKind::CommitUnknown => {}
                    Err(error) => assert!(!there.contains(&n), "{n} failed with {error} and is there"),
                }
            }
            known.extend(there.iter().filter(|n| (round * 10..round * 10 + 10).contains(*n)));
            assert_eq!(there, known, "what was there stays there");
            assert_eq!(applied_twice(&file), 0);
        }
        assert!(failures > 0, "no write failed");
        db.close().await.unwrap();
        assert_eq!(present(&file), known);
        let db = file.open().await;
        db.execute(INSERT, (9999, "after")).await.unwrap();
        db.close().await.unwrap();
    });
}

/// The fence is written before.
#[test]
fn whoever_is_told_of_a_failed_commit_finds_the_writer_free() {
    let _alone = alone();
    let mut bench = woken::Bench::new();
    let db = bench.db.clone();
    bench.until_woken(|bench| {
        let fault = fail_commits(1);
        let error = bench.finish(db.ungrouped().execute("INSERT INTO t (x) SELECT 1", ())).unwrap_err();
        drop(fault);
        assert_eq!(error.kind(), ErrorKind::Io);
    });
    run(db.close()).unwrap();
}

/// On their callers' threads, in the snapshot of the write before and without one.
#[test]
fn short_writes_that_fail_are_answered_truly_and_leave_no_lock() {
    let _alone = alone();
    for leases in [true, false] {
        let file = TestFile::new();
        let unhurried = InlineLimits::default().time(Duration::from_secs(60));
        let options = file.options().tuning(|t| t.leases(leases).inline(Inline::Auto(unhurried)));
        let db = options.open().wait().unwrap();
        let blocking = db.clone();
        blocking.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
        let insert = |n: i64| blocking.execute("INSERT INTO t VALUES (?)", (n,)).wait();
        let plain = file.plain();
        plain.busy_timeout(Duration::ZERO).unwrap();
        let last = Cell::new(0);
        let (mut missing, mut failures) = (0, 0);
        for round in 0..100 {
            let before = db.stats();
            let has_run = |stats: flatwater::stats::Stats| match leases {
                true => stats.leases.reused_by_writes > before.leases.reused_by_writes,
                false => stats.inline.writes > before.inline.writes,
            };
            wait_until(|| {
                (0..20).any(|_| {
                    last.set(last.get() + 1);
                    insert(last.get()).unwrap();
                    has_run(db.stats())
                })
            });
            last.set(last.get() + 1);
            let n = last.get();
            let fault = fail_writes(round % 3, 1 + round % 5, EIO);
            let outcome = insert(n);
            drop(fault);
            // The checkpointer has the lock for a moment now and then.
            wait_until(|| plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok());
            let there = support::integer(&plain, &format!("SELECT count(*) FROM t WHERE n = {n}")) == 1;
            match outcome {
                Ok(_) => assert!(there, "{n} was acknowledged and is lost"),
                Err(error) => {
                    failures += 1;
                    let is_told = [ErrorKind::Io, ErrorKind::CommitUnknown].contains(&error.kind());
                    assert!(is_told && (!there || error.kind() == ErrorKind::CommitUnknown), "{error}");
                }
            }
            missing += i64::from(!there);
            assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), n - missing, "the others stay");
        }
        assert!(failures > 0, "no write failed");
        run(db.close()).unwrap();
    }
}

/// A page that cannot be read ends the whole transaction in the middle of a member.
#[test]
fn a_failing_read_in_a_group_costs_only_its_member() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options()).await;
        let mut known = Vec::new();
        for round in 0..40 {
            // Somebody else's commit empties the writer's page cache, so that it reads again.
            file.plain().execute("INSERT INTO applied VALUES (?, 1)", [1000 + round]).unwrap();
            let outcomes = insert_together(&db, round * 10..round * 10 + 10, || fail_reads(round % 10, 1, EIO)).await;
            for (n, outcome) in (round * 10..).zip(outcomes) {
                match outcome {
                    Ok(_) => known.push(n),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
                }
            }
            assert_eq!(present(&file), known);
            assert_eq!(applied_twice(&file), 0);
        }
        assert!(db.stats().replays > 0, "no group was lost: {:?}", db.stats());
        db.close().await.unwrap();
    });
}

/// A file with 200 rows of 3,000 bytes, none of them in the WAL.
fn with_many_pages(file: &TestFile) -> rusqlite::Connection {
    let plain = file.plain();
    plain
        .execute_batch(
            "PRAGMA journal_mode = wal; CREATE TABLE t (a INTEGER PRIMARY KEY, b);
             WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO t SELECT i, randomblob(3000) FROM n; PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    plain
}

/// SQLite tells most of them as "the database disk image is malformed", for which people restore a backup.
#[test]
fn a_read_that_the_disk_fails_is_told_as_such_and_not_as_a_damaged_file() {
    let (_alone, file) = (alone(), TestFile::new());
    let plain = with_many_pages(&file);
    run(async {
        let db = file.options().readers(1).open().await.unwrap();
        let sum = "SELECT sum(length(b)) FROM t";
        let mut failures = 0;
        for round in 0..60 {
            // Somebody else's commit empties the page caches.
            plain.execute("UPDATE t SET a = a WHERE a = 1", []).unwrap();
            let fault = fail_reads(round / 4 * 5, 1, EIO);
            let outcome = match round % 4 {
                0 => db.query(sum, ()).await.map(drop),
                1 => db.read_with(|c| Ok(c.query_row(sum, [], |_| Ok(()))?)).await,
                2 => db.execute("UPDATE t SET b = zeroblob(3000) WHERE a % 50 = 0", ()).await.map(drop),
                _ => db.transaction(async |tx| tx.query(sum, ()).await.map(drop)).await,
            };
            drop(fault);
            let Err(error) = outcome else { continue };
            failures += 1;
            assert_eq!(
                (error.kind(), error.sqlite_name()),
                (ErrorKind::Io, Some("SQLITE_IOERR_READ")),
                "{round}: {error}"
            );
            if round % 4 != 1 {
                assert!(error.message().contains("the disk failed"), "{round}: {error}");
                assert!(error.hint().unwrap().contains("may be intact"), "{round}: {error}");
            }
            assert_eq!(db.query_optional_value::<i64>(sum, ()).await.unwrap(), Some(600_000), "it goes on");
        }
        assert!(failures > 20, "hardly a read failed: {failures}");
        db.close().await.unwrap();
        let mut failures = 0;
        for round in 0..12 {
            let fault = fail_reads(round, 1, EIO);
            let opened = file.options().open().await;
            drop(fault);
            match opened {
                Ok(db) => db.close().await.unwrap(),
                Err(error) => {
                    failures += 1;
                    assert_eq!(error.kind(), ErrorKind::Io, "{round}: {error}");
                    assert!(error.hint().unwrap().contains("may be intact"), "{round}: {error}");
                }
            }
        }
        assert!(failures > 1, "no open failed");
    });
}

/// SQLite ends the transaction of a snapshot with a read that fails, so no thread can read it again.
#[test]
fn a_read_in_a_snapshot_that_the_disk_fails_is_told_as_such_and_is_the_reason_of_later_calls() {
    let (_alone, file) = (alone(), TestFile::new());
    let plain = with_many_pages(&file);
    run(async {
        let db = support::unhurried(file.options()).open().await.unwrap();
        let find = "SELECT length(b) FROM t WHERE a = ?";
        while db.stats().inline.reads == 0 {
            db.query(find, (1,)).await.unwrap();
        }
        let (mut here, mut elsewhere) = (0, 0);
        for round in 0..80 {
            // Somebody else's commit empties the page caches.
            plain.execute("UPDATE t SET a = a WHERE a = 1", []).unwrap();
            // The connection sees the schema again.
            db.query(find, (1,)).await.unwrap();
            let snapshot = db.snapshot().await.unwrap();
            let queued = db.stats().inline.queued;
            let fault = fail_reads(round % 4, 1, EIO);
            let outcome = snapshot.query(find, (round + 2,)).await;
            drop(fault);
            if let Err(error) = outcome {
                *(if db.stats().inline.queued == queued { &mut here } else { &mut elsewhere }) += 1;
                assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Io, Some("SQLITE_IOERR_READ")), "{error}");
                let later = snapshot.query(find, (1,)).await.unwrap_err();
                assert_eq!(later.kind(), ErrorKind::Misuse);
                assert!(later.message().contains(error.message()), "{later}");
            }
            drop(snapshot);
            assert_eq!(db.query_value::<i64>(find, (round + 2,)).await, Ok(3_000), "it goes on");
        }
        assert!(here > 10, "hardly a read failed here: {here}, elsewhere {elsewhere}");
        wait_until(|| db.stats().readers_held == 0);
        db.close().await.unwrap();
    });
}

/// The first read opens the WAL and reads all of it, with SQLite's own methods still.
#[test]
fn an_open_that_cannot_read_the_wal_is_told_as_such_and_not_as_a_damaged_file() {
    let (_alone, original) = (alone(), TestFile::new());
    let plain = original.plain();
    // A schema of several pages, the last of which are read inside of a statement.
    plain.execute_batch("PRAGMA page_size = 512; PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
    (0..10).for_each(|table| plain.execute_batch(&format!("CREATE TABLE t{table} (a, b, c, d, e, f)")).unwrap());
    let mut refused = 0;
    for read in 0..60 {
        let file = TestFile::new();
        for end in ["", "-wal"] {
            std::fs::copy(original.beside(end), file.beside(end)).unwrap();
        }
        run(async {
            let fault = fail_reads(read, i64::MAX, EIO);
            let opened = file.options().open().await;
            drop(fault);
            if let Err(error) = opened {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Io, "{read}: {error}");
                assert!(error.hint().unwrap().contains("may be intact"), "{read}: {error}");
            }
            assert_eq!(file.open().await.execute("INSERT INTO t VALUES (2)", ()).await.unwrap().changes, 1);
        });
    }
    assert!(refused > 5, "hardly an open failed: {refused}");
}

/// Checks what the caller of write `n` was told, if it stayed, by whether the write is there.
fn is_true(outcome: Option<&Result<(), Error>>, there: bool, n: i64) {
    match outcome {
        None => {}
        Some(Ok(())) => assert!(there, "{n} was acknowledged and is lost"),
        Some(Err(error)) if error.kind() == ErrorKind::Timeout => {
            assert!(!there || error.applied() == Some(TimeoutEffect::Unknown), "{n}: {error}");
        }
        Some(Err(error)) => assert!(
            !there && error.kind() == ErrorKind::Io || error.kind() == ErrorKind::CommitUnknown,
            "{n}, {there}: {error}"
        ),
    }
}

/// The transaction begins, runs and fails on its caller's thread. The fence is written by the writer's.
#[test]
fn a_transaction_whose_commit_fails_on_its_callers_thread_is_answered_truly() {
    let (_alone, file) = (alone(), TestFile::new());
    let unhurried = InlineLimits::default().time(Duration::from_secs(60));
    let db = file.options().tuning(|t| t.inline(Inline::Auto(unhurried))).open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
    let plain = file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    let (mut failed_here, mut rows) = (0, 0);
    for n in 0.. {
        let (before, commits) = (db.stats(), db.stats().failed_commits);
        let tx = db.begin().wait().unwrap();
        tx.execute("INSERT INTO t VALUES (?)", (n,)).wait().unwrap();
        let was_here = db.stats().inline.writes == before.inline.writes + 2;
        let outcome = {
            let _fault = fail_writes(n % 2, if n % 3 == 0 { 1 } else { 0 }, EIO);
            // Its caller stays to the end, or has a deadline that passes, or leaves after the first poll.
            let commit = tx.commit();
            match n % 5 {
                0 | 1 => Some(commit.wait()),
                2 => Some(commit.timeout(Duration::from_millis(2)).wait()),
                _ => commit.now_or_never(),
            }
        };
        wait_until(|| plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok());
        let there = support::integer(&plain, &format!("SELECT count(*) FROM t WHERE n = {n}")) == 1;
        is_true(outcome.as_ref(), there, n);
        rows += i64::from(there);
        assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), rows, "the others stay");
        let has_failed = outcome.is_none_or(|outcome| outcome.is_err());
        failed_here += i32::from(was_here && has_failed && db.stats().failed_commits == commits + 1);
        if failed_here == 20 {
            break;
        }
    }
    run(db.close()).unwrap();
}

/// As above, for rows and batches, which begin and commit in one go.
#[test]
fn rows_whose_commit_fails_on_their_callers_thread_are_answered_truly() {
    let (_alone, file) = (alone(), TestFile::new());
    let unhurried = InlineLimits::default().time(Duration::from_secs(60));
    let db = file.options().tuning(|t| t.inline(Inline::Auto(unhurried))).open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
    let insert = "INSERT INTO t VALUES (?)";
    let plain = file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    let (mut failed_here, mut rows) = (0, 0);
    for n in 0.. {
        let before = db.stats();
        let outcome = {
            let _fault = (n >= 20).then(|| fail_writes(n % 2, if n % 3 == 0 { 1 } else { 0 }, EIO));
            let batch = db.batch([(insert, (2 * n,)), (insert, (2 * n + 1,))]);
            // Its caller stays to the end, or has a deadline that passes, or leaves after the first poll.
            match n % 5 {
                0 => Some(db.execute_many(insert, [(2 * n,), (2 * n + 1,)]).wait().map(drop)),
                1 => Some(batch.wait().map(drop)),
                2 => Some(batch.timeout(Duration::from_millis(2)).wait().map(drop)),
                3 => batch.now_or_never().map(|outcome| outcome.map(drop)),
                _ => db.execute_many(insert, [(2 * n,), (2 * n + 1,)]).now_or_never().map(|outcome| outcome.map(drop)),
            }
        };
        wait_until(|| plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok());
        let there = support::integer(&plain, &format!("SELECT count(*) FROM t WHERE n / 2 = {n}"));
        assert!(there == 0 || there == 2, "{n}: a part of the rows");
        is_true(outcome.as_ref(), there == 2, n);
        rows += there;
        assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), rows, "the others stay");
        let after = db.stats();
        let was_here = after.inline.moved == before.inline.moved + 1;
        let has_failed = outcome.is_none_or(|outcome| outcome.is_err());
        failed_here += i32::from(was_here && has_failed && after.failed_commits == before.failed_commits + 1);
        if failed_here == 20 {
            break;
        }
    }
    run(db.close()).unwrap();
}

/// Makes a table whose schema has several pages, so that one may have to be read in the middle of a transaction.
fn with_a_long_schema(file: &TestFile) -> rusqlite::Connection {
    let plain = file.plain();
    plain.execute_batch("PRAGMA page_size = 512; PRAGMA journal_mode = wal; CREATE TABLE t (n, text)").unwrap();
    (0..20).for_each(|table| plain.execute_batch(&format!("CREATE TABLE t{table} (a, b, c, d, e, f)")).unwrap());
    plain
}

/// A worker analyses a text at its second use, and reads the schema for it. If that fails, SQLite ends the transaction, and rows
/// that ran after it would be committed one by one.
#[test]
fn rows_whose_analysis_loses_their_transaction_are_all_undone() {
    let (_alone, file) = (alone(), TestFile::new());
    let plain = with_a_long_schema(&file);
    run(async {
        let db = file.options().open().await.unwrap();
        let (mut failed, mut rows) = (0, 0);
        for text in 0..120 {
            let insert = format!("INSERT INTO t (n, text) VALUES (?, {text})");
            let values = || (0..3).map(|n| (n,));
            let batch = |insert: &str| (0..3).map(|n| (insert.to_owned(), (n,))).collect::<Vec<_>>();
            assert_eq!(db.execute_many(&*insert, values()).await, Ok(3));
            // What the writer has in memory is out of date.
            plain
                .execute_batch(&format!(
                    "UPDATE t SET n = n + 1 WHERE text = {text}; DELETE FROM t WHERE text = {text}"
                ))
                .unwrap();
            let faulty = || fail_reads(text / 3 % 10, 1, EIO);
            let outcome = match text % 3 {
                0 => {
                    let _fault = faulty();
                    db.execute_many(&*insert, values()).await.map(drop)
                }
                1 => {
                    let _fault = faulty();
                    db.batch(batch(&insert)).await.map(drop)
                }
                _ => {
                    let tx = db.begin().await.unwrap();
                    let mut outcome = tx.execute("INSERT INTO t VALUES (1, -1), (2, -1)", ()).await.map(drop);
                    {
                        let _fault = faulty();
                        outcome = outcome.and(tx.execute(&*insert, (0,)).await.map(drop));
                    }
                    outcome.and(tx.commit().await)
                }
            };
            rows += if outcome.is_ok() { 3 } else { 0 };
            failed += i32::from(outcome.is_err());
            assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), rows, "{text}: {outcome:?}");
        }
        assert!(failed > 10, "hardly a call failed: {failed}");
        db.close().await.unwrap();
    });
}

#[test]
fn every_kind_of_write_survives_a_failing_commit() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options().durability(Durability::Full)).await;
        let fault = fail_commits(1);
        assert_eq!(db.ungrouped().execute(INSERT, (1, "")).await.unwrap_err().kind(), ErrorKind::Io);
        drop(fault);
        let fault = fail_commits(1);
        assert_eq!(db.execute_many(INSERT, (2..100).map(|n| (n, ""))).await.unwrap_err().kind(), ErrorKind::Io);
        drop(fault);
        let fault = fail_commits(1);
        assert_eq!(db.execute_script("INSERT INTO t (n) VALUES (100)").await.unwrap_err().kind(), ErrorKind::Io);
        drop(fault);
        let fault = fail_commits(1);
        let error = db
            .write_with(|tx| tx.execute("INSERT INTO t (n) VALUES (101)", []).map_err(Error::from))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        drop(fault);
        let tx = db.begin().await.unwrap();
        tx.execute(INSERT, (102, "")).await.unwrap();
        let fault = fail_commits(1);
        assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Io);
        drop(fault);
        assert_eq!(present(&file), [0_i64; 0]);
        db.execute(INSERT, (103, "")).await.unwrap();
        db.close().await.unwrap();
        assert_eq!(present(&file), [103]);
    });
}

#[test]
fn a_read_that_fails_in_a_rollback_mode_is_no_commit_in_doubt() {
    let _alone = alone();
    let file = TestFile::new();
    file.plain().execute_batch("CREATE TABLE t (a)").unwrap();
    run(async {
        let db = file.options().journal(flatwater::options::Journal::Keep).open().await.unwrap();
        let rows = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 50) \
                    INSERT INTO t SELECT randomblob(4000) FROM n";
        db.execute(rows, ()).await.unwrap();
        // Another process' commit makes the connection read its pages again.
        file.plain().execute_batch("INSERT INTO t VALUES (1)").unwrap();
        let fault = fail_reads(0, 100, 5);
        let failed = db.query("SELECT sum(length(a)) FROM t", ()).await;
        drop(fault);
        let error = failed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(db.stats().replaced_connections, 0);
        assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(51));
    });
}

/// What a restart would find: the file without its wal-index, as it is now.
fn after_a_restart(path: &Path, sql: &str) -> i64 {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    for end in ["", "-wal"] {
        let with_end = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        std::fs::copy(with_end(path), with_end(&copy)).unwrap();
    }
    rusqlite::Connection::open(copy).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn after_a_failed_commit_of_a_closure_with_the_whole_connection_a_fence_is_written_or_it_is_said() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = open(file.options().durability(Durability::Full)).await;
        let fails_first = |c: &mut rusqlite::Connection| {
            let failed = c.execute("INSERT INTO t (n) VALUES (1)", []).is_err();
            Ok::<_, Error>(failed && c.execute("DELETE FROM t WHERE n = 7", []).is_ok())
        };
        let fault = fail_commits(1);
        assert!(db.with_connection(fails_first).await.unwrap());
        drop(fault);
        let fault = fail_commits(2);
        let fails =
            |c: &mut rusqlite::Connection| Ok::<_, Error>(c.execute("INSERT INTO t (n) VALUES (2)", []).is_err());
        let error = db.with_connection(fails).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
        drop(fault);
        db.execute(INSERT, (3, "")).await.unwrap();
        assert_eq!(after_a_restart(&file.path(), "SELECT sum(n) FROM t WHERE n >= 0"), 3);
        db.close().await.unwrap();
        assert_eq!(present(&file), [3]);
    });
}

/// One transaction over two files, which SQLite commits one after the other.
async fn insert_in_both(db: &Database, way: usize, n: i64) -> Result<(), Error> {
    match way {
        0 => {
            let both = ["INSERT INTO b VALUES (?)", "INSERT INTO other.o VALUES (?)"];
            db.batch(both.map(|sql| (sql, params![n]))).await.map(drop)
        }
        1 => db.execute_script(format!("INSERT INTO b VALUES ({n}); INSERT INTO other.o VALUES ({n})")).await,
        _ => {
            db.write_with(move |transaction| {
                transaction.execute("INSERT INTO b VALUES (?)", (n,))?;
                transaction.execute("INSERT INTO other.o VALUES (?)", (n,))?;
                Ok::<_, Error>(())
            })
            .await
        }
    }
}

#[test]
fn a_commit_over_two_files_that_fails_in_one_is_in_none_or_it_is_said_where_it_may_be() {
    let (_alone, file) = (alone(), TestFile::new());
    let (main, other) = (file.path(), file.beside("-other"));
    let plain = rusqlite::Connection::open(&other).unwrap();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (n)").unwrap();
    run(async {
        let db = file.options().tuning(|t| t.attach("other", &other)).open().await.unwrap();
        db.execute_script("CREATE TABLE b (n)").await.unwrap();
        let (mut n, mut halves, mut undone) = (0, 0, 0);
        for errno in [ENOSPC, EIO] {
            for way in 0..3 {
                for passing in 0..6 {
                    n += 1;
                    let fault = fail_writes(passing, 1, errno);
                    let outcome = insert_in_both(&db, way, n).await;
                    drop(fault);
                    let rows = |table| format!("SELECT count(*) FROM {table} WHERE n = {n}");
                    let found = [(&main, rows("b")), (&other, rows("o"))].map(|(path, sql)| {
                        let now: i64 =
                            rusqlite::Connection::open(path).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap();
                        assert_eq!(after_a_restart(path, &sql), now, "errno {errno}, way {way}, write {passing}");
                        now
                    });
                    match outcome {
                        Ok(()) => assert_eq!(found, [1, 1]),
                        Err(error) if error.kind() == ErrorKind::CommitUnknown => {
                            halves +=
                                i32::from(found == [1, 0] && error.message().ends_with("have a new commit: main"));
                        }
                        Err(error) => {
                            assert_eq!(found, [0, 0], "errno {errno}, way {way}, write {passing}: {error}");
                            undone += 1;
                        }
                    }
                }
            }
        }
        assert!(halves >= 6, "a half was not told: {halves}");
        // The one write to the WAL of the main file; where no space was left, two ways try again.
        assert!(undone >= 4, "nothing failed as a whole: {undone}");
        db.close().await.unwrap();
    });
}

#[test]
fn a_vacuum_without_space_changes_nothing_and_leaves_nothing() {
    let _alone = alone();
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute_script(
            "CREATE TABLE t (a); WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 500)
             INSERT INTO t SELECT randomblob(3000) FROM n; DELETE FROM t WHERE rowid % 2",
        )
        .await
        .unwrap();
        let free: i64 = db.query_value("PRAGMA freelist_count", ()).await.unwrap();
        assert!(free > 100);
        let before = support::files(file.directory()).len();
        for passing in [0, 1, 10, 100, 200] {
            let full = fail_writes(passing, i64::MAX, ENOSPC);
            let errors = [db.vacuum().await.unwrap_err(), db.vacuum_into(file.beside("-copy")).await.unwrap_err()];
            drop(full);
            assert_eq!(errors.each_ref().map(Error::kind), [ErrorKind::Full; 2], "{passing}: {errors:?}");
            assert_eq!(support::files(file.directory()).len(), before, "a copy that failed leaves no file");
            assert_eq!(db.query_value::<i64>("PRAGMA freelist_count", ()).await.unwrap(), free);
            assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 250);
        }
        db.vacuum().await.unwrap();
        db.vacuum_into(file.beside("-copy")).await.unwrap();
        assert_eq!(db.query_value::<i64>("PRAGMA freelist_count", ()).await.unwrap(), 0);
    });
}
