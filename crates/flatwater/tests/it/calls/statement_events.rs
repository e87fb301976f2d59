//! The events of calls: each call has one, with what ran, where, and how it ended.
//!
//! Leaves out: what `tracing` gets of them (`../tracing.rs`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use flatwater::bindings::set_listener;
use flatwater::calls::CheckpointMode;
use flatwater::events::{ExecutedOn, StatementEvent};
use flatwater::options::Inline;
use flatwater::{Database, Error, ErrorKind, Options, Session};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, empty_table, grouped, run, until};

in_both_places!(
    every_operation_has_one_event_with_its_numbers,
    a_transaction_has_an_event_for_each_step,
    a_refused_or_failed_call_has_one_event_with_its_error,
    a_dropped_call_has_one_event_and_one_that_never_began_has_none,
    a_stream_has_one_event_for_all_its_batches,
    a_listener_may_call_the_database_and_is_not_told_of_that,
    a_panic_of_the_listener_harms_no_call,
    a_handle_may_have_a_listener_of_its_own_for_a_while,
    a_slow_call_is_one_beyond_the_limit,
    no_bound_value_is_in_an_event,
    a_plan_is_asked_for_by_text_and_runs_nothing,
    every_call_of_a_random_load_has_one_event,
);

/// An event, kept.
#[derive(Debug, Clone)]
struct Heard {
    operation: &'static str,
    sql: Option<String>,
    in_transaction: bool,
    ran_on: Option<ExecutedOn>,
    queue: Duration,
    lock: Duration,
    run: Duration,
    rows: Option<u64>,
    changes: Option<u64>,
    error: Option<Error>,
    is_slow: bool,
}

impl Heard {
    fn kind(&self) -> Option<ErrorKind> {
        self.error.as_ref().map(Error::kind)
    }

    fn numbers(&self) -> (&str, Option<u64>, Option<u64>) {
        (self.operation, self.rows, self.changes)
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Heard>>>);

impl Log {
    fn hear(&self, event: &StatementEvent<'_>) {
        let parts = event.queue + event.lock + event.run;
        assert!(parts <= event.total, "{event:?}");
        self.0.lock().unwrap().push(Heard {
            operation: event.operation,
            sql: event.sql.map(str::to_owned),
            in_transaction: event.in_transaction,
            ran_on: event.ran_on,
            queue: event.queue,
            lock: event.lock,
            run: event.run,
            rows: event.rows,
            changes: event.changes,
            error: event.error.cloned(),
            is_slow: event.is_slow,
        });
    }

    fn of(options: Options) -> (Self, Options) {
        let log = Self::default();
        let heard = log.clone();
        (log, options.on_statement(move |event| heard.hear(event)))
    }

    fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    #[track_caller]
    fn one(&self) -> Heard {
        let all = self.take();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.into_iter().next().unwrap()
    }
}

/// Opens a database with `t (a)`, whose events are kept.
async fn open(options: Options) -> (Log, Database) {
    let (log, options) = Log::of(options);
    let db = empty_table(options).await;
    assert_eq!(log.one().sql.as_deref(), Some("CREATE TABLE t (a)"));
    (log, db)
}

const INSERT: &str = "INSERT INTO t VALUES (?)";
const NUMBERS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?) SELECT x FROM n";

