//! Inline reads: long reads never run inline, other callers are not delayed, and a dropped call returns the connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use flatwater::options::{Checkpoint, Inline, InlineLimits};
use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::{Database, Error};
use futures_util::FutureExt;

use crate::support::{TestFile, count, run, unhurried, until};

const FIND: &str = "SELECT a FROM t WHERE rowid = ?";

/// Opens a database with rows and a text that runs inline.
async fn known(file: &TestFile) -> Database {
    let db = unhurried(file.options()).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
    while db.stats().inline.reads == 0 {
        db.query(FIND, (1,)).await.unwrap();
    }
    db
}

/// As `select!` does in a loop whose other branch is always ready: each call is polled once, and dropped.
#[test]
fn a_call_that_is_given_up_for_the_turn_of_others_holds_up_no_later_call() {
    let file = TestFile::new();
    run(async {
        let db = file.options().open().await.unwrap();
        db.close().await.unwrap();
        // Refused at once.
        let is_answered = || db.query("SELECT 1", ()).now_or_never().is_some();
        for _ in 0..3 {
            while is_answered() {}
            assert!(is_answered(), "the one before gave its turn up");
        }
    });
}

#[test]
fn a_call_that_is_never_inline_goes_to_a_thread_of_the_database() {
    const INSERT: &str = "INSERT INTO t VALUES (?)";
    let file = TestFile::new();
    run(async {
        let db = known(&file).await;
        while db.stats().inline.writes == 0 {
            db.execute(INSERT, (4,)).await.unwrap();
        }
        let rows = count(&db).await;
        let before = db.stats().inline;
        for _ in 0..10 {
            assert_eq!(db.query(FIND, (1,)).never_inline().await.unwrap().len(), 1);
            db.execute(INSERT, (5,)).never_inline().await.unwrap();
        }
        let after = db.stats().inline;
        assert_eq!((after.reads, after.writes), (before.reads, before.writes));
        assert_eq!(count(&db).await, rows + 10);
        let transaction = db.begin().never_inline().await.unwrap();
        let reads = db.stats().inline.reads;
        while db.stats().inline.reads == reads {
            transaction.query(FIND, (1,)).await.unwrap();
        }
    });
}

#[test]
fn a_short_result_in_batches_is_learnt_and_then_read_on_its_callers_thread() {
    const SHORT: &str = "SELECT a FROM t WHERE rowid = ? AND a > 0";
    let file = TestFile::new();
    run(async {
        let db = known(&file).await;
        let reads = db.stats().inline.reads;
        while db.stats().inline.reads == reads {
            let mut batches = db.batches(SHORT, (1,));
            assert_eq!(batches.next().await.unwrap().unwrap().len(), 1);
            assert!(batches.next().await.is_none());
        }
        let mut none = db.batches(SHORT, (99,));
        assert!(none.next().await.is_none());
    });
}

const LONG_SCHEMA: &str = "
    CREATE TABLE large (id INTEGER PRIMARY KEY, x TEXT);
    INSERT INTO large SELECT value, printf('%*d', 1000000, value) FROM json_each('[1,2,3]');
    CREATE TABLE many (id INTEGER PRIMARY KEY, x, y);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 30000)
        INSERT INTO many SELECT i, i * 7919 % 30011, 'text ' || i FROM n;
    CREATE VIRTUAL TABLE text USING fts5 (x);
    INSERT INTO text SELECT y FROM many LIMIT 3000;
    CREATE TABLE doc (j);
    INSERT INTO doc SELECT json_group_array(y) FROM many;";

/// Texts that are not short, each for a different reason.
const LONG: &[&str] = &[
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000) SELECT sum(i) FROM n",
    "SELECT count(*) FROM many a, many b WHERE a.id < 100 AND b.id < 2000 AND a.x <> b.y",
    "SELECT id FROM large WHERE x LIKE '%7%3%'",
    "SELECT length(x || x) FROM large WHERE id = 1",
    "SELECT x FROM large WHERE id = 2",
    "SELECT length(randomblob(10000000))",
    "SELECT length(printf('%*d', 10000000, 1))",
    "SELECT length(zeroblob(10000000) || 'x')",
    "SELECT length(hex(zeroblob(1000000)))",
    "SELECT length(replace(printf('%*d', 50000, 1), ' ', 'abcdefgh'))",
    "SELECT length(group_concat(y)) FROM many",
    "SELECT x FROM many ORDER BY x, y LIMIT 1 OFFSET 1000",
    "SELECT DISTINCT x % 5 FROM many",
    "SELECT x % 3, count(*), max(y) FROM many GROUP BY x % 3",
    "SELECT sum(x) OVER (ORDER BY x) FROM many LIMIT 3",
    "SELECT * FROM many",
    "SELECT count(*) FROM text WHERE text MATCH 'text'",
    "SELECT rowid FROM text WHERE text MATCH 'text' ORDER BY rank LIMIT 1",
    "SELECT json_extract(j, '$[20000]') FROM doc",
    "SELECT count(*) FROM doc, json_each(j)",
    "SELECT j FROM doc",
    "SELECT a.y FROM many a JOIN many b ON a.y = b.y WHERE a.id = 29000 OR b.x = 5",
    "SELECT count(*) FROM many WHERE y GLOB '*9*9*'",
    "PRAGMA integrity_check",
];

