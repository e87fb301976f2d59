//! The differences of a live query's results: what is a key, what is told, and when a full result comes.

use std::collections::BTreeMap;
use std::time::Duration;

use flatwater::live::Change;
use flatwater::{Database, ErrorKind, Live, Row};
use futures_util::StreamExt;

use super::queries::shown;
use crate::place::{Place, in_both_places};
use crate::support::until;

in_both_places!(
    the_full_result_comes_first_and_then_the_rows_that_changed,
    every_kind_of_key_tells_rows_apart,
    a_row_that_gets_another_key_goes_and_comes,
    a_null_is_a_key_and_two_are_refused_until_one_is_left,
    the_rows_of_a_join_have_the_keys_of_the_tables_that_are_selected,
    groups_views_and_subqueries_keep_the_key,
    a_result_without_a_key_is_refused_with_what_to_select,
    other_columns_or_another_key_bring_the_full_result,
    a_key_that_a_table_gets_counts_from_then_on,
    an_error_is_told_and_then_comes_the_full_result,
    a_late_consumer_gets_all_changes_as_one,
    what_is_no_difference_is_not_told,
    rows_outlive_the_stream_and_are_read_as_types,
    the_pace_holds_and_a_close_ends_the_stream,
);

fn row(row: &Row<'_>) -> String {
    row.values().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",").replace("Integer", "")
}

/// Returns the rows of a change: all of a full result, or `+` inserted, `~` updated, `-` deleted, each kind in order.
fn told(change: &Change) -> String {
    let rows = match change {
        Change::Full(rows) => return format!("full {}", shown(rows)).replace("Integer", ""),
        Change::Rows(rows) => rows,
    };
    let inserted = rows.inserted().map(|new| format!("+{}", row(&new)));
    let updated = rows.updated().map(|both| format!("~{}>{}", row(&both.old), row(&both.new)));
    let deleted = rows.deleted().map(|old| format!("-{}", row(&old)));
    inserted.chain(updated).chain(deleted).collect::<Vec<_>>().join(" ")
}

async fn next(changes: &mut Live<Change>) -> String {
    told(&changes.next().await.expect("the stream is over").unwrap())
}

/// Runs the writes and returns what is told of all of them, if it is told at once.
async fn after(db: &Database, changes: &mut Live<Change>, sql: &str) -> String {
    let tx = db.begin().await.unwrap();
    for sql in sql.split(';') {
        tx.execute(sql, ()).await.unwrap();
    }
    tx.commit().await.unwrap();
    next(changes).await
}

async fn with_items(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, a);
         CREATE TABLE part (id INTEGER PRIMARY KEY, item, b);
         INSERT INTO item VALUES (1, 10), (2, 20), (3, 30)",
    )
    .await
    .unwrap();
    db
}

async fn the_full_result_comes_first_and_then_the_rows_that_changed(place: &Place) {
    let db = with_items(place).await;
    let mut changes = db.live("SELECT id, a FROM item WHERE a < ? ORDER BY id", (100,)).changes();
    assert_eq!(next(&mut changes).await, "full (1),(10) (2),(20) (3),(30)");
    assert_eq!(after(&db, &mut changes, "INSERT INTO item VALUES (4, 40)").await, "+(4),(40)");
    assert_eq!(after(&db, &mut changes, "UPDATE item SET a = 21 WHERE id = 2").await, "~(2),(20)>(2),(21)");
    assert_eq!(after(&db, &mut changes, "DELETE FROM item WHERE id = 1").await, "-(1),(10)");
    assert_eq!(after(&db, &mut changes, "UPDATE item SET a = 100 WHERE id = 3").await, "-(3),(30)");
    let all = "DELETE FROM item WHERE id = 2; UPDATE item SET a = 5; INSERT INTO item VALUES (9, 9)";
    assert_eq!(after(&db, &mut changes, all).await, "+(3),(5) +(9),(9) ~(4),(40)>(4),(5) -(2),(21)");
    assert_eq!(after(&db, &mut changes, "DELETE FROM item").await, "-(3),(5) -(4),(5) -(9),(9)");
    assert_eq!(after(&db, &mut changes, "INSERT INTO item VALUES (1, 1)").await, "+(1),(1)");
    let commit = |change: &Change| match change {
        Change::Full(rows) => rows.commit(),
        Change::Rows(rows) => rows.result().commit(),
    };
    // A stream that begins late begins with the full result.
    let mut late = db.live("SELECT id, a FROM item WHERE a < ? ORDER BY id", (100,)).changes();
    let first = late.next().await.unwrap().unwrap();
    assert_eq!(told(&first), "full (1),(1)");
    db.execute("UPDATE item SET a = 2", ()).await.unwrap();
    let second = late.next().await.unwrap().unwrap();
    assert!(commit(&second) > commit(&first));
    let Change::Rows(rows) = &second else { panic!("{second:?}") };
    assert_eq!(shown(rows.result()), "Integer(1),Integer(2)");
}

