//! Large numbers at once: callers, texts, rows, bytes.

use std::task::Poll;
use std::time::Duration;

use flatwater::{Database, ErrorKind, params};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    ten_thousand_callers_share_a_short_queue_and_each_keeps_its_order,
    calls_that_wait_for_a_place_keep_the_order_of_their_caller,
    large_results_arrive_whole,
    large_values_go_in_and_out_unchanged,
    a_queue_of_one_serves_everybody,
);

const CALLERS: i64 = 10_000;

/// Submits its writes without waiting in between. They run in this order.
async fn pipelines(db: Database, caller: i64) {
    let insert = "INSERT INTO t VALUES (?, ?)";
    let (first, second, third, fourth) = futures_util::join!(
        db.execute(insert, (caller, 1)),
        db.query("INSERT INTO t VALUES (?, ?) RETURNING rowid", (caller, 2)),
        db.batch([(insert, params![caller, 3])]),
        db.execute(insert, (caller, 4)),
    );
    let rowids = [
        first.unwrap().last_insert_rowid.unwrap(),
        second.unwrap().get(0).unwrap().get(0).unwrap(),
        third.unwrap()[0].last_insert_rowid.unwrap(),
        fourth.unwrap().last_insert_rowid.unwrap(),
    ];
    assert!(rowids.is_sorted(), "{rowids:?}");
    let mine = db.query_optional_value::<i64>("SELECT n FROM t WHERE rowid = ? AND caller = ?", (rowids[3], caller));
    assert_eq!(mine.await.unwrap(), Some(4));
}

async fn ten_thousand_callers_share_a_short_queue_and_each_keeps_its_order(place: &Place) {
    let db = place.options().tuning(|t| t.queue(64)).open().await.unwrap();
    db.execute("CREATE TABLE t (caller, n)", ()).await.unwrap();
    let callers: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(pipelines(db.clone(), caller))).collect();
    for caller in callers {
        caller.await.unwrap();
    }
    // Every caller's rows, in the order of their rowids, are 1, 2, 3, 4.
    let orders = "SELECT o, count(*) FROM (SELECT group_concat(n, ' ' ORDER BY rowid) AS o FROM t GROUP BY caller)
        GROUP BY o";
    assert_eq!(db.query_as::<(String, i64)>(orders, ()).await.unwrap(), [("1 2 3 4".to_owned(), CALLERS)]);
    let stats = db.stats();
    assert_eq!((stats.writes_waiting, stats.reads_waiting, stats.abandoned), (0, 0, 0));
    // Nobody was answered twice.
    let answered = |kind| stats.calls.iter().find(|calls| calls.kind == kind).map(|calls| calls.count);
    let callers = CALLERS.unsigned_abs();
    assert_eq!([answered("execute"), answered("batch")], [Some(2 * callers + 1), Some(callers)]);
    db.close().await.unwrap();
}

async fn calls_that_wait_for_a_place_keep_the_order_of_their_caller(place: &Place) {
    let db = place.options().tuning(|t| t.queue(2)).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let tx = db.begin().await.unwrap();
    let mut calls: Vec<_> = (0..4).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,))).collect();
    for call in &mut calls {
        assert!(futures_util::poll!(call).is_pending());
    }
    let [one, two, third, fourth] = &mut calls[..] else { unreachable!() };
    // The task looks after the third; then there is place for both; then it looks after the fourth.
    assert!(futures_util::poll!(&mut *third).is_pending());
    tx.commit().await.unwrap();
    one.await.unwrap();
    two.await.unwrap();
    let early = futures_util::poll!(&mut *fourth);
    let third = third.await.unwrap().last_insert_rowid;
    let fourth = match early {
        Poll::Ready(fourth) => fourth.unwrap(),
        Poll::Pending => fourth.await.unwrap(),
    };
    assert_eq!((third, fourth.last_insert_rowid), (Some(3), Some(4)));
}

