//! Savepoints with names, compared with SQLite's own; and whether a transaction is open.
//!
//! Leaves out: nested transactions by themselves (`savepoints`).

use flatwater::{Error, ErrorKind, Session, Transaction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::interactive::{content, insert};
use crate::place::{Place, in_both_places};
use crate::support::empty_table;

in_both_places!(
    a_rollback_to_a_savepoint_undoes_what_came_after_and_keeps_it_open,
    a_release_closes_the_later_savepoints_and_never_the_transaction,
    a_name_is_any_text_and_stands_for_the_innermost,
    an_unknown_name_is_refused_with_the_nearest,
    a_nested_transaction_has_its_own_names,
    a_nested_transaction_that_is_dropped_takes_its_names_with_it,
    a_rollback_to_undoes_tables_columns_and_temp_tables,
    a_deferred_violation_that_is_undone_does_not_fail_the_commit,
    a_random_walk_over_savepoints_does_what_sqlite_does,
    a_transaction_tells_whether_it_is_open,
);

async fn visible(tx: &Transaction<'_>) -> Vec<i64> {
    tx.query_as::<(i64,)>("SELECT a FROM t ORDER BY a", ()).await.unwrap().into_iter().map(|(a,)| a).collect()
}

#[track_caller]
fn assert_unknown<T: std::fmt::Debug>(result: Result<T, Error>, hint: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.hint().is_some_and(|text| text.contains(hint)), "{error}: {:?}", error.hint());
}

async fn a_rollback_to_a_savepoint_undoes_what_came_after_and_keeps_it_open(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    tx.savepoint("a").await.unwrap();
    for _ in 0..3 {
        insert(&tx, 2).await;
        tx.rollback_to("a").await.unwrap();
        assert_eq!(visible(&tx).await, [1]);
    }
    insert(&tx, 3).await;
    tx.release("a").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 3]);
}

async fn a_release_closes_the_later_savepoints_and_never_the_transaction(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    for (name, n) in [("a", 1), ("b", 2), ("c", 3)] {
        tx.savepoint(name).await.unwrap();
        insert(&tx, n).await;
    }
    tx.release("a").await.unwrap();
    for name in ["a", "b", "c"] {
        assert_unknown(tx.rollback_to(name).await, "`savepoint` opens one");
    }
    assert!(tx.in_transaction());
    tx.rollback().await.unwrap();
    assert_eq!(content(&db).await, [0_i64; 0]);
    // One that is still open at the commit is kept.
    let tx = db.begin().await.unwrap();
    tx.savepoint("a").await.unwrap();
    insert(&tx, 4).await;
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [4]);
}

async fn a_name_is_any_text_and_stands_for_the_innermost(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    for name in ["flatwater_savepoint", "\"", "a; DROP TABLE t; --", "a\0b", "Straße"] {
        tx.savepoint(name).await.unwrap();
        insert(&tx, 1).await;
        tx.savepoint(name).await.unwrap();
        insert(&tx, 2).await;
        tx.rollback_to(name).await.unwrap();
        assert_eq!(visible(&tx).await, [1]);
        tx.release(name).await.unwrap();
        tx.rollback_to(name).await.unwrap();
        assert_eq!(visible(&tx).await, [0_i64; 0]);
        tx.release(name).await.unwrap();
    }
    tx.savepoint("Case").await.unwrap();
    tx.release("cASE").await.unwrap();
    assert_eq!(tx.savepoint("").await.unwrap_err().kind(), ErrorKind::Misuse);
    tx.commit().await.unwrap();
}

async fn an_unknown_name_is_refused_with_the_nearest(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    assert_unknown(tx.release("before_import").await, "`savepoint` opens one");
    tx.savepoint("before_import").await.unwrap();
    insert(&tx, 1).await;
    assert_unknown(tx.rollback_to("before_imports").await, "there is a savepoint \"before_import\"");
    assert_unknown(tx.release("x").await, "`savepoint` opens one");
    assert_eq!(visible(&tx).await, [1], "a refusal changes nothing");
    // A text of SQL is refused, and says how it is done.
    assert_unknown(tx.execute("ROLLBACK TO before_import", ()).await, "tx.savepoint(name)");
    tx.rollback().await.unwrap();
}

async fn a_nested_transaction_has_its_own_names(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    tx.savepoint("a").await.unwrap();
    insert(&tx, 1).await;
    let nested = tx.begin().await.unwrap();
    assert_unknown(nested.rollback_to("a").await, "belongs to the outer transaction");
    assert_unknown(nested.release("A").await, "belongs to the outer transaction");
    nested.savepoint("a").await.unwrap();
    insert(&nested, 2).await;
    nested.rollback_to("a").await.unwrap();
    nested.savepoint("b").await.unwrap();
    insert(&nested, 3).await;
    nested.commit().await.unwrap();
    assert_eq!(visible(&tx).await, [1, 3]);
    assert_unknown(tx.release("b").await, "`savepoint` opens one");
    let nested = tx.begin().await.unwrap();
    nested.savepoint("b").await.unwrap();
    insert(&nested, 4).await;
    nested.rollback().await.unwrap();
    assert_eq!(visible(&tx).await, [1, 3]);
    tx.rollback_to("a").await.unwrap();
    assert_eq!(visible(&tx).await, [0_i64; 0]);
    insert(&tx, 5).await;
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [5]);
}

