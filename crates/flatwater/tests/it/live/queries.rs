//! Live queries: what makes one run again, what it delivers, and when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::live::Change;
use flatwater::stats::LiveStats;
use flatwater::{Database, Error, ErrorKind, Live, Rows, params};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, unhurried, until};

in_both_places!(
    a_result_comes_at_once_and_again_when_it_changed,
    a_change_that_the_query_cannot_see_runs_nothing,
    a_lookup_by_rowid_runs_for_its_row_only,
    a_lookup_by_a_unique_key_runs_for_its_row_only,
    changes_that_sqlite_does_not_report_are_seen,
    a_row_that_a_constraint_of_the_schema_replaces_is_seen,
    a_row_that_is_replaced_or_moved_meets_the_lookups_of_its_row_alone,
    a_transaction_is_seen_when_it_commits_and_not_when_it_rolls_back,
    a_transaction_that_was_open_before_the_first_live_query_is_seen,
    closures_batches_and_scripts_are_seen,
    a_dropped_table_is_an_error_until_it_is_back,
    a_collation_that_fails_is_an_error_and_the_streams_go_on,
    equal_queries_share_one_run_and_late_ones_get_the_last_result,
    a_consumer_that_is_late_gets_the_newest_result_only,
    what_no_live_query_can_be_is_refused,
    a_statement_is_found_behind_semicolons_and_comments,
    a_stream_ends_when_the_database_closes,
    what_may_depend_on_anything_runs_after_every_commit,
    results_that_come_in_a_row_are_held_back_as_wanted,
    a_result_has_the_number_of_its_commit,
);

/// A result that has not come after this time never comes.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

pub(crate) fn shown(rows: &Rows) -> String {
    let row = |row: flatwater::Row<'_>| row.values().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",");
    rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

/// Returns the next result as integers, row by row.
async fn next(live: &mut Live) -> Vec<Vec<Option<i64>>> {
    let rows = live.next().await.expect("the stream is over").unwrap();
    rows.iter().map(|row| (0..row.len()).map(|at| row.get(at).unwrap()).collect()).collect()
}

async fn one(live: &mut Live) -> i64 {
    next(live).await[0][0].unwrap()
}

fn live(db: &Database) -> LiveStats {
    db.stats().live
}

/// Runs a write and returns how many live queries it met, each of which runs.
async fn caused(db: &Database, sql: &str) -> u64 {
    until(|| live(db).pending == 0).await;
    let before = live(db).runs;
    db.execute_script(sql).await.unwrap();
    until(|| live(db).pending == 0).await;
    live(db).runs - before
}

/// Runs the write and returns the next result of the count.
async fn after(db: &Database, count: &mut Live, sql: &str) -> i64 {
    db.execute_script(sql).await.unwrap();
    one(count).await
}

async fn with_items(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
         CREATE TABLE other (id INTEGER PRIMARY KEY, a);
         INSERT INTO item VALUES (1, 10, 0), (2, 20, 0), (3, 30, 0)",
    )
    .await
    .unwrap();
    db
}

async fn a_result_comes_at_once_and_again_when_it_changed(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item WHERE id > ?", (1,));
    assert_eq!(one(&mut sum).await, 50);
    db.execute("INSERT INTO item VALUES (4, 40, 0)", ()).await.unwrap();
    assert_eq!(one(&mut sum).await, 90);
    db.execute("UPDATE item SET a = 41 WHERE id = 4", ()).await.unwrap();
    assert_eq!(one(&mut sum).await, 91);
    db.execute("DELETE FROM item WHERE id = 2", ()).await.unwrap();
    assert_eq!(one(&mut sum).await, 71);
    // It runs, and its result is the same: nothing is delivered before the next change.
    db.execute("UPDATE item SET a = 11 WHERE id = 1", ()).await.unwrap();
    db.execute("UPDATE item SET a = 42 WHERE id = 4", ()).await.unwrap();
    assert_eq!(one(&mut sum).await, 72);
    let stats = live(&db);
    assert_eq!((stats.queries, stats.subscribers), (1, 1));
    assert!(stats.by_column >= 1 && stats.by_table >= 1 && stats.lag_max_us > 0, "{stats:?}");
}

