//! Edge cases: the longest durations, the end of a close, unusual TEMP objects, locks on attached files, empty
//! statements, maintenance with open readers, a checkpoint during another.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::GroupLimits;
use flatwater::{Database, Error, ErrorKind, Options, Transaction, params};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, count, empty_table, integer, run, until};

in_both_places!(
    the_longest_duration_means_never_in_every_option,
    calls_after_close_are_refused_at_once_while_a_transaction_delays_it,
    a_begin_that_was_queued_before_a_close_ends_with_the_close,
    temp_objects_end_with_their_transaction_whatever_their_names_and_keys_are,
    a_group_does_not_wait_for_a_lock_on_a_file_its_members_do_not_touch,
    a_conflict_within_one_connection_is_not_to_be_tried_again,
    empty_statements_in_a_script_do_nothing,
    semicolons_and_comments_around_one_statement_do_no_harm_and_none_at_all_is_misuse,
);

/// Longer than any test waits.
const HOUR: Duration = Duration::from_secs(3600);
const INSERT: &str = "INSERT INTO t VALUES (?)";

async fn the_longest_duration_means_never_in_every_option(place: &Place) {
    let long = |options: Options| {
        let group = GroupLimits::default().time(Duration::MAX);
        let options =
            options.busy_timeout(Duration::MAX).tuning(|t| t.transaction_idle(Duration::MAX).close_wait(Duration::MAX));
        options.tuning(|t| t.group(group))
    };
    let db = empty_table(long(place.options())).await;
    let patient = db.with_timeout(Duration::MAX);
    let mut tx = patient.begin().await.unwrap();
    let nested = tx.begin().await.unwrap();
    nested.execute(INSERT, (1,)).await.unwrap();
    nested.commit().await.unwrap();
    let waiting = tokio::spawn(join_all((0..50).map(|n| patient.execute(INSERT, (n,)))));
    until(|| db.stats().writes_waiting == 50).await;
    tx.commit().await.unwrap();
    assert!(waiting.await.unwrap().iter().all(Result::is_ok));
    let read = patient.read_with(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).map_err(Error::from));
    assert_eq!(read.await, Ok(51_i64));
    let blocking = patient;
    tokio::task::spawn_blocking(move || blocking.execute(INSERT, (1,)).wait()).await.unwrap().unwrap();
    let tx = db.begin().await.unwrap();
    let mut close = Box::pin(db.close());
    assert!(futures_util::poll!(close.as_mut()).is_pending());
    tx.commit().await.unwrap();
    close.await.unwrap();
    if let Some(file) = place.file() {
        let read_only = long(file.options()).read_only(true).open().await.unwrap();
        assert_eq!(count(&read_only).await, 52);
        read_only.close().await.unwrap();
    }
}

/// Checks that the call fails at its first poll, because the database is closed.
async fn is_refused_at_once<T: std::fmt::Debug>(call: impl Future<Output = Result<T, Error>>) {
    let mut call = Box::pin(call);
    match futures_util::poll!(call.as_mut()) {
        Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
        other => panic!("{other:?}"),
    }
}

async fn calls_after_close_are_refused_at_once_while_a_transaction_delays_it(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(HOUR))).await;
    let tx = db.begin().await.unwrap();
    let late_read = db.query("SELECT 1", ());
    let mut close = Box::pin(db.close());
    assert!(futures_util::poll!(close.as_mut()).is_pending());
    is_refused_at_once(late_read).await;
    is_refused_at_once(db.query("SELECT 1", ())).await;
    is_refused_at_once(db.query_optional_value::<i64>("SELECT count(*) FROM t", ())).await;
    is_refused_at_once(db.read_with(|_| Ok::<_, Error>(()))).await;
    is_refused_at_once(db.execute(INSERT, (1,))).await;
    is_refused_at_once(db.begin()).await;
    tx.execute(INSERT, (1,)).await.unwrap();
    assert_eq!(tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(Some(1)));
    tx.commit().await.unwrap();
    close.await.unwrap();
    if let Some(file) = place.file() {
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
    }
}

