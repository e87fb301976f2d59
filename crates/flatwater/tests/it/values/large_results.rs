//! Large results and many parameters do not hold the thread of their caller, nor the writer's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::calls::CancelOutcome;
use flatwater::options::Inline;
use flatwater::{Database, Error, ErrorKind, FromRow, Result, Row};
use futures_util::FutureExt;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, count, empty_table, run, until, wait_until};

in_both_places!(
    a_large_result_is_decoded_on_a_thread_of_the_database_that_nobody_waits_for,
    a_large_result_of_a_live_query_is_decoded_on_another_thread,
    a_panic_of_the_callers_type_goes_on_in_the_caller,
    many_rows_of_parameters_are_collected_in_slices_and_run_when_the_last_is_there,
    the_iterator_may_panic_or_call_the_database_and_half_of_it_is_nothing,
);

const LARGE: i64 = 1000;
/// Rows that a poll decodes by itself.
const FEW: i64 = 256;
const NUMBERS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT x FROM n";
const RETURNING: &str = "INSERT INTO t SELECT value FROM json_each(?) RETURNING a";

/// The thread that decoded a row.
#[derive(Debug, PartialEq)]
struct DecodedOn(String);

impl FromRow for DecodedOn {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        row.get::<i64>(0)?;
        Ok(Self(std::thread::current().name().unwrap_or_default().to_owned()))
    }
}

fn list(rows: i64) -> String {
    format!("[{}]", (1..=rows).map(|row| row.to_string()).collect::<Vec<_>>().join(","))
}

async fn a_large_result_is_decoded_on_a_thread_of_the_database_that_nobody_waits_for(place: &Place) {
    let db = empty_table(place.options()).await;
    let here = std::thread::current().name().unwrap_or_default().to_owned();
    let on_a_reader = if place.has_readers() { "fw-reader" } else { "fw-decode" };
    for (rows, thread) in [(FEW, &*here), (FEW + 1, on_a_reader), (LARGE, on_a_reader)] {
        let decoded = db.query_as::<DecodedOn>(NUMBERS, (rows,)).await.unwrap();
        assert_eq!(decoded.len(), usize::try_from(rows).unwrap());
        assert!(decoded.iter().all(|row| row.0.starts_with(thread)), "{rows} rows: {:?}", decoded[0]);
    }
    for (rows, thread) in [(FEW, &*here), (LARGE, "fw-decode")] {
        let decoded = db.query_as::<DecodedOn>(RETURNING, (list(rows),)).await.unwrap();
        assert!(decoded.iter().all(|row| row.0.starts_with(thread)), "{rows} rows: {:?}", decoded[0]);
        let inside = db.transaction(async |tx| tx.query_as::<DecodedOn>(RETURNING, (list(rows),)).await).await;
        assert!(inside.unwrap().iter().all(|row| row.0.starts_with(thread)), "{rows} rows");
    }
    let error = db.query_as::<(String,)>(NUMBERS, (LARGE,)).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Decode, Some("query_as")), "{error}");
    let numbers: Vec<(i64,)> = db.query_as(NUMBERS, (LARGE,)).wait().unwrap();
    assert!(numbers.iter().map(|row| row.0).eq(1..=LARGE));
    db.close().await.unwrap();
}

#[derive(Debug)]
struct Panics;

impl FromRow for Panics {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        assert_ne!(row.get::<i64>(0)?, FEW + 5, "expected");
        Ok(Self)
    }
}

async fn a_large_result_of_a_live_query_is_decoded_on_another_thread(place: &Place) {
    let db = empty_table(place.options()).await;
    let here = std::thread::current().name().unwrap_or_default().to_owned();
    for (rows, thread) in [(FEW, &*here), (FEW + 1, "fw-decode"), (LARGE, "fw-decode")] {
        let decoded = db.live(NUMBERS, (rows,)).next_as::<DecodedOn>().await.unwrap().unwrap();
        assert_eq!(decoded.len(), usize::try_from(rows).unwrap());
        assert!(decoded.iter().all(|row| row.0.starts_with(thread)), "{rows} rows: {:?}", decoded[0]);
    }
    let mut live = db.live(NUMBERS, (LARGE,));
    let error = live.next_as::<(String,)>().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Decode, Some("live")), "{error}");
}

async fn a_panic_of_the_callers_type_goes_on_in_the_caller(place: &Place) {
    let db = empty_table(place.options()).await;
    for call in [db.query_as::<Panics>(NUMBERS, (LARGE,)), db.query_as::<Panics>(RETURNING, (list(LARGE),))] {
        let panic = AssertUnwindSafe(call).catch_unwind().await.unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("expected"));
    }
    assert_eq!(count(&db).await, LARGE, "the write was done");
    assert_eq!(db.query_as::<Panics>(NUMBERS, (FEW + 4,)).await.unwrap().len(), usize::try_from(FEW + 4).unwrap());
    assert_eq!(db.stats().replaced_connections, 0);
    db.close().await.unwrap();
}

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static MAY_END: AtomicBool = AtomicBool::new(false);

/// Waits in the first row.
struct Waits;

