//! The functions that every connection has besides SQLite's core: REGEXP, and the mathematical ones.

use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::{Database, ErrorKind, Value};

use crate::place::{Place, in_both_places};
use crate::support::empty_table;

in_both_places!(
    regexp_finds_what_re_search_finds,
    a_pattern_that_is_none_or_takes_too_long_fails_its_statement_and_is_not_told,
    a_function_of_the_program_with_the_name_comes_first_and_ours_is_there_when_it_is_removed,
    every_connection_has_them,
    definitions_of_the_schema_may_call_them,
);

async fn value(db: &Database, expression: &str) -> Value {
    db.query_value(format!("SELECT {expression}").as_str(), ()).await.unwrap()
}

async fn regexp_finds_what_re_search_finds(place: &Place) {
    let db = place.open().await;
    let (found, not, null) = (Value::Integer(1), Value::Integer(0), Value::Null);
    for (expression, expected) in [
        ("'flatwater' REGEXP 'wat'", &found),
        ("'flatwater' REGEXP '^wat'", &not),
        ("'flatwater' REGEXP '(?i)WAT'", &found),
        ("'flatwater' NOT REGEXP 'x'", &found),
        ("regexp('a|b', 'b')", &found),
        ("'b' REGEXP NULL", &null),
        ("NULL REGEXP 'b'", &null),
        ("12345 REGEXP '^[0-9]+$'", &found),
        ("2.5 REGEXP '^2\\.5$'", &found),
        ("'Ünï' REGEXP '^\\w{3}$'", &found),
        // Lookaround and backreferences, which an automaton has not.
        ("'price: 5' REGEXP '(?<=price: )\\d'", &found),
        ("'abab' REGEXP '^(ab)\\1$'", &found),
        ("'foobar' REGEXP 'foo(?!bar)'", &not),
        ("'x' REGEXP '(?P<name>x)(?P=name)?'", &found),
        ("'' REGEXP ''", &found),
    ] {
        assert_eq!(value(&db, expression).await, *expected, "{expression}");
    }
    let bound: i64 = db.query_value("SELECT ? REGEXP ?", ("abc", "b.")).await.unwrap();
    assert_eq!(bound, 1);
}

async fn a_pattern_that_is_none_or_takes_too_long_fails_its_statement_and_is_not_told(place: &Place) {
    let db = place.open().await;
    for (text, pattern) in [("x", "secret("), (&*"a".repeat(60), "^(a|aa)+(?=b)\\1$")] {
        let error = db.query("SELECT ? REGEXP ?", (text, pattern)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
        assert!(error.message().contains("REGEXP") && !error.to_string().contains(pattern), "{error}");
    }
    let blob = db.query("SELECT x'00' REGEXP 'a'", ()).await.unwrap_err();
    assert!(blob.message().contains("BLOB"), "{blob}");
}

async fn a_function_of_the_program_with_the_name_comes_first_and_ours_is_there_when_it_is_removed(place: &Place) {
    let db = place.open().await;
    let own = |answer: &'static str| {
        db.functions().create_scalar_function("regexp", 2, FunctionFlags::SQLITE_UTF8, move |_| Ok(answer)).unwrap();
    };
    own("first");
    assert_eq!(value(&db, "'a' REGEXP 'b'").await, Value::Text("first".into()));
    own("second");
    assert_eq!(value(&db, "'a' REGEXP 'b'").await, Value::Text("second".into()));
    db.functions().remove_function("regexp", 2).unwrap();
    assert_eq!(value(&db, "'a' REGEXP 'b'").await, Value::Integer(0));
}

async fn every_connection_has_them(place: &Place) {
    let db = empty_table(place.options()).await;
    let all = "SELECT (floor(2.7) = 2) + (ceil(2.1) = 3) + (sqrt(4) = 2) + (pow(2, 10) = 1024) + (log2(8) = 3)
               + (mod(7, 4) = 3) + (round(pi(), 2) = 3.14) + ('a' REGEXP 'a')";
    let own = db.connection();
    let tx = db.begin().await.unwrap();
    let inside: i64 = tx.query_value(all, ()).await.unwrap();
    tx.commit().await.unwrap();
    let (read, on_own) = (db.query_value(all, ()).await, own.query_value(all, ()).await);
    assert_eq!((inside, read, on_own), (8, Ok(8), Ok(8)));
    let mut live = db.live("SELECT count(*) FROM t WHERE a REGEXP 'x'", ());
    assert_eq!(live.next().await.unwrap().unwrap().len(), 1);
    db.execute("INSERT INTO t VALUES ('xyz')", ()).await.unwrap();
    assert_eq!(live.next().await.unwrap().unwrap().len(), 1);
}

async fn definitions_of_the_schema_may_call_them(place: &Place) {
    let db = place.options().tuning(|t| t.untrusted()).read_only(false).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (a TEXT CHECK (a REGEXP '^[a-z]+$'), b AS (floor(length(a) / 2.0)));
         CREATE INDEX i ON t (a) WHERE a REGEXP 'z'; CREATE VIEW v AS SELECT a FROM t WHERE a REGEXP 'z'",
    )
    .await
    .unwrap();
    db.execute("INSERT INTO t VALUES ('fizz')", ()).await.unwrap();
    assert_eq!(db.execute("INSERT INTO t VALUES ('F1')", ()).await.unwrap_err().kind(), ErrorKind::Constraint);
    let found: (String, f64) = db.query_one_as("SELECT a, b FROM v JOIN t USING (a)", ()).await.unwrap();
    assert_eq!(found, ("fizz".to_owned(), 2.0));
    // Another program does not know the schema's functions.
    db.execute_script("DROP VIEW v; DROP TABLE t").await.unwrap();
}
