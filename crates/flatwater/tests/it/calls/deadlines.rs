//! Deadlines of calls, and the wait for a lock that another connection holds. If a `Timeout` says "not applied", that
//! is true.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use flatwater::calls::{CancelOutcome, CheckpointMode, TimeoutEffect};
use flatwater::{Error, ErrorKind};
use futures_util::future::join_all;
use rusqlite::config::DbConfig;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, count, empty_table, integer, run, until};

in_both_places!(
    a_deadline_of_zero_passes_before_anything_runs,
    what_waits_behind_a_transaction_times_out_and_never_happens,
    what_waits_for_a_place_in_a_full_queue_times_out,
    a_running_read_times_out_and_so_does_one_that_waits_for_its_reader,
    closures_time_out,
    a_write_that_runs_alone_times_out_and_leaves_nothing,
    a_read_that_times_out_leaves_its_transaction_open_and_a_write_takes_it_along,
    a_timeout_says_the_truth_however_short_it_is,
    a_deadline_is_of_one_call_or_of_a_handle,
    one_deadline_is_of_all_calls_of_a_request_and_of_its_transaction,
);

const SOON: Duration = Duration::from_millis(30);

fn is_timeout(error: &Error, operation: &str) {
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
    assert!(error.is_retryable() && error.operation() == Some(operation), "{error:?}");
}

/// Returns a write that would take years.
fn endless_insert() -> String {
    format!("INSERT INTO t {ENDLESS}")
}

async fn a_deadline_of_zero_passes_before_anything_runs(place: &Place) {
    let db = empty_table(place.options()).await;
    let hasty = db.with_timeout(Duration::ZERO);
    let insert = "INSERT INTO t VALUES (1)";
    for _ in 0..100 {
        is_timeout(&hasty.execute(insert, ()).await.unwrap_err(), "execute");
        is_timeout(&hasty.execute(insert, ()).wait().unwrap_err(), "execute");
        is_timeout(&hasty.query("INSERT INTO t VALUES (1) RETURNING a", ()).await.unwrap_err(), "query");
        is_timeout(&hasty.execute_many("INSERT INTO t VALUES (?)", [(1,)]).await.unwrap_err(), "execute_many");
        let many = hasty.query_many("INSERT INTO t VALUES (?) RETURNING a", [(1,)]);
        is_timeout(&many.await.unwrap_err(), "query_many");
        is_timeout(
            &hasty.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap_err(),
            "query_optional_value",
        );
        is_timeout(&hasty.begin().await.unwrap_err(), "begin");
        is_timeout(&hasty.snapshot().await.unwrap_err(), "snapshot");
        is_timeout(
            &hasty.write_with(|tx| tx.execute(insert, []).map_err(Error::from)).await.unwrap_err(),
            "write_with",
        );
        assert_eq!(count(&db).await, 0);
    }
    db.close().await.unwrap();
    assert_eq!(hasty.execute(insert, ()).await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn what_waits_behind_a_transaction_times_out_and_never_happens(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    let hasty = db.with_timeout(SOON);
    let insert = "INSERT INTO t VALUES (1)";
    is_timeout(&hasty.execute(insert, ()).await.unwrap_err(), "execute");
    is_timeout(&hasty.execute_many("INSERT INTO t VALUES (?)", [(1,), (2,)]).await.unwrap_err(), "execute_many");
    is_timeout(&hasty.query("INSERT INTO t VALUES (1) RETURNING a", ()).await.unwrap_err(), "query");
    is_timeout(&hasty.execute_script(insert).await.unwrap_err(), "execute_script");
    is_timeout(&hasty.begin().await.unwrap_err(), "begin");
    is_timeout(&hasty.execute(insert, ()).wait().unwrap_err(), "execute");
    let closure = hasty.write_with(|tx| tx.execute(insert, []).map_err(Error::from));
    is_timeout(&closure.await.unwrap_err(), "write_with");
    if !place.has_readers() {
        let read = hasty.query_optional_value::<i64>("SELECT count(*) FROM t", ());
        is_timeout(&read.await.unwrap_err(), "query_optional_value");
        is_timeout(&hasty.read_with(|_| Ok::<_, Error>(())).await.unwrap_err(), "read_with");
    }
    tx.commit().await.unwrap();
    db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    assert_eq!(count(&db).await, 1);
    db.close().await.unwrap();
}

async fn what_waits_for_a_place_in_a_full_queue_times_out(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(1))).await;
    let tx = db.begin().await.unwrap();
    let mut first = db.execute("INSERT INTO t VALUES (1)", ());
    assert!(futures_util::poll!(&mut first).is_pending());
    let hasty = db.with_timeout(SOON);
    for error in join_all((0..20).map(|_| hasty.execute("INSERT INTO t VALUES (2)", ()))).await {
        is_timeout(&error.unwrap_err(), "execute");
    }
    let mut last = db.execute("INSERT INTO t VALUES (3)", ());
    assert!(futures_util::poll!(&mut last).is_pending());
    tx.commit().await.unwrap();
    assert_eq!(first.await.unwrap().last_insert_rowid, Some(1));
    assert_eq!(last.await.unwrap().last_insert_rowid, Some(2));
}