impl FromRow for Waits {
    fn from_row(_: &Row<'_>) -> Result<Self> {
        HAS_BEGUN.store(true, Ordering::SeqCst);
        wait_until(|| MAY_END.load(Ordering::SeqCst));
        Ok(Self)
    }
}

#[test]
fn while_a_result_is_decoded_other_reads_and_a_close_are_served() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1).tuning(|t| t.inline(Inline::Never))).await;
        let decoding = tokio::spawn(db.query_as::<Waits>(NUMBERS, (LARGE,)));
        until(|| HAS_BEGUN.load(Ordering::SeqCst)).await;
        for _ in 0..3 {
            assert_eq!(count(&db).await, 0);
        }
        db.close().await.unwrap();
        MAY_END.store(true, Ordering::SeqCst);
        assert_eq!(decoding.await.unwrap().unwrap().len(), usize::try_from(LARGE).unwrap());
    });
}

const INSERT: &str = "INSERT INTO t VALUES (?)";
/// The clock is read once per so many rows.
const SLICE: i64 = 64;

/// Rows that take a millisecond each to make.
fn slow_rows(rows: i64) -> impl Iterator<Item = (i64,)> {
    (1..=rows).map(|row| {
        std::thread::sleep(Duration::from_millis(1));
        (row,)
    })
}

async fn many_rows_of_parameters_are_collected_in_slices_and_run_when_the_last_is_there(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut many = db.execute_many(INSERT, slow_rows(2 * SLICE + 1));
    for _ in 0..2 {
        assert!(futures_util::poll!(&mut many).is_pending());
        // The call has no place in the queue yet.
        db.execute("UPDATE t SET a = 0", ()).await.unwrap();
        assert_eq!(count(&db).await, 0);
    }
    assert_eq!(many.await.unwrap(), 129);
    assert_eq!(db.execute_many(INSERT, slow_rows(SLICE + 1)).wait().unwrap(), 65);
    assert_eq!(db.prepare(INSERT).await.unwrap().execute_many([(1,), (2,)]).await.unwrap(), 2);
    let borrowed = [String::from("a"), String::from("b")];
    let written = db.transaction(async |tx| tx.execute_many(INSERT, borrowed.iter().map(|text| (text,))).await).await;
    assert_eq!(written.unwrap(), 2);
    assert_eq!(count(&db).await, 129 + 65 + 4);
    db.close().await.unwrap();
}

async fn the_iterator_may_panic_or_call_the_database_and_half_of_it_is_nothing(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut many = db.execute_many(INSERT, (0..10).map(|row| if row < 5 { (row,) } else { panic!("expected") }));
    let mut poll = || {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        Pin::new(&mut many).poll_unpin(&mut context)
    };
    assert!(catch_unwind(AssertUnwindSafe(&mut poll)).is_err());
    assert!(matches!(poll(), std::task::Poll::Ready(Err(error)) if error.kind() == ErrorKind::Misuse));

    let mut half = db.execute_many(INSERT, slow_rows(3 * SLICE));
    assert!(futures_util::poll!(&mut half).is_pending());
    assert_eq!(half.cancel(), CancelOutcome::Withdrawn);
    let mut half = db.execute_many(INSERT, slow_rows(3 * SLICE));
    assert!(futures_util::poll!(&mut half).is_pending());
    drop(half);
    let refused = db.execute_many(INSERT, [(1.0,), (f64::NAN,)]).await.unwrap_err();
    assert_eq!((refused.kind(), refused.operation()), (ErrorKind::Misuse, Some("execute_many")));
    assert_eq!(count(&db).await, 0);

    let called = Cell::new(0);
    let inner: &Database = &db;
    let calls = (0..3).map(|row| {
        called.set(called.get() + inner.execute(INSERT, (row,)).wait().map_or(0, |done| done.changes));
        (row,)
    });
    assert_eq!(db.execute_many(INSERT, calls).await.unwrap(), 3);
    assert_eq!((called.get(), count(&db).await), (3, 6));
    let none = db.execute_many("INSERT INTO nowhere VALUES (?)", Vec::<(i64,)>::new()).await;
    assert!(none.is_err_and(|error: Error| error.kind() == ErrorKind::Sql));
    db.close().await.unwrap();
}

static IS_HELD: AtomicBool = AtomicBool::new(false);
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// Waits in the first row.
struct Held;

impl FromRow for Held {
    fn from_row(_: &Row<'_>) -> Result<Self> {
        IS_HELD.store(true, Ordering::SeqCst);
        wait_until(|| GOES_ON.load(Ordering::SeqCst));
        Ok(Self)
    }
}

#[test]
fn a_result_that_was_being_decoded_for_a_call_that_was_dropped_is_left_to_the_next() {
    Place::on_file().check(async |place: &Place| {
        let db = empty_table(place.options()).await;
        let mut live = db.live(NUMBERS, (LARGE,));
        let mut dropped = Box::pin(live.next_as::<Held>());
        while !IS_HELD.load(Ordering::SeqCst) {
            assert!(futures_util::poll!(dropped.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(dropped);
        GOES_ON.store(true, Ordering::SeqCst);
        let rows = live.next().await.unwrap().unwrap();
        assert_eq!(rows.len(), usize::try_from(LARGE).unwrap());
        assert!(live.next().now_or_never().is_none());
    });
}
