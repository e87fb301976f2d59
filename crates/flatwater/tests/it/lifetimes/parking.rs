//! More databases than may have connections: those that are not used are parked, and come back. Each test runs alone in
//! a separate process, because the bound is the process's.
#![cfg(target_os = "linux")]

use std::time::Duration;

use flatwater::options::{Inline, Journal};
use flatwater::process::set_max_open;
use flatwater::{Database, Error, ErrorKind, Options};
use futures_util::future::join_all;

use crate::support::{TestFile, count, empty_table, integer, integrity, is_alone_in_process, run, until, wait_until};

const INSERT: &str = "INSERT INTO t VALUES (?)";

/// Returns true if the database has no connection: its last one removes the WAL.
fn is_parked(file: &TestFile) -> bool {
    !file.beside("-wal").exists() && !file.beside("-shm").exists()
}

fn open_ones(files: &[TestFile]) -> usize {
    files.iter().filter(|file| !is_parked(file)).count()
}

/// Opens so many databases with one row each, of which `most` may have connections. Their calls wait for room however slow the
/// machine is.
async fn opened(databases: usize, most: usize) -> (Vec<TestFile>, Vec<Database>) {
    let files: Vec<_> = (0..databases).map(|_| TestFile::new()).collect();
    let mut dbs = Vec::new();
    set_max_open(most);
    for file in &files {
        let db = empty_table(file.options().busy_timeout(Duration::from_secs(3600))).await;
        db.execute(INSERT, (1,)).await.unwrap();
        dbs.push(db);
    }
    (files, dbs)
}

/// Uses another database until `file` is parked, which it may be when the hand of the clock has passed it twice.
async fn park(file: &TestFile) {
    let others: Vec<_> = (0..3).map(|_| TestFile::new()).collect();
    set_max_open(1);
    while !is_parked(file) {
        for other in &others {
            let db = empty_table(other.options()).await;
            db.execute("DROP TABLE t", ()).await.unwrap();
            db.close().await.unwrap();
        }
    }
}

#[test]
fn databases_beyond_the_bound_are_parked_and_come_back_whatever_is_asked_first() {
    if !is_alone_in_process(
        "lifetimes::parking::databases_beyond_the_bound_are_parked_and_come_back_whatever_is_asked_first",
        None,
    ) {
        return;
    }
    run(async {
        let (files, dbs) = opened(12, 2).await;
        until(|| open_ones(&files) <= 2).await;
        until(|| dbs.iter().map(|db| db.stats().parked).sum::<u64>() >= 10).await;
        for _ in 0..3 {
            assert_eq!(dbs[0].query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
            assert_eq!(dbs[1].execute("UPDATE t SET a = 1", ()).await.unwrap().changes, 1);
            let read = dbs[2]
                .read_with(|c| c.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from));
            assert_eq!(read.await.unwrap(), 1);
            let wrote = dbs[3].write_with(|tx| tx.execute("UPDATE t SET a = 1", []).map_err(Error::from));
            assert_eq!(wrote.await.unwrap(), 1);
            let left = dbs[4].transaction(async |tx| {
                tx.execute("UPDATE t SET a = 1", ()).await?;
                tx.query_optional_value::<i64>("SELECT a FROM t", ()).await
            });
            assert_eq!(left.await.unwrap(), Some(1));
            assert_eq!(dbs[5].query_as::<(i64,)>("SELECT a FROM t", ()).wait().unwrap(), [(1,)]);
            assert_eq!(dbs[6].execute_many("UPDATE t SET a = ?", [(1,), (1,)]).wait().unwrap(), 2);
            let reads = join_all((0..8).map(|_| dbs[7].query_optional_value::<i64>("SELECT a FROM t", ()))).await;
            assert!(reads.into_iter().all(|read| read.unwrap() == Some(1)));
            let writes = join_all((0..8).map(|_| dbs[8].execute("UPDATE t SET a = 1", ()))).await;
            assert!(writes.into_iter().all(|write| write.unwrap().changes == 1));
            until(|| open_ones(&files) <= 2).await;
        }
        for (file, db) in files.iter().zip(dbs) {
            db.close().await.unwrap();
            assert_eq!((integer(&file.plain(), "SELECT sum(a) FROM t"), integrity(&file.plain())), (1, "ok".into()));
        }
    });
}