#[test]
fn what_is_long_is_not_answered_on_the_callers_thread_and_answered_right() {
    let file = TestFile::new();
    run(async {
        let worker = file.options().tuning(|t| t.inline(Inline::Never)).open().await.unwrap();
        worker.execute_script(LONG_SCHEMA).await.unwrap();
        let mut expected = Vec::new();
        for text in LONG {
            expected.push(worker.query(text, ()).await.unwrap());
        }
        worker.close().await.unwrap();
        let limits = InlineLimits::default().rows(100);
        let db = file.options().readers(1).tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
        for (text, expected) in LONG.iter().zip(&expected) {
            for _ in 0..6 {
                let before = db.stats().inline.reads;
                assert_eq!(&db.query(text, ()).await.unwrap(), expected, "{text}");
                assert_eq!(db.stats().inline.reads, before, "{text}");
            }
            // In a transaction, where the writer's connection knows nothing of it.
            let tx = db.begin().await.unwrap();
            let before = db.stats().inline.reads;
            assert_eq!(&tx.query(text, ()).await.unwrap(), expected, "{text}");
            assert_eq!(db.stats().inline.reads, before, "{text}");
            tx.rollback().await.unwrap();
        }
        db.close().await.unwrap();
    });
}

#[test]
fn a_read_that_turns_out_long_is_interrupted_and_answered_by_a_worker() {
    let file = TestFile::new();
    run(async {
        let limits = InlineLimits::default().time(Duration::ZERO).rows(usize::MAX);
        let db = file.options().readers(1).tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
        db.execute_script(LONG_SCHEMA).await.unwrap();
        while db.stats().inline.interrupted == 0 {
            assert_eq!(
                db.query_optional_value::<i64>("SELECT id FROM many WHERE y = 'text 29999'", ()).await,
                Ok(Some(29999))
            );
        }
        assert_eq!(db.stats().inline.reads, 0);
        db.close().await.unwrap();
    });
}

/// SQLite counts a table in one instruction, so only the history of the text shows how long that takes.
#[test]
fn a_count_runs_on_the_callers_thread_once_its_history_shows_that_it_is_short() {
    const COUNT: &str = "SELECT count(*) FROM t";
    let file = TestFile::new();
    run(async {
        let db = known(&file).await;
        let before = db.stats().inline.reads;
        let count = async || {
            assert_eq!(db.query_value::<i64>(COUNT, ()).await, Ok(3));
            db.stats().inline.reads - before
        };
        for _ in 0..8 {
            assert_eq!(count().await, 0);
        }
        for _ in 0..100 {
            count().await;
        }
        assert!(count().await > 0);
        db.close().await.unwrap();
    });
    let never = [
        file.options().tuning(|t| t.inline(Inline::Auto(InlineLimits::default().time(Duration::ZERO)))),
        unhurried(file.options()).tuning(|t| t.reader_cache_bytes(64 << 20)),
    ];
    for options in never {
        run(async {
            let db = options.readers(1).open().await.unwrap();
            for _ in 0..100 {
                assert_eq!(db.query_value::<i64>(COUNT, ()).await, Ok(3));
            }
            assert_eq!(db.stats().inline.reads, 0);
            db.close().await.unwrap();
        });
    }
}

/// Even with very little time. There is no checkpoint, so no page has to be read again.
#[test]
fn a_read_without_a_loop_runs_to_its_end() {
    let file = TestFile::new();
    run(async {
        let limits = InlineLimits::default().time(Duration::from_nanos(1));
        let options = file.options().checkpoint(Checkpoint::External).tuning(|t| t.inline(Inline::Auto(limits)));
        let db = options.open().await.unwrap();
        db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x')").await.unwrap();
        let point = async || {
            assert_eq!(db.query("SELECT a FROM t WHERE id = ?", (1,)).await.unwrap().len(), 1);
            db.stats().inline
        };
        while point().await.reads == 0 {}
        let before = db.stats().inline;
        for _ in 0..1000 {
            point().await;
        }
        let after = db.stats().inline;
        assert_eq!((after.reads, after.interrupted), (before.reads + 1000, before.interrupted));
        db.close().await.unwrap();
    });
}