async fn every_kind_of_key_tells_rows_apart(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE pair (x, y, v, PRIMARY KEY (y, x));
         CREATE TABLE word (k TEXT, n, v, PRIMARY KEY (k, n)) WITHOUT ROWID;
         CREATE TABLE plain (v);
         CREATE TABLE down (id INTEGER PRIMARY KEY DESC, v);
         CREATE TABLE named (rowid TEXT PRIMARY KEY, v);
         CREATE TABLE \"odd name\" (\"the key\" INTEGER PRIMARY KEY, v);
         CREATE VIRTUAL TABLE f USING fts5(v);
         INSERT INTO pair VALUES (1, 1, 0), (1, 2, 0), (2, 1, 0);
         INSERT INTO word VALUES ('a', 1, 0), ('a', 2, 0), ('b', 1, 0);
         INSERT INTO plain VALUES (0), (0), (0);
         INSERT INTO down VALUES (1, 0), (2, 0);
         INSERT INTO named VALUES ('1', 0), ('2', 0);
         INSERT INTO \"odd name\" VALUES (1, 0), (2, 0);
         INSERT INTO f VALUES ('0'), ('0')",
    )
    .await
    .unwrap();
    let text = |text: &str| format!("{:?}", flatwater::ValueRef::Text(text.as_bytes()));
    let (a, one, zero) = (text("a"), text("1"), text("0"));
    let cases = [
        ("SELECT v, x, y FROM pair", "UPDATE pair SET v = 1 WHERE x = 1 AND y = 2", "~(0),(1),(2)>(1),(1),(2)".into()),
        ("SELECT * FROM word", "UPDATE word SET v = 1 WHERE k = 'a' AND n = 2", format!("~{a},(2),(0)>{a},(2),(1)")),
        ("SELECT rowid, v FROM plain", "UPDATE plain SET v = 1 WHERE rowid = 2", "~(2),(0)>(2),(1)".into()),
        ("SELECT _rowid_ AS r, v FROM plain", "DELETE FROM plain WHERE oid = 2", "-(2),(1)".into()),
        ("SELECT id, v FROM down", "UPDATE down SET v = 1 WHERE id = 2", "~(2),(0)>(2),(1)".into()),
        ("SELECT rowid, v FROM down", "UPDATE down SET v = 2 WHERE id = 2", "~(2),(1)>(2),(2)".into()),
        ("SELECT rowid, v FROM named", "UPDATE named SET v = 1 WHERE rowid = '1'", format!("~{one},(0)>{one},(1)")),
        (
            "SELECT * FROM \"odd name\"",
            "UPDATE \"odd name\" SET v = 1 WHERE v = 0 AND \"the key\" = 2",
            "~(2),(0)>(2),(1)".into(),
        ),
        (
            "SELECT rowid AS k, v FROM \"Odd Name\"",
            "UPDATE \"odd name\" SET v = 2 WHERE \"the key\" = 2",
            "~(2),(1)>(2),(2)".into(),
        ),
        ("SELECT rowid, v FROM f", "DELETE FROM f WHERE rowid = 2", format!("-(2),{zero}")),
    ];
    for (sql, write, expected) in cases {
        let mut changes = db.live(sql, ()).changes();
        assert!(next(&mut changes).await.starts_with("full "), "{sql}");
        assert_eq!(after(&db, &mut changes, write).await, expected, "{sql}");
    }
}