async fn every_operation_has_one_event_with_its_numbers(place: &Place) {
    let (log, db) = open(place.options()).await;
    db.execute(INSERT, (1,)).await.unwrap();
    let heard = log.one();
    assert_eq!(heard.numbers(), ("execute", None, Some(1)));
    assert_eq!((heard.sql.as_deref(), heard.in_transaction, heard.kind()), (Some(INSERT), false, None));
    assert_eq!(heard.ran_on, Some(ExecutedOn::Writer));
    db.execute_many(INSERT, (0..300).map(|n| (n,))).await.unwrap();
    assert_eq!(log.one().numbers(), ("execute_many", None, Some(300)));
    db.batch([(INSERT, (5,)), ("UPDATE t SET a = 7 WHERE a = ? RETURNING a", (5,))]).await.unwrap();
    let heard = log.one();
    assert_eq!(heard.numbers(), ("batch", Some(2), Some(3)));
    assert_eq!(heard.sql.unwrap(), format!("{INSERT}; UPDATE t SET a = 7 WHERE a = ? RETURNING a"));
    db.execute_script("DELETE FROM t; INSERT INTO t VALUES (1), (2)").await.unwrap();
    assert_eq!(log.one().numbers(), ("execute_script", None, None));
    assert_eq!(db.query("SELECT a FROM t", ()).await.unwrap().len(), 2);
    let heard = log.one();
    assert_eq!(heard.numbers(), ("query", Some(2), None));
    assert_eq!(heard.ran_on, Some(if place.has_readers() { ExecutedOn::Reader } else { ExecutedOn::Writer }));
    db.query_optional("SELECT a FROM t", ()).await.unwrap();
    assert_eq!(log.one().numbers(), ("query_optional", Some(1), None));
    db.query_optional_value::<i64>("SELECT a FROM t WHERE a = 9", ()).await.unwrap();
    assert_eq!(log.one().numbers(), ("query_optional_value", Some(0), None));
    for (rows, text) in [(1_u64, "few"), (5_000, "many")] {
        assert_eq!(db.query_as::<(i64,)>(NUMBERS, (rows,)).await.unwrap().len() as u64, rows, "{text}");
        assert_eq!(log.one().numbers(), ("query_as", Some(rows), None));
        db.query_values::<i64>(NUMBERS, (rows,)).await.unwrap();
        assert_eq!(log.one().numbers(), ("query_values", Some(rows), None));
        db.query_json(NUMBERS, (rows,)).await.unwrap();
        assert_eq!(log.one().numbers(), ("query_json", Some(rows), None));
    }
    db.query("DELETE FROM t RETURNING a", ()).await.unwrap();
    assert_eq!(log.one().numbers(), ("query", Some(2), None));
    db.read_with(|c| c.execute_batch("SELECT 1").map_err(Error::from)).await.unwrap();
    let heard = log.one();
    assert_eq!((heard.numbers(), heard.sql.as_deref()), (("read_with", None, None), None));
    db.write_with(|c| c.execute_batch("INSERT INTO t VALUES (1)").map_err(Error::from)).await.unwrap();
    assert_eq!(log.one().numbers(), ("write_with", None, None));
    db.with_connection(|c| c.execute_batch("INSERT INTO t VALUES (2)").map_err(Error::from)).await.unwrap();
    assert_eq!(log.one().numbers(), ("with_connection", None, None));
    if place.has_readers() {
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
        assert_eq!(log.one().operation, "checkpoint");
    }
    let copies = tempfile::tempdir().unwrap();
    db.backup(copies.path().join("copy.db")).await.unwrap();
    let heard = log.one();
    assert_eq!((heard.numbers(), heard.sql.as_deref()), (("backup", None, None), None));
    assert_eq!(heard.ran_on, Some(if place.has_readers() { ExecutedOn::Reader } else { ExecutedOn::Writer }));
    assert!(db.stats().calls.iter().any(|calls| (calls.kind, calls.count) == ("backup", 1)));
    let prepared = db.prepare(INSERT).await.unwrap();
    assert_eq!(log.take().len(), 0, "nothing ran");
    prepared.execute((4,)).await.unwrap();
    assert_eq!(log.one().numbers(), ("execute", None, Some(1)));
    std::thread::scope(|scope| {
        scope.spawn(|| db.execute(INSERT, (5,)).wait().unwrap());
    });
    assert_eq!(log.one().numbers(), ("execute", None, Some(1)));
    let snapshot = db.snapshot().await.unwrap();
    assert_eq!(log.one().operation, "snapshot");
    snapshot.query("SELECT a FROM t", ()).await.unwrap();
    let heard = log.one();
    assert_eq!((heard.numbers(), heard.in_transaction), (("query", Some(4), None), false));
    drop(snapshot);
    db.close().await.unwrap();
    assert_eq!(log.take().len(), 0, "a close runs no statement");
}

