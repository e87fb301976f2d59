//! Batches whose statements have one text many times, one after the other, or in turn with others.

use flatwater::values::RunResult;
use flatwater::{ErrorKind, Params, Session, named, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    each_statement_has_its_own_result_whatever_text_is_beside_it,
    a_batch_repeats_statements_that_are_not_kept,
    a_batch_fails_at_any_of_its_statements_and_leaves_nothing,
    long_values_are_stored_as_they_are,
);

/// Calls `check` on a database, in a transaction, and on a connection of its own.
async fn everywhere(place: &Place, check: impl AsyncFn(&Session)) {
    let db = place.open().await;
    check(&db).await;
    let tx = db.begin().await.unwrap();
    check(&tx).await;
    tx.rollback().await.unwrap();
    let db = place.another();
    let db = db.open().await;
    check(&db.connection()).await;
}

/// What each statement changed, the rowid, and its rows.
fn told(results: &[RunResult]) -> Vec<(u64, Option<i64>, Vec<i64>)> {
    let rows = |result: &RunResult| {
        let rows = result.rows.iter().flat_map(|rows| rows.iter());
        rows.map(|row| row.get(0).unwrap()).collect()
    };
    results.iter().map(|result| (result.changes, result.last_insert_rowid, rows(result))).collect()
}

async fn each_statement_has_its_own_result_whatever_text_is_beside_it(place: &Place) {
    everywhere(place, async |on| {
        on.execute_script("DROP TABLE IF EXISTS t; CREATE TABLE t (a UNIQUE, b)").await.unwrap();
        let insert = "INSERT OR IGNORE INTO t VALUES (?, ?)";
        let returning = "INSERT INTO t VALUES (?, 'r') RETURNING a * 10";
        let count = "SELECT count(*) FROM t";
        let batch: [(&str, Params); 12] = [
            (insert, params![1, "a"].unwrap()),
            (insert, params![1, "again"].unwrap()),
            (insert, params![2, None::<i64>].unwrap()),
            (count, params![].unwrap()),
            (count, params![].unwrap()),
            (insert, params![3, 0.5].unwrap()),
            (returning, params![4].unwrap()),
            (returning, params![5].unwrap()),
            ("UPDATE t SET b = :b WHERE a > :a", named! { "a": 3, "b": "c" }.unwrap()),
            ("UPDATE t SET b = :b WHERE a > :a", named! { "b": "d", "a": 4 }.unwrap()),
            ("UPDATE t SET b = :b WHERE a > :a", params!["e", 9].unwrap()),
            (count, params![].unwrap()),
        ];
        let expected = [
            (1, Some(1), vec![]),
            (0, None, vec![]),
            (1, Some(2), vec![]),
            (0, None, vec![2]),
            (0, None, vec![2]),
            (1, Some(3), vec![]),
            (1, Some(4), vec![40]),
            (1, Some(5), vec![50]),
            (2, None, vec![]),
            (1, None, vec![]),
            (0, None, vec![]),
            (0, None, vec![5]),
        ];
        assert_eq!(told(&on.batch(batch.clone()).await.unwrap()), expected);
        on.execute("DELETE FROM t", ()).await.unwrap();
        assert_eq!(told(&on.batch(batch).await.unwrap()), expected, "all of them are prepared");
    })
    .await;
}

async fn a_batch_repeats_statements_that_are_not_kept(place: &Place) {
    everywhere(place, async |on| {
        let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(20_000));
        let batch = [
            "DROP TABLE IF EXISTS t",
            "DROP TABLE IF EXISTS t",
            "CREATE TABLE IF NOT EXISTS t (a)",
            "CREATE TABLE IF NOT EXISTS t (a)",
            &long,
            &long,
            "PRAGMA table_info(t)",
            "PRAGMA table_info(t)",
            "ALTER TABLE t ADD COLUMN b",
            "PRAGMA table_info(t)",
            "SELECT * FROM t",
            "SELECT * FROM t",
        ];
        for _ in 0..2 {
            let results = on.batch(batch.map(|sql| (sql, ()))).await.unwrap();
            let shapes =
                results.iter().map(|result| result.rows.as_ref().map(|rows| (rows.len(), rows.columns().len())));
            let none = vec![None; 6];
            let some = [Some((1, 6)), Some((1, 6)), None, Some((2, 6)), Some((2, 2)), Some((2, 2))];
            assert_eq!(shapes.collect::<Vec<_>>(), [none, some.to_vec()].concat());
        }
        let error = on.batch(["CREATE TABLE u (a)"; 2].map(|sql| (sql, ()))).await.unwrap_err();
        assert!(error.message().contains("already exists"), "{error}");
    })
    .await;
}

async fn a_batch_fails_at_any_of_its_statements_and_leaves_nothing(place: &Place) {
    everywhere(place, async |on| {
        on.execute_script("DROP TABLE IF EXISTS t; CREATE TABLE t (a CHECK (a < 100))").await.unwrap();
        let insert = "INSERT INTO t VALUES (?)";
        for fails in 0..20 {
            let batch = (0..20).map(|number| (insert, (if number == fails { 100 } else { number },)));
            let error = on.batch(batch).await.unwrap_err();
            assert_eq!((error.kind(), error.sql()), (ErrorKind::Constraint, Some(insert)), "{error}");
            let batch = (0..20).map(|number| (insert, if number == fails { vec![] } else { vec![number] }));
            assert_eq!(on.batch(batch).await.unwrap_err().kind(), ErrorKind::Misuse);
            let batch = (0..20).map(|number| (insert, (if number == fails { f64::NAN } else { 1.0 },)));
            assert_eq!(on.batch(batch).await.unwrap_err().kind(), ErrorKind::Misuse);
        }
        assert_eq!(on.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    })
    .await;
}

async fn long_values_are_stored_as_they_are(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let lengths = [0, 1, 16 << 10, 5, 3 << 20, (16 << 10) - 1, 2 << 20, 2 << 20, 7];
    let value = |length: &usize| vec![u8::try_from(length % 251).unwrap(); *length];
    let insert = "INSERT INTO t VALUES (?)";
    db.batch(lengths.iter().map(|length| (insert, params![value(length)].unwrap()))).await.unwrap();
    db.execute_many(insert, lengths.iter().map(|length| params![value(length)].unwrap())).await.unwrap();
    let stored = db.query_values::<Vec<u8>>("SELECT a FROM t ORDER BY rowid", ()).await.unwrap();
    let expected: Vec<_> = lengths.iter().chain(&lengths).map(value).collect();
    assert!(stored == expected);
    if let Some(file) = place.file() {
        // What another process changed is seen by the second of two equal statements too.
        let all = [("SELECT * FROM t LIMIT 1", ()); 2];
        db.batch(all).await.unwrap();
        file.plain().execute_batch("ALTER TABLE t ADD COLUMN b DEFAULT 1").unwrap();
        let results = db.batch(all).await.unwrap();
        assert!(results.iter().all(|result| result.rows.as_ref().unwrap().columns().len() == 2));
    }
}