async fn a_change_that_the_query_cannot_see_runs_nothing(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    assert_eq!(one(&mut sum).await, 60);
    for unseen in [
        "INSERT INTO other VALUES (1, 1)",
        "UPDATE item SET b = b + 1",
        "UPDATE item SET a = 1 WHERE id = 99",
        "DELETE FROM item WHERE id = 99",
        "INSERT OR IGNORE INTO item VALUES (1, 1, 1)",
    ] {
        assert_eq!(caused(&db, unseen).await, 0, "{unseen}");
    }
    let tx = db.begin().await.unwrap();
    tx.execute("UPDATE item SET b = 7", ()).await.unwrap();
    let before = live(&db).runs;
    tx.commit().await.unwrap();
    assert_eq!(live(&db).runs, before);
    assert_eq!(after(&db, &mut sum, "UPDATE item SET a = 0 WHERE id = 3").await, 30);
}

async fn a_lookup_by_rowid_runs_for_its_row_only(place: &Place) {
    let db = with_items(place).await;
    let mut by_id = Vec::new();
    for id in 1..=3 {
        let mut row = db.live("SELECT a FROM item WHERE id = ?", (id,));
        assert_eq!(one(&mut row).await, id * 10);
        by_id.push(row);
    }
    let mut constant = db.live("SELECT a FROM item WHERE id = 9", ());
    assert_eq!(next(&mut constant).await, Vec::<Vec<Option<i64>>>::new());
    let before = live(&db);
    db.execute("UPDATE item SET a = 21 WHERE id = 2", ()).await.unwrap();
    assert_eq!(one(&mut by_id[1]).await, 21);
    let now = live(&db);
    assert_eq!((now.runs - before.runs, now.by_row - before.by_row), (1, 1));
    assert_eq!(after(&db, &mut constant, "INSERT INTO item VALUES (9, 90, 0)").await, 90);
    assert_eq!(live(&db).runs - now.runs, 1);
    db.execute("DELETE FROM item WHERE id = 1", ()).await.unwrap();
    assert_eq!(next(&mut by_id[0]).await, Vec::<Vec<Option<i64>>>::new());
    // The hook reports the new rowid only, so all of them run.
    db.execute("UPDATE item SET id = 1 WHERE id = 3", ()).await.unwrap();
    assert_eq!(one(&mut by_id[0]).await, 30);
    assert_eq!(next(&mut by_id[2]).await, Vec::<Vec<Option<i64>>>::new());
}

async fn a_lookup_by_a_unique_key_runs_for_its_row_only(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE user (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, team, place, a INTEGER, UNIQUE (team, place));
         CREATE TABLE hides (rowid, _rowid_, k UNIQUE, a INTEGER);
         INSERT INTO user VALUES (1, 'x@a', 1, 1, 10), (2, 'y@a', 1, 2, 20), (3, '5', 2, 1, 30);
         INSERT INTO hides VALUES (9, 9, 'k', 1), (7, 7, 'l', 2)",
    )
    .await
    .unwrap();
    let mut x = db.live("SELECT a FROM user WHERE mail = ?", ("x@a",));
    let mut place_2 = db.live("SELECT a FROM user WHERE place = ? AND team = ?", (2, 1));
    let mut five = db.live("SELECT a FROM user WHERE mail = ?", (5,));
    let mut nobody = db.live("SELECT a FROM user WHERE mail = ?", ("z@a",));
    let mut hidden = db.live("SELECT a FROM hides WHERE k = ?", ("k",));
    assert_eq!((one(&mut x).await, one(&mut place_2).await, one(&mut five).await), (10, 20, 30));
    assert_eq!(next(&mut nobody).await, Vec::<Vec<Option<i64>>>::new());
    assert_eq!(one(&mut hidden).await, 1);
    // The one that found no row depends on all of them.
    assert_eq!(caused(&db, "UPDATE user SET a = a + 1 WHERE id = 1").await, 2);
    assert_eq!(one(&mut x).await, 11);
    assert_eq!(caused(&db, "INSERT INTO user (mail, a) VALUES ('other', 1)").await, 1);
    assert_eq!(caused(&db, "UPDATE user SET a = 31 WHERE id = 3").await, 2);
    assert_eq!(one(&mut five).await, 31);
    assert_eq!(caused(&db, "UPDATE user SET team = 8 WHERE id = 3").await, 0, "no query but one reads the team");
    assert_eq!(after(&db, &mut hidden, "UPDATE hides SET a = 5 WHERE k = 'k'").await, 5);
    // The key goes to another row in one commit.
    db.batch([
        ("UPDATE user SET mail = 'old' WHERE id = 1", params![]),
        ("UPDATE user SET mail = 'x@a', a = 77 WHERE id = 2", params![]),
    ])
    .await
    .unwrap();
    assert_eq!((one(&mut x).await, one(&mut place_2).await), (77, 77));
    assert_eq!(after(&db, &mut x, "UPDATE user SET a = 78 WHERE id = 2").await, 78);
    assert_eq!(one(&mut place_2).await, 78);
    db.execute("DELETE FROM user WHERE id = 2", ()).await.unwrap();
    assert_eq!(next(&mut x).await, Vec::<Vec<Option<i64>>>::new());
    assert_eq!(after(&db, &mut x, "INSERT INTO user (mail, a) VALUES ('x@a', 5)").await, 5);
    assert_eq!(after(&db, &mut nobody, "UPDATE user SET mail = 'z@a', a = 6 WHERE mail = 'other'").await, 6);
}

