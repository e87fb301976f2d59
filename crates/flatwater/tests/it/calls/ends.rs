//! What ends a request that runs: its caller who leaves, its deadline, and a close. Of a write nothing is kept then, and the
//! next request runs.
//!
//! Leaves out: requests that wait (`waits`), code that nothing can end (`left_behind`).

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::time::Duration;

use flatwater::calls::CancelOutcome;
use flatwater::values::ExecuteResult;
use flatwater::{Call, Database, Error, ErrorKind};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, count, empty_table, grouped, integer, until, waiting};

in_both_places!(
    whatever_runs_is_ended_by_a_close_which_succeeds,
    a_write_that_runs_is_undone_when_its_caller_leaves,
    a_read_that_runs_is_ended_when_its_caller_leaves,
    writes_that_waited_are_done_though_the_time_of_the_close_is_over,
    a_group_is_finished_without_its_callers_and_ended_by_a_close,
    a_write_in_a_transaction_takes_the_transaction_along_or_is_undone_alone,
    a_statement_of_a_closure_is_interrupted_when_its_caller_leaves,
    what_was_interrupted_is_counted,
);

type Running = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
type Begin = fn(Database) -> Running;

fn endless_insert() -> String {
    format!("INSERT INTO t {ENDLESS}")
}

/// Every kind of call that writes, without an end.
const WRITES: [(&str, Begin); 10] = [
    ("execute", |db| Box::pin(async move { db.execute(endless_insert(), ()).await.map(drop) })),
    ("query", |db| Box::pin(async move { db.query(format!("{} RETURNING a", endless_insert()), ()).await.map(drop) })),
    ("create", |db| Box::pin(async move { db.execute(format!("CREATE TABLE u AS {ENDLESS}"), ()).await.map(drop) })),
    ("execute_many", |db| {
        let insert = endless_insert().replace("x < 0", "x < ?");
        Box::pin(async move { db.execute_many(&insert, [(0,), (0,)]).await.map(drop) })
    }),
    ("batch", |db| {
        Box::pin(async move { db.batch([("INSERT INTO t VALUES (1)", ()), (&endless_insert(), ())]).await.map(drop) })
    }),
    ("script", |db| {
        Box::pin(async move { db.execute_script(format!("INSERT INTO t VALUES (1); {}", endless_insert())).await })
    }),
    ("migrate", |db| {
        Box::pin(async move {
            db.migrate([("001_long", format!("CREATE TABLE u (a); {}", endless_insert()))]).await.map(drop)
        })
    }),
    ("write_with", |db| {
        let closure = |tx: &rusqlite::Transaction<'_>| {
            tx.execute("INSERT INTO t VALUES (1)", [])?;
            tx.execute(&endless_insert(), []).map(drop).map_err(Error::from)
        };
        Box::pin(async move { db.write_with(closure).await })
    }),
    ("with_connection", |db| {
        let closure = |c: &mut rusqlite::Connection| c.execute(&endless_insert(), []).map(drop).map_err(Error::from);
        Box::pin(async move { db.with_connection(closure).await })
    }),
    ("transaction", |db| {
        Box::pin(async move {
            let tx = db.begin().await?;
            tx.execute("INSERT INTO t VALUES (1)", ()).await?;
            tx.execute(endless_insert(), ()).await?;
            tx.commit().await
        })
    }),
];

const READS: [(&str, Begin); 4] = [
    ("query", |db| Box::pin(async move { db.query(ENDLESS, ()).await.map(drop) })),
    ("read_with", |db| {
        let closure = |c: &rusqlite::Connection| c.query_row(ENDLESS, [], |_| Ok(())).map_err(Error::from);
        Box::pin(async move { db.read_with(closure).await })
    }),
    ("stream", |db| Box::pin(async move { db.stream(ENDLESS, ()).next().await.map_or(Ok(()), |row| row.map(drop)) })),
    ("snapshot", |db| {
        Box::pin(async move {
            let snapshot = db.snapshot().await?;
            snapshot.query(ENDLESS, ()).await.map(drop)
        })
    }),
];

/// Begins the call, and waits until it has been taken by a thread. Whether the endless statement runs by then does not
/// matter to any fact here.
async fn begun(db: &Database, begin: Begin) -> tokio::task::JoinHandle<Result<(), Error>> {
    let mut call = begin(db.clone());
    assert!(futures_util::poll!(&mut call).is_pending());
    let call = tokio::spawn(call);
    until(|| waiting(db) == 0).await;
    call
}

fn rows(place: &Place) -> i64 {
    place.file().map_or(0, |file| integer(&file.plain(), "SELECT count(*) FROM t"))
}

async fn whatever_runs_is_ended_by_a_close_which_succeeds(place: &Place) {
    for (name, begin) in WRITES.into_iter().chain(READS) {
        let place = place.another();
        let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(10)))).await;
        let call = begun(&db, begin).await;
        db.close().await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let ended = call.await.unwrap().unwrap_err();
        // Of a closure it is its own error.
        assert!(matches!(ended.kind(), ErrorKind::Closed | ErrorKind::Cancelled), "{name}: {ended}");
        assert!(
            ended.kind() == ErrorKind::Closed || name.ends_with("_with") || name == "with_connection",
            "{name}: {ended}"
        );
        assert_eq!(rows(&place), 0, "{name}");
    }
}