async fn a_begin_that_was_queued_before_a_close_ends_with_the_close(place: &Place) {
    let db =
        empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(50)).transaction_idle(HOUR))).await;
    let first = db.begin().await.unwrap();
    let mut second = Box::pin(db.begin());
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    let mut third = Box::pin(db.begin());
    assert!(futures_util::poll!(third.as_mut()).is_pending());
    let mut write = db.execute(INSERT, (1,));
    assert!(futures_util::poll!(&mut write).is_pending());
    // The transactions are neither used nor dropped.
    db.close().await.unwrap();
    let (second, third) = (second.await, third.await);
    for begun in [Ok(first), second, third] {
        let error = match begun {
            Ok(tx) => tx.execute(INSERT, (2,)).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
    assert_eq!(write.await.unwrap().changes, 1, "it was submitted before");
    if let Some(file) = place.file() {
        assert_eq!(integer(&file.plain(), "SELECT sum(a) FROM t"), 1);
    }
}

const ODD_TEMP: &str = "
    CREATE TEMP TABLE sqlite3data (a); CREATE TEMP TABLE sqlitex (a);
    CREATE TEMP TABLE \"with \"\"quotes\"\" and 'others'\" (a); CREATE TEMP TABLE [brackets] (a);
    CREATE TEMP TABLE \"semi;colon -- and\ncomment\" (a); CREATE TEMP TABLE \"table\" (a); CREATE TEMP TABLE \"\" (a);
    CREATE TEMP TABLE \"Z\u{fc}rich \u{1f30a}\" (a); CREATE TEMP TABLE \"100%_\" (a UNIQUE);
    CREATE TEMP TABLE t (a); CREATE TEMP TABLE \"temp.t\" (a);
    CREATE TEMP TABLE counted (a INTEGER PRIMARY KEY AUTOINCREMENT);
    INSERT INTO counted DEFAULT VALUES; CREATE INDEX temp.\"odd index\" ON t (a);
    CREATE TEMP VIEW \"a view\" AS SELECT * FROM \"with \"\"quotes\"\" and 'others'\";
    CREATE TEMP VIEW broken AS SELECT * FROM nowhere;
    CREATE TEMP TRIGGER \"a trigger\" AFTER INSERT ON main.t BEGIN INSERT INTO temp.t VALUES (new.a); END;
    CREATE VIRTUAL TABLE temp.\"odd text\" USING fts5 (x); INSERT INTO temp.\"odd text\" VALUES ('word');
    CREATE VIRTUAL TABLE temp.\"odd box\" USING rtree (id, low, high); ANALYZE temp";

const KEYED_TEMP: &str = "
    CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY, self REFERENCES parent);
    CREATE TEMP TABLE child (p NOT NULL REFERENCES parent, q REFERENCES later ON DELETE RESTRICT);
    CREATE TEMP TABLE later (id INTEGER PRIMARY KEY, c REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO parent VALUES (1, 1), (2, 1); INSERT INTO later VALUES (1, 2); INSERT INTO child VALUES (1, 1), (2, 1)";

/// Returns the number of TEMP objects that the writer's connection has.
async fn left(db: &Database) -> i64 {
    let tx = db.begin().await.unwrap();
    let of = "SELECT count(*) FROM temp.sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let left = tx.query_optional_value::<i64>(of, ()).await.unwrap().unwrap();
    tx.rollback().await.unwrap();
    left
}

async fn make_temp(tx: &Transaction<'_>, script: &str) {
    tx.execute_script(script).await.unwrap();
    tx.execute("INSERT INTO main.t VALUES (1)", ()).await.unwrap();
}

async fn temp_objects_end_with_their_transaction_whatever_their_names_and_keys_are(place: &Place) {
    let db = empty_table(place.options()).await;
    for script in [ODD_TEMP, KEYED_TEMP] {
        let before = count(&db).await;
        for _ in 0..2 {
            let tx = db.begin().await.unwrap();
            make_temp(&tx, script).await;
            tx.commit().await.unwrap();
            assert_eq!(left(&db).await, 0, "after a commit: {script}");
            let tx = db.begin().await.unwrap();
            make_temp(&tx, script).await;
            drop(tx);
            assert_eq!(left(&db).await, 0, "after a rollback: {script}");
            let wrote = db.write_with(move |tx| {
                tx.execute_batch(script)?;
                tx.execute("INSERT INTO main.t VALUES (1)", []).map_err(Error::from)
            });
            wrote.await.unwrap();
            assert_eq!(left(&db).await, 0, "after a closure: {script}");
        }
        assert_eq!(count(&db).await, before + 4, "{script}");
    }
    assert_eq!(db.stats().replaced_connections, 0);
    db.close().await.unwrap();
}

async fn a_group_does_not_wait_for_a_lock_on_a_file_its_members_do_not_touch(place: &Place) {
    let other = TestFile::new();
    other.plain().execute_batch("CREATE TABLE o (a)").unwrap();
    let db = empty_table(place.options().tuning(|t| t.attach("other", other.path())).busy_timeout(HOUR)).await;
    let plain = other.plain();
    for round in 0..3 {
        db.execute(INSERT, (0,)).await.unwrap();
        plain.execute_batch("BEGIN IMMEDIATE; INSERT INTO o VALUES (1)").unwrap();
        db.execute(INSERT, (0,)).await.unwrap();
        for inserted in join_all((0..20).map(|n| db.execute(INSERT, (n,)))).await {
            assert_eq!(inserted.unwrap().changes, 1);
        }
        // This one needs the file, and waits for it.
        let mut waits = db.execute("INSERT INTO other.o VALUES (?)", (2,));
        assert!(futures_util::poll!(&mut waits).is_pending());
        until(|| db.stats().writes_waiting == 0).await;
        let mut behind: Vec<_> = (0..20).map(|n| db.execute(INSERT, (n,))).collect();
        for call in &mut behind {
            assert!(futures_util::poll!(call).is_pending());
        }
        assert!(futures_util::poll!(&mut waits).is_pending());
        plain.execute_batch("COMMIT").unwrap();
        waits.await.unwrap();
        assert!(join_all(behind).await.iter().all(Result::is_ok));
        assert_eq!(count(&db).await, 42 * (round + 1));
        assert_eq!(integer(&plain, "SELECT sum(a) FROM o"), 3 * (round + 1));
    }
    db.close().await.unwrap();
}

async fn a_conflict_within_one_connection_is_not_to_be_tried_again(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    tx.execute(INSERT, (1,)).await.unwrap();
    let error = tx.query("PRAGMA wal_checkpoint", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_LOCKED")), "{error}");
    assert!(!error.is_retryable(), "{error}");
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 1);
}

async fn empty_statements_in_a_script_do_nothing(place: &Place) {
    let db = empty_table(place.options()).await;
    for script in ["", " ", ";", ";;;", "-- nothing", "/* nothing */", " ; -- a\n ; /* b */ ;\n", "/* open"] {
        db.execute_script(script).await.unwrap_or_else(|error| panic!("{script:?}: {error}"));
        let tx = db.begin().await.unwrap();
        tx.execute_script(script).await.unwrap_or_else(|error| panic!("{script:?}: {error}"));
        tx.commit().await.unwrap();
    }
    let script = ";;INSERT INTO t VALUES (1);; /* c */ ; -- d\n;INSERT INTO t VALUES (2); /* end */";
    db.execute_script(script).await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await, Ok(Some(3)));
    let script = ";; INSERT INTO t VALUES (3);;\n; SELEC 1; INSERT INTO t VALUES (4)";
    let error = db.execute_script(script).await.unwrap_err();
    assert!(error.sql().unwrap()[error.offset().unwrap()..].starts_with("SELEC"), "{error}");
    assert_eq!(count(&db).await, 2);
}

