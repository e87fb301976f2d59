//! Closing: earlier calls are completed, later calls are refused, and no resources remain.

use std::time::Duration;

use flatwater::{Database, Error, ErrorKind};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, empty_table, files, integer, run, until, wait_until, waiting};

in_both_places!(
    writes_submitted_before_succeed_and_calls_after_are_refused,
    writes_that_still_wait_for_a_place_in_the_queue_were_submitted_too,
    reads_submitted_before_succeed,
    an_open_transaction_is_waited_for_and_then_rolled_back,
    an_open_transaction_that_ends_in_time_keeps_what_it_did,
    a_long_read_is_ended_and_told_that_the_database_is_closed,
    a_long_read_on_the_writer_is_ended_too,
    a_long_read_closure_is_ended,
    a_close_that_is_given_up_closes_all_the_same,
);

/// Checks that every call returns the error for a closed database.
async fn is_closed(db: &Database) {
    let insert = "INSERT INTO t VALUES (0)";
    for error in [
        db.execute(insert, ()).await.unwrap_err(),
        db.execute_many("INSERT INTO t VALUES (?)", [(0,)]).await.unwrap_err(),
        db.batch([("", ()); 0]).await.unwrap_err(),
        db.execute_script(insert).await.unwrap_err(),
        db.query("SELECT 1", ()).await.unwrap_err(),
        db.query("INSERT INTO t VALUES (0) RETURNING a", ()).await.unwrap_err(),
        db.begin().await.unwrap_err(),
        db.read_with(|_| Ok::<_, Error>(())).await.unwrap_err(),
        db.write_with(|_| Ok::<_, Error>(())).await.unwrap_err(),
        db.execute(insert, ()).wait().unwrap_err(),
        db.query("SELECT 1", ()).wait().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert!(!error.is_retryable() && error.operation().is_some(), "{error:?}");
    }
}

fn is_left_clean(file: &TestFile) {
    assert!(!file.beside("-wal").exists() && !file.beside("-shm").exists());
}

/// Checks that the process has no descriptor on the file. A close with little time may leave the WAL; a close with
/// enough time deletes it.
async fn is_left_free(file: &TestFile) {
    file.open().await.close().await.unwrap();
    is_left_clean(file);
}

async fn writes_submitted_before_succeed_and_calls_after_are_refused(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    let mut before: Vec<_> = (0..100).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,))).collect();
    for call in &mut before {
        assert!(futures_util::poll!(call).is_pending());
    }
    let mut close = Box::pin(db.close());
    assert!(futures_util::poll!(&mut close).is_pending());
    is_closed(&db).await;
    let clone = db.clone();
    let again = tokio::spawn(async move { clone.close().await });
    tx.execute("INSERT INTO t VALUES (1000)", ()).await.unwrap();
    tx.commit().await.unwrap();
    for (rowid, call) in (2..).zip(join_all(before).await) {
        assert_eq!(call.unwrap().last_insert_rowid, Some(rowid));
    }
    close.await.unwrap();
    again.await.unwrap().unwrap();
    db.close().await.unwrap();
    db.close().wait().unwrap();
    is_closed(&db).await;
    if let Some(file) = place.file() {
        is_left_clean(file);
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 101);
    }
}

async fn writes_that_still_wait_for_a_place_in_the_queue_were_submitted_too(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(2))).await;
    let tx = db.begin().await.unwrap();
    let mut before: Vec<_> = (0..10).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,))).collect();
    for call in &mut before {
        assert!(futures_util::poll!(call).is_pending());
    }
    let mut close = Box::pin(db.close());
    assert!(futures_util::poll!(&mut close).is_pending());
    tx.commit().await.unwrap();
    for call in join_all(before).await {
        call.unwrap();
    }
    close.await.unwrap();
    if let Some(file) = place.file() {
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 10);
    }
}

