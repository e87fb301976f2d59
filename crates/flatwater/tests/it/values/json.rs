//! `query_json`: its rules, wherever the statement runs. That it writes what `serde_json` writes is in
//! `json_differential`.

use std::time::Duration;

use flatwater::calls::{CancelOutcome, TimeoutEffect};
use flatwater::options::{Inline, InlineLimits};
use flatwater::{Database, ErrorKind};

use crate::place::{Place, in_both_places};
use crate::support::count;

in_both_places!(
    every_way_to_query_has_its_json,
    infinity_and_null_are_null_and_blobs_are_base64,
    rows_can_be_arrays_and_big_integers_strings,
    two_columns_of_one_name_are_refused_before_anything_runs,
    a_text_that_is_not_utf_8_is_an_error_and_its_write_is_done,
    a_statement_without_rows_is_refused,
    keys_follow_the_schema,
    short_reads_run_inline_until_their_json_is_too_long,
    the_form_of_a_document_is_that_of_its_call,
);

/// A table with two rows.
async fn people(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob')",
    )
    .await
    .unwrap();
    db
}

const ADA: &str = r#"[{"id":1,"name":"Ada"}]"#;
const BY_ID: &str = "SELECT id, name FROM people WHERE id = ?";

async fn every_way_to_query_has_its_json(place: &Place) {
    let db = people(place).await;
    let prepared = db.prepare(BY_ID).await.unwrap();
    for _ in 0..5 {
        assert_eq!(db.query_json(BY_ID, (1,)).await.unwrap(), ADA);
        assert_eq!(db.query_json(BY_ID, (1,)).wait().unwrap(), ADA);
        assert_eq!(prepared.query_json((1,)).await.unwrap(), ADA);
        assert_eq!(db.query_json(BY_ID, (9,)).await.unwrap(), "[]");
        let mut tx = db.begin().await.unwrap();
        assert_eq!(tx.query_json(BY_ID, (1,)).await.unwrap(), ADA);
        let json = tx.query_json("INSERT INTO people (name) VALUES ('Cy'), ('Di') RETURNING name", ()).await.unwrap();
        assert_eq!(json, r#"[{"name":"Cy"},{"name":"Di"}]"#);
        let nested = tx.begin().await.unwrap();
        assert_eq!(nested.query_json("SELECT count(*) AS n FROM people", ()).await.unwrap(), r#"[{"n":4}]"#);
        nested.commit().await.unwrap();
        tx.rollback().await.unwrap();
        let json = db.query_json("UPDATE people SET name = 'Ada' WHERE id = 1 RETURNING *", ()).await.unwrap();
        assert_eq!(json, ADA);
        assert_eq!(db.ungrouped().query_json("DELETE FROM people WHERE id = 9 RETURNING *", ()).await.unwrap(), "[]");
    }
    let writes = (0..8).map(|id| db.query_json("INSERT INTO people VALUES (?, 'x') RETURNING id", (id + 100,)));
    let written = futures_util::future::join_all(writes).await;
    for (id, json) in written.into_iter().enumerate() {
        assert_eq!(json.unwrap(), format!(r#"[{{"id":{}}}]"#, id + 100));
    }
    db.close().await.unwrap();
}

async fn infinity_and_null_are_null_and_blobs_are_base64(place: &Place) {
    let db = place.open().await;
    let json =
        db.query_json("SELECT 9e999 AS a, -9e999 AS b, NULL AS c, x'' AS d, x'00ff10' AS e, x'fb' AS f", ()).await;
    assert_eq!(json.unwrap(), r#"[{"a":null,"b":null,"c":null,"d":"","e":"AP8Q","f":"+w=="}]"#);
    db.close().await.unwrap();
}

async fn rows_can_be_arrays_and_big_integers_strings(place: &Place) {
    let db = place.open().await;
    let sql = "VALUES (9007199254740991, 9007199254740992), (-9007199254740991, -9007199254740992), (0, -9223372036854775808)";
    let numbers = db.query_json(sql, ()).arrays().await.unwrap();
    assert_eq!(
        numbers,
        "[[9007199254740991,9007199254740992],[-9007199254740991,-9007199254740992],[0,-9223372036854775808]]"
    );
    let strings = db.query_json(sql, ()).arrays().big_integers_as_strings().wait().unwrap();
    assert_eq!(
        strings,
        r#"[[9007199254740991,"9007199254740992"],[-9007199254740991,"-9007199254740992"],[0,"-9223372036854775808"]]"#
    );
    db.close().await.unwrap();
}

async fn two_columns_of_one_name_are_refused_before_anything_runs(place: &Place) {
    let db = people(place).await;
    for _ in 0..5 {
        let error = db.query_json("SELECT a.id, b.id, a.name FROM people a, people b", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(
            error.message().contains("two columns are named id") && error.hint().unwrap().contains("AS"),
            "{error}"
        );
        assert!(error.sql().unwrap().starts_with("SELECT a.id"), "{error}");
        let write = "INSERT INTO people (name) VALUES ('Eve') RETURNING id, id";
        assert_eq!(db.query_json(write, ()).await.unwrap_err().kind(), ErrorKind::Misuse);
        let inside = db.transaction(async |tx| tx.query_json(write, ()).await).await;
        assert_eq!(inside.unwrap_err().kind(), ErrorKind::Misuse);
        let arrays = db.query_json("SELECT a.id, a.id FROM people a", ()).arrays();
        assert_eq!(arrays.await.unwrap(), "[[1,1],[2,2]]");
        // A name in another case is another key.
        assert_eq!(db.query_json("SELECT 1 AS a, 2 AS A", ()).await.unwrap(), r#"[{"a":1,"A":2}]"#);
    }
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM people", ()).await.unwrap(), Some(2));
    db.close().await.unwrap();
}

async fn a_text_that_is_not_utf_8_is_an_error_and_its_write_is_done(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    for text in ["x'ff'", "x'c328'", "x'eda080'", "x'f4908080'", "x'c0af'", "x'e282'"] {
        for _ in 0..4 {
            let sql = format!("SELECT 1 AS one, CAST({text} AS TEXT) AS bad");
            let error = db.query_json(&sql, ()).await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Decode, Some("query_json")), "{error}");
            assert!(error.message().contains("column 1 (bad)") && error.applied().is_none(), "{error}");
            assert_eq!(error.sql(), Some(&*sql));
            assert!(db.query_as::<(i64, String)>(&sql, ()).await.is_err(), "as a row cannot be read");
        }
    }
    let write = "INSERT INTO t VALUES (?) RETURNING CAST(x'ff' AS TEXT)";
    for number in 1..=10 {
        let error = db.query_json(write, (number,)).await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Decode, Some(TimeoutEffect::Yes)), "{error}");
        assert_eq!(count(&db).await, number);
    }
    db.close().await.unwrap();
}

async fn a_statement_without_rows_is_refused(place: &Place) {
    let db = people(place).await;
    let error = db.query_json("DELETE FROM people", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert_eq!(db.query_json("SELECT count(*) AS n FROM people", ()).await.unwrap(), r#"[{"n":2}]"#);
    db.close().await.unwrap();
}

async fn keys_follow_the_schema(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").await.unwrap();
    let mut expected = r#"[{"a":1"#.to_owned();
    for column in 0..6 {
        for _ in 0..5 {
            assert_eq!(db.query_json("SELECT * FROM t", ()).await.unwrap(), format!("{expected}}}]"));
            let updated = db.query_json("UPDATE t SET a = 1 RETURNING *", ()).await.unwrap();
            assert_eq!(updated, format!("{expected}}}]"));
        }
        let add = format!("ALTER TABLE t ADD COLUMN c{column} DEFAULT '[{column}]'");
        match place.file() {
            Some(file) if column % 2 == 0 => file.plain().execute_batch(&add).unwrap(),
            _ => drop(db.execute(&add, ()).await.unwrap()),
        }
        expected += &format!(r#","c{column}":"[{column}]""#);
    }
    db.close().await.unwrap();
}

async fn short_reads_run_inline_until_their_json_is_too_long(place: &Place) {
    // So much time that only the sizes matter.
    let limits = InlineLimits::default().time(std::time::Duration::from_secs(60)).rows(16).bytes(4096);
    let db = place.options().tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b);
         INSERT INTO t SELECT value, printf('%.1000c', 'x') FROM json_each('[1,2,3,4,5,6,7,8,9]')",
    )
    .await
    .unwrap();
    let sql = "SELECT b FROM t WHERE a <= ? ORDER BY a";
    let expected = |rows| format!("[{}]", vec![format!(r#"{{"b":"{}"}}"#, "x".repeat(1000)); rows].join(","));
    // Five of these rows have more bytes than an inline run may write. Until that was tried, if there are readers.
    for time in 0.. {
        for _ in 0..8 {
            assert_eq!(db.query_json(sql, (3,)).await.unwrap(), expected(3));
        }
        assert_eq!(db.query_json(sql, (9,)).await.unwrap(), expected(9));
        let inline = db.stats().inline;
        if !place.has_readers() || inline.reads > 0 && inline.moved > 0 {
            break;
        }
        assert!(time < 1000, "{inline:?}");
    }
    db.close().await.unwrap();
}

async fn the_form_of_a_document_is_that_of_its_call(place: &Place) {
    let db = people(place).await;
    let prepared = db.prepare(BY_ID).await.unwrap();
    assert_eq!(prepared.query_json((1,)).arrays().await.unwrap(), r#"[[1,"Ada"]]"#);
    let inside = db.transaction(async |tx| tx.query_json(BY_ID, (1,)).arrays().never_inline().await).await;
    assert_eq!(inside.unwrap(), r#"[[1,"Ada"]]"#);
    assert_eq!(db.query_json(BY_ID, (1,)).await.unwrap(), ADA, "another call is as it was");
    let late = db.query_json(BY_ID, (1,)).timeout(Duration::ZERO).arrays();
    assert_eq!(late.await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(db.query_json(BY_ID, (1,)).arrays().cancel(), CancelOutcome::Withdrawn);
    let nothing = db.query_json("SELECT 1; SELECT 2", ()).arrays();
    assert_eq!(nothing.await.unwrap_err().kind(), ErrorKind::Misuse);
    db.close().await.unwrap();
}