async fn a_row_that_gets_another_key_goes_and_comes(place: &Place) {
    let db = with_items(place).await;
    let mut changes = db.live("SELECT id, a FROM item ORDER BY id", ()).changes();
    next(&mut changes).await;
    assert_eq!(after(&db, &mut changes, "UPDATE item SET id = 7 WHERE id = 2").await, "+(7),(20) -(2),(20)");
    assert_eq!(after(&db, &mut changes, "UPDATE item SET rowid = 8 WHERE id = 7").await, "+(8),(20) -(7),(20)");
    // Two rows change places: the same keys with other values.
    let swap = "UPDATE item SET id = -1 WHERE id = 1; UPDATE item SET id = 1 WHERE id = 3; UPDATE item SET id = 3 WHERE id = -1";
    assert_eq!(after(&db, &mut changes, swap).await, "~(1),(10)>(1),(30) ~(3),(30)>(3),(10)");
    assert_eq!(after(&db, &mut changes, "REPLACE INTO item VALUES (1, 31)").await, "~(1),(30)>(1),(31)");
}

async fn a_null_is_a_key_and_two_are_refused_until_one_is_left(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1)").await.unwrap();
    let mut changes = db.live("SELECT k, v FROM t ORDER BY v", ()).changes();
    assert_eq!(next(&mut changes).await, "full Null,(1)");
    assert_eq!(after(&db, &mut changes, "UPDATE t SET v = 2").await, "~Null,(1)>Null,(2)");
    db.execute("INSERT INTO t VALUES (NULL, 3)", ()).await.unwrap();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Misuse, "two rows of the result have the same key (k)"));
    assert!(error.hint().unwrap().contains("the rowid, if a primary key has NULLs"), "{error}");
    assert_eq!((error.operation(), error.sql()), (Some("live"), Some("SELECT k, v FROM t ORDER BY v")));
    // It is told once.
    let mut watch = db.live("SELECT k, v FROM t ORDER BY v", ());
    assert_eq!(watch.next().await.unwrap().unwrap().len(), 2);
    db.execute("INSERT INTO t VALUES (NULL, 4)", ()).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().len(), 3);
    until(|| db.stats().live.pending == 0).await;
    assert!(futures_util::poll!(std::pin::pin!(changes.next())).is_pending());
    assert_eq!(after(&db, &mut changes, "DELETE FROM t WHERE v > 2").await, "full Null,(2)");
    let mut by_rowid = db.live("SELECT rowid, k, v FROM t ORDER BY v", ()).changes();
    next(&mut by_rowid).await;
    assert_eq!(after(&db, &mut by_rowid, "INSERT INTO t VALUES (NULL, 5)").await, "+(2),Null,(5)");
}