async fn a_running_read_times_out_and_so_does_one_that_waits_for_its_reader(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    let hasty = db.with_timeout(SOON);
    for error in join_all((0..5).map(|_| hasty.query(ENDLESS, ()))).await {
        let error = error.unwrap_err();
        is_timeout(&error, "query");
    }
    is_timeout(&hasty.query(ENDLESS, ()).wait().unwrap_err(), "query");
    assert_eq!(count(&db).await, 0);
    db.close().await.unwrap();
}

async fn closures_time_out(place: &Place) {
    // Long, but not so long that a failure of this test would keep the machine busy.
    let long = || ENDLESS.replace("FROM n)", "FROM n LIMIT 10000000)");
    let db = empty_table(place.options().readers(1)).await;
    let (hasty, (in_read, in_write)) = (db.with_timeout(SOON), (long(), long()));
    let read = hasty.read_with(move |c| c.query_row(&in_read, [], |row| row.get::<_, i64>(0)).map_err(Error::from));
    let read = read.await;
    let wrote = hasty.write_with(move |tx| {
        tx.execute("INSERT INTO t VALUES (1)", [])?;
        tx.query_row(&in_write, [], |row| row.get::<_, i64>(0)).map_err(Error::from)
    });
    let wrote = wrote.await;
    for result in [read, wrote] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    }
    until(|| db.stats().readers_held == 0).await;
    assert_eq!(count(&db).await, 0);
}

async fn a_write_that_runs_alone_times_out_and_leaves_nothing(place: &Place) {
    let db = empty_table(place.options()).await;
    let hasty = db.with_timeout(SOON);
    let many = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    for sql in [endless_insert().as_str(), many] {
        is_timeout(&hasty.execute(sql, ()).await.unwrap_err(), "execute");
        is_timeout(&hasty.query(format!("{sql} RETURNING a"), ()).await.unwrap_err(), "query");
        is_timeout(&hasty.execute_script(format!("DELETE FROM t; {sql}")).await.unwrap_err(), "execute_script");
        assert_eq!(count(&db).await, 0);
    }
    db.close().await.unwrap();
}

async fn a_read_that_times_out_leaves_its_transaction_open_and_a_write_takes_it_along(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut time = SOON;
    let lost = loop {
        let tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        is_timeout(&tx.query(ENDLESS, ()).timeout(time).await.unwrap_err(), "query");
        tx.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        is_timeout(&tx.execute(endless_insert(), ()).timeout(time).await.unwrap_err(), "execute");
        match tx.commit().await {
            Err(lost) => break lost,
            // The machine was busy, and the deadline passed before the write began.
            Ok(()) => assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap().changes, 2),
        }
        time *= 2;
    };
    assert!(lost.message().contains("rolled back"), "{lost}");
    db.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    assert_eq!(count(&db).await, 1);
}