async fn reads_submitted_before_succeed(place: &Place) {
    for _ in 0..20 {
        let db = place.options().readers(2).open().await.unwrap();
        let mut reads: Vec<_> = (0..50).map(|n| db.query_optional_value::<i64>("SELECT ?", (n,))).collect();
        let mut early = Vec::new();
        for read in &mut reads {
            early.push(futures_util::poll!(read));
        }
        let mut close = Box::pin(db.close());
        let _ = futures_util::poll!(&mut close);
        for (n, (early, read)) in (0..).zip(early.into_iter().zip(reads)) {
            let answer = match early {
                std::task::Poll::Ready(answer) => answer,
                std::task::Poll::Pending => read.await,
            };
            assert_eq!(answer.unwrap(), Some(n));
        }
        db.close().await.unwrap();
    }
}

async fn an_open_transaction_is_waited_for_and_then_rolled_back(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(50)))).await;
    let mut tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let inner = tx.begin().await.unwrap();
    db.close().await.unwrap();
    for error in [
        inner.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err(),
        inner.commit().await.unwrap_err(),
        tx.query("SELECT 1", ()).await.unwrap_err(),
        tx.commit().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    if let Some(file) = place.file() {
        is_left_free(file).await;
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
    }
}

async fn an_open_transaction_that_ends_in_time_keeps_what_it_did(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_secs(3600)))).await;
    let tx = db.begin().await.unwrap();
    let mut close = Box::pin(db.close());
    assert!(futures_util::poll!(&mut close).is_pending());
    for n in 0..20 {
        tx.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap();
    }
    assert!(futures_util::poll!(&mut close).is_pending());
    tx.commit().await.unwrap();
    close.await.unwrap();
    if let Some(file) = place.file() {
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 20);
    }
}

#[test]
fn without_readers_reads_behind_an_open_transaction_are_served_whether_it_ends_in_time_or_not() {
    run(async {
        for in_time in [true, false] {
            let wait = if in_time { Duration::from_secs(3600) } else { Duration::from_millis(50) };
            let db = empty_table(Place::in_memory().options().tuning(|t| t.close_wait(wait))).await;
            let tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            let mut read = db.query_optional_value::<i64>("SELECT count(*) FROM t", ());
            let mut closure = Box::pin(db.read_with(|_| Ok::<_, Error>(())));
            assert!(futures_util::poll!(&mut read).is_pending());
            assert!(futures_util::poll!(&mut closure).is_pending());
            let mut close = Box::pin(db.close());
            assert!(futures_util::poll!(&mut close).is_pending());
            if in_time {
                tx.commit().await.unwrap();
                close.await.unwrap();
            } else {
                close.await.unwrap();
                assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Closed);
            }
            assert_eq!((read.await, closure.await), (Ok(Some(i64::from(in_time))), Ok(())));
        }
    });
}

async fn a_long_read_is_ended_and_told_that_the_database_is_closed(place: &Place) {
    for read_only in [false, true] {
        if read_only && place.file().is_none() {
            // A database in memory cannot be one.
            continue;
        }
        let options =
            place.options().read_only(read_only).readers(1).tuning(|t| t.close_wait(Duration::from_millis(50)));
        let db = options.open().await.unwrap();
        let mut running = db.query(ENDLESS, ());
        let mut waiting = db.query(ENDLESS, ());
        assert!(futures_util::poll!(&mut running).is_pending());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        db.close().await.unwrap();
        for read in [running, waiting] {
            let error = read.await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        }
        if let Some(file) = place.file() {
            // Who may only read cannot take the files away.
            assert!(read_only || !file.beside("-wal").exists());
        }
    }
}

async fn a_long_read_on_the_writer_is_ended_too(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(50)))).await;
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let mut read = tx.query(ENDLESS, ());
    assert!(futures_util::poll!(&mut read).is_pending());
    db.close().await.unwrap();
    assert_eq!(read.await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Closed);
    if let Some(file) = place.file() {
        is_left_free(file).await;
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
    }
}

async fn a_long_read_closure_is_ended(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(50)))).await;
    // Long, but not so long that a failure of this test would keep the machine busy.
    let long = ENDLESS.replace("FROM n)", "FROM n LIMIT 10000000)");
    let read = db.read_with(move |c| c.query_row(&long, [], |row| row.get::<_, i64>(0)).map_err(Error::from));
    let mut read = Box::pin(read);
    assert!(futures_util::poll!(&mut read).is_pending());
    until(|| waiting(&db) == 0).await;
    db.close().await.unwrap();
    assert!(read.await.is_err(), "it ran to its end");
    if let Some(file) = place.file() {
        is_left_free(file).await;
    }
}