async fn the_rows_of_a_join_have_the_keys_of_the_tables_that_are_selected(place: &Place) {
    let db = with_items(place).await;
    db.execute("INSERT INTO part VALUES (1, 1, 0), (2, 1, 0), (3, 2, 0)", ()).await.unwrap();
    let mut of_part = db.live("SELECT part.id, a FROM part JOIN item ON item.id = item ORDER BY 1", ()).changes();
    assert_eq!(next(&mut of_part).await, "full (1),(10) (2),(10) (3),(20)");
    let mut of_both = db.live("SELECT item.id, part.id, b FROM item LEFT JOIN part ON item.id = item", ()).changes();
    next(&mut of_both).await;
    // Each part has one item, and so the key of a part is the key of a row.
    assert_eq!(after(&db, &mut of_part, "UPDATE part SET item = 2 WHERE id = 1").await, "~(1),(10)>(1),(20)");
    assert_eq!(next(&mut of_both).await, "+(2),(1),(0) -(1),(1),(0)");
    assert_eq!(after(&db, &mut of_both, "INSERT INTO part VALUES (9, 3, 1)").await, "+(3),(9),(1) -(3),Null,Null");
    assert_eq!(next(&mut of_part).await, "+(9),(30)");
    // An item has several parts, and so the key of an item is none of a row.
    let mut of_item = db.live("SELECT item.id, b FROM item JOIN part ON item.id = item", ()).changes();
    let error = of_item.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.hint().unwrap().contains("each table of a join: id of item, id of part"), "{error}");
    assert_eq!(after(&db, &mut of_item, "DELETE FROM part WHERE id IN (1, 2)").await, "full (2),(0) (3),(1)");
    assert_eq!(after(&db, &mut of_item, "UPDATE part SET b = 2 WHERE id = 9").await, "~(3),(1)>(3),(2)");
    // A table twice has its key twice.
    let mut twice = db.live("SELECT x.id, y.id FROM item x JOIN item y ON y.id > x.id", ()).changes();
    assert_eq!(next(&mut twice).await, "full (1),(2) (1),(3) (2),(3)");
    assert_eq!(after(&db, &mut twice, "DELETE FROM item WHERE id = 2").await, "-(1),(2) -(2),(3)");
}

