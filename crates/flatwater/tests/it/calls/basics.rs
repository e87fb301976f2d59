//! Open, write, read: the operations of a database, one at a time.

use flatwater::{Error, ErrorKind, named, params};

use crate::place::{Place, in_both_places};
use crate::support::{grouped, until};

in_both_places!(
    what_was_written_is_read,
    named_and_mixed_parameters_are_bound,
    many_rows_and_batches_are_all_or_nothing,
    rows_of_parameters_may_have_names_and_must_fit,
    concurrent_writes_share_commits,
    a_transaction_and_a_closure_see_what_was_written,
    a_transaction_body_that_uses_the_database_is_told_so_at_once,
);

async fn what_was_written_is_read(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, size REAL, data BLOB)", ()).await.unwrap();
    let executed =
        db.execute("INSERT INTO t (name, size, data) VALUES (?, ?, ?)", ("Ada", 1.5, vec![1_u8, 2])).await.unwrap();
    assert_eq!((executed.changes, executed.last_insert_rowid), (1, Some(1)));
    let rows = db.query("SELECT * FROM t", ()).await.unwrap();
    assert_eq!(rows.len(), 1);
    let row: (i64, String, f64, Vec<u8>) = rows.get(0).unwrap().read().unwrap();
    assert_eq!(row, (1, "Ada".to_owned(), 1.5, vec![1, 2]));
    let one = db.query_optional("SELECT name FROM t WHERE id = ?", (1,)).await.unwrap().unwrap();
    assert_eq!(one.get::<String>("name").unwrap(), "Ada");
    assert!(db.query_optional("SELECT name FROM t WHERE id = 7", ()).await.unwrap().is_none());
    let count: Option<i64> = db.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap();
    assert_eq!(count, Some(1));
    db.close().await.unwrap();
}

async fn named_and_mixed_parameters_are_bound(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a, b)", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (:a, @b)", named! { ":a": 1, "b": "two" }).await.unwrap();
    db.execute("INSERT INTO t VALUES (?, ?)", params![2, Some("three")]).await.unwrap();
    let all: Vec<(i64, String)> = db.query_as("SELECT a, b FROM t ORDER BY a", ()).await.unwrap();
    assert_eq!(all, [(1, "two".to_owned()), (2, "three".to_owned())]);
}

async fn many_rows_and_batches_are_all_or_nothing(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a UNIQUE); CREATE TABLE log (a)").await.unwrap();
    assert_eq!(db.execute_many("INSERT INTO t VALUES (?)", (0..100).map(|n| (n,))).await.unwrap(), 100);
    db.execute_many("INSERT INTO t VALUES (?)", [(100,), (5,)]).await.unwrap_err();
    let results = db
        .batch([
            ("INSERT INTO t VALUES (?) RETURNING a", params![200]),
            ("INSERT INTO log SELECT a FROM t WHERE a < ?", params![3]),
        ])
        .await
        .unwrap();
    assert_eq!(results[0].rows.as_ref().unwrap().get(0).unwrap().get::<i64>(0).unwrap(), 200);
    assert_eq!(results[1].changes, 3);
    db.batch([("DELETE FROM log", params![]), ("INSERT INTO t VALUES (1)", params![])]).await.unwrap_err();
    let counts: Option<i64> = db
        .query_optional_value("SELECT (SELECT count(*) FROM t) * 1000 + (SELECT count(*) FROM log)", ())
        .await
        .unwrap();
    assert_eq!(counts, Some(101_003));
}

