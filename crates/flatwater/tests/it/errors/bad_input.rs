//! Invalid input: the text of the error, and that the call had no effect.
//!
//! Leaves out: SQL that SQLite refuses (`texts`), paths and files that cannot be opened (`bad_paths`).

use flatwater::values::IntoParams;
use flatwater::{Database, Error, ErrorKind, Params, Result, Sql, named, params};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    sql_without_a_statement_is_refused_and_a_script_of_nothing_is_not,
    several_statements_are_refused_with_a_pointer_to_execute_script,
    parameters_that_do_not_fit_are_refused_before_anything_runs,
    a_parameter_that_is_given_twice_is_refused,
    a_list_for_one_parameter_of_in_gets_a_hint,
    values_that_cannot_be_stored_are_refused,
    a_value_that_is_refused_is_named_by_its_parameter_and_the_sql,
    a_nul_byte_in_sql_is_refused,
);

/// A bound value that must not appear anywhere.
pub(crate) const SECRET: &str = "hunter2";

pub(crate) async fn two_users(place: &Place) -> Database {
    let db = place.open().await;
    let schema = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO users (name) VALUES ('Ada'), ('Grace')";
    db.execute_script(schema).await.unwrap();
    db
}

/// Checks that the two initial users are still there, and that every operation works.
pub(crate) async fn is_unharmed(db: &Database) {
    let update = || db.execute("UPDATE users SET name = name WHERE id > ?", (0,));
    let (a, b, c) = futures_util::join!(update(), update(), update());
    assert_eq!([a, b, c].map(|updated| updated.unwrap().changes), [2; 3]);
    let users: Vec<(i64, String)> = db.query_as("SELECT id, name FROM users ORDER BY id", ()).await.unwrap();
    assert_eq!(users, [(1, "Ada".to_owned()), (2, "Grace".to_owned())]);
    db.begin().await.unwrap().commit().await.unwrap();
}

/// Returns the errors of every call that takes one statement, for a text that cannot be prepared.
pub(crate) async fn all_errors(db: &Database, sql: &str) -> Vec<Error> {
    let mut errors = execute_errors(db, sql, ()).await;
    errors.extend(query_errors(db, sql, ()).await);
    errors
}

/// Returns the errors of every suitable call, for a statement that can be prepared.
pub(crate) async fn errors(db: &Database, sql: &str, params: Result<Params>) -> Vec<Error> {
    if sql.starts_with("SELECT") {
        return query_errors(db, sql, params).await;
    }
    let mut errors = execute_errors(db, sql, params.clone()).await;
    errors.extend(query_errors(db, &format!("{sql} RETURNING 1"), params).await);
    errors
}

async fn execute_errors(db: &Database, sql: &str, params: impl IntoParams) -> Vec<Error> {
    let params = params.into_params();
    let p = || params.clone();
    let batch = || [("INSERT INTO users (name) VALUES ('Eve')", params![]), (sql, p())];
    let mut errors = vec![
        db.execute(sql, p()).await.unwrap_err(),
        db.execute_many(sql, [p()]).await.unwrap_err(),
        db.batch(batch()).await.unwrap_err(),
        db.execute(sql, p()).wait().unwrap_err(),
        db.ungrouped().execute(sql, p()).await.unwrap_err(),
    ];
    let tx = db.begin().await.unwrap();
    errors.extend([
        tx.execute(sql, p()).await.unwrap_err(),
        tx.execute_many(sql, [p()]).await.unwrap_err(),
        tx.batch(batch()).await.unwrap_err(),
    ]);
    // What failed left nothing in the transaction either.
    assert_eq!(tx.query_optional_value::<i64>("SELECT count(*) FROM users", ()).await.unwrap(), Some(2));
    tx.commit().await.unwrap();
    is_unharmed(db).await;
    errors
}

async fn query_errors(db: &Database, sql: &str, params: impl IntoParams) -> Vec<Error> {
    let params = params.into_params();
    let p = || params.clone();
    let mut errors = vec![
        db.query(sql, p()).await.unwrap_err(),
        db.query_optional(sql, p()).await.unwrap_err(),
        db.query_optional_value::<i64>(sql, p()).await.unwrap_err(),
        db.query_as::<(i64,)>(sql, p()).await.unwrap_err(),
        db.batch([("INSERT INTO users (name) VALUES ('Eve')", params![]), (sql, p())]).await.unwrap_err(),
        db.query(sql, p()).wait().unwrap_err(),
    ];
    let tx = db.begin().await.unwrap();
    errors.push(tx.query(sql, p()).await.unwrap_err());
    assert_eq!(tx.query_optional_value::<i64>("SELECT count(*) FROM users", ()).await.unwrap(), Some(2));
    tx.commit().await.unwrap();
    is_unharmed(db).await;
    errors
}