async fn changes_that_sqlite_does_not_report_are_seen(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b);
         CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
         CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE c (p REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE log (n);
         CREATE TRIGGER logs AFTER INSERT ON p BEGIN INSERT INTO log VALUES (new.id); END;
         CREATE TRIGGER clears AFTER UPDATE ON t WHEN new.b = 'clear' BEGIN DELETE FROM log; END;
         CREATE TABLE g (id INTEGER PRIMARY KEY, a, twice AS (a * 2));
         CREATE VIEW v AS SELECT id, a FROM t WHERE a > 1;
         CREATE VIRTUAL TABLE f USING fts5(body);
         INSERT INTO t VALUES (1, 1, 0), (2, 2, 0)",
    )
    .await
    .unwrap();
    let mut t = db.live("SELECT count(*) FROM t", ());
    assert_eq!(one(&mut t).await, 2);
    assert_eq!(
        after(&db, &mut t, "REPLACE INTO t VALUES (9, 1, 0), (2, 8, 1); INSERT INTO t VALUES (10, 10, 0)").await,
        3
    );
    assert_eq!(after(&db, &mut t, "UPDATE OR REPLACE t SET a = 8 WHERE id = 9").await, 2);
    assert_eq!(after(&db, &mut t, "DELETE FROM t").await, 0);
    let mut w = db.live("SELECT count(*) FROM w", ());
    assert_eq!(one(&mut w).await, 0);
    assert_eq!(after(&db, &mut w, "INSERT INTO w VALUES ('a', 1)").await, 1);
    let (mut c, mut log) = (db.live("SELECT sum(p) FROM c", ()), db.live("SELECT count(*) FROM log", ()));
    assert_eq!((next(&mut c).await, one(&mut log).await), (vec![vec![None]], 0));
    assert_eq!(after(&db, &mut log, "INSERT INTO p VALUES (1), (2)").await, 2);
    assert_eq!(after(&db, &mut c, "INSERT INTO c VALUES (1), (2)").await, 3);
    assert_eq!(after(&db, &mut c, "UPDATE p SET id = 7 WHERE id = 1").await, 9);
    assert_eq!(after(&db, &mut c, "DELETE FROM p WHERE id = 2").await, 7);
    db.execute_script("INSERT INTO t VALUES (1, 5, 0)").await.unwrap();
    assert_eq!(one(&mut t).await, 1);
    assert_eq!(after(&db, &mut log, "UPDATE t SET b = 'clear'").await, 0, "a trigger's truncating DELETE");
    let mut g = db.live("SELECT twice FROM g WHERE id = 1", ());
    assert_eq!(next(&mut g).await, Vec::<Vec<Option<i64>>>::new());
    assert_eq!(after(&db, &mut g, "INSERT INTO g (id, a) VALUES (1, 4)").await, 8);
    assert_eq!(after(&db, &mut g, "UPDATE g SET a = 5").await, 10);
    let mut v = db.live("SELECT max(a) FROM v", ());
    assert_eq!(one(&mut v).await, 5);
    assert_eq!(
        after(&db, &mut v, "INSERT INTO t VALUES (3, 1, 0) ON CONFLICT DO NOTHING; UPDATE t SET a = 6 WHERE id = 1")
            .await,
        6
    );
    let mut f = db.live("SELECT count(*) FROM f WHERE f MATCH 'word'", ());
    assert_eq!(one(&mut f).await, 0);
    assert_eq!(after(&db, &mut f, "INSERT INTO f VALUES ('a word')").await, 1);
    assert_eq!(after(&db, &mut f, "DELETE FROM f WHERE rowid = 1").await, 0);
    let mut cte = db.live("WITH x AS (SELECT a FROM t), y AS (SELECT 1 AS n) SELECT sum(x.a) FROM x, y", ());
    assert_eq!(one(&mut cte).await, 7);
    assert_eq!(after(&db, &mut cte, "DELETE FROM t WHERE id = 3").await, 6);
}