async fn a_timeout_says_the_truth_however_short_it_is(place: &Place) {
    let db = empty_table(place.options()).await;
    let calls = (0..1500_i64).map(|n| {
        let db = db.with_timeout(Duration::from_micros(u64::try_from(n).unwrap() % 700));
        async move { (n, db.execute("INSERT INTO t VALUES (?)", (n,)).await) }
    });
    let mut applied = Vec::new();
    for (n, result) in join_all(calls).await {
        match result {
            Ok(_) => applied.push((n,)),
            Err(error) => is_timeout(&error, "execute"),
        }
    }
    assert_eq!(db.query_as::<(i64,)>("SELECT a FROM t ORDER BY a", ()).await.unwrap(), applied);
    for n in 0..300 {
        let hasty = db.with_timeout(Duration::from_micros(n));
        let wrote = hasty.execute("UPDATE t SET a = a + 1 WHERE rowid = 1", ()).wait();
        let read = hasty.query_optional_value::<i64>("SELECT 1", ()).await;
        assert!(wrote.as_ref().map_or_else(|error| error.applied() == Some(TimeoutEffect::No), |_| true), "{wrote:?}");
        assert!(
            read.as_ref().map_or_else(|error| error.kind() == ErrorKind::Timeout, |one| *one == Some(1)),
            "{read:?}"
        );
    }
}

async fn a_deadline_is_of_one_call_or_of_a_handle(place: &Place) {
    let db = place.options().timeout(SOON).open().await.unwrap();
    let patient = db.with_timeout(Duration::from_secs(3600));
    patient.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let insert = "INSERT INTO t VALUES (1)";
    let tx = patient.begin().await.unwrap();
    is_timeout(&db.execute(insert, ()).await.unwrap_err(), "execute");
    is_timeout(&patient.execute(insert, ()).timeout(SOON).await.unwrap_err(), "execute");
    is_timeout(&patient.execute(insert, ()).timeout(SOON).wait().unwrap_err(), "execute");
    let many = patient.execute_many("INSERT INTO t VALUES (?)", [(1,), (2,)]).timeout(SOON);
    is_timeout(&many.await.unwrap_err(), "execute_many");
    is_timeout(&patient.begin().timeout(SOON).await.unwrap_err(), "begin");
    is_timeout(&tx.query(ENDLESS, ()).timeout(SOON).await.unwrap_err(), "query");
    // The time of a call comes before that of its handle.
    let mut waits = db.execute(insert, ()).timeout(Duration::from_secs(3600));
    assert!(futures_util::poll!(&mut waits).is_pending());
    tx.commit().timeout(Duration::from_secs(3600)).await.unwrap();
    waits.await.unwrap();
    assert_eq!(count(&patient).await, 1);
    // What a call returns has the time of the handle.
    let tx = db.begin().timeout(Duration::from_secs(3600)).await.unwrap();
    is_timeout(&tx.query(ENDLESS, ()).await.unwrap_err(), "query");
    drop(tx);
    let snapshot = patient.snapshot().await.unwrap();
    is_timeout(&snapshot.query(ENDLESS, ()).timeout(SOON).await.unwrap_err(), "query");
    drop(snapshot);
    if let Some(file) = place.file() {
        // Another handle of the file has its own time.
        let other = file.open().await;
        let tx = other.begin().await.unwrap();
        is_timeout(&db.execute(insert, ()).await.unwrap_err(), "execute");
        let mut waits = other.execute(insert, ());
        assert!(futures_util::poll!(&mut waits).is_pending());
        tx.rollback().await.unwrap();
        waits.await.unwrap();
    }
}

#[test]
fn a_lock_of_another_connection_is_busy_after_the_lock_wait_and_then_nothing_was_done() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().busy_timeout(SOON)).await;
        db.execute("INSERT INTO t VALUES (?)", (0,)).await.unwrap();
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The second time they are known and would be a group.
        for _ in 0..2 {
            for result in join_all((0..20).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,)))).await {
                is_busy(&result.unwrap_err(), "execute");
            }
        }
        is_busy(&db.begin().await.unwrap_err(), "begin");
        is_busy(&db.execute_script("DELETE FROM t").await.unwrap_err(), "execute_script");
        is_busy(&db.write_with(|_| Ok::<_, Error>(())).await.unwrap_err(), "write_with");
        is_busy(&db.execute("DELETE FROM t", ()).wait().unwrap_err(), "execute");
        assert_eq!(count(&db).await, 1, "readers do not mind");
        plain.execute_batch("INSERT INTO t VALUES (7); COMMIT").unwrap();
        db.execute("INSERT INTO t VALUES (8)", ()).await.unwrap();
        assert_eq!(count(&db).await, 3);
    });
}

