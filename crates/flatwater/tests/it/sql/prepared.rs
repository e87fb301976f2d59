//! `Database::prepare`: the same behavior as with the text itself, after schema changes, across clones and after close.

use flatwater::{Database, Error, ErrorKind};

use crate::place::{Place, in_both_places};

in_both_places!(
    a_prepared_text_does_what_the_text_does,
    a_prepared_text_follows_the_schema,
    a_prepared_text_is_sql_for_transactions_and_other_databases,
    a_prepared_text_of_a_closed_database_is_refused,
    a_text_that_cannot_be_compiled_is_an_error_of_prepare,
    what_is_prepared_waits_for_the_write_that_creates_its_table,
);

async fn a_prepared_text_does_what_the_text_does(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)", ()).await.unwrap();
    let insert = db.prepare("INSERT INTO t (b) VALUES (?)").await.unwrap();
    let find = db.prepare("SELECT a, b FROM t WHERE b = ?").await.unwrap();
    for number in 1..30_i64 {
        let executed = insert.clone().execute((number,)).await.unwrap();
        assert_eq!((executed.changes, executed.last_insert_rowid), (1, Some(number)));
        assert_eq!(find.query((number,)).await, db.query(find.sql(), (number,)).await);
        assert_eq!(find.query_optional_value::<i64>((number,)).await, Ok(Some(number)));
        assert_eq!(find.query_as::<(i64, i64)>((number,)).await, Ok(vec![(number, number)]));
        assert_eq!(find.query_optional((number,)).await.unwrap().unwrap().get::<i64>(1), Ok(number));
        assert_eq!(insert.execute((number,)).await, db.execute(insert.sql(), (number,)).await);
        assert_eq!(find.query(()).await, db.query(find.sql(), ()).await, "too few parameters");
    }
    assert_eq!(insert.execute_many((100..110).map(|number| (number,))).await, Ok(10));
    db.close().await.unwrap();
}

async fn a_prepared_text_follows_the_schema(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").await.unwrap();
    let all = db.prepare("SELECT * FROM t WHERE a = 1").await.unwrap();
    let insert = db.prepare("INSERT INTO t (a) VALUES (NULL)").await.unwrap();
    for column in 0..4 {
        for _ in 0..6 {
            let rows = all.query(()).await.unwrap();
            assert_eq!(rows.iter().next().map(|row| row.len()), Some(column + 1));
            insert.execute(()).await.unwrap();
        }
        let add = format!("ALTER TABLE t ADD COLUMN c{column}");
        match place.file() {
            Some(file) if column % 2 == 0 => file.plain().execute_batch(&add).unwrap(),
            _ => drop(db.execute(&add, ()).await.unwrap()),
        }
    }
    db.execute("DROP TABLE t", ()).await.unwrap();
    assert_eq!(all.query(()).await, db.query(all.sql(), ()).await);
    assert_eq!(insert.execute(()).await, db.execute(insert.sql(), ()).await);
    db.close().await.unwrap();
}

async fn a_prepared_text_of_a_closed_database_is_refused(place: &Place) {
    let db = place.open().await;
    let select = db.prepare("SELECT 1").await.unwrap();
    for _ in 0..5 {
        assert_eq!(select.query_optional_value::<i64>(()).await, Ok(Some(1)));
    }
    db.close().await.unwrap();
    let closed = |error: Error| error.kind() == ErrorKind::Closed;
    assert!(closed(select.query(()).await.unwrap_err()));
    assert!(closed(select.execute(()).await.unwrap_err()));
    assert!(closed(select.clone().query(()).wait().unwrap_err()));
}

async fn a_text_that_cannot_be_compiled_is_an_error_of_prepare(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE users (id INTEGER PRIMARY KEY); INSERT INTO users VALUES (1)").await.unwrap();
    for sql in ["SELECT * FROM user", "INSERT INTO user VALUES (1)", "SELEC 1", "", "SELECT 1; SELECT 2", "BEGIN"] {
        let error = db.prepare(sql).await.unwrap_err();
        assert_eq!(error.operation(), Some("prepare"), "{error}");
        let of_run = db.execute(sql, ()).await.unwrap_err();
        assert_eq!(error.clone().to_string().replace(" in prepare", ""), of_run.to_string().replace(" in execute", ""));
        assert_eq!(db.prepare(sql).wait().unwrap_err(), error);
    }
    // Nothing ran, and what is refused only when it runs is prepared.
    for sql in ["DELETE FROM users", "DROP TABLE users", "PRAGMA user_version = 3", "EXPLAIN SELECT 1", "SELECT ?"] {
        db.prepare(sql).await.unwrap();
    }
    assert_eq!(db.query_optional_value("SELECT count(*) FROM users", ()).await, Ok(Some(1)));
    assert_eq!(db.query_optional_value("PRAGMA user_version", ()).await, Ok(Some(0)));
    db.prepare("PRAGMA user_version = 3").await.unwrap().execute(()).await.unwrap();
    assert_eq!(db.query_optional_value("PRAGMA user_version", ()).await, Ok(Some(3)));
    db.close().await.unwrap();
    assert_eq!(db.prepare("SELECT 1").await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn what_is_prepared_waits_for_the_write_that_creates_its_table(place: &Place) {
    let db = place.open().await;
    for number in 0..20 {
        let create = format!("CREATE TABLE t{number} AS SELECT {number} AS a");
        let select = format!("SELECT a FROM t{number}");
        let insert = format!("INSERT INTO t{number} VALUES (-1)");
        let (created, select, insert) =
            futures_util::join!(db.execute(&create, ()), db.prepare(&select), db.prepare(&insert));
        created.unwrap();
        assert_eq!(select.unwrap().query_optional_value(()).await, Ok(Some(number)));
        assert_eq!(insert.unwrap().execute(()).await.map(|executed| executed.changes), Ok(1));
    }
    db.close().await.unwrap();
}

async fn a_prepared_text_is_sql_for_transactions_and_other_databases(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let insert = db.prepare("INSERT INTO t VALUES (?)").await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute(&insert, (1,)).await.unwrap();
    tx.execute_many(&insert, [(2,), (3,)]).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(0));
    let other = Database::open(":memory:").await.unwrap();
    other.execute("CREATE TABLE t (a)", ()).await.unwrap();
    other.batch([(&insert, (4,)), (&insert, (5,))]).await.unwrap();
    assert_eq!(other.query_values::<i64>("SELECT a FROM t", ()).await.unwrap(), [4, 5]);
}