async fn sql_without_a_statement_is_refused_and_a_script_of_nothing_is_not(place: &Place) {
    let db = two_users(place).await;
    for sql in ["", " \n\t", ";", "-- nothing", "/* nothing */ ;", "-- SELECT 1\n"] {
        for error in all_errors(&db, sql).await {
            assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Misuse, None), "{sql:?}: {error}");
            assert!(error.message().contains("no statement"), "{error}");
        }
        db.execute_script(sql).await.unwrap();
    }
}

async fn several_statements_are_refused_with_a_pointer_to_execute_script(place: &Place) {
    let db = two_users(place).await;
    for sql in [
        "DELETE FROM users; SELECT 1",
        "SELECT 1; DELETE FROM users",
        "SELECT 1; nonsense",
        "INSERT INTO users (name) VALUES ('Eve') RETURNING id; -- comment\n SELECT 1",
    ] {
        for error in all_errors(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("several statements"), "{error}");
            assert!(error.hint().unwrap().contains("execute_script"), "{error}");
            assert_eq!(error.sql(), Some(sql));
        }
    }
    let trailing = "SELECT count(*) FROM users ; ; -- two\n /* of them */ ;";
    assert_eq!(db.query_optional_value::<i64>(trailing, ()).await.unwrap(), Some(2));
}

async fn parameters_that_do_not_fit_are_refused_before_anything_runs(place: &Place) {
    let db = two_users(place).await;
    let two = "UPDATE users SET name = ? WHERE id < ?";
    let named = "DELETE FROM users WHERE id = :id OR name = @name";
    let cases: [(&str, Result<Params>, &[&str]); 8] = [
        (two, params![], &["2 parameter", "0 value"]),
        (two, params![SECRET], &["2 parameter", "1 value"]),
        (two, params![SECRET, 9, 9], &["2 parameter", "3 value"]),
        ("SELECT id FROM users", params![1], &["0 parameter", "1 value"]),
        (named, named! { ":id": 1, ":nam": SECRET }, &["\":nam\"", ":id, @name"]),
        (named, named! { ":id": 1 }, &["no value", "@name"]),
        (named, named! { ":id": 1, "$name": SECRET }, &["\"$name\"", "@name"]),
        (two, named! { "name": SECRET, "id": 1 }, &["\"name\"", "no named parameters"]),
    ];
    for (sql, params, words) in cases {
        for error in errors(&db, sql, params).await {
            assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Misuse, None), "{error}");
            for word in words {
                assert!(error.message().contains(word), "{word}: {error}");
            }
            assert!(error.sql().is_some() && error.operation().is_some(), "{error:?}");
            assert!(!format!("{error}{error:?}").contains(SECRET), "{error}");
        }
    }
    let rows: [Result<Params>; 3] = [params!["Eve"], params!["Mallory"], params![]];
    db.execute_many("INSERT INTO users (name) VALUES (?)", rows).await.unwrap_err();
    is_unharmed(&db).await;
    let fits = db.execute(named, named! { "id": 7, "name": "nobody" }).await.unwrap();
    assert_eq!(fits.changes, 0);
}

async fn a_parameter_that_is_given_twice_is_refused(place: &Place) {
    let db = two_users(place).await;
    let sql = "DELETE FROM users WHERE id = :id OR name = :name";
    for error in errors(&db, sql, named! { ":id": 1, "id": 2, "name": SECRET }).await {
        assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Misuse, None), "{error}");
        assert!(error.message().contains("id"), "{error}");
    }
}

async fn a_list_for_one_parameter_of_in_gets_a_hint(place: &Place) {
    let db = two_users(place).await;
    let error = db.query("SELECT * FROM users WHERE id IN (?)", vec![1, 2, 3]).await.unwrap_err();
    assert!(error.hint().is_some_and(|advice| advice.contains("IN")), "{error}");
}