async fn groups_views_and_subqueries_keep_the_key(place: &Place) {
    let db = with_items(place).await;
    db.execute_script(
        "INSERT INTO part VALUES (1, 1, 0), (2, 1, 0), (3, 2, 0);
         CREATE VIEW v AS SELECT id AS number, a + 1 AS more FROM item",
    )
    .await
    .unwrap();
    let sql = "SELECT item.id, count(part.id) FROM item LEFT JOIN part ON item.id = item GROUP BY item.id";
    let mut groups = db.live(sql, ()).changes();
    assert_eq!(next(&mut groups).await, "full (1),(2) (2),(1) (3),(0)");
    let mut view = db.live("SELECT more, number FROM v", ()).changes();
    let mut cte =
        db.live("WITH x AS (SELECT id, a FROM item WHERE a > 5) SELECT * FROM (SELECT * FROM x)", ()).changes();
    assert_eq!(
        (&*next(&mut view).await, &*next(&mut cte).await),
        ("full (11),(1) (21),(2) (31),(3)", "full (1),(10) (2),(20) (3),(30)")
    );
    assert_eq!(
        after(&db, &mut groups, "UPDATE part SET item = 3 WHERE id = 1").await,
        "~(1),(2)>(1),(1) ~(3),(0)>(3),(1)"
    );
    assert_eq!(after(&db, &mut view, "UPDATE item SET a = 11 WHERE id = 1").await, "~(11),(1)>(12),(1)");
    assert_eq!(next(&mut cte).await, "~(1),(10)>(1),(11)");
    // The columns of a UNION have the origins of its first SELECT, whose keys may repeat those of the second.
    let mut union = db.live("SELECT id, a FROM item UNION ALL SELECT id + 10, b FROM part", ()).changes();
    assert!(next(&mut union).await.starts_with("full "));
    db.execute("UPDATE part SET id = -9 WHERE id = 1", ()).await.unwrap();
    assert_eq!(union.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
}

async fn a_result_without_a_key_is_refused_with_what_to_select(place: &Place) {
    let db = with_items(place).await;
    db.execute_script(
        "CREATE TABLE pair (x, y, PRIMARY KEY (y, x)); CREATE TABLE plain (a); CREATE TABLE hides (rowid);
         CREATE VIEW v AS SELECT a FROM item",
    )
    .await
    .unwrap();
    let select = "select the primary key as it is, and group by it in an aggregate: ";
    let cases = [
        ("SELECT count(*), max(id) FROM item", "id of item"),
        ("SELECT a, count(*) FROM item GROUP BY a", "id of item"),
        ("SELECT a FROM item", "id of item"),
        ("SELECT a FROM v", "id of item"),
        ("SELECT +id, a FROM item", "id of item"),
        ("SELECT x FROM pair", "x and y of pair"),
        ("SELECT plain.a, b FROM plain, part", "id of part, rowid of plain"),
        ("SELECT x FROM pair, hides", "x and y of pair"),
    ];
    for (sql, keys) in cases {
        let mut changes = db.live(sql, ()).changes();
        let error = changes.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{sql}");
        assert!(error.message().contains("have no key"), "{sql}: {error}");
        assert_eq!(error.hint(), Some(&*format!("{select}{keys}")), "{sql}");
        assert_eq!((error.operation(), error.sql()), (Some("live"), Some(sql)));
        assert!(changes.next().await.is_none(), "{sql}");
        assert_eq!(db.stats().live.subscribers, 0);
    }
    for sql in ["SELECT 1 AS id", "SELECT rowid FROM hides", "SELECT value FROM json_each('[1]')"] {
        let error = db.live(sql, ()).changes().next().await.unwrap().unwrap_err();
        assert_eq!(error.hint(), Some("read a table that has a primary key, and select it"), "{sql}");
    }
    // A call that is wrong in itself is refused as it is without changes.
    let mut wrong = db.live("SELECT id FROM item WHERE id = ?", ()).changes();
    assert_eq!(wrong.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
    assert!(wrong.next().await.is_none());
}

async fn other_columns_or_another_key_bring_the_full_result(place: &Place) {
    let db = with_items(place).await;
    let mut changes = db.live("SELECT * FROM item ORDER BY 1", ()).changes();
    next(&mut changes).await;
    db.execute("ALTER TABLE item ADD COLUMN b DEFAULT 0", ()).await.unwrap();
    assert_eq!(next(&mut changes).await, "full (1),(10),(0) (2),(20),(0) (3),(30),(0)");
    db.execute("ALTER TABLE item RENAME COLUMN b TO c", ()).await.unwrap();
    assert_eq!(next(&mut changes).await, "full (1),(10),(0) (2),(20),(0) (3),(30),(0)");
    assert_eq!(after(&db, &mut changes, "DELETE FROM item WHERE id > 1").await, "-(2),(20),(0) -(3),(30),(0)");
    // The result stays, and the key is another one.
    let tx = db.begin().await.unwrap();
    tx.execute("DROP TABLE item", ()).await.unwrap();
    tx.execute("CREATE TABLE item (id, a, c, PRIMARY KEY (a))", ()).await.unwrap();
    tx.execute("INSERT INTO item VALUES (1, 10, 0)", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(after(&db, &mut changes, "UPDATE item SET id = 2").await, "full (2),(10),(0)");
    assert_eq!(after(&db, &mut changes, "UPDATE item SET id = 3").await, "~(2),(10),(0)>(3),(10),(0)");
    assert_eq!(after(&db, &mut changes, "UPDATE item SET a = 11").await, "+(3),(11),(0) -(3),(10),(0)");
    // Another schema with the same columns and key is not told.
    let all = "CREATE INDEX item_a ON item (a); CREATE TABLE more (a); UPDATE item SET c = 1";
    assert_eq!(after(&db, &mut changes, all).await, "~(3),(11),(0)>(3),(11),(1)");
}

async fn a_key_that_a_table_gets_counts_from_then_on(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a, b)", ()).await.unwrap();
    let mut watch = db.live("SELECT * FROM t", ());
    assert!(watch.next().await.unwrap().unwrap().is_empty());
    assert!(db.live("SELECT * FROM t", ()).changes().next().await.unwrap().is_err());
    let tx = db.begin().await.unwrap();
    tx.execute("DROP TABLE t", ()).await.unwrap();
    tx.execute("CREATE TABLE t (a PRIMARY KEY, b)", ()).await.unwrap();
    tx.commit().await.unwrap();
    // The result is the same, so it is delivered to nobody, and is the first one of who comes later.
    until(|| db.stats().live.unchanged > 0).await;
    let mut changes = db.live("SELECT * FROM t", ()).changes();
    assert_eq!(next(&mut changes).await, "full ");
    assert_eq!(after(&db, &mut changes, "INSERT INTO t VALUES (1, 2)").await, "+(1),(2)");
    assert_eq!(db.stats().live.queries, 1);
}

async fn an_error_is_told_and_then_comes_the_full_result(place: &Place) {
    let db = with_items(place).await;
    let mut changes = db.live("SELECT id, a FROM item WHERE id < 3 ORDER BY id", ()).changes();
    next(&mut changes).await;
    db.execute("ALTER TABLE item RENAME TO other", ()).await.unwrap();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "no such table: item"));
    db.execute("ALTER TABLE other RENAME TO item", ()).await.unwrap();
    assert_eq!(next(&mut changes).await, "full (1),(10) (2),(20)");
    assert_eq!(after(&db, &mut changes, "DELETE FROM item WHERE id = 1").await, "-(1),(10)");
    // An error that the consumer has not seen changes nothing for it.
    let mut watch = db.live("SELECT id, a FROM item WHERE id < 3 ORDER BY id", ());
    watch.next().await.unwrap().unwrap();
    db.execute("ALTER TABLE item RENAME TO other", ()).await.unwrap();
    assert!(watch.next().await.unwrap().is_err());
    db.execute("UPDATE other SET a = 21 WHERE id = 2", ()).await.unwrap();
    db.execute("ALTER TABLE other RENAME TO item", ()).await.unwrap();
    assert!(watch.next().await.unwrap().is_ok());
    until(|| db.stats().live.pending == 0).await;
    assert_eq!(next(&mut changes).await, "~(2),(20)>(2),(21)");
}