async fn semicolons_and_comments_around_one_statement_do_no_harm_and_none_at_all_is_misuse(place: &Place) {
    let db = empty_table(place.options()).await;
    for (n, sql) in (1..).zip(["INSERT INTO t VALUES (?);", "/* a */ INSERT INTO t VALUES (?);; -- b\n ;"]) {
        assert_eq!(db.execute(sql, (n,)).await.unwrap().last_insert_rowid, Some(n), "{sql}");
    }
    assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM t;;", ()).await, Ok(Some(3)));
    for sql in ["", ";", " -- nothing", "/* nothing */ ;;"] {
        for error in [
            db.execute(sql, ()).await.unwrap_err(),
            db.query(sql, ()).await.unwrap_err(),
            db.batch([(INSERT, params![9]), (sql, params![])]).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{sql:?}: {error}");
        }
    }
    assert_eq!(count(&db).await, 2);
}

type Read = Pin<Box<dyn Future<Output = Result<(i64, i64), Error>> + Send>>;

/// Starts a read closure that counts rows before and after it is told to continue. The closure has begun when this
/// returns.
async fn open_reader(db: &Database) -> (mpsc::Sender<()>, Read) {
    let (go_on, wait) = mpsc::channel();
    let (begins, begun) = mpsc::channel();
    let db = db.clone();
    let mut read: Read = Box::pin(async move {
        let count = |c: &rusqlite::Connection| c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        db.read_with(move |c| {
            let first = count(c)?;
            begins.send(()).unwrap();
            let _ = wait.recv();
            Ok((first, count(c)?))
        })
        .await
    });
    assert!(futures_util::poll!(read.as_mut()).is_pending());
    while begun.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    (go_on, read)
}