async fn a_write_that_runs_is_undone_when_its_caller_leaves(place: &Place) {
    let db = empty_table(place.options()).await;
    for (name, begin) in WRITES {
        let call = begun(&db, begin).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled(), "{name}");
        // It would wait for ever.
        assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap().changes, 0, "{name}");
    }
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'u'";
    assert_eq!(db.query_optional_value::<i64>(tables, ()).await.unwrap(), Some(0));
    db.close().await.unwrap();
}

async fn a_read_that_runs_is_ended_when_its_caller_leaves(place: &Place) {
    let db = empty_table(place.options().readers(1).tuning(|t| t.extra_readers(1))).await;
    for (name, begin) in READS {
        let call = begun(&db, begin).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled(), "{name}");
        assert_eq!(count(&db).await, 0, "{name}");
        drop(db.snapshot().await.unwrap());
    }
    db.close().await.unwrap();
}

async fn writes_that_waited_are_done_though_the_time_of_the_close_is_over(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_millis(10)))).await;
    let endless = begun(&db, WRITES[0].1).await;
    let insert = |n: i64| db.execute("INSERT INTO t VALUES (?)", (n,));
    let mut behind: Vec<_> = (0..50).map(insert).collect();
    for call in &mut behind {
        assert!(futures_util::poll!(call).is_pending());
    }
    db.close().await.unwrap();
    assert_eq!(endless.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    let done = join_all(behind).await.into_iter().filter(Result::is_ok).count();
    // All of them, unless this machine was held up for a second.
    assert!(place.file().is_none() || rows(place) == i64::try_from(done).unwrap(), "{done}");
}

/// A text that is known to be short, and is as long as its parameter says.
const LONG: &str =
    "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?) SELECT count(*) FROM n";

/// Begins a group of two: a short write, and one of so many steps.
async fn begin_group(db: &Database, steps: i64) -> [Call<ExecuteResult>; 2] {
    let tx = db.begin().await.unwrap();
    let mut members = [db.execute("INSERT INTO t VALUES (?)", (0,)), db.execute(LONG, (steps,))];
    for member in &mut members {
        assert!(futures_util::poll!(member).is_pending());
    }
    tx.rollback().await.unwrap();
    members
}

async fn a_group_is_finished_without_its_callers_and_ended_by_a_close(place: &Place) {
    let db = empty_table(grouped(place.options()).tuning(|t| t.close_wait(Duration::from_millis(10)))).await;
    for _ in 0..2 {
        db.ungrouped().execute("INSERT INTO t VALUES (?)", (0,)).await.unwrap();
        db.ungrouped().execute(LONG, (1,)).await.unwrap();
    }
    db.execute("DELETE FROM t", ()).await.unwrap();
    let before = db.stats().members;
    // Until there was a group, which takes some time on a machine with other work.
    for pause in [0, 1, 3, 10, 30].into_iter().chain((1..300).map(|at| 100 * at)) {
        let [short, long] = begin_group(&db, 30_000).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let cancelled = long.cancel();
        short.await.unwrap();
        let kept = db.execute("DELETE FROM t", ()).await.unwrap().changes - 1;
        let is_finished = matches!(cancelled, CancelOutcome::WriteRunning | CancelOutcome::Answered);
        assert_eq!(kept, u64::from(is_finished), "{cancelled:?}");
        if pause >= 100 && db.stats().members > before {
            break;
        }
    }
    assert!(db.stats().members > before, "there was no group");
    let [short, endless] = begin_group(&db, -1).await;
    until(|| waiting(&db) == 0).await;
    db.close().await.unwrap();
    for member in [short, endless] {
        assert_eq!(member.await.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(rows(place), 0);
}

async fn a_write_in_a_transaction_takes_the_transaction_along_or_is_undone_alone(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let mut endless = tx.execute(endless_insert(), ());
    assert!(futures_util::poll!(&mut endless).is_pending());
    let cancelled = endless.cancel();
    match (cancelled, tx.execute("INSERT INTO t VALUES (2)", ()).await) {
        (CancelOutcome::Withdrawn, Ok(_)) => {}
        (CancelOutcome::WriteInterrupted, Err(error)) => {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("the caller cancelled the call"), "{error}");
        }
        (cancelled, result) => panic!("{cancelled:?} {result:?}"),
    }
    drop(tx);
    assert_eq!(count(&db).await, 0);
}

async fn a_statement_of_a_closure_is_interrupted_when_its_caller_leaves(place: &Place) {
    let db = empty_table(place.options()).await;
    let (begins, begun) = channel();
    let mut call = Box::pin(db.write_with(move |tx| {
        tx.execute("INSERT INTO t VALUES (1)", [])?;
        begins.send(()).unwrap();
        tx.execute(&endless_insert(), []).map_err(Error::from)
    }));
    assert!(futures_util::poll!(&mut call).is_pending());
    tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
    assert_eq!(Pin::into_inner(call).cancel(), CancelOutcome::WriteInterrupted);
    assert_eq!(count(&db).await, 0);
}

async fn what_was_interrupted_is_counted(place: &Place) {
    let db = empty_table(place.options()).await;
    let before = db.stats();
    let late = db.execute(endless_insert(), ()).timeout(Duration::from_millis(10)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    let after = db.stats();
    // On a machine that is held up for longer than that, it never began.
    assert_eq!(after.interrupted + after.abandoned, before.interrupted + before.abandoned + 1);
}