async fn a_late_consumer_gets_all_changes_as_one(place: &Place) {
    let db = with_items(place).await;
    let sql = "SELECT id, a FROM item ORDER BY id";
    let (mut late, mut watch) = (db.live(sql, ()).changes(), db.live(sql, ()).changes());
    for changes in [&mut late, &mut watch] {
        next(changes).await;
    }
    let writes = [
        ("INSERT INTO item VALUES (4, 40)", "+(4),(40)"),
        ("UPDATE item SET a = 41 WHERE id = 4", "~(4),(40)>(4),(41)"),
        ("INSERT INTO item VALUES (5, 50)", "+(5),(50)"),
        ("UPDATE item SET a = 11 WHERE id = 1", "~(1),(10)>(1),(11)"),
        ("DELETE FROM item WHERE id = 5", "-(5),(50)"),
        ("DELETE FROM item WHERE id = 1", "-(1),(11)"),
        ("UPDATE item SET a = 0 WHERE id = 2", "~(2),(20)>(2),(0)"),
        ("UPDATE item SET a = 20 WHERE id = 2", "~(2),(0)>(2),(20)"),
        ("UPDATE item SET a = 31 WHERE id = 3", "~(3),(30)>(3),(31)"),
    ];
    for (write, expected) in writes {
        assert_eq!(after(&db, &mut watch, write).await, expected);
        until(|| db.stats().live.pending == 0).await;
    }
    assert_eq!(next(&mut late).await, "+(4),(41) ~(3),(30)>(3),(31) -(1),(10)");
    assert!(db.stats().live.superseded >= 8);
}

