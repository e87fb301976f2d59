//! Statements that fail inside a transaction: which of their changes remain, and when the transaction ends with them.
//!
//! SQLite itself undoes a failed statement only if it prepared for that; in autocommit mode the rollback removes the
//! rest (<https://sqlite.org/lang_conflict.html>).

use flatwater::bindings::{FrontCall, Output, Polled, Target, commit_or_stay};
use flatwater::{Database, Error, ErrorKind, Transaction, params};

use crate::place::{Place, in_both_places};
use crate::support::{grouped, integer, until};

in_both_places!(
    a_statement_that_fails_half_way_leaves_nothing_behind_in_a_transaction,
    a_statement_that_fails_half_way_leaves_nothing_behind_outside_of_one,
    or_fail_keeps_what_came_before_the_failure,
    a_transaction_that_sqlite_rolled_back_says_so_to_the_end,
    requests_pipelined_behind_the_loss_of_their_transaction_do_nothing,
    a_deferred_foreign_key_fails_at_the_commit_which_rolls_back,
    a_commit_of_a_front_end_that_fails_leaves_the_transaction_open,
    a_transaction_of_a_front_end_begins_with_the_rowid_that_it_tells,
    a_text_that_failed_costs_a_group_no_second_replay,
    a_member_for_which_there_is_no_space_runs_again_alone,
);

const COLUMNS: usize = 250;

/// Returns an UPDATE of three rows that fails with SQLITE_TOOBIG at the third, and its parameter.
fn too_big() -> (String, String) {
    let sets = (0..COLUMNS).map(|n| format!("c{n} = CASE id WHEN 3 THEN ?1 ELSE 'changed' END"));
    let sql = format!("UPDATE wide SET {}", sets.collect::<Vec<_>>().join(", "));
    (sql, "x".repeat(1_000_000_000 / COLUMNS + 1))
}

fn schema() -> String {
    let columns = (0..COLUMNS).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    format!(
        "CREATE TABLE wide (id INTEGER PRIMARY KEY, {columns}); INSERT INTO wide (id) VALUES (1), (2), (3);
         CREATE TABLE source (v); INSERT INTO source VALUES (1), (2), ('three'), (4);
         CREATE TABLE typed (v INTEGER) STRICT; CREATE TABLE u (a UNIQUE);
         CREATE TRIGGER angry BEFORE INSERT ON u WHEN new.a < 0 BEGIN SELECT RAISE(ROLLBACK, 'negative'); END"
    )
}

const CHANGED: &str = "SELECT count(*) FROM wide WHERE c0 = 'changed'";
const TYPED: &str = "SELECT count(*) FROM typed";
const U: &str = "SELECT count(*) FROM u";

#[test]
fn plain_sqlite_leaves_parts_of_these_statements_behind() {
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    plain.execute_batch(&schema()).unwrap();
    plain.execute_batch("BEGIN").unwrap();
    let (sql, value) = too_big();
    let error = plain.execute(&sql, [value]).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::TooBig));
    plain.execute("INSERT INTO typed SELECT v FROM source", []).unwrap_err();
    assert_eq!((integer(&plain, CHANGED), integer(&plain, TYPED)), (2, 2));
}

async fn open(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(schema()).await.unwrap();
    db
}

async fn count(tx: &Transaction<'_>, sql: &str) -> i64 {
    tx.query_optional_value(sql, ()).await.unwrap().unwrap()
}

async fn a_statement_that_fails_half_way_leaves_nothing_behind_in_a_transaction(place: &Place) {
    let db = open(place).await;
    let (sql, value) = too_big();
    let mut tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
    let error = tx.execute(&sql, (value.as_str(),)).await.unwrap_err();
    assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_TOOBIG")), "{}", error.message());
    assert_eq!(count(&tx, CHANGED).await, 0);
    let error = tx.query(format!("{sql} RETURNING id"), (value.as_str(),)).await.unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_TOOBIG"));
    let typed = "INSERT INTO typed SELECT v FROM source";
    for error in [
        tx.execute(typed, ()).await.unwrap_err(),
        tx.batch([("INSERT INTO u VALUES (2)", params![]), (typed, params![])]).await.unwrap_err(),
        tx.execute_script(format!("INSERT INTO u VALUES (2); {typed}")).await.unwrap_err(),
        tx.execute_many("INSERT INTO u VALUES (?)", [(5,), (6,), (1,)]).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
    }
    let inner = tx.begin().await.unwrap();
    inner.execute(typed, ()).await.unwrap_err();
    inner.execute("INSERT INTO typed VALUES (9)", ()).await.unwrap();
    inner.commit().await.unwrap();
    assert_eq!((count(&tx, CHANGED).await, count(&tx, TYPED).await, count(&tx, U).await), (0, 1, 1));
    tx.commit().await.unwrap();
    let left = "SELECT (SELECT count(*) FROM typed) || (SELECT count(*) FROM u)";
    assert_eq!(db.query_optional_value::<String>(left, ()).await.unwrap().as_deref(), Some("11"));
}