/// Such a constraint makes all tables of its schema imprecise, so it is in no other schema.
async fn a_row_that_a_constraint_of_the_schema_replaces_is_seen(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE r (id INTEGER PRIMARY KEY, a UNIQUE ON CONFLICT REPLACE, b)").await.unwrap();
    let mut by_id = db.live("SELECT b FROM r WHERE id = ?", (1,));
    assert_eq!(next(&mut by_id).await, Vec::<Vec<Option<i64>>>::new());
    assert_eq!(after(&db, &mut by_id, "INSERT INTO r VALUES (1, 1, 7)").await, 7);
    db.execute("INSERT INTO r VALUES (2, 1, 8)", ()).await.unwrap();
    assert_eq!(next(&mut by_id).await, Vec::<Vec<Option<i64>>>::new());
    assert_eq!(after(&db, &mut by_id, "INSERT INTO r VALUES (1, 3, 9)").await, 9);
    db.execute("UPDATE r SET a = 3 WHERE id = 2", ()).await.unwrap();
    assert_eq!(next(&mut by_id).await, Vec::<Vec<Option<i64>>>::new());
}

async fn a_row_that_is_replaced_or_moved_meets_the_lookups_of_its_row_alone(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b); CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
         CREATE TABLE other (a UNIQUE ON CONFLICT REPLACE);
         INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5); INSERT INTO w VALUES ('x', 1)",
    )
    .await
    .unwrap();
    let mut lookups = Vec::new();
    for id in 1..=5 {
        let mut lookup = db.live("SELECT b FROM t WHERE id = ?", (id,));
        assert_eq!(one(&mut lookup).await, id);
        lookups.push(lookup);
    }
    let mut count = db.live("SELECT count(*) FROM w", ());
    assert_eq!(one(&mut count).await, 1);
    // How many run in a build with the preupdate hook, and in one without it.
    for (write, few, many) in [
        ("INSERT OR REPLACE INTO t VALUES (1, 1, 6)", 1, 5),
        ("REPLACE INTO t VALUES (2, 3, 7)", 2, 5),
        ("UPDATE OR REPLACE t SET a = 5 WHERE id = 4", 1, 5),
        ("UPDATE t SET id = 3 WHERE id = 2", 2, 5),
        ("INSERT INTO other VALUES (1), (1)", 0, 0),
        ("UPDATE t SET b = 8 WHERE id = 4", 1, 5),
        ("UPDATE w SET v = 2 WHERE k = 'x'", 0, 1),
        ("INSERT INTO other VALUES (3); DELETE FROM w WHERE k = 'y'", 0, 1),
        ("REPLACE INTO w VALUES ('y', 5)", 1, 1),
        ("DELETE FROM t", 5, 5),
    ] {
        let expected = if flatwater_sqlite::REPORTS_ALL_ROWS { few } else { many };
        assert_eq!(caused(&db, write).await, expected, "{write}");
    }
    assert_eq!(one(&mut count).await, 2);
    for lookup in &mut lookups {
        assert_eq!(next(lookup).await, Vec::<Vec<Option<i64>>>::new());
    }
}