async fn a_transaction_has_an_event_for_each_step(place: &Place) {
    let (log, db) = open(place.options()).await;
    let steps = |log: &Log| -> Vec<_> {
        let all = log.take().into_iter();
        all.map(|heard| (heard.operation, heard.sql.clone().unwrap(), heard.in_transaction, heard.kind())).collect()
    };
    let step = |operation, sql: &str, inside| (operation, sql.to_owned(), inside, None);
    db.transaction(async |tx| {
        tx.execute(INSERT, (1,)).await?;
        tx.transaction(async |nested| nested.execute(INSERT, (2,)).await).await?;
        tx.savepoint("a").await?;
        tx.rollback_to("a").await?;
        tx.release("a").await
    })
    .await
    .unwrap();
    assert_eq!(
        steps(&log),
        [
            step("begin", "BEGIN IMMEDIATE", false),
            step("execute", INSERT, true),
            step("begin", "SAVEPOINT", true),
            step("execute", INSERT, true),
            step("commit", "RELEASE", true),
            step("savepoint", "SAVEPOINT", true),
            step("rollback_to", "ROLLBACK TO", true),
            step("release", "RELEASE", true),
            step("commit", "COMMIT", true),
        ]
    );
    let mut tx = db.begin().await.unwrap();
    tx.begin().await.unwrap().rollback().await.unwrap();
    drop(tx.begin().await.unwrap());
    assert_eq!(tx.query(NUMBERS, (3,)).await.unwrap().len(), 3);
    tx.rollback().await.unwrap();
    let all = log.take();
    let operations: Vec<_> = all.iter().map(|heard| heard.operation).collect();
    assert_eq!(operations, ["begin", "begin", "rollback", "begin", "query", "rollback"]);
    // Begin and end are on the caller's thread if the writer is free at that moment. A query of the transaction runs for the
    // first time on the writer's thread.
    assert!(all.iter().all(|heard| [Some(ExecutedOn::Writer), Some(ExecutedOn::Caller)].contains(&heard.ran_on)));
    assert_eq!(all[4].ran_on, Some(ExecutedOn::Writer));
    // The writer is held: the next transaction waits in the queue.
    let tx = db.begin().await.unwrap();
    log.take();
    let mut next = Box::pin(db.begin());
    assert!(next.as_mut().now_or_never().is_none());
    std::thread::sleep(Duration::from_millis(20));
    tx.commit().await.unwrap();
    drop(next.await.unwrap());
    let begin = log.take().into_iter().find(|heard| heard.operation == "begin").unwrap();
    assert!(begin.queue >= Duration::from_millis(20), "{begin:?}");
    assert_eq!(begin.lock, Duration::ZERO);
}