async fn a_statement_that_fails_half_way_leaves_nothing_behind_outside_of_one(place: &Place) {
    let db = open(place).await;
    let (sql, value) = too_big();
    let typed = "INSERT INTO typed SELECT v FROM source";
    for _ in 0..2 {
        db.execute(&sql, (value.as_str(),)).await.unwrap_err();
        let (a, b, c) = futures_util::join!(
            db.execute(typed, ()),
            db.execute("INSERT INTO u SELECT max(coalesce(a, 0)) + 1 FROM u", ()),
            db.execute(typed, ()),
        );
        assert!(a.is_err() && b.is_ok() && c.is_err());
        db.batch([(typed, params![])]).await.unwrap_err();
    }
    assert_eq!(db.query_optional_value::<i64>(CHANGED, ()).await.unwrap(), Some(0));
    assert_eq!(db.query_optional_value::<i64>(TYPED, ()).await.unwrap(), Some(0));
}

async fn or_fail_keeps_what_came_before_the_failure(place: &Place) {
    let db = open(place).await;
    let sql = "INSERT OR FAIL INTO u VALUES (1), (2), (1), (3)";
    let tx = db.begin().await.unwrap();
    let error = tx.execute(sql, ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
    assert_eq!(count(&tx, U).await, 2);
    tx.commit().await.unwrap();
    db.execute("DELETE FROM u WHERE a = 2", ()).await.unwrap();
    let sql = "INSERT OR FAIL INTO u VALUES (2), (3), (1), (4)";
    db.execute(sql, ()).await.unwrap_err();
    assert_eq!(db.query_as::<(i64,)>("SELECT a FROM u ORDER BY a", ()).await.unwrap(), [(1,), (2,), (3,)]);
    // As part of something that is all or nothing it keeps nothing.
    let tx = db.begin().await.unwrap();
    tx.batch([("INSERT OR FAIL INTO u VALUES (7), (1)", params![])]).await.unwrap_err();
    tx.commit().await.unwrap();
    assert_eq!(db.query_optional_value::<i64>(U, ()).await.unwrap(), Some(3));
}

async fn a_transaction_that_sqlite_rolled_back_says_so_to_the_end(place: &Place) {
    let db = open(place).await;
    db.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
    for (sql, said) in [
        ("INSERT INTO u VALUES (-1)", "negative"),
        ("INSERT OR ROLLBACK INTO u VALUES (1)", "UNIQUE constraint failed"),
        ("UPDATE OR ROLLBACK u SET a = 1", "UNIQUE constraint failed"),
    ] {
        let mut tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO u VALUES (2)", ()).await.unwrap();
        let inner = tx.begin().await.unwrap();
        let error = inner.execute(sql, ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
        assert!(error.message().contains(said), "{error}");
        let errors = [
            inner.execute("INSERT INTO u VALUES (3)", ()).await.unwrap_err(),
            inner.commit().await.unwrap_err(),
            tx.query("SELECT 1", ()).await.unwrap_err(),
            tx.begin().await.unwrap_err(),
            tx.commit().await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("rolled back") && error.message().contains(said), "{error}");
            assert!(error.hint().unwrap().contains("begin another"), "{error}");
        }
        assert_eq!(db.query_optional_value::<i64>(U, ()).await.unwrap(), Some(1), "{sql}");
        db.execute("UPDATE u SET a = a", ()).await.unwrap();
    }
    let body = db.transaction(async |tx| {
        tx.execute("INSERT INTO u VALUES (-1)", ()).await.unwrap_err();
        Ok::<_, Error>(())
    });
    let error = body.await.unwrap_err();
    assert!(error.message().contains("rolled back") && error.message().contains("negative"), "{error}");
}

async fn requests_pipelined_behind_the_loss_of_their_transaction_do_nothing(place: &Place) {
    let db = open(place).await;
    let tx = db.begin().await.unwrap();
    let (first, lost, after) = futures_util::join!(
        tx.execute("INSERT INTO u VALUES (1)", ()),
        tx.execute("INSERT INTO u VALUES (-1)", ()),
        tx.execute("INSERT INTO u VALUES (2)", ()),
    );
    assert!(first.is_ok() && lost.is_err());
    assert!(after.unwrap_err().message().contains("rolled back"));
    assert_eq!(db.query_optional_value::<i64>(U, ()).await.unwrap(), Some(0));
}

async fn a_deferred_foreign_key_fails_at_the_commit_which_rolls_back(place: &Place) {
    let db = open(place).await;
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY);
        CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
    db.execute_script(schema).await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
    tx.execute("INSERT INTO c VALUES (7)", ()).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Constraint, Some("commit")), "{error}");
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM u, c", ()).await.unwrap(), Some(0));
    let mut tx = db.begin().await.unwrap();
    let inner = tx.begin().await.unwrap();
    inner.execute("INSERT INTO c VALUES (7)", ()).await.unwrap();
    inner.commit().await.unwrap();
    tx.execute("INSERT INTO p VALUES (7)", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM c", ()).await.unwrap(), Some(1));
}