async fn a_transaction_is_seen_when_it_commits_and_not_when_it_rolls_back(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    assert_eq!(one(&mut sum).await, 60);
    let before = live(&db).runs;
    let tx = db.begin().await.unwrap();
    tx.execute("UPDATE item SET a = 0", ()).await.unwrap();
    tx.rollback().await.unwrap();
    if place.has_readers() {
        assert_eq!(live(&db).runs, before, "nothing was committed");
    }
    let mut tx = db.begin().await.unwrap();
    for id in 1..=3 {
        tx.execute("UPDATE item SET a = 1 WHERE id = ?", (id,)).await.unwrap();
    }
    let savepoint = tx.begin().await.unwrap();
    savepoint.execute("INSERT INTO item VALUES (9, 1000, 0)", ()).await.unwrap();
    savepoint.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(one(&mut sum).await, 3);
    let failed = db.execute("INSERT INTO item VALUES (1, 1, 1)", ()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Constraint);
    assert_eq!(after(&db, &mut sum, "UPDATE item SET a = 2 WHERE id = 1").await, 4);
}

async fn a_transaction_that_was_open_before_the_first_live_query_is_seen(place: &Place) {
    let db = with_items(place).await;
    let tx = db.begin().await.unwrap();
    tx.execute("UPDATE item SET a = 1", ()).await.unwrap();
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    if place.has_readers() {
        assert_eq!(one(&mut sum).await, 60);
    } else {
        // The only connection is in the transaction: the query waits for its end.
        assert!(futures_util::poll!(std::pin::pin!(sum.next())).is_pending());
    }
    tx.commit().await.unwrap();
    assert_eq!(one(&mut sum).await, 3);
}

async fn closures_batches_and_scripts_are_seen(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    assert_eq!(one(&mut sum).await, 60);
    db.write_with(|tx| tx.execute("UPDATE item SET a = 1", []).map_err(Error::from)).await.unwrap();
    assert_eq!(one(&mut sum).await, 3);
    db.with_connection(|c| c.execute_batch("UPDATE item SET a = 2").map_err(Error::from)).await.unwrap();
    assert_eq!(one(&mut sum).await, 6);
    db.batch([("UPDATE item SET a = ? WHERE id = 1", params![5]), ("DELETE FROM other", params![])]).await.unwrap();
    assert_eq!(one(&mut sum).await, 9);
    db.execute_many("INSERT INTO item (a) VALUES (?)", [(1,), (2,)]).await.unwrap();
    assert_eq!(one(&mut sum).await, 12);
    let inserted = db.query("INSERT INTO item (a) VALUES (1) RETURNING id", ()).await.unwrap();
    assert_eq!((inserted.len(), one(&mut sum).await), (1, 13));
    db.migrate([("1_more", "CREATE TABLE more (x); UPDATE item SET a = 0")]).await.unwrap();
    assert_eq!(one(&mut sum).await, 0);
    let mut names = db.live("SELECT count(*) FROM sqlite_schema WHERE name = 'late'", ());
    assert_eq!(one(&mut names).await, 0);
    db.execute("CREATE TABLE late (a)", ()).await.unwrap();
    assert_eq!(one(&mut names).await, 1);
    // SQLite reports no row of it.
    db.execute_many("DELETE FROM item", [(), ()]).await.unwrap();
    assert_eq!(next(&mut sum).await, [[None]]);
}

async fn a_dropped_table_is_an_error_until_it_is_back(place: &Place) {
    let db = with_items(place).await;
    let mut rows = db.live("SELECT * FROM other", ());
    assert_eq!(next(&mut rows).await, Vec::<Vec<Option<i64>>>::new());
    db.execute("DROP TABLE other", ()).await.unwrap();
    let error = rows.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "no such table: other"));
    assert_eq!(error.operation(), Some("live"));
    // The same error is told once.
    db.execute("INSERT INTO item (a) VALUES (1)", ()).await.unwrap();
    db.execute_script("CREATE TABLE other (x, y); INSERT INTO other VALUES (1, 2)").await.unwrap();
    let back = rows.next().await.unwrap().unwrap();
    assert_eq!(back.columns().collect::<Vec<_>>(), ["x", "y"]);
    // Its reads are those of the new table.
    assert_eq!(caused(&db, "UPDATE item SET a = 3").await, 0);
    db.execute("UPDATE other SET y = 3", ()).await.unwrap();
    assert_eq!(next(&mut rows).await, [[Some(1), Some(3)]]);
}