#[test]
fn vacuum_and_a_truncating_checkpoint_beside_an_open_reader_leave_its_snapshot_alone() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().busy_timeout(Duration::from_millis(50))).await;
        db.execute(INSERT, (1,)).await.unwrap();
        let checkpoint = async || {
            let rows = db.query("PRAGMA wal_checkpoint(TRUNCATE)", ()).await.unwrap();
            rows.get(0).unwrap().read::<(i64, i64, i64)>().unwrap()
        };
        let wal_bytes = || std::fs::metadata(file.beside("-wal")).unwrap().len();
        let (go_on, read) = open_reader(&db).await;
        db.execute(INSERT, (2,)).await.unwrap();
        db.execute("VACUUM", ()).await.unwrap();
        let (busy, ..) = checkpoint().await;
        assert_eq!(busy, 1, "the reader still needs the WAL");
        assert!(wal_bytes() > 0);
        assert_eq!(count(&db).await, 2);
        db.execute(INSERT, (3,)).await.unwrap();
        go_on.send(()).unwrap();
        assert_eq!(read.await, Ok((1, 1)));
        assert_eq!(checkpoint().await, (0, 0, 0));
        assert_eq!(wal_bytes(), 0);
        db.execute("VACUUM", ()).await.unwrap();
        let copy = file.directory().join("copy.db");
        db.execute("VACUUM INTO ?", (copy.to_str().unwrap(),)).await.unwrap();
        assert_eq!(integer(&rusqlite::Connection::open(copy).unwrap(), "SELECT count(*) FROM t"), 3);
        assert_eq!(count(&db).await, 3);
    });
}

#[test]
fn a_checkpoint_waits_for_another_one() {
    static IT_WAITS: AtomicBool = AtomicBool::new(false);
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        let (reader, mut other) = (file.plain(), file.plain());
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        let waits = |_| {
            IT_WAITS.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            true
        };
        other.busy_handler(Some(waits)).unwrap();
        let restart = std::thread::spawn(move || integer(&other, "PRAGMA wal_checkpoint(RESTART)"));
        until(|| IT_WAITS.load(Ordering::SeqCst)).await;
        let waited = db.with_timeout(Duration::from_millis(20)).checkpoint(CheckpointMode::Passive).await.unwrap_err();
        assert_eq!(waited.kind(), ErrorKind::Timeout, "{waited}");
        reader.execute_batch("COMMIT").unwrap();
        assert_eq!(restart.join().unwrap(), 0);
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
    });
}