fn is_busy(error: &Error, operation: &str) {
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Busy, Some(operation)), "{error}");
    assert!(error.is_retryable() && error.hint().unwrap().contains("Options::busy_timeout"), "{error}");
}

/// A checkpoint takes its turn among the writes and needs no write lock, so it tells when the write has ended.
#[test]
fn a_write_that_waits_for_a_lock_ends_when_its_caller_leaves() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().busy_timeout(Duration::from_secs(3600))).await;
        let insert = "INSERT INTO t VALUES (?)";
        for n in 0..3 {
            db.execute(insert, (n,)).await.unwrap();
        }
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let is_running = || db.stats().writes_waiting == 0;
        for _ in 0..30 {
            let mut write = db.execute(insert, (7,));
            assert!(futures_util::poll!(&mut write).is_pending());
            until(is_running).await;
            assert_eq!(write.cancel(), CancelOutcome::WriteInterrupted);
            db.checkpoint(CheckpointMode::Passive).await.unwrap();
            let mut begin = db.begin();
            assert!(futures_util::poll!(&mut begin).is_pending());
            until(is_running).await;
            assert_eq!(begin.cancel(), CancelOutcome::WriteInterrupted);
            db.checkpoint(CheckpointMode::Passive).await.unwrap();
        }
        plain.execute_batch("COMMIT").unwrap();
        db.execute(insert, (8,)).await.unwrap();
        assert_eq!(count(&db).await, 4);
    });
}

#[test]
fn a_deadline_that_is_earlier_than_the_lock_wait_ends_the_wait() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (?)", (0,)).await.unwrap();
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let hasty = db.with_timeout(SOON);
        is_timeout(&hasty.execute("INSERT INTO t VALUES (?)", (1,)).await.unwrap_err(), "execute");
        is_timeout(&hasty.begin().await.unwrap_err(), "begin");
        let patient = join_all((0..5).map(|n| db.execute("INSERT INTO t VALUES (?)", (100 + n,))));
        let in_a_hurry = join_all((0..5).map(|n| hasty.execute("INSERT INTO t VALUES (?)", (200 + n,))));
        let patient = tokio::spawn(patient);
        for result in in_a_hurry.await {
            is_timeout(&result.unwrap_err(), "execute");
        }
        assert!(!patient.is_finished());
        plain.execute_batch("COMMIT").unwrap();
        for result in patient.await.unwrap() {
            result.unwrap();
        }
        db.close().await.unwrap();
        assert_eq!(integer(&plain, "SELECT sum(a) FROM t"), 510);
    });
}

/// While the value lives, no new connection to the file can begin a snapshot: the two copies of the wal-index header
/// differ, and this connection holds the lock that is needed to repair that.
struct Unreadable {
    plain: rusqlite::Connection,
    index: std::fs::File,
}

impl Unreadable {
    /// The second copy of the change counter.
    const CHANGE: u64 = 48 + 8;

    fn new(file: &TestFile) -> Self {
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let index = std::fs::File::options().read(true).write(true).open(file.beside("-shm")).unwrap();
        let unreadable = Self { plain, index };
        unreadable.turn_over();
        unreadable
    }

    fn turn_over(&self) {
        let mut byte = [0];
        self.index.read_exact_at(&mut byte, Self::CHANGE).unwrap();
        self.index.write_all_at(&[!byte[0]], Self::CHANGE).unwrap();
    }
}

impl Drop for Unreadable {
    fn drop(&mut self) {
        self.turn_over();
        self.plain.execute_batch("ROLLBACK").unwrap();
    }
}