/// Descriptors that this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn thousands_of_databases_in_random_use_have_few_descriptors_and_no_call_fails() {
    const MOST: usize = 16;
    if !is_alone_in_process(
        "lifetimes::parking::thousands_of_databases_in_random_use_have_few_descriptors_and_no_call_fails",
        None,
    ) {
        return;
    }
    run(async {
        let (_files, dbs) = opened(300, MOST).await;
        let before = descriptors();
        let dbs = std::sync::Arc::new(dbs);
        let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let tasks = (0..100_usize).map(|task| {
            let (dbs, most) = (dbs.clone(), most.clone());
            tokio::spawn(async move {
                let mut random = (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
                for turn in 0..15 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let db = &dbs[(random >> 33) as usize % dbs.len()];
                    if turn % 2 == 0 {
                        db.execute("UPDATE t SET a = a + 1", ()).await.unwrap();
                    } else {
                        assert!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap() >= Some(1));
                    }
                    most.fetch_max(descriptors(), std::sync::atomic::Ordering::Relaxed);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let mut sum = 0;
        for db in dbs.iter() {
            sum += db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap().unwrap();
        }
        assert_eq!(sum, 300 + 100 * 8, "each write was done");
        let most = most.load(std::sync::atomic::Ordering::Relaxed);
        assert!(most < before.max(2 * MOST * 8) + 32, "{most} descriptors, {before} before");
    });
}

#[test]
fn transactions_in_more_databases_than_there_is_room_for_do_not_wait_for_each_other() {
    if !is_alone_in_process(
        "lifetimes::parking::transactions_in_more_databases_than_there_is_room_for_do_not_wait_for_each_other",
        None,
    ) {
        return;
    }
    run(async {
        let (_files, dbs) = opened(12, 2).await;
        let mut open = Vec::new();
        for db in &dbs {
            let tx = db.begin().await.unwrap();
            tx.execute(INSERT, (2,)).await.unwrap();
            open.push(tx);
        }
        for tx in open {
            tx.commit().await.unwrap();
        }
        for db in &dbs {
            assert_eq!(count(db).await, 2);
        }
    });
}

#[test]
fn a_call_that_waits_for_room_ends_at_its_deadline_and_can_be_given_up() {
    if !is_alone_in_process(
        "lifetimes::parking::a_call_that_waits_for_room_ends_at_its_deadline_and_can_be_given_up",
        None,
    ) {
        return;
    }
    run(async {
        let (files, dbs) = opened(4, 1).await;
        let (end, until_ended) = std::sync::mpsc::channel::<()>();
        let until_ended = std::sync::Arc::new(std::sync::Mutex::new(until_ended));
        let begun = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        // Closures serve a request each, for as long as the test likes.
        let closures: Vec<_> = dbs[..2]
            .iter()
            .map(|db| {
                let (until_ended, begun) = (until_ended.clone(), begun.clone());
                tokio::spawn(db.write_with(move |_| {
                    begun.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let _ = until_ended.lock().unwrap().recv();
                    Ok::<_, Error>(())
                }))
            })
            .collect();
        until(|| begun.load(std::sync::atomic::Ordering::SeqCst) == 2 && is_parked(&files[3])).await;
        let short = dbs[3].with_timeout(std::time::Duration::from_millis(50));
        let error = short.execute(INSERT, (2,)).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.applied()),
            (ErrorKind::Timeout, Some(flatwater::calls::TimeoutEffect::No)),
            "{error}"
        );
        (0..2).for_each(|_| end.send(()).unwrap());
        for closure in closures {
            closure.await.unwrap().unwrap();
        }
        dbs[3].execute(INSERT, (3,)).await.unwrap();
        assert_eq!(count(&dbs[3]).await, 2);
    });
}

#[test]
fn a_parked_database_with_a_live_query_notices_commits_of_others() {
    if !is_alone_in_process("lifetimes::parking::a_parked_database_with_a_live_query_notices_commits_of_others", None) {
        return;
    }
    run(async {
        let (files, dbs) = opened(2, 1).await;
        let mut live = dbs[0].live("SELECT sum(a) FROM t", ());
        let value = |rows: flatwater::live::LiveRows| rows.get(0).unwrap().get::<i64>(0).unwrap();
        assert_eq!(value(live.next().await.unwrap().unwrap()), 1);
        for (turn, sum) in [(2, 3), (3, 6), (4, 10)] {
            park(&files[0]).await;
            files[0].plain().execute(INSERT, [turn]).unwrap();
            assert_eq!(value(live.next().await.unwrap().unwrap()), sum);
        }
        park(&files[0]).await;
        dbs[0].execute(INSERT, (5,)).await.unwrap();
        assert_eq!(value(live.next().await.unwrap().unwrap()), 15, "and its own");
        drop(live);
    });
}

#[test]
fn a_database_in_use_keeps_its_connections() {
    if !is_alone_in_process("lifetimes::parking::a_database_in_use_keeps_its_connections", None) {
        return;
    }
    run(async {
        let (files, dbs) = opened(3, 1).await;
        let tx = dbs[0].begin().await.unwrap();
        tx.execute(INSERT, (2,)).await.unwrap();
        let (end, until_ended) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let reader = tokio::spawn(dbs[1].read_with(move |c| {
            begun.send(()).unwrap();
            let _ = until_ended.recv();
            c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
        }));
        has_begun.await.unwrap();
        let before = [dbs[0].stats().parked, dbs[1].stats().parked];
        park(&files[2]).await;
        assert!(!is_parked(&files[0]) && !is_parked(&files[1]));
        assert_eq!([dbs[0].stats().parked, dbs[1].stats().parked], before);
        dbs[1].execute(INSERT, (2,)).await.unwrap();
        end.send(()).unwrap();
        assert_eq!(reader.await.unwrap().unwrap(), 1, "its snapshot");
        tx.commit().await.unwrap();
        for db in &dbs[..2] {
            assert_eq!(count(db).await, 2);
        }
    });
}

#[test]
fn the_first_read_after_parking_waits_for_no_transaction() {
    if !is_alone_in_process("lifetimes::parking::the_first_read_after_parking_waits_for_no_transaction", None) {
        return;
    }
    run(async {
        let (files, dbs) = opened(1, 1).await;
        let (file, db) = (&files[0], &dbs[0]);
        for _ in 0..20 {
            park(file).await;
            let (tx, rows) =
                futures_util::join!(db.begin(), db.query_optional_value::<i64>("SELECT count(*) FROM t", ()));
            assert_eq!(rows.unwrap(), Some(1));
            tx.unwrap().rollback().await.unwrap();
        }
    });
}

#[test]
fn a_database_that_no_file_holds_is_not_parked() {
    if !is_alone_in_process("lifetimes::parking::a_database_that_no_file_holds_is_not_parked", None) {
        return;
    }
    run(async {
        let invisible = Options::new("/flatwater-parking").journal(Journal::Keep).tuning(|t| t.vfs("memdb"));
        let db = empty_table(invisible).await;
        db.execute(INSERT, (1,)).await.unwrap();
        let file = TestFile::new();
        let other = empty_table(file.options()).await;
        park(&file).await;
        assert_eq!((count(&db).await, db.stats().parked, other.stats().parked > 0), (1, 0, true));
    });
}

#[test]
fn what_others_did_to_a_parked_file_is_seen() {
    if !is_alone_in_process("lifetimes::parking::what_others_did_to_a_parked_file_is_seen", None) {
        return;
    }
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options().tuning(|t| t.inline(Inline::Never))).await;
        for _ in 0..3 {
            join_all((0..4).map(|n| db.execute(INSERT, (n,)))).await.into_iter().for_each(|done| assert!(done.is_ok()));
        }
        park(&file).await;
        // The text is known to be groupable under the former schema.
        let plain = file.plain();
        plain
            .execute_batch(
                "PRAGMA journal_mode = DELETE; DELETE FROM t; CREATE TABLE log (a);
                 CREATE TRIGGER tells AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END;
                 CREATE TRIGGER refuses BEFORE INSERT ON t WHEN new.a = 7 BEGIN SELECT RAISE(ROLLBACK, 'seven'); END",
            )
            .unwrap();
        drop(plain);
        let written = join_all((5..10).map(|n| db.execute(INSERT, (n,)))).await;
        assert_eq!(written.iter().filter(|written| written.is_ok()).count(), 4);
        assert_eq!(written[2].as_ref().unwrap_err().kind(), ErrorKind::Constraint);
        assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM log", ()).await.unwrap(), Some(5 + 6 + 8 + 9));
        assert_eq!(count(&db).await, 4);

        park(&file).await;
        std::fs::rename(file.path(), file.beside("-moved")).unwrap();
        std::fs::write(file.path(), "").unwrap();
        for error in [db.execute(INSERT, (1,)).await.unwrap_err(), db.query("SELECT a FROM t", ()).await.unwrap_err()] {
            assert!(error.kind() == ErrorKind::Io && error.message().contains("replaced"), "{error}");
        }
        assert_eq!(std::fs::read(file.path()).unwrap(), b"", "nothing was written to the other file");
        db.close().await.unwrap();
        std::fs::rename(file.beside("-moved"), file.path()).unwrap();
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 4);
    });
}