async fn what_is_no_difference_is_not_told(place: &Place) {
    let db = with_items(place).await;
    let sql = "SELECT id, a % 2 FROM item ORDER BY a";
    let (mut changes, mut watch) = (db.live(sql, ()).changes(), db.live(sql, ()));
    next(&mut changes).await;
    watch.next().await.unwrap().unwrap();
    // Only the order is another one.
    db.execute("UPDATE item SET a = 50 WHERE id = 1", ()).await.unwrap();
    assert_eq!(shown(&watch.next().await.unwrap().unwrap()).replace("Integer", ""), "(2),(0) (3),(0) (1),(0)");
    until(|| db.stats().live.pending == 0).await;
    assert!(futures_util::poll!(std::pin::pin!(changes.next())).is_pending());
    // What came and went between two looks is no difference.
    db.execute("INSERT INTO item VALUES (4, 40)", ()).await.unwrap();
    watch.next().await.unwrap().unwrap();
    db.execute("DELETE FROM item WHERE id = 4", ()).await.unwrap();
    watch.next().await.unwrap().unwrap();
    until(|| db.stats().live.pending == 0).await;
    assert!(futures_util::poll!(std::pin::pin!(changes.next())).is_pending());
    assert_eq!(after(&db, &mut changes, "UPDATE item SET a = 51 WHERE id = 1").await, "~(1),(0)>(1),(1)");
}

async fn rows_outlive_the_stream_and_are_read_as_types(place: &Place) {
    let db = with_items(place).await;
    let mut changes = Box::pin(db.live("SELECT id, a FROM item", ()).changes());
    let mut items: BTreeMap<i64, i64> = BTreeMap::new();
    let mut gone: Vec<Row<'static>> = Vec::new();
    for write in ["DELETE FROM item WHERE id = 1", "INSERT INTO item VALUES (7, 70)", "UPDATE item SET a = a + 1"] {
        match changes.as_mut().next().await.unwrap().unwrap() {
            Change::Full(rows) => items = rows.read().unwrap().into_iter().collect(),
            Change::Rows(rows) => {
                for row in rows.deleted() {
                    items.remove(&row.get("id").unwrap());
                    gone.push(row);
                }
                let (inserted, updated) = (rows.inserted(), rows.updated());
                assert!(inserted.len() + updated.len() + rows.deleted().len() > 0);
                items.extend(inserted.chain(updated.map(|row| row.new)).map(|row| row.read::<(i64, i64)>().unwrap()));
            }
        }
        db.execute(write, ()).await.unwrap();
    }
    drop(changes);
    db.close().await.unwrap();
    assert_eq!(items, BTreeMap::from([(2, 20), (3, 30), (7, 70)]));
    assert_eq!(gone.iter().map(|row| row.read::<(i64, i64)>().unwrap()).collect::<Vec<_>>(), [(1, 10)]);
}

async fn the_pace_holds_and_a_close_ends_the_stream(place: &Place) {
    let db = with_items(place).await;
    let sql = "SELECT id, a FROM item ORDER BY id";
    let mut watch = db.live(sql, ());
    watch.next().await.unwrap().unwrap();
    let mut throttled = db.live(sql, ()).throttle(Duration::from_secs(3600)).changes();
    let mut debounced = db.live(sql, ()).debounce(Duration::from_millis(5)).changes();
    for changes in [&mut throttled, &mut debounced] {
        next(changes).await;
    }
    for write in ["INSERT INTO item VALUES (4, 40)", "DELETE FROM item WHERE id = 1"] {
        db.execute(write, ()).await.unwrap();
        watch.next().await.unwrap().unwrap();
        until(|| db.stats().live.pending == 0).await;
        assert!(futures_util::poll!(std::pin::pin!(throttled.next())).is_pending());
    }
    let mut told = next(&mut debounced).await;
    if told == "+(4),(40)" {
        told = format!("{told} {}", next(&mut debounced).await);
    }
    assert_eq!(told, "+(4),(40) -(1),(10)");
    db.close().await.unwrap();
    assert_eq!(next(&mut throttled).await, "+(4),(40) -(1),(10)", "what is held back comes at the end");
    assert!(throttled.next().await.is_none() && debounced.next().await.is_none());
    let mut late = db.live(sql, ()).changes();
    assert_eq!(late.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}