#[test]
fn dropping_the_last_handle_closes_in_the_background() {
    let file = TestFile::new();
    let wal = file.beside("-wal");
    run(async {
        let db = empty_table(file.options().tuning(|t| t.close_wait(Duration::from_secs(3600)))).await;
        let clone = db.ungrouped();
        let tx = db.begin().await.unwrap();
        let call = db.query_optional_value::<i64>("SELECT count(*) FROM t", ());
        drop((db, clone));
        tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(call.await.unwrap(), Some(0));
        tx.commit().await.unwrap();
        until(|| !wal.exists()).await;
    });
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
    let db = file.options().open().wait().unwrap();
    db.execute("INSERT INTO t VALUES (2)", ()).wait().unwrap();
    assert!(wal.exists());
    drop(db);
    wait_until(|| !wal.exists());
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 2);
}

async fn a_close_that_is_given_up_closes_all_the_same(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut close = Box::pin(db.close());
    let _ = futures_util::poll!(&mut close);
    drop(close);
    is_closed(&db).await;
    if let Some(file) = place.file() {
        until(|| !file.beside("-wal").exists()).await;
    }
}

#[test]
fn a_file_can_be_opened_again_and_again() {
    let file = TestFile::new();
    run(async {
        for round in 1..=20_i64 {
            let db = file.open().await;
            db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).await.unwrap();
            let inserts = join_all((0..10).map(|_| db.execute("INSERT INTO t VALUES (1)", ())));
            assert!(inserts.await.iter().all(Result::is_ok));
            let counts = join_all((0..4).map(|_| db.query_optional_value::<i64>("SELECT count(*) FROM t", ())));
            assert!(counts.await.into_iter().all(|count| count.unwrap() == Some(round * 10)));
            db.close().await.unwrap();
            is_left_clean(&file);
        }
    });
}

/// Closing a descriptor would release the locks that a plain connection of this process has on the file.
#[test]
#[cfg(target_os = "linux")]
fn descriptors_that_others_kept_open_are_closed_when_these_are_done() {
    let file = TestFile::new();
    let of_file = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.ok()?.path().read_link().ok());
        all.filter(|path| path.starts_with(file.directory())).count()
    };
    let db = file.options().open().wait().unwrap();
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1)").wait().unwrap();
    let plain = file.plain();
    assert_eq!(integer(&plain, "SELECT count(*) FROM t"), 1);
    let before = of_file();
    db.close().wait().unwrap();
    drop(db);
    assert!((1..before).contains(&of_file()), "the plain connection still has some");
    drop(plain);
    wait_until(|| of_file() == 0);
}

/// Reads the file with a database that is opened to read only, and closes that.
fn reads(file: &TestFile, expected: i64) {
    run(async {
        let db = file.options().read_only(true).open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), expected);
        assert!(file.beside("-wal").exists() && file.beside("-shm").exists());
        db.close().await.unwrap();
    });
}

#[test]
fn a_file_that_was_only_read_has_nothing_beside_it_afterwards() {
    let file = TestFile::new();
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    drop(plain);
    let before = files(file.directory());
    assert_eq!(before.len(), 1);
    reads(&file, 1);
    assert!(files(file.directory()) == before);
    // Somebody has it open: theirs stays.
    let plain = file.plain();
    assert_eq!(integer(&plain, "SELECT count(*) FROM t"), 1);
    reads(&file, 1);
    assert!(file.beside("-wal").exists() && file.beside("-shm").exists());
    plain.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    reads(&file, 2);
    drop(plain);
    is_left_clean(&file);
}

#[test]
fn a_file_that_was_only_read_keeps_a_wal_with_commits() {
    let (file, copy) = (TestFile::new(), TestFile::new());
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    // As after a crash.
    for end in ["", "-wal"] {
        std::fs::copy(file.beside(end), copy.beside(end)).unwrap();
    }
    let contents = || ["", "-wal"].map(|end| std::fs::read(copy.beside(end)).unwrap());
    let before = contents();
    reads(&copy, 1);
    assert!(contents() == before);
}