async fn large_results_arrive_whole(place: &Place) {
    let db = place.options().open().await.unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, name TEXT, half REAL, none)", ()).await.unwrap();
    let rows = (0..100_000_i64).map(|n| (n, format!("number {n}"), n as f64 / 2.0, None::<i64>));
    assert_eq!(db.execute_many("INSERT INTO t VALUES (?, ?, ?, ?)", rows).await.unwrap(), 100_000);
    for _ in 0..2 {
        let rows = db.query("SELECT * FROM t ORDER BY n", ()).await.unwrap();
        assert_eq!(rows.len(), 100_000);
        for (n, row) in (0..).zip(rows.iter()) {
            let (id, name, half, nothing): (i64, String, f64, Option<i64>) = row.read().unwrap();
            assert!(id == n && name == format!("number {n}") && half == n as f64 / 2.0 && nothing.is_none());
        }
        assert_eq!(
            db.query_optional("SELECT n FROM t ORDER BY n", ()).await.unwrap().unwrap().get::<i64>(0).unwrap(),
            0
        );
    }
    let tx = db.begin().await.unwrap();
    assert_eq!(tx.query("DELETE FROM t RETURNING *", ()).await.unwrap().len(), 100_000);
    tx.rollback().await.unwrap();
    db.close().await.unwrap();
}

async fn large_values_go_in_and_out_unchanged(place: &Place) {
    let db = place.options().open().await.unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB, text TEXT)", ()).await.unwrap();
    let value = |n: u8| -> Vec<u8> { (0..5 << 20).map(|at: u32| (at % 251) as u8 ^ n).collect() };
    // Warm, so that what follows could be a group; its bytes forbid that.
    db.execute("INSERT INTO t VALUES (?, ?, ?)", (100, vec![0_u8], "")).await.unwrap();
    let inserts = (0..6_u8).map(|n| db.execute("INSERT INTO t VALUES (?, ?, ?)", (n, value(n), "z".repeat(5 << 20))));
    assert!(join_all(inserts).await.iter().all(Result::is_ok));
    let reads =
        join_all((0..6_u8).map(|n| db.query_as::<(Vec<u8>, String)>("SELECT data, text FROM t WHERE id = ?", (n,))));
    for (n, read) in (0..).zip(reads.await) {
        let (data, text) = read.unwrap().remove(0);
        assert!(data == value(n) && text.len() == 5 << 20 && text.bytes().all(|byte| byte == b'z'));
    }
    let error = db.query("SELECT zeroblob(2000000000)", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_TOOBIG")), "{error}");
    let odd = db.query("SELECT CAST(x'ff61' AS TEXT) AS t, '' AS t", ()).await.unwrap();
    assert_eq!(odd.get(0).unwrap().get::<String>(0).unwrap_err().kind(), ErrorKind::Decode);
    assert_eq!(odd.get(0).unwrap().get::<String>(1).unwrap(), "");
    let empty = db.query_as::<(Vec<u8>, String)>("SELECT ?, ?", (Vec::<u8>::new(), "")).await.unwrap();
    assert_eq!(empty, [(Vec::new(), String::new())]);
}

#[test]
fn a_file_that_is_opened_twice_serves_both() {
    let file = TestFile::new();
    run(async {
        let (one, other) = (file.open().await, file.open().await);
        one.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let writes = (0..100).map(|n| if n % 2 == 0 { &one } else { &other }.execute("INSERT INTO t VALUES (?)", (n,)));
        assert!(join_all(writes).await.iter().all(Result::is_ok));
        one.close().await.unwrap();
        assert_eq!(other.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(100));
        other.execute("DELETE FROM t WHERE a > 9", ()).await.unwrap();
        other.close().await.unwrap();
        assert!(!file.beside("-wal").exists());
    });
    assert_eq!(crate::support::integer(&file.plain(), "SELECT count(*) FROM t"), 10);
}

#[test]
fn every_opening_in_memory_is_a_database_of_its_own() {
    run(async {
        let place = Place::in_memory();
        let (one, other) = (place.open().await, place.open().await);
        one.execute("CREATE TABLE t (a)", ()).await.unwrap();
        assert_eq!(other.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err().kind(), ErrorKind::Sql);
        other.execute("CREATE TABLE t (a)", ()).await.unwrap();
        other.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        other.close().await.unwrap();
        assert_eq!(one.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(0));
    });
}

async fn a_queue_of_one_serves_everybody(place: &Place) {
    let db = place.options().tuning(|t| t.queue(1)).readers(1).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let callers = (0..300_i64).map(|n| {
        let db = db.clone();
        tokio::spawn(async move {
            let hasty = db.with_timeout(Duration::from_secs(3600));
            hasty.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap();
            db.query_optional_value::<i64>("SELECT a FROM t WHERE a = ?", (n,)).await.unwrap()
        })
    });
    for (n, caller) in (0..).zip(join_all(callers).await) {
        assert_eq!(caller.unwrap(), Some(n));
    }
}