/// Returns the output of a call of a front end.
async fn output(mut call: FrontCall) -> flatwater::Result<Output> {
    loop {
        match call.poll(None) {
            Polled::Ready(result) => return result,
            _ => tokio::task::yield_now().await,
        }
    }
}

async fn a_commit_of_a_front_end_that_fails_leaves_the_transaction_open(place: &Place) {
    let db = open(place).await;
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY);
        CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)";
    db.execute_script(schema).await.unwrap();
    let tx = db.begin().await.unwrap();
    let target = Target::of(&tx);
    tx.execute("INSERT INTO c VALUES (7)", ()).await.unwrap();
    for _ in 0..2 {
        let error = output(commit_or_stay(&target)).await.err().unwrap();
        assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
        assert!(tx.in_transaction());
    }
    tx.execute("INSERT INTO p VALUES (7)", ()).await.unwrap();
    output(commit_or_stay(&target)).await.unwrap();
    assert!(!tx.in_transaction());
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM c, p", ()).await.unwrap(), 1);
    // Its guard ends nothing any more.
    drop(tx);
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO c VALUES (8)", ()).await.unwrap();
    assert_eq!(output(commit_or_stay(&Target::of(&tx))).await.err().unwrap().kind(), ErrorKind::Constraint);
    drop(tx);
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM c", ()).await.unwrap(), 1);
}

async fn a_transaction_of_a_front_end_begins_with_the_rowid_that_it_tells(place: &Place) {
    let db = open(place).await;
    db.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
    let Ok(Output::Transaction(tx)) = output(Target::of(&db).begin(Some(41))).await else { panic!("no transaction") };
    assert_eq!(tx.query_value::<i64>("SELECT last_insert_rowid()", ()).await.unwrap(), 41);
    tx.execute("INSERT INTO u VALUES (2)", ()).await.unwrap();
    assert_eq!(tx.query_value::<i64>("SELECT last_insert_rowid()", ()).await.unwrap(), 2);
}

/// Submits the numbers behind an open transaction, so that they form one group. Returns the refused ones.
async fn insert_together(db: &Database, numbers: &[i64]) -> Vec<i64> {
    let transaction = db.begin().await.unwrap();
    let inserts = numbers.iter().map(|n| db.execute("INSERT INTO once VALUES (?)", (*n,)));
    let (results, ()) = futures_util::join!(futures_util::future::join_all(inserts), async {
        until(|| db.stats().writes_waiting == numbers.len()).await;
        transaction.commit().await.unwrap();
    });
    let failed = |(n, result): (&i64, Result<_, Error>)| match result {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
            Some(*n)
        }
    };
    numbers.iter().zip(results).filter_map(failed).collect()
}

async fn a_text_that_failed_costs_a_group_no_second_replay(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE once (n UNIQUE)", ()).await.unwrap();
    // Until it is known to be short.
    let mut next = 0;
    while db.stats().members < 8 {
        assert_eq!(insert_together(&db, &[next, next + 1, next + 2, next + 3]).await, [0_i64; 0]);
        next += 4;
    }
    assert_eq!(db.stats().replays, 0);
    assert_eq!(insert_together(&db, &[next, 3, next + 1, 2, next + 2]).await, [3, 2]);
    let first = db.stats().replays;
    assert!(first > 0, "the group ran again");
    assert_eq!(insert_together(&db, &[next + 3, 3, next + 4, 2, next + 5]).await, [3, 2]);
    assert_eq!(insert_together(&db, &[1, 2, next + 6, next + 7, 3]).await, [1, 2, 3]);
    assert_eq!(db.stats().replays, first);
    let all: Vec<(i64,)> = db.query_as("SELECT n FROM once ORDER BY n", ()).await.unwrap();
    assert_eq!(all.iter().map(|(n,)| *n).collect::<Vec<_>>(), (0..next + 8).collect::<Vec<_>>());
}

/// Only a write that runs alone can be repeated when room was made for it.
async fn a_member_for_which_there_is_no_space_runs_again_alone(place: &Place) {
    let options = grouped(place.options()).on_open("PRAGMA max_page_count = 100");
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE once (n UNIQUE)", ()).await.unwrap();
    let mut next = 0;
    while db.stats().replays == 0 {
        insert_together(&db, &[next, next, next + 1]).await;
        next += 2;
    }
    let replays = db.stats().replays;
    let transaction = db.begin().await.unwrap();
    let insert = "INSERT INTO once VALUES (?)";
    let members = [db.execute(insert, (-1,)), db.execute(insert, (vec![1_u8; 500_000],)), db.execute(insert, (-2,))];
    let (results, ()) = futures_util::join!(futures_util::future::join_all(members), async {
        until(|| db.stats().writes_waiting == 3).await;
        transaction.commit().await.unwrap();
    });
    let kinds: Vec<_> = results.iter().map(|result| result.as_ref().err().map(Error::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Full), None]);
    assert!(db.stats().replays > replays, "it was answered inside its group");
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM once WHERE n < 0", ()).await, Ok(Some(2)));
}