async fn a_refused_or_failed_call_has_one_event_with_its_error(place: &Place) {
    let (log, db) = open(place.options()).await;
    db.execute_script("CREATE UNIQUE INDEX i ON t (a); INSERT INTO t VALUES (1)").await.unwrap();
    log.take();
    let none = |heard: &Heard| (heard.rows, heard.changes) == (None, None);
    assert!(db.query("SELECT b FROM t", ()).await.is_err());
    let heard = log.one();
    assert!(heard.kind() == Some(ErrorKind::Sql) && none(&heard), "{heard:?}");
    assert!(db.execute(INSERT, (1,)).await.is_err());
    let heard = log.one();
    assert!(heard.kind() == Some(ErrorKind::Constraint) && none(&heard), "{heard:?}");
    assert!(db.execute(INSERT, ()).await.is_err());
    assert_eq!(log.one().kind(), Some(ErrorKind::Misuse));
    // The parameters have no value for SQLite, so there is no request.
    assert!(db.execute(INSERT, (f64::NAN,)).await.is_err());
    let heard = log.one();
    assert_eq!((heard.kind(), heard.ran_on), (Some(ErrorKind::Misuse), None));
    assert!(db.batch([(INSERT, (2,)), (INSERT, (1,))]).await.is_err());
    assert_eq!(log.one().kind(), Some(ErrorKind::Constraint));
    assert!(db.execute_many(INSERT, [(3,), (1,)]).await.is_err());
    assert_eq!(log.one().kind(), Some(ErrorKind::Constraint));
    let failed: Result<(), Error> = db.transaction(async |tx| tx.execute(INSERT, (1,)).await.map(drop)).await;
    assert!(failed.is_err());
    let kinds: Vec<_> = log.take().iter().map(|heard| (heard.operation, heard.kind())).collect();
    assert_eq!(kinds, [("begin", None), ("execute", Some(ErrorKind::Constraint)), ("rollback", None)]);
    let insert = |c: &rusqlite::Connection| c.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from);
    assert!(db.write_with(move |c| insert(c)).await.is_err());
    assert_eq!(log.one().kind(), Some(ErrorKind::Constraint));
    assert!(db.with_connection(move |c| insert(c)).await.is_err());
    assert_eq!(log.one().kind(), Some(ErrorKind::Constraint));
    let unknown = db.query_plan("SELECT missing").await.unwrap_err();
    assert_eq!((unknown.offset(), unknown.sql()), (Some(7), Some("SELECT missing")));
    assert_eq!(log.one().kind(), Some(ErrorKind::Sql));
    // What the database did succeeded; only its caller cannot read it.
    assert!(db.query_optional_value::<String>("SELECT a FROM t", ()).await.is_err());
    assert_eq!(log.one().kind(), None);
    db.clone().close().await.unwrap();
    assert!(db.query("SELECT 1", ()).await.is_err());
    let heard = log.one();
    assert_eq!((heard.kind(), heard.ran_on), (Some(ErrorKind::Closed), None));
}