#[test]
fn a_deadline_ends_the_wait_of_a_connection_that_is_opened_for_the_call() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(2).busy_timeout(Duration::from_secs(600))).await;
        let hasty = db.with_timeout(SOON);
        let (sender, until_told) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let reader = tokio::spawn(db.read_with(move |_| {
            begun.send(()).unwrap();
            let _ = until_told.recv();
            Ok::<_, Error>(())
        }));
        has_begun.await.unwrap();
        // The writer's next use opens another connection, too.
        let before = db.stats().replaced_connections;
        let other_than_before = |tx: &rusqlite::Transaction<'_>| {
            tx.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map(drop).map_err(Error::from)
        };
        db.write_with(other_than_before).await.unwrap();
        assert_eq!(db.stats().replaced_connections, before + 1);

        let unreadable = Unreadable::new(&file);
        is_timeout(&hasty.query("SELECT a FROM t", ()).await.unwrap_err(), "query");
        is_timeout(&hasty.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err(), "execute");
        is_timeout(&hasty.begin().await.unwrap_err(), "begin");
        drop(unreadable);
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(count(&db).await, 1);
        sender.send(()).unwrap();
        reader.await.unwrap().unwrap();
    });
}

#[test]
fn a_file_that_is_locked_while_it_is_opened_is_busy_after_the_lock_wait() {
    let file = TestFile::new();
    run(async {
        let plain = file.plain();
        plain.execute_batch("PRAGMA journal_mode = DELETE; CREATE TABLE t (a); BEGIN EXCLUSIVE").unwrap();
        for read_only in [false, true] {
            let error = file.options().read_only(read_only).busy_timeout(SOON).open().await.unwrap_err();
            is_busy(&error, "open");
        }
        let opening = tokio::spawn(file.options().open());
        for _ in 0..20 {
            assert!(!opening.is_finished());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        plain.execute_batch("COMMIT").unwrap();
        let db = opening.await.unwrap().unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn a_write_that_waits_for_a_lock_gets_it_when_it_is_free() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let plain = file.plain();
        for round in 1..=3 {
            plain.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (0)").unwrap();
            let writes = tokio::spawn(join_all((0..30).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,)))));
            until(|| db.stats().writes_waiting < 30).await;
            assert!(!writes.is_finished());
            plain.execute_batch("COMMIT").unwrap();
            for result in writes.await.unwrap() {
                result.unwrap();
            }
            assert_eq!(integer(&plain, "SELECT count(*) FROM t"), round * 31);
        }
    });
}

async fn one_deadline_is_of_all_calls_of_a_request_and_of_its_transaction(place: &Place) {
    let db = empty_table(place.options()).await;
    let later = db.with_deadline(Instant::now() + Duration::from_secs(600));
    later.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    is_timeout(&later.query(ENDLESS, ()).timeout(SOON).await.unwrap_err(), "query");

    let deadline = Instant::now() + SOON;
    let request = db.with_deadline(deadline);
    let begun = request.begin().await;
    let in_time = match &begun {
        Ok(tx) => tx.execute("INSERT INTO t VALUES (2)", ()).await.map(drop),
        Err(error) => Err(error.clone()),
    };
    // On a busy machine the time may be over before.
    if let Err(error) = in_time {
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    }
    while Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    if let Ok(tx) = begun {
        is_timeout(&tx.execute("INSERT INTO t VALUES (3)", ()).await.unwrap_err(), "execute");
        let nested = tx.savepoint("late").await;
        is_timeout(&nested.unwrap_err(), "savepoint");
        tx.rollback().await.unwrap();
    }
    let late = db.with_deadline(deadline).with_deadline(Instant::now() + Duration::from_secs(600));
    is_timeout(&late.begin().await.unwrap_err(), "begin");
    for _ in 0..3 {
        is_timeout(&request.execute("INSERT INTO t VALUES (4)", ()).await.unwrap_err(), "execute");
        is_timeout(&request.query("SELECT * FROM t", ()).timeout(Duration::MAX).await.unwrap_err(), "query");
    }
    assert_eq!(count(&db).await, 1, "nothing of the request, and the writer is free");
}
