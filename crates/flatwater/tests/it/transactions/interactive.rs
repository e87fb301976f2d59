//! Interactive transactions: every way they end, nesting, and what other callers see and wait for meanwhile.
//!
//! Leaves out: bodies (`bodies`), statements that fail inside one (`failed_statements`).

use std::time::{Duration, Instant};

use flatwater::{Database, Error, ErrorKind, Transaction};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{count, empty_table, run, until};

in_both_places!(
    a_transaction_is_kept_by_commit_and_by_nothing_else,
    nested_transactions_are_kept_or_undone_one_by_one,
    what_an_outer_rollback_undoes_includes_what_inner_ones_kept,
    reads_inside_see_its_writes_and_readers_outside_do_not,
    other_writers_wait_for_its_end_and_then_go_on_in_order,
    an_idle_transaction_is_rolled_back_and_says_so_and_lets_others_write,
    each_transaction_has_the_whole_of_its_idle_limit,
    a_rollback_of_what_is_rolled_back_already_is_no_error,
    a_begin_that_is_given_up_leaves_no_transaction_open,
);

const COUNT: &str = "SELECT count(*) FROM t";

fn counted(connection: &rusqlite::Connection) -> Result<i64, Error> {
    Ok(connection.query_row(COUNT, [], |row| row.get(0))?)
}

pub(crate) async fn insert(tx: &Transaction<'_>, n: i64) {
    assert_eq!(tx.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap().changes, 1);
}

/// A body that inserts a row.
async fn inserted(tx: &Transaction<'_>, n: i64) -> Result<(), Error> {
    insert(tx, n).await;
    Ok(())
}

/// Returns the content, read outside any transaction, and checks that the writer is free.
pub(crate) async fn content(db: &Database) -> Vec<i64> {
    db.execute("UPDATE t SET a = a WHERE 0", ()).await.unwrap();
    db.query_as::<(i64,)>("SELECT a FROM t ORDER BY a", ()).await.unwrap().into_iter().map(|(a,)| a).collect()
}

async fn a_transaction_is_kept_by_commit_and_by_nothing_else(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1]);
    let tx = db.begin().await.unwrap();
    insert(&tx, 2).await;
    tx.rollback().await.unwrap();
    assert_eq!(content(&db).await, [1]);
    let tx = db.begin().await.unwrap();
    insert(&tx, 3).await;
    drop(tx);
    assert_eq!(content(&db).await, [1]);
    let count = db.transaction(async |tx| {
        insert(tx, 4).await;
        Ok::<_, Error>(tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await?.unwrap())
    });
    assert_eq!(count.await.unwrap(), 2);
    assert_eq!(content(&db).await, [1, 4]);
}

async fn nested_transactions_are_kept_or_undone_one_by_one(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    let inner = tx.begin().await.unwrap();
    insert(&inner, 2).await;
    inner.rollback().await.unwrap();
    let mut inner = tx.begin().await.unwrap();
    insert(&inner, 3).await;
    let innermost = inner.begin().await.unwrap();
    insert(&innermost, 4).await;
    drop(innermost);
    insert(&inner, 5).await;
    inner.commit().await.unwrap();
    drop(tx.begin().await.unwrap());
    let undone = tx.transaction(async |inner| {
        insert(inner, 6).await;
        inner.transaction(async |innermost| inserted(innermost, 7).await).await?;
        inner.execute("nonsense", ()).await.map(drop)
    });
    assert_eq!(undone.await.unwrap_err().kind(), ErrorKind::Sql);
    tx.transaction(async |inner| inserted(inner, 8).await).await.unwrap();
    assert_eq!(tx.query_as::<(i64,)>("SELECT a FROM t ORDER BY a", ()).await.unwrap(), [(1,), (3,), (5,), (8,)]);
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 3, 5, 8]);
}

async fn what_an_outer_rollback_undoes_includes_what_inner_ones_kept(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    let inner = tx.begin().await.unwrap();
    insert(&inner, 1).await;
    inner.commit().await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn reads_inside_see_its_writes_and_readers_outside_do_not(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    for n in 1..=20 {
        insert(&tx, n).await;
        assert_eq!(tx.query_optional_value::<i64>(COUNT, ()).await.unwrap(), Some(n));
        if place.has_readers() {
            assert_eq!(count(&db).await, 0);
            assert_eq!(db.read_with(counted).await, Ok(0));
        }
    }
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 20);
}

#[test]
fn without_readers_reads_outside_wait_for_its_end() {
    run(async {
        let db = empty_table(Place::in_memory().options()).await;
        let tx = db.begin().await.unwrap();
        let (mut read, mut closure) = (db.query_optional_value::<i64>(COUNT, ()), Box::pin(db.read_with(counted)));
        assert!(futures_util::poll!(&mut read).is_pending());
        assert!(futures_util::poll!(&mut closure).is_pending());
        assert_eq!(db.stats().writes_waiting, 2, "they stand in the line of the writes");
        insert(&tx, 1).await;
        assert_eq!(tx.query_optional_value::<i64>(COUNT, ()).await.unwrap(), Some(1));
        tx.commit().await.unwrap();
        assert_eq!((read.await, closure.await), (Ok(Some(1)), Ok(1)));
    });
}