#[test]
fn the_users_functions_and_collations_never_run_on_the_callers_thread() {
    let file = TestFile::new();
    // One thread, which is the caller's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
        let db = known(&file).await;
        db.execute("CREATE TABLE u (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
        let register = |threads: Arc<Mutex<Vec<ThreadId>>>| {
            move |c: &flatwater::rusqlite::Connection| {
                // One of a name of its own, one in place of SQLite's.
                for name in ["who", "upper"] {
                    let threads = threads.clone();
                    c.create_scalar_function(name, 1, FunctionFlags::SQLITE_UTF8, move |context| {
                        threads.lock().unwrap().push(std::thread::current().id());
                        context.get::<i64>(0)
                    })?;
                }
                let threads = threads.clone();
                c.create_collation("NOCASE", move |a: &str, b: &str| {
                    threads.lock().unwrap().push(std::thread::current().id());
                    a.cmp(b)
                })?;
                Ok::<_, Error>(())
            }
        };
        // What runs there before is known to be short, and no longer afterwards.
        for _ in 0..6 {
            db.query("SELECT upper(?)", (1,)).await.unwrap();
            db.query("SELECT 'a' = ? COLLATE NOCASE", ("b",)).await.unwrap();
            db.execute("INSERT INTO u (b) VALUES (upper(?))", (1,)).await.unwrap();
        }
        db.read_with(register(threads.clone())).await.unwrap();
        db.write_with({
            let register = register(threads.clone());
            move |tx| register(tx)
        })
        .await
        .unwrap();
        for _ in 0..20 {
            for text in ["SELECT who(?)", "SELECT upper(?)", "SELECT who(a) FROM t WHERE rowid = ?"] {
                assert_eq!(db.query_optional_value::<i64>(text, (1,)).await, Ok(Some(1)));
            }
            db.query("SELECT 'a' = ? COLLATE NOCASE", ("b",)).await.unwrap();
            db.execute("INSERT INTO u (b) VALUES (who(?))", (1,)).await.unwrap();
            db.execute("INSERT INTO u (b) VALUES (upper(?))", (1,)).await.unwrap();
            let tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO u (b) VALUES (upper(?))", (1,)).await.unwrap();
            tx.commit().await.unwrap();
        }
        let seen = threads.lock().unwrap().clone();
        assert!(seen.len() > 100, "the functions were gone: {}", seen.len());
        assert!(!seen.contains(&std::thread::current().id()));
        db.close().await.unwrap();
    });
}

#[test]
fn a_loop_of_point_queries_lets_another_task_run() {
    let file = TestFile::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = known(&file).await;
        let progress = Arc::new(AtomicU64::new(0));
        let other = tokio::spawn({
            let progress = progress.clone();
            async move {
                loop {
                    progress.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let (mut calls, mut turns) = (0, 0);
        let mut seen = (db.stats().inline.yields, progress.load(Ordering::Relaxed));
        while turns < 50 {
            assert!(calls < 1_000_000, "the other task starves");
            db.query(FIND, (1 + calls % 3,)).await.unwrap();
            calls += 1;
            if progress.load(Ordering::Relaxed) > seen.1 {
                let now = (db.stats().inline.yields, progress.load(Ordering::Relaxed));
                // A call that went to a worker lets it run, too.
                turns += i32::from(now.0 > seen.0);
                seen = now;
            }
        }
        other.abort();
        db.close().await.unwrap();
    });
}

/// Polls a future once.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn whoever_leaves_at_any_point_gives_the_connection_back() {
    let file = TestFile::new();
    run(async {
        let db = known(&file).await;
        let insert = "INSERT INTO t VALUES (?)";
        let (mut least, mut most) = (count(&db).await, count(&db).await);
        for _ in 0..10 {
            // All in one poll of this task, until the thread has had its share: one call keeps its answer, and is left.
            let before = db.stats().inline.yields;
            while db.stats().inline.yields == before {
                drop(db.query(FIND, (1,)));
                drop(db.execute(insert, (1,)));
                let mut read = db.query(FIND, (1,));
                let _ = poll(&mut read);
                drop(read);
                let mut write = db.execute(insert, (1,));
                match poll(&mut write) {
                    Poll::Ready(answer) => {
                        answer.unwrap();
                        least += 1;
                        most += 1;
                    }
                    Poll::Pending => most += 1,
                }
            }
            // What waits behind a transaction is left, too.
            let mut waiting = db.begin().await.unwrap();
            let mut call = waiting.execute(insert, (2,));
            let _ = poll(&mut call);
            drop(call);
            let nested = waiting.begin().await.unwrap();
            drop(nested);
            let mut queued = db.execute(insert, (3,));
            assert!(poll(&mut queued).is_pending());
            drop(queued);
            waiting.rollback().await.unwrap();
        }
        let found = count(&db).await;
        assert!((least..=most).contains(&found), "{found} rows, of {least} to {most}");
        for number in 1..4 {
            assert_eq!(db.query_optional_value::<i64>(FIND, (number,)).await, Ok(Some(number)));
        }
        // What was left in a queue goes when its turn comes.
        until(|| (db.stats().writes_waiting, db.stats().reads_waiting) == (0, 0)).await;
        db.close().await.unwrap();
    });
}

#[test]
fn a_call_that_waits_for_the_others_turn_is_answered_after_close() {
    let file = TestFile::new();
    run(async {
        let db = known(&file).await;
        let before = db.stats().inline.yields;
        let held = poll_fn(|context| {
            loop {
                let mut call = db.query_optional_value::<i64>(FIND, (1,));
                let answer = Pin::new(&mut call).poll(context);
                if db.stats().inline.yields > before {
                    assert!(answer.is_pending());
                    return Poll::Ready(call);
                }
            }
        });
        let held = held.await;
        db.close().await.unwrap();
        assert_eq!(held.await, Ok(Some(1)), "its work was done before");
    });
}