async fn rows_of_parameters_may_have_names_and_must_fit(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b, CHECK (b <> 'no'))", ()).await.unwrap();
    let insert = "INSERT INTO t VALUES (:a, :b)";
    let texts = ["é", "", "a\0b"].map(str::to_owned);
    db.execute_many(insert, (1..).zip(texts.clone())).await.unwrap();
    db.execute_many(insert, [named! { "a": 4, "b": 0.5 }, named! { "b": vec![0_u8], "a": 5 }]).await.unwrap();
    db.execute_many(insert, [params![6, None::<i64>], named! { "a": 7, "b": 7 }]).await.unwrap();
    assert_eq!(db.execute_many("UPDATE t SET b = b", [(); 2]).await.unwrap(), 14);
    assert_eq!(db.execute_many("UPDATE t SET b = b", Vec::<()>::new()).await.unwrap(), 0);
    let kinds: Vec<(String,)> = db.query_as("SELECT group_concat(typeof(b)) FROM t", ()).await.unwrap();
    assert_eq!(kinds, [("text,text,text,real,blob,null,integer".to_owned(),)]);
    let back: Vec<(String,)> = db.query_as("SELECT b FROM t WHERE a <= 3 ORDER BY a", ()).await.unwrap();
    assert_eq!(back, texts.map(|text| (text,)));

    let misfits = [
        db.execute_many(insert, [params![8, 1], params![9]]).await,
        db.execute_many(insert, [(8,), (9,)]).await,
        db.execute_many(insert, [(8, 1.0), (9, f64::NAN)]).await,
        db.execute_many(insert, [(8, "yes"), (9, "no")]).await,
    ];
    let kinds = misfits.map(|misfit| misfit.unwrap_err().kind());
    assert_eq!(kinds, [ErrorKind::Misuse, ErrorKind::Misuse, ErrorKind::Misuse, ErrorKind::Constraint]);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(7));
}

async fn concurrent_writes_share_commits(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (?, ?)", (0, "warm")).await.unwrap();
    // The first of them wait together for its end.
    let transaction = db.begin().await.unwrap();
    let tasks: Vec<_> = (1..=2000)
        .map(|n| {
            let db = db.clone();
            tokio::spawn(async move { db.execute("INSERT INTO t VALUES (?, ?)", (n, "x")).await.unwrap() })
        })
        .collect();
    until(|| db.stats().writes_waiting >= 100).await;
    transaction.commit().await.unwrap();
    for (n, task) in (1..).zip(tasks) {
        assert_eq!(task.await.unwrap().last_insert_rowid, Some(n));
    }
    let stats = db.stats();
    assert!(stats.groups > 0 && stats.members > stats.groups, "{stats:?}");
    let count: Option<i64> = db.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap();
    assert_eq!(count, Some(2001));
}

async fn a_transaction_and_a_closure_see_what_was_written(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    let total: i64 = db
        .transaction(async |tx| {
            tx.execute("INSERT INTO t VALUES (2)", ()).await?;
            Ok::<_, Error>(tx.query_optional_value("SELECT sum(a) FROM t", ()).await?.unwrap())
        })
        .await
        .unwrap();
    assert_eq!(total, 3);
    let sum = |c: &rusqlite::Connection| c.query_row("SELECT sum(a) FROM t", [], |row| row.get::<_, i64>(0));
    assert_eq!(db.read_with(move |c| sum(c).map_err(Error::from)).await, Ok(3));
    assert_eq!(db.write_with(move |tx| sum(tx).map_err(Error::from)).await, Ok(3));
}

/// A write on the database inside a transaction's body would wait for the body's own end.
async fn a_transaction_body_that_uses_the_database_is_told_so_at_once(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let (inner, has_readers) = (db.clone(), place.has_readers());
    let task = tokio::spawn(async move {
        inner
            .transaction(async |tx| {
                tx.execute("INSERT INTO t VALUES (1)", ()).await?;
                let error = inner.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Misuse);
                assert!(error.hint().unwrap().contains("the transaction the body was given"));
                assert_eq!(inner.begin().await.unwrap_err().kind(), ErrorKind::Misuse);
                let outside = inner.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await;
                if has_readers {
                    assert_eq!(outside, Ok(Some(0)), "a reader does not see what is not committed");
                } else {
                    assert_eq!(
                        outside.unwrap_err().kind(),
                        ErrorKind::Misuse,
                        "a read would wait for the body's end too"
                    );
                }
                let other = inner.clone();
                let spawned = tokio::spawn(async move { other.execute("INSERT INTO t VALUES (3)", ()).await });
                tx.transaction(async |nested| nested.execute("INSERT INTO t VALUES (4)", ()).await).await?;
                Ok::<_, Error>(spawned)
            })
            .await
    });
    let spawned = task.await.unwrap().unwrap();
    spawned.await.unwrap().unwrap();
    let sum: Option<i64> = db.query_optional_value("SELECT sum(a) FROM t", ()).await.unwrap();
    assert_eq!(sum, Some(8), "the spawned task waited for the end and then wrote");
}