async fn other_writers_wait_for_its_end_and_then_go_on_in_order(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    insert(&tx, 0).await;
    let mut writes: Vec<_> = (1..=50).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,))).collect();
    for write in &mut writes {
        assert!(futures_util::poll!(&mut *write).is_pending());
    }
    let mut second = Box::pin(db.begin());
    assert!(futures_util::poll!(&mut second).is_pending());
    let last = tokio::spawn(db.execute("INSERT INTO t VALUES (51)", ()));
    until(|| db.stats().writes_waiting == 52).await;
    insert(&tx, 0).await;
    tx.commit().await.unwrap();
    for (rowid, write) in (3..).zip(join_all(writes).await) {
        assert_eq!(write.unwrap().last_insert_rowid, Some(rowid));
    }
    let second = second.await.unwrap();
    assert_eq!(second.query_optional_value::<i64>("SELECT max(a) FROM t", ()).await.unwrap(), Some(50));
    second.commit().await.unwrap();
    assert_eq!(last.await.unwrap().unwrap().last_insert_rowid, Some(53));
}

async fn an_idle_transaction_is_rolled_back_and_says_so_and_lets_others_write(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.transaction_idle(Duration::from_millis(50)))).await;
    let mut tx;
    let inner = loop {
        // Again if the machine was busy for as long.
        tx = db.begin().await.unwrap();
        if tx.execute("INSERT INTO t VALUES (1)", ()).await.is_ok()
            && let Ok(inner) = tx.begin().await
            && inner.execute("INSERT INTO t VALUES (2)", ()).await.is_ok()
        {
            break inner;
        }
    };
    // This write waits until the limit is over.
    db.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
    let uses = [inner.execute("DELETE FROM t", ()).await.unwrap_err(), inner.commit().await.unwrap_err()];
    let later = [tx.query("SELECT * FROM t", ()).await.unwrap_err(), tx.commit().await.unwrap_err()];
    for error in uses.into_iter().chain(later) {
        assert!(error.message().contains("not used for 50ms"), "{error}");
        assert_eq!((error.kind(), error.is_retryable(), error.applied()), (ErrorKind::Expired, false, None), "{error}");
        assert!(error.hint().unwrap().contains("Tuning::transaction_idle"), "{error}");
    }
    assert_eq!(content(&db).await, [3]);
}

async fn each_transaction_has_the_whole_of_its_idle_limit(place: &Place) {
    const LIMIT: Duration = Duration::from_millis(60);
    let db = empty_table(place.options().tuning(|t| t.transaction_idle(LIMIT))).await;
    for _ in 0..5 {
        // The limit of the first one is over within that of the second one.
        let began = Instant::now();
        drop(db.begin().await.unwrap());
        until(|| began.elapsed() >= LIMIT / 3).await;
        let began = Instant::now();
        let tx = db.begin().await.unwrap();
        until(|| !tx.in_transaction()).await;
        assert!(began.elapsed() >= LIMIT, "{:?}", began.elapsed());
        let error = tx.commit().await.unwrap_err();
        assert!(error.message().contains("not used for 60ms"), "{error}");
    }
}

async fn a_rollback_of_what_is_rolled_back_already_is_no_error(place: &Place) {
    let idle = empty_table(place.another().options().tuning(|t| t.transaction_idle(Duration::from_millis(1)))).await;
    let mut tx = idle.begin().await.unwrap();
    if let Ok(inner) = tx.begin().await {
        until(|| !inner.in_transaction()).await;
        inner.rollback().await.unwrap();
    }
    until(|| !tx.in_transaction()).await;
    tx.rollback().await.unwrap();

    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::ZERO))).await;
    db.execute("CREATE TABLE one (a UNIQUE)", ()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let inner = tx.begin().await.unwrap();
    inner.execute("INSERT OR ROLLBACK INTO one VALUES (1), (1)", ()).await.unwrap_err();
    assert!(!inner.in_transaction());
    inner.rollback().await.unwrap();
    tx.rollback().await.unwrap();
    // A close waits for no transaction here.
    let mut tx = db.begin().await.unwrap();
    let inner = tx.begin().await.unwrap();
    db.clone().close().await.unwrap();
    inner.rollback().await.unwrap();
    tx.rollback().await.unwrap();
}

async fn a_begin_that_is_given_up_leaves_no_transaction_open(place: &Place) {
    let db = empty_table(place.options()).await;
    drop(db.begin());
    for n in 0..200 {
        let mut begin = Box::pin(db.begin());
        // Given up before, while or after it is served, as it happens.
        let _ = futures_util::poll!(&mut begin);
        for _ in 0..n % 7 {
            tokio::task::yield_now().await;
        }
        drop(begin);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    }
    let tx = db.begin().await.unwrap();
    let mut waiting = Box::pin(db.begin());
    assert!(futures_util::poll!(&mut waiting).is_pending());
    let mut body = Box::pin(db.transaction(async |tx| inserted(tx, 2).await));
    assert!(futures_util::poll!(&mut body).is_pending());
    drop((waiting, body));
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1; 200]);
}
