//! The text of SQLite's errors: the position in the SQL, the table, the constraint, and never a bound value.

use flatwater::{ErrorKind, params};

use super::bad_input::{SECRET, all_errors, errors, is_unharmed, two_users};
use crate::place::{Place, in_both_places};

in_both_places!(
    a_syntax_error_points_into_the_sql,
    a_syntax_error_in_a_script_points_into_the_script,
    an_unknown_table_is_answered_with_the_nearest_name,
    bound_values_never_appear_in_errors,
    a_violated_constraint_is_named_and_its_value_is_not,
);

async fn a_syntax_error_points_into_the_sql(place: &Place) {
    let db = two_users(place).await;
    for (sql, token) in [
        ("SELEC 1", "SELEC"),
        ("SELECT * FORM users", "FORM"),
        ("INSERT INTO users VALUES (1, 2", ""),
        ("DELETE FROM users WHERE nam = 1", "nam"),
        ("SELECT 'Z\u{fc}rich' FROM users WHERE size > 1", "size"),
        ("SELECT 'open", "'open"),
    ] {
        for error in all_errors(&db, sql).await {
            assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_ERROR")), "{error}");
            assert_eq!(error.sql(), Some(sql), "{error:?}");
            match error.offset() {
                Some(offset) => assert!(sql[offset..].starts_with(token), "{offset}: {error}"),
                None => assert!(token.is_empty(), "{error}"),
            }
        }
    }
}

async fn a_syntax_error_in_a_script_points_into_the_script(place: &Place) {
    let db = two_users(place).await;
    let script = "DELETE FROM users;\n\n  SELEC 1; SELECT 2";
    let tx = db.begin().await.unwrap();
    let errors = [tx.execute_script(script).await.unwrap_err(), {
        tx.rollback().await.unwrap();
        db.execute_script(script).await.unwrap_err()
    }];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
        assert!(script[error.offset().unwrap()..].starts_with("SELEC"), "{error}");
    }
    is_unharmed(&db).await;
}

async fn an_unknown_table_is_answered_with_the_nearest_name(place: &Place) {
    let db = two_users(place).await;
    for sql in ["SELECT * FROM user", "DELETE FROM Usres", "SELECT * FROM main.usesr", "INSERT INTO uers VALUES (1)"] {
        for error in all_errors(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
            assert!(error.message().contains("no such table"), "{error}");
            assert!(error.hint().is_some_and(|advice| advice.ends_with("users")), "{error}");
        }
    }
    let error = db.query("SELECT * FROM completely_different", ()).await.unwrap_err();
    assert_eq!(error.hint(), None, "{error}");
}

async fn bound_values_never_appear_in_errors(place: &Place) {
    let db = two_users(place).await;
    let guard = "CREATE TRIGGER guard BEFORE INSERT ON users WHEN new.id < 0
        BEGIN SELECT RAISE(ABORT, 'the name ' || new.name || ' is not wanted'); END";
    db.execute(guard, ()).await.unwrap();
    let search = "SELECT rowid FROM notes WHERE notes MATCH ?";
    let mut cases: Vec<(&str, String)> = [
        "\"hunter2",
        "hunter2 : x",
        "AND hunter2",
        "hunter2 (",
        "NEAR(a b, hunter2)",
        "hunter2 hunter2)",
        "^ hunter2 *+",
        "{hunter2} : x",
        "hunter2 AND",
        "'hunter2",
        "hunter2.x",
    ]
    .map(|query| (search, query.to_owned()))
    .into();
    cases.extend(
        [
            "SELECT json_extract('{}', ?)",
            "SELECT json(?)",
            "SELECT json_set('{}', ?, 1)",
            "SELECT value FROM json_each('[1]', ?)",
            "INSERT INTO users (id, name) VALUES (-1, ?)",
            "INSERT INTO notes (notes) VALUES (?)",
            "SELECT load_extension(?)",
            "SELECT 1 FROM users LIMIT ?",
            "UPDATE users SET id = ?",
        ]
        .map(|sql| (sql, SECRET.to_owned())),
    );
    let mut leaks = Vec::new();
    for (sql, value) in cases {
        let errors = errors(&db, sql, params![value]).await.into_iter().map(|error| format!("{error} {error:?}"));
        leaks.extend(errors.filter(|error| error.contains(SECRET)).take(1));
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
    let error = db.query_optional_value::<i64>("SELECT ?", (SECRET,)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(!format!("{error:?}").contains(SECRET), "{error}");
}

async fn a_violated_constraint_is_named_and_its_value_is_not(place: &Place) {
    let db = two_users(place).await;
    db.execute("CREATE TABLE strict (a INTEGER) STRICT", ()).await.unwrap();
    for (sql, value, name, place) in [
        ("INSERT INTO users (name) VALUES (?)", "Ada", "SQLITE_CONSTRAINT_UNIQUE", "users.name"),
        ("INSERT INTO strict VALUES (?)", SECRET, "SQLITE_CONSTRAINT_DATATYPE", "strict.a"),
    ] {
        for error in errors(&db, sql, params![value]).await {
            assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Constraint, Some(name)), "{error}");
            assert!(error.message().contains(place) && !error.to_string().contains(value), "{error}");
            assert!(!error.is_retryable());
        }
    }
}