async fn a_collation_that_fails_is_an_error_and_the_streams_go_on(place: &Place) {
    let db = with_items(place).await;
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let compare = move |one: &str, other: &str| {
        assert!(!failing.load(Ordering::Relaxed), "planted");
        one.cmp(other)
    };
    db.functions().create_collation("shaky", compare).unwrap();
    let write = async |id: i64, fails_now: bool| {
        fails.store(fails_now, Ordering::Relaxed);
        db.execute("INSERT INTO t VALUES (?, 'x')", (id,)).await.unwrap();
    };
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'b'), (2, 'a')")
        .await
        .unwrap();
    let sql = "SELECT id FROM t ORDER BY a COLLATE shaky, id";
    let (mut one, mut same, mut changes) = (db.live(sql, ()), db.live(sql, ()), db.live(sql, ()).changes());
    let mut group = db.live_group([(sql, ()), ("SELECT count(*) FROM t", ())]);
    for number in [3, 5] {
        assert_eq!(next(&mut one).await.len() as i64, number - 1);
        assert_eq!(next(&mut same).await.len() as i64, number - 1);
        assert!(matches!(changes.next().await.unwrap().unwrap(), Change::Full(_)));
        assert_eq!(group.next().await.unwrap().unwrap().len(), 2);
        write(number, true).await;
        let errors = [
            one.next().await.unwrap().unwrap_err(),
            same.next().await.unwrap().unwrap_err(),
            changes.next().await.unwrap().unwrap_err(),
            group.next().await.unwrap().unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "the collation shaky panicked: planted"));
        }
        until(|| live(&db).pending == 0).await;
        write(number + 1, false).await;
    }
}

async fn equal_queries_share_one_run_and_late_ones_get_the_last_result(place: &Place) {
    let db = with_items(place).await;
    const SQL: &str = "SELECT a FROM item WHERE id = ?";
    let (mut first, mut second) = (db.live(SQL, (1,)), db.live(SQL, (1,)));
    assert_eq!((one(&mut first).await, one(&mut second).await), (10, 10));
    let mut real = db.live(SQL, (1.0,));
    assert_eq!(one(&mut real).await, 10);
    let stats = live(&db);
    assert_eq!((stats.queries, stats.subscribers, stats.runs), (2, 3, 2));
    db.execute("UPDATE item SET a = 11 WHERE id = 1", ()).await.unwrap();
    assert_eq!((one(&mut first).await, one(&mut second).await, one(&mut real).await), (11, 11, 11));
    drop((first, real));
    let runs = live(&db).runs;
    let mut late = db.live(SQL, (1,));
    assert_eq!(one(&mut late).await, 11);
    assert_eq!(live(&db).runs, runs, "it got the last result");
    drop((late, second));
    // Within its grace period the query is kept, until a change meets it.
    assert_eq!(live(&db).subscribers, 0);
    assert_eq!(caused(&db, "UPDATE item SET a = 12 WHERE id = 1").await, 0);
    assert_eq!(live(&db).queries, 0);
}

async fn a_consumer_that_is_late_gets_the_newest_result_only(place: &Place) {
    let db = with_items(place).await;
    let mut slow = db.live("SELECT count(*) FROM item", ());
    assert_eq!(one(&mut slow).await, 3);
    let mut fast = db.live("SELECT count(*) FROM item", ());
    assert_eq!(one(&mut fast).await, 3);
    for number in 4..=13 {
        db.execute("INSERT INTO item (a) VALUES (1)", ()).await.unwrap();
        assert_eq!(one(&mut fast).await, number);
    }
    until(|| live(&db).pending == 0).await;
    assert_eq!(one(&mut slow).await, 13);
    assert_eq!(live(&db).superseded, 9);
}