async fn a_dropped_call_has_one_event_and_one_that_never_began_has_none(place: &Place) {
    let (log, db) = open(place.options()).await;
    drop(db.execute(INSERT, (1,)));
    let _ = db.execute(INSERT, (1,)).cancel();
    drop(db.execute_many(INSERT, [(1,)]));
    drop(db.stream("SELECT 1", ()));
    assert_eq!(log.take().len(), 0);
    let tx = db.begin().await.unwrap();
    log.take();
    for cancel in [false, true] {
        let mut waits = db.execute(INSERT, (1,));
        assert!((&mut waits).now_or_never().is_none());
        if cancel {
            let _ = waits.cancel();
        } else {
            drop(waits);
        }
        let heard = log.one();
        assert_eq!((heard.kind(), heard.ran_on, heard.run), (Some(ErrorKind::Cancelled), None, Duration::ZERO));
    }
    let late = db.with_timeout(Duration::from_millis(5)).execute(INSERT, (1,)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let heard = log.one();
    assert_eq!((heard.kind(), heard.ran_on), (Some(ErrorKind::Timeout), None));
    assert!(heard.queue >= Duration::from_millis(5), "{heard:?}");
    tx.rollback().await.unwrap();
    log.take();
    let mut endless = db.query(ENDLESS, ());
    assert!((&mut endless).now_or_never().is_none());
    let runs = || db.stats().wal.oldest_read.is_some() || db.stats().one_connection;
    until(|| db.stats().reads_waiting + db.stats().writes_waiting == 0 && runs()).await;
    drop(endless);
    let heard = log.one();
    assert_eq!(heard.kind(), Some(ErrorKind::Cancelled));
    if place.has_readers() {
        assert_eq!(heard.ran_on, Some(ExecutedOn::Reader));
    }
    assert!(db.query("SELECT 1", ()).await.is_ok());
    assert_eq!(log.one().kind(), None);
}

async fn a_stream_has_one_event_for_all_its_batches(place: &Place) {
    let (log, db) = open(place.options()).await;
    let mut rows = db.stream_as::<(i64,)>(NUMBERS, (50_000,));
    let mut number = 0;
    while let Some(row) = rows.next().await {
        row.unwrap();
        number += 1;
        let is_over = number > 10_000 || !place.has_readers();
        assert!(is_over || log.0.lock().unwrap().is_empty());
    }
    let heard = log.one();
    assert_eq!((number, heard.numbers()), (50_000, ("stream_as", Some(50_000), None)));
    assert_eq!((heard.sql.as_deref(), heard.kind()), (Some(NUMBERS), None));
    drop(rows);
    let mut cursor = db.batches(NUMBERS, (50_000,));
    cursor.next().await.transpose().unwrap().unwrap();
    drop(cursor);
    let heard = log.one();
    assert_eq!((heard.operation, heard.kind()), ("batches", None), "its caller had enough");
    let mut rows = db.stream("SELECT missing", ());
    assert!(rows.next().await.unwrap().is_err());
    assert!(rows.next().await.is_none());
    assert_eq!(log.one().kind(), Some(ErrorKind::Sql));
    drop(rows);
    let snapshot = db.snapshot().await.unwrap();
    log.take();
    let mut rows = snapshot.stream(NUMBERS, (3_000,));
    while rows.next().await.transpose().unwrap().is_some() {}
    assert_eq!(log.one().numbers(), ("stream", Some(3_000), None));
    drop((rows, snapshot));
    let tx = db.begin().await.unwrap();
    log.take();
    let mut rows = tx.stream(NUMBERS, (3_000,));
    while rows.next().await.transpose().unwrap().is_some() {}
    let heard = log.one();
    assert_eq!((heard.numbers(), heard.in_transaction), (("stream", Some(3_000), None), true));
}

async fn a_listener_may_call_the_database_and_is_not_told_of_that(place: &Place) {
    let heard = Arc::new(AtomicUsize::new(0));
    let database: Arc<OnceLock<Database>> = Arc::default();
    let options = {
        let (heard, database) = (heard.clone(), database.clone());
        place.options().on_statement(move |event| {
            heard.fetch_add(1, Ordering::Relaxed);
            let Some(db) = database.get() else { return };
            // A runtime's thread, so it does not wait long.
            db.execute("INSERT INTO log VALUES (?)", (event.sql,)).wait().unwrap();
            assert!(!db.query_plan("SELECT * FROM log").wait().unwrap().is_empty());
        })
    };
    let db = empty_table(options).await;
    db.execute("CREATE TABLE log (sql)", ()).await.unwrap();
    assert_eq!(heard.swap(0, Ordering::Relaxed), 2);
    assert!(database.set(db.clone()).is_ok());
    for n in 0..20 {
        db.execute(INSERT, (n,)).await.unwrap();
        db.query("SELECT a FROM t", ()).await.unwrap();
    }
    let mut stream = db.stream(NUMBERS, (10,));
    while stream.next().await.transpose().unwrap().is_some() {}
    let mut dropped = db.query(ENDLESS, ());
    if place.has_readers() {
        assert!((&mut dropped).now_or_never().is_none());
    }
    drop(dropped);
    let expected = if place.has_readers() { 42 } else { 41 };
    assert_eq!(heard.load(Ordering::Relaxed), expected);
    let logged: i64 = db.query_optional_value("SELECT count(*) FROM log", ()).await.unwrap().unwrap();
    assert_eq!(logged, i64::try_from(expected).unwrap());
}

async fn a_panic_of_the_listener_harms_no_call(place: &Place) {
    let options = place.options().on_statement(|event| {
        if event.sql != Some("CREATE TABLE t (a)") {
            panic!("planted");
        }
    });
    let db = empty_table(options).await;
    for n in 0..10 {
        assert_eq!(db.execute(INSERT, (n,)).await.unwrap().changes, 1);
        assert!(db.query("SELECT b FROM t", ()).await.is_err());
    }
    let mut stream = db.stream(NUMBERS, (10,));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    let tx = db.begin().await.unwrap();
    let mut waits = db.execute(INSERT, (1,));
    assert!((&mut waits).now_or_never().is_none());
    drop(waits);
    tx.execute(INSERT, (10,)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(11));
}

async fn a_handle_may_have_a_listener_of_its_own_for_a_while(place: &Place) {
    let (log, db) = open(place.options()).await;
    let own = Log::default();
    let heard = own.clone();
    set_listener(&db, Some(Arc::new(move |event: &StatementEvent<'_>| heard.hear(event))));
    db.clone().execute(INSERT, (1,)).await.unwrap();
    assert_eq!((own.one().operation, log.one().operation), ("execute", "execute"));
    let tx = db.begin().await.unwrap();
    tx.query("SELECT a FROM t", ()).await.unwrap();
    set_listener(&db, None);
    tx.commit().await.unwrap();
    let operations = |log: &Log| log.take().iter().map(|heard| heard.operation).collect::<Vec<_>>();
    assert_eq!(operations(&own), ["begin", "query"]);
    assert_eq!(operations(&log), ["begin", "query", "commit"]);
}

async fn a_slow_call_is_one_beyond_the_limit(place: &Place) {
    for (limit, is_slow) in [(Duration::ZERO, true), (Duration::from_secs(3600), false)] {
        let place = place.another();
        let (log, db) = open(place.options().slow_statement(limit)).await;
        db.execute(INSERT, (1,)).await.unwrap();
        assert_eq!(log.one().is_slow, is_slow);
    }
    let other = place.another();
    let (log, db) = open(other.options()).await;
    db.query(NUMBERS, (100_000,)).await.unwrap();
    assert!(!log.one().is_slow);
    // The time in which the rows of a stream are used is not the stream's.
    let limit = Duration::from_millis(30);
    let (log, db) = open(place.options().slow_statement(limit)).await;
    loop {
        let mut rows = db.stream(NUMBERS, (3_000,));
        rows.next().await.unwrap().unwrap();
        tokio::time::sleep(limit).await;
        while rows.next().await.transpose().unwrap().is_some() {}
        if !log.one().is_slow {
            break;
        }
    }
}

async fn no_bound_value_is_in_an_event(place: &Place) {
    let said: Arc<Mutex<String>> = Arc::default();
    let heard = said.clone();
    let options = place.options().on_statement(move |event| *heard.lock().unwrap() += &format!("{event:?}\n"));
    let db = empty_table(options).await;
    db.execute_script("CREATE UNIQUE INDEX i ON t (a)").await.unwrap();
    for _ in 0..3 {
        let _ = db.execute(INSERT, ("s3cret",)).await;
        let _ = db.execute_many(INSERT, [("s3cret",)]).await;
        let _ = db.batch([(INSERT, ("s3cret",))]).await;
        let _ = db.query("SELECT a FROM t WHERE a = ?", ("s3cret",)).await;
        let _ = db.query("SELECT json(?)", ("s3cret",)).await;
    }
    let said = said.lock().unwrap();
    assert!(said.contains("Constraint") && !said.contains("s3cret"), "{said}");
}

async fn a_plan_is_asked_for_by_text_and_runs_nothing(place: &Place) {
    let (log, db) = open(place.options()).await;
    db.execute_script("CREATE TABLE u (id INTEGER PRIMARY KEY, b); INSERT INTO u VALUES (1, 2)").await.unwrap();
    log.take();
    assert_eq!(
        db.query_plan("SELECT * FROM u WHERE id = ?").await.unwrap().trim(),
        "SEARCH u USING INTEGER PRIMARY KEY (rowid=?)"
    );
    assert_eq!(log.one().operation, "query_plan");
    let plan = db.query_plan("DELETE FROM u WHERE b = :b").await.unwrap();
    assert_eq!(plan.trim(), "SCAN u");
    db.query_plan("INSERT INTO u SELECT a, a FROM t").await.unwrap();
    let union = db.query_plan("SELECT a FROM t UNION SELECT b FROM u WHERE id IN (SELECT a FROM t)").await.unwrap();
    let depths: Vec<_> = union.lines().map(|line| line.len() - line.trim_start().len()).collect();
    assert_eq!(depths.first(), Some(&0), "{union}");
    assert!(depths.contains(&2) && depths.contains(&4), "{union}");
    assert!(db.query_plan("SELECT missing").await.unwrap_err().message().contains("missing"));
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM u", ()).await.unwrap(), Some(1));
}

/// Polls the call at most `polls` times, and drops it then. Returns true if it ended.
async fn for_some_polls<F: Future>(call: F, polls: usize) -> bool {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        if futures_util::poll!(call.as_mut()).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Begins calls of every kind in several tasks, gives up many of them at any point, and returns how many began.
async fn random_load(db: Database, seed: u64) -> usize {
    let mut random = StdRng::seed_from_u64(seed);
    let mut began = 0;
    for n in 0..150_i64 {
        let polls = [1, 2, 5, usize::MAX][random.random_range(0..4)];
        let db = if random.random_bool(0.2) { db.with_timeout(Duration::from_micros(300)) } else { db.clone() };
        began += 1;
        match random.random_range(0..9) {
            0 | 1 => for_some_polls(db.execute(INSERT, (n,)), polls).await,
            2 => for_some_polls(db.execute_many(INSERT, [(n,), (n,)]), polls).await,
            3 => for_some_polls(db.batch([(INSERT, (n,)), (INSERT, (n,))]), polls).await,
            4 => for_some_polls(db.query_as::<(i64,)>("SELECT a FROM t WHERE rowid = ?", (n,)), polls).await,
            5 => for_some_polls(db.query_values::<i64>(NUMBERS, (3_000,)), polls).await,
            6 => for_some_polls(db.query("SELECT wrong", ()), polls).await,
            7 => {
                let mut rows = db.stream(NUMBERS, (5_000,));
                for_some_polls(async { while let Some(Ok(_)) = rows.next().await {} }, polls).await
            }
            _ => {
                // One more for the end, unless it was given up before; a transaction that is dropped has none.
                let Some(Ok(tx)) = Some(db.begin().await) else { continue };
                began += 2;
                for_some_polls(tx.execute(INSERT, (n,)), polls).await;
                for_some_polls(tx.commit(), polls).await
            }
        };
    }
    began
}

async fn every_call_of_a_random_load_has_one_event(place: &Place) {
    let (log, db) = open(place.options()).await;
    let tasks: Vec<_> = (0..4).map(|seed| tokio::spawn(random_load(db.clone(), seed))).collect();
    let mut began = 0;
    for task in tasks {
        began += task.await.unwrap();
    }
    let all = log.take();
    assert_eq!(all.len(), began);
    let ended = |kind| all.iter().filter(|heard| heard.kind() == kind).count();
    assert!(ended(None) > 0 && ended(Some(ErrorKind::Cancelled)) > 0 && ended(Some(ErrorKind::Sql)) > 0);
    // What the events say was changed is there, and more only of calls that were given up.
    let changed: u64 = all.iter().filter(|heard| !heard.in_transaction).filter_map(|heard| heard.changes).sum();
    let rows: i64 = db.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap().unwrap();
    assert!(changed > 0 && changed <= u64::try_from(rows).unwrap(), "{changed} {rows}");
}

#[test]
fn a_short_call_says_that_it_ran_on_its_callers_thread() {
    let file = TestFile::new();
    run(async {
        let (log, db) = open(file.options()).await;
        db.execute_script("CREATE TABLE u (id INTEGER PRIMARY KEY, b)").await.unwrap();
        log.take();
        let here = |heard: &Heard| heard.ran_on == Some(ExecutedOn::Caller);
        let mut n = 0;
        loop {
            n += 1;
            db.execute("INSERT INTO u VALUES (?, 1)", (n,)).await.unwrap();
            let heard = log.one();
            assert_eq!(heard.numbers(), ("execute", None, Some(1)));
            if here(&heard) {
                break;
            }
        }
        loop {
            db.query_optional("SELECT b FROM u WHERE id = ?", (1,)).await.unwrap();
            let heard = log.one();
            assert_eq!(heard.numbers(), ("query_optional", Some(1), None));
            if here(&heard) {
                assert_eq!(heard.lock, Duration::ZERO);
                break;
            }
        }
        loop {
            db.query_json("SELECT b FROM u WHERE id = ?", (1,)).await.unwrap();
            let heard = log.one();
            assert_eq!(heard.numbers(), ("query_json", Some(1), None));
            if here(&heard) {
                break;
            }
        }
        let tx = db.begin().await.unwrap();
        log.take();
        tx.savepoint("a").await.unwrap();
        log.take();
        loop {
            n += 1;
            tx.execute("INSERT INTO u VALUES (?, 1)", (n,)).await.unwrap();
            let heard = log.one();
            assert_eq!((heard.numbers(), heard.in_transaction), (("execute", None, Some(1)), true));
            if here(&heard) {
                break;
            }
        }
        tx.commit().await.unwrap();
    });
}

#[test]
fn the_members_of_a_group_have_an_event_each() {
    let file = TestFile::new();
    run(async {
        let (log, db) = open(grouped(file.options())).await;
        db.execute_script("CREATE TABLE u (id INTEGER PRIMARY KEY)").await.unwrap();
        // The text becomes known, as groupable and short.
        db.execute("INSERT INTO u VALUES (?)", (0,)).await.unwrap();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let tx = db.begin().await.unwrap();
            log.take();
            // The last one fails, and each has its own event all the same.
            let rows = (1..=9).chain([1]).map(|n| n + 100 * attempt);
            let mut calls: Vec<_> = rows.map(|n| db.execute("INSERT INTO u VALUES (?)", (n,))).collect();
            for call in &mut calls {
                assert!(call.now_or_never().is_none());
            }
            assert_eq!(log.take().len(), 0, "no call has ended");
            tx.commit().await.unwrap();
            log.take();
            let results = join_all(calls).await;
            let all = log.take();
            assert_eq!(all.len(), 10);
            assert_eq!(all.iter().filter(|heard| heard.kind() == Some(ErrorKind::Constraint)).count(), 1);
            assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
            assert!(all.iter().all(|heard| heard.queue > Duration::ZERO && heard.run > Duration::ZERO));
            let members = all.iter().filter(|heard| heard.ran_on == Some(ExecutedOn::Group));
            if members.filter(|heard| heard.changes == Some(1)).count() == 9 {
                break;
            }
        }
    });
}

#[test]
fn the_time_for_a_lock_is_told_apart() {
    let file = TestFile::new();
    run(async {
        let options = grouped(file.options()).busy_timeout(Duration::from_millis(30));
        let (log, db) = open(options.tuning(|t| t.inline(Inline::Never))).await;
        db.execute(INSERT, (0,)).await.unwrap();
        let other = file.plain();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (together, place) in [(1, ExecutedOn::Writer), (3, ExecutedOn::Group)] {
            // Of three, the first may have been taken before the others came; on a slow machine the text may be long.
            loop {
                log.take();
                for result in join_all((0..together).map(|n| db.execute(INSERT, (n,)))).await {
                    assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
                }
                let all = log.take();
                assert_eq!(all.len(), together);
                assert!(all.iter().all(|heard| heard.lock > Duration::ZERO), "{all:#?}");
                if all.iter().any(|heard| heard.ran_on == Some(place)) {
                    break;
                }
            }
        }
        other.execute_batch("COMMIT").unwrap();
        db.execute(INSERT, (1,)).await.unwrap();
        let heard = log.one();
        assert_eq!((heard.kind(), heard.lock), (None, Duration::ZERO));
    });
}

#[test]
fn a_file_that_is_open_has_one_listener() {
    let file = TestFile::new();
    run(async {
        let (log, options) = Log::of(file.options());
        let db = empty_table(options.clone()).await;
        let again = options.open().await.unwrap();
        log.take();
        again.query("SELECT 1", ()).await.unwrap();
        assert_eq!(log.one().operation, "query");
        for other in [file.options(), file.options().on_statement(|_| {})] {
            let error = other.open().await.unwrap_err();
            assert!(error.kind() == ErrorKind::Misuse && error.message().contains("on_statement"), "{error}");
        }
        drop(db);
    });
}

#[test]
fn a_function_by_the_trait_is_told_of_alike() {
    let file = TestFile::new();
    async fn read(of: &Session) {
        of.query("SELECT a FROM t", ()).await.unwrap();
    }
    run(async {
        let (log, db) = open(file.options()).await;
        read(&db).await;
        assert_eq!(log.one().operation, "query");
    });
}