async fn a_nested_transaction_that_is_dropped_takes_its_names_with_it(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    tx.savepoint("outer").await.unwrap();
    insert(&tx, 1).await;
    for forget in [false, true] {
        let mut nested = tx.begin().await.unwrap();
        nested.savepoint("inner").await.unwrap();
        insert(&nested, 2).await;
        let innermost = nested.begin().await.unwrap();
        innermost.savepoint("innermost").await.unwrap();
        insert(&innermost, 3).await;
        drop(innermost);
        assert_eq!(visible(&nested).await, [1, 2]);
        nested.rollback_to("inner").await.unwrap();
        insert(&nested, 4).await;
        if forget {
            std::mem::forget(nested)
        } else {
            drop(nested)
        }
        assert_eq!(visible(&tx).await, [1]);
        assert_unknown(tx.release("inner").await, "");
    }
    tx.release("outer").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1]);
}

async fn a_rollback_to_undoes_tables_columns_and_temp_tables(place: &Place) {
    let db = empty_table(place.options()).await;
    let columns = async |tx: &Transaction<'_>| tx.query("SELECT * FROM t", ()).await.unwrap().columns().len();
    let tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    assert_eq!(columns(&tx).await, 1);
    tx.savepoint("a").await.unwrap();
    for _ in 0..3 {
        tx.execute_script("ALTER TABLE t ADD COLUMN b; CREATE TABLE u (x); CREATE TEMP TABLE v (x)").await.unwrap();
        tx.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
        assert_eq!(columns(&tx).await, 2);
        tx.rollback_to("a").await.unwrap();
        assert_eq!(columns(&tx).await, 1);
        for gone in ["SELECT * FROM u", "SELECT * FROM v"] {
            assert!(tx.query(gone, ()).await.unwrap_err().message().contains("no such table"));
        }
        insert(&tx, 2).await;
        tx.rollback_to("a").await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1]);
    assert_eq!(db.query("SELECT * FROM t", ()).await.unwrap().columns().len(), 1);
    assert!(db.query("SELECT * FROM u", ()).await.is_err());
}

async fn a_deferred_violation_that_is_undone_does_not_fail_the_commit(place: &Place) {
    let db = empty_table(place.options()).await;
    db.execute_script(
        "CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
    )
    .await
    .unwrap();
    for undone in [true, false] {
        let tx = db.begin().await.unwrap();
        tx.savepoint("a").await.unwrap();
        tx.execute("INSERT INTO c VALUES (7)", ()).await.unwrap();
        if undone {
            tx.rollback_to("a").await.unwrap();
        }
        tx.release("a").await.unwrap();
        let committed = tx.commit().await;
        assert_eq!(committed.is_ok(), undone, "{committed:?}");
    }
}

/// The same steps by SQLite's own statements.
struct Plain(rusqlite::Connection);

impl Plain {
    fn visible(&self) -> Vec<i64> {
        let mut all = self.0.prepare_cached("SELECT a FROM t ORDER BY a").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

async fn a_random_walk_over_savepoints_does_what_sqlite_does(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut random = StdRng::seed_from_u64(17);
    for _ in 0..20 {
        db.execute("DELETE FROM t", ()).await.unwrap();
        let plain = Plain(rusqlite::Connection::open_in_memory().unwrap());
        plain.0.execute_batch("CREATE TABLE t (a); BEGIN").unwrap();
        let tx = db.begin().await.unwrap();
        for n in 0..60 {
            let name = ["a", "b", "A", "c c"][random.random_range(0..4)];
            let (ours, theirs) = match random.random_range(0..6) {
                0 | 1 => (tx.savepoint(name).await, plain.0.execute_batch(&format!("SAVEPOINT \"{name}\""))),
                2 => (tx.release(name).await, plain.0.execute_batch(&format!("RELEASE \"{name}\""))),
                3 => (tx.rollback_to(name).await, plain.0.execute_batch(&format!("ROLLBACK TO \"{name}\""))),
                _ => {
                    insert(&tx, n).await;
                    (Ok(()), plain.0.execute("INSERT INTO t VALUES (?)", [n]).map(drop))
                }
            };
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
            assert_eq!(visible(&tx).await, plain.visible());
        }
        tx.commit().await.unwrap();
        plain.0.execute_batch("COMMIT").unwrap();
        assert_eq!(content(&db).await, plain.visible());
    }
}

fn is_in_transaction(of: &Session) -> bool {
    of.in_transaction()
}

async fn a_transaction_tells_whether_it_is_open(place: &Place) {
    let db = empty_table(place.options()).await;
    db.execute_script("CREATE UNIQUE INDEX i ON t (a)").await.unwrap();
    assert!(!is_in_transaction(&db));
    let snapshot = db.snapshot().await.unwrap();
    assert!(!is_in_transaction(&snapshot));
    drop(snapshot);
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    assert!(tx.in_transaction() && is_in_transaction(&tx));
    let nested = tx.begin().await.unwrap();
    assert!(nested.in_transaction());
    nested.commit().await.unwrap();
    assert!(tx.execute("INSERT INTO t VALUES (1)", ()).await.is_err());
    assert!(tx.in_transaction(), "a failed statement does not end it");
    tx.savepoint("a").await.unwrap();
    assert!(tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)", ()).await.is_err());
    assert!(!tx.in_transaction(), "SQLite rolled it back");
    assert_eq!(tx.rollback_to("a").await.unwrap_err().kind(), ErrorKind::Misuse);
}