async fn values_that_cannot_be_stored_are_refused(place: &Place) {
    let db = two_users(place).await;
    for params in [params![u64::MAX, 1], params![1, f64::NAN], params![-f64::NAN, 1]] {
        for error in errors(&db, "INSERT INTO users VALUES (?, ?)", params).await {
            assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Misuse, None), "{error}");
            assert!(error.message().contains("cannot be stored"), "{error}");
            assert!(error.operation().is_some() && !error.to_string().contains("1844"), "{error}");
        }
    }
    let largest = u64::try_from(i64::MAX).unwrap();
    assert_eq!(db.query_optional_value::<u64>("SELECT ?", (largest,)).await.unwrap(), Some(largest));
    let infinite = db.query_optional_value::<f64>("SELECT ?", (f64::INFINITY,)).await.unwrap();
    assert_eq!(infinite, Some(f64::INFINITY));
    let text = db.query_optional_value::<String>("SELECT ?", ("a\0b",)).await.unwrap();
    assert_eq!(text.as_deref(), Some("a\0b"));
}

async fn a_value_that_is_refused_is_named_by_its_parameter_and_the_sql(place: &Place) {
    let db = two_users(place).await;
    let check = |error: Error, begin: &str, sql: &str| {
        assert!(error.message().trim_start_matches("row 0, counted from 0: ").starts_with(begin), "{error}");
        assert!(error.sql().is_some_and(|shown| shown.trim_end_matches(" RETURNING 1") == sql), "{error}");
    };
    let sql = "INSERT INTO users VALUES (?, ?)";
    let named = "INSERT INTO users VALUES (:id, :name)";
    for error in errors(&db, sql, params![1, u64::MAX]).await {
        check(error, "parameter 2: an integer beyond 64 bits", sql);
    }
    for error in errors(&db, named, named! { ":id": f64::NAN, ":name": "Eve" }).await {
        check(error, "parameter \":id\": NaN", named);
    }
    check(db.execute(sql, (1, u64::MAX)).await.unwrap_err(), "parameter 2: ", sql);
    check(db.execute(sql, [1, u64::MAX]).await.unwrap_err(), "parameter 2: ", sql);
    check(db.execute(sql, vec![1.0, f64::NAN]).await.unwrap_err(), "parameter 2: ", sql);
    let prepared = db.prepare(sql).await.unwrap();
    check(db.execute(&prepared, (1, usize::MAX)).await.unwrap_err(), "parameter 2: ", sql);
    let many = db.execute_many(sql, [(1, 2), (3, u64::MAX)]).await.unwrap_err();
    check(many, "row 1, counted from 0: parameter 2: ", sql);
    check(db.batch([("SELECT ?", [1]), (sql, [u64::MAX])]).await.unwrap_err(), "parameter 1: ", sql);
    let part = Sql::new(" AND name = ").bind("Ada").push(" AND id = ").bind(u64::MAX);
    let built = Sql::new("SELECT * FROM users WHERE id IN ").bind_list([1, 2]).push_sql(&part);
    let whole = "SELECT * FROM users WHERE id IN (?, ?) AND name = ? AND id = ?";
    check(db.query(built.clone(), ()).await.unwrap_err(), "parameter 4: ", whole);
    check(db.batch([(built, ())]).await.unwrap_err(), "parameter 4: ", whole);
    is_unharmed(&db).await;
}

/// The limit for a file of a stranger is 16 MiB.
#[test]
fn a_value_that_is_too_long_is_named_by_its_parameter_and_the_sql() {
    let file = TestFile::new();
    run(async {
        file.open().await.close().await.unwrap();
        let db = file.options().tuning(|t| t.untrusted()).readers(1).open().await.unwrap();
        let long = || "hunter2 ".repeat(3 << 20);
        for (sql, params, place) in [
            ("SELECT ?, length(?)", params![1, long()], "parameter 2: "),
            ("SELECT ?2, length(?1)", params![long(), 1], "parameter 1: "),
            ("SELECT length(:text)", named! { "text": long() }, "parameter \":text\": "),
        ] {
            let error = db.query(sql, params).await.unwrap_err();
            assert_eq!((error.sqlite_name(), error.sql()), (Some("SQLITE_TOOBIG"), Some(sql)), "{error}");
            assert!(error.message().starts_with(place) && !error.to_string().contains(SECRET), "{error}");
        }
    });
}

async fn a_nul_byte_in_sql_is_refused(place: &Place) {
    let db = two_users(place).await;
    for sql in ["\0", "SELECT 1\0", "SELECT 1\0; DELETE FROM users", "DELETE FROM users WHERE name = 'a\0b'"] {
        for error in all_errors(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("NUL") && error.hint().unwrap().contains("bind"), "{error}");
        }
    }
    let error = db.execute_script("DELETE FROM users; SELECT 1\0").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    is_unharmed(&db).await;
}