async fn a_statement_is_found_behind_semicolons_and_comments(place: &Place) {
    let db = with_items(place).await;
    for before in ["; ", " ;; -- none\n;", "/* ; */ ;\u{feff}"] {
        let sql = format!("{before}SELECT count(*) FROM item");
        let count = db.query_optional_value::<i64>(&sql, ()).await.unwrap().unwrap();
        let mut live = db.live(&sql, ());
        assert_eq!(one(&mut live).await, count, "{sql:?}");
        db.execute("INSERT INTO item (a) VALUES (1)", ()).await.unwrap();
        assert_eq!(one(&mut live).await, count + 1, "{sql:?}");
        assert!(db.query_plan(&sql).await.unwrap().contains("item"), "{sql:?}");
    }
}

async fn what_no_live_query_can_be_is_refused(place: &Place) {
    let db = with_items(place).await;
    let refused = [
        "INSERT INTO item (a) VALUES (1) RETURNING a",
        "PRAGMA user_version",
        "EXPLAIN SELECT 1",
        "DELETE FROM item",
        "SELECT 1; SELECT 2",
        "",
    ];
    for sql in refused {
        let mut live = db.live(sql, ());
        let error = live.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{sql}: {error}");
        assert!(live.next().await.is_none(), "{sql}");
    }
    let mut few = db.live("SELECT a FROM item WHERE id = ?", ());
    assert_eq!(few.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
    assert!(few.next().await.is_none());
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM item", ()).await.unwrap(), Some(3));
    assert_eq!(live(&db).queries, 0);
}

async fn a_stream_ends_when_the_database_closes(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    assert_eq!(one(&mut sum).await, 60);
    let waits = tokio::spawn(async move { sum.next().await.is_none() });
    let mut never = db.live("SELECT 1", ());
    db.close().await.unwrap();
    assert!(waits.await.unwrap());
    assert_eq!(never.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(never.next().await.is_none());
}

async fn what_may_depend_on_anything_runs_after_every_commit(place: &Place) {
    let db = with_items(place).await;
    let texts = [
        "SELECT count(*), random() < 0 OR 1 FROM item",
        "SELECT count(*) FROM pragma_table_list WHERE name = 'item'",
        "SELECT datetime('now') > '2000' FROM item",
    ];
    for sql in texts {
        let mut volatile = db.live(sql, ());
        next(&mut volatile).await;
        assert_eq!(caused(&db, "INSERT INTO other (a) VALUES (1)").await, 1, "{sql}");
        // The result is the same, so the run ends without a delivery.
        let runs = live(&db);
        assert!(runs.by_commit > 0, "{runs:?}");
        drop(volatile);
        db.execute("INSERT INTO other (a) VALUES (1)", ()).await.unwrap();
    }
    let mut pure = db.live("SELECT upper('a'), value FROM json_each('[1]')", ());
    pure.next().await.unwrap().unwrap();
    assert_eq!(caused(&db, "INSERT INTO other (a) VALUES (1)").await, 0);
}

async fn results_that_come_in_a_row_are_held_back_as_wanted(place: &Place) {
    let db = with_items(place).await;
    let mut plain = db.live("SELECT count(*) FROM item", ());
    let mut throttled = db.live("SELECT count(*) FROM item", ()).throttle(Duration::from_secs(3600));
    let mut debounced = db.live("SELECT count(*) FROM item", ()).debounce(Duration::from_millis(5));
    assert_eq!((one(&mut plain).await, one(&mut throttled).await, one(&mut debounced).await), (3, 3, 3));
    for number in 4..=9 {
        assert_eq!(after(&db, &mut plain, "INSERT INTO item (a) VALUES (1)").await, number);
        assert!(futures_util::poll!(std::pin::pin!(throttled.next())).is_pending());
    }
    loop {
        let number = one(&mut debounced).await;
        assert!((4..=9).contains(&number), "{number}");
        if number == 9 {
            break;
        }
    }
    // What is held back is delivered at the end.
    db.close().await.unwrap();
    assert_eq!(one(&mut throttled).await, 9);
    assert!(throttled.next().await.is_none());
}

async fn a_result_has_the_number_of_its_commit(place: &Place) {
    let db = with_items(place).await;
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    let mut last = sum.next().await.unwrap().unwrap().commit();
    for _ in 0..5 {
        db.execute("UPDATE item SET a = a + 1 WHERE id = 1", ()).await.unwrap();
        let now = sum.next().await.unwrap().unwrap().commit();
        assert!(now > last, "{now} after {last}");
        last = now;
    }
}

#[tokio::test]
async fn commits_of_other_connections_are_noticed() {
    let place = Place::on_file();
    let db = with_items(&place).await;
    let plain = place.file().unwrap().plain();
    let mut sum = db.live("SELECT sum(a) FROM item", ());
    assert_eq!(one(&mut sum).await, 60);
    plain.execute("UPDATE item SET a = 1", []).unwrap();
    assert_eq!(one(&mut sum).await, 3, "by looking at the WAL");
    plain.execute("UPDATE item SET a = 2", []).unwrap();
    db.execute("INSERT INTO other VALUES (5, 5)", ()).await.unwrap();
    assert_eq!(one(&mut sum).await, 6, "by a write of our own");
    plain.execute_batch("DROP TABLE item").unwrap();
    assert_eq!(sum.next().await.unwrap().unwrap_err().kind(), ErrorKind::Sql);
    plain.execute_batch("BEGIN; CREATE TABLE item (a); INSERT INTO item VALUES (8); COMMIT").unwrap();
    assert_eq!(one(&mut sum).await, 8);
    let stats = live(&db);
    assert!(stats.everything >= 3, "{stats:?}");
    drop(plain);
}

#[tokio::test]
async fn a_database_that_is_only_read_notices_commits_to_an_attached_file_alone() {
    let (file, other) = (TestFile::new(), TestFile::new());
    let (plain, attached) = (file.plain(), other.plain());
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE main_only (a)").unwrap();
    attached.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let db = file.options().read_only(true).tuning(|t| t.attach("other", other.path())).open().await.unwrap();
    let mut sums: Vec<_> =
        [1, 10, 100].map(|factor| db.live(format!("SELECT {factor} * sum(a) FROM other.t"), ())).into();
    for value in 1..=3 {
        attached.execute("UPDATE t SET a = ?1", [value]).unwrap();
        for (sum, factor) in sums.iter_mut().zip([1, 10, 100]) {
            assert_eq!(until_value(sum, value * factor).await, value * factor);
        }
    }
    drop((sums, attached));
    db.close().await.unwrap();
}

/// Returns the value when it is delivered. Earlier results may come before it.
async fn until_value(live: &mut Live, value: i64) -> i64 {
    loop {
        let now = one(live).await;
        if now == value {
            return now;
        }
    }
}

#[tokio::test]
async fn a_database_that_is_only_read_notices_commits_too() {
    let file = TestFile::new();
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let db = file.options().read_only(true).open().await.unwrap();
    let mut sum = db.live("SELECT sum(a) FROM t", ());
    assert_eq!(one(&mut sum).await, 1);
    plain.execute("UPDATE t SET a = 2", []).unwrap();
    assert_eq!(one(&mut sum).await, 2);
    drop(sum);
    db.close().await.unwrap();
}

/// Nothing else reads: what reads inline is the live query.
#[tokio::test]
async fn a_short_live_query_runs_again_on_the_thread_of_the_commit_that_invalidated_it() {
    let file = TestFile::new();
    let db = unhurried(file.options()).open().await.unwrap();
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0)").await.unwrap();
    let mut row = db.live("SELECT a FROM t WHERE id = ?", (1,));
    assert_eq!(one(&mut row).await, 0);
    let mut number = 0;
    while db.stats().inline.reads < 10 {
        number += 1;
        db.execute("UPDATE t SET a = ? WHERE id = 1", (number,)).await.unwrap();
        assert_eq!(until_value(&mut row, number).await, number);
    }
    // Another schema, under which it reads something else.
    let other = "BEGIN; ALTER TABLE t RENAME TO old; CREATE VIEW t AS SELECT id, a * 1000 AS a FROM old; COMMIT";
    file.plain().execute_batch(other).unwrap();
    db.execute("UPDATE old SET a = -1 WHERE id = 1", ()).await.unwrap();
    assert_eq!(until_value(&mut row, -1000).await, -1000);
    for number in -10..-1 {
        db.execute("UPDATE old SET a = ? WHERE id = 1", (number,)).await.unwrap();
        assert_eq!(until_value(&mut row, number * 1000).await, number * 1000);
    }
    drop(row);
    db.close().await.unwrap();
}
