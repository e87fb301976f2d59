//! `query_many`: the rows of all runs of one statement.

use flatwater::calls::TimeoutEffect;
use flatwater::{Database, Error, ErrorCode, ErrorKind, FromRow, Rows, Session};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{grouped, run, until};

in_both_places!(
    every_session_returns_the_rows_of_all_runs,
    what_a_result_has_no_room_for_is_undone,
    runs_that_are_interrupted_leave_nothing,
    those_that_wait_together_each_have_their_own_rows,
    a_read_may_run_for_each_row_too,
);

const INSERT: &str = "INSERT INTO t (a) VALUES (?) RETURNING id, a";

async fn opened(place: &Place) -> Database {
    let db = place.open().await;
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)", ()).await.unwrap();
    db
}

fn read<T: FromRow>(rows: Result<Rows, Error>) -> Vec<T> {
    rows.unwrap().read().unwrap()
}

async fn count(on: &Session) -> i64 {
    on.query_value("SELECT count(*) FROM t", ()).await.unwrap()
}

async fn every_session_returns_the_rows_of_all_runs(place: &Place) {
    let db = opened(place).await;
    assert_eq!(read::<(i64, i64)>(db.query_many(INSERT, [(7,), (8,)]).await), [(1, 7), (2, 8)]);
    assert_eq!(read::<(i64, i64)>(db.query_many(INSERT, (9..11).map(|a| (a,))).wait()), [(3, 9), (4, 10)]);
    let insert = db.prepare(INSERT).await.unwrap();
    assert_eq!(read::<(i64, i64)>(insert.query_many([(11,)]).await), [(5, 11)]);
    let none = db.query_many(INSERT, Vec::<(i64,)>::new()).await.unwrap();
    assert_eq!((none.columns().collect::<Vec<_>>(), none.len()), (vec!["id", "a"], 0));

    let tx = db.begin().await.unwrap();
    assert_eq!(read::<(i64, i64)>(tx.query_many(&insert, [(12,), (13,)]).await), [(6, 12), (7, 13)]);
    let error = tx.query_many(INSERT, [(14,), (7,)]).await.unwrap_err();
    assert!(error.is_unique_violation() && error.message().starts_with("row 1, counted from 0"), "{error}");
    assert_eq!(count(&tx).await, 7, "it took along what ran before");
    tx.rollback().await.unwrap();

    let own = db.connection();
    assert_eq!(read::<(i64, i64)>(own.query_many(INSERT, [(20,), (21,)]).await), [(6, 20), (7, 21)]);
    own.query_many(INSERT, [(22,), (7,)]).await.unwrap_err();
    own.close().await.unwrap();
    assert_eq!(count(&db).await, 7);

    let snapshot = db.snapshot().await.unwrap();
    assert_eq!(snapshot.query_many(INSERT, [(30,)]).await.unwrap_err().kind(), ErrorKind::Misuse);
    drop(snapshot);
    db.close().await.unwrap();
}

async fn what_a_result_has_no_room_for_is_undone(place: &Place) {
    let db = place.options().tuning(|t| t.result_limit(1 << 12)).open().await.unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", ()).await.unwrap();
    let text = "x".repeat(1 << 10);
    let rows = |number| std::iter::repeat_n((text.as_str(),), number);
    assert_eq!(db.query_many(INSERT, rows(3)).await.unwrap().len(), 3);
    for _ in 0..4 {
        let error = db.query_many(INSERT, rows(4)).await.unwrap_err();
        assert!(error.message().contains("more than 4096 bytes"), "{error}");
        assert_eq!((error.applied(), count(&db).await), (None, 3), "{error}");
    }
    db.close().await.unwrap();
}

async fn runs_that_are_interrupted_leave_nothing(place: &Place) {
    const ENDLESS: &str = "INSERT INTO t (a) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE ?)
        SELECT i FROM n RETURNING id";
    let db = opened(place).await;
    let error = db.query_many(ENDLESS, [(false,), (true,)]).timeout(std::time::Duration::from_millis(30)).await;
    assert_eq!(error.unwrap_err().applied(), Some(TimeoutEffect::No));
    let mut left = db.query_many(ENDLESS, [(true,)]);
    assert!(futures_util::poll!(&mut left).is_pending());
    drop(left);
    assert_eq!(read::<(i64, i64)>(db.query_many(INSERT, [(7,)]).await), [(1, 7)]);
    assert_eq!(count(&db).await, 1);
    db.close().await.unwrap();
}

async fn those_that_wait_together_each_have_their_own_rows(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE)", ()).await.unwrap();
    let mut next = 0_i64;
    while db.stats().groups == 0 {
        let transaction = db.begin().await.unwrap();
        let calls = join_all((next..next + 4).map(|a| db.query_many(INSERT, [(a,), (-1 - a,)])));
        let (all, ()) = futures_util::join!(calls, async {
            until(|| db.stats().writes_waiting == 4).await;
            transaction.commit().await.unwrap();
        });
        for (a, rows) in (next..).zip(all) {
            assert_eq!(read::<(i64, i64)>(rows), [(2 * a + 1, a), (2 * a + 2, -1 - a)]);
        }
        next += 4;
    }
    db.close().await.unwrap();
}

async fn a_read_may_run_for_each_row_too(place: &Place) {
    let db = opened(place).await;
    db.query_many(INSERT, [("x",), ("y",)]).await.unwrap();
    let rows = db.query_many("SELECT a FROM t WHERE id >= ? ORDER BY id", [(2,), (9,), (1,)]).await;
    assert_eq!(read::<(String,)>(rows).into_iter().map(|row| row.0).collect::<String>(), "yxy");
    db.close().await.unwrap();
}

#[test]
fn execute_many_points_to_the_call_for_rows() {
    run(async {
        let db = opened(&Place::in_memory()).await;
        let error = db.execute_many(INSERT, [(1,)]).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::ReturnsRows));
        assert!(error.hint().unwrap().contains("`query_many`"), "{error}");
        let error = db.query_many("INSERT INTO t (a) VALUES (?)", [(1,)]).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::ReturnsNoRows));
        assert_eq!(count(&db).await, 0);
        db.close().await.unwrap();
    });
}