#[test]
fn calls_race_with_parking_and_none_is_lost() {
    if !is_alone_in_process("lifetimes::parking::calls_race_with_parking_and_none_is_lost", None) {
        return;
    }
    const TASKS: i64 = 8;
    const WRITES: i64 = 200;
    let (files, dbs) = run(opened(6, 1));
    std::thread::scope(|scope| {
        for task in 0..TASKS {
            let dbs = &dbs;
            scope.spawn(move || {
                for n in 0..WRITES {
                    let db = &dbs[usize::try_from((task * 5 + n * 7) % 6).unwrap()];
                    db.execute(INSERT, (n,)).wait().unwrap();
                    assert!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap() > Some(0));
                }
            });
        }
    });
    // Five are parked when they are not in use any more, if not before.
    wait_until(|| dbs.iter().map(|db| db.stats().parked).sum::<u64>() >= 5);
    dbs.into_iter().for_each(|db| db.close().wait().unwrap());
    let rows = files.iter().map(|file| integer(&file.plain(), "SELECT count(*) FROM t")).sum::<i64>();
    assert_eq!(rows, TASKS * WRITES + 6);
    assert!(files.iter().all(|file| integrity(&file.plain()) == "ok"));
}

#[test]
fn descriptors_are_bounded_by_the_databases_that_may_have_connections() {
    if !is_alone_in_process(
        "lifetimes::parking::descriptors_are_bounded_by_the_databases_that_may_have_connections",
        None,
    ) {
        return;
    }
    /// The database, its WAL and its wal-index once for each connection at most, and two for the guards.
    const EACH: usize = 3 * 4 + 2;
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    run(async {
        let (_files, dbs) = opened(100, 4).await;
        for _ in 0..2 {
            for db in &dbs {
                assert_eq!(count(db).await, 1);
            }
            until(|| descriptors() <= 4 * EACH + 20).await;
        }
        drop(dbs);
        until(|| descriptors() < 30).await;
    });
}

/// Returns the number of Flatwater's threads.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    tasks.filter_map(|comm| std::fs::read_to_string(comm).ok()).filter(|name| name.starts_with("fw-")).count()
}

#[test]
fn threads_are_bounded_by_what_is_served_and_not_by_the_databases() {
    if !is_alone_in_process("lifetimes::parking::threads_are_bounded_by_what_is_served_and_not_by_the_databases", None)
    {
        return;
    }
    let files: Vec<_> = (0..60).map(|_| TestFile::new()).collect();
    let dbs: Vec<_> =
        run(join_all(files.iter().map(|file| empty_table(file.options().tuning(|t| t.inline(Inline::Never))))));
    let blob = vec![7; 300_000];
    for db in &dbs {
        // The WAL is long enough for the checkpointer to look at it, and reads use a reader's thread.
        run(db.execute(INSERT, (&blob[..],))).unwrap();
        run(db.query("SELECT a FROM t", ())).unwrap();
    }
    let places = std::thread::available_parallelism().map_or(16, |cores| (cores.get() * 4).max(16));
    // And the timer.
    wait_until(|| threads() <= places + 1);
    for db in &dbs {
        assert_eq!(run(count(db)), 1);
        db.close().wait().unwrap();
    }
}
