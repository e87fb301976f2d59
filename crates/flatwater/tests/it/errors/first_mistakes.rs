//! The mistakes that everybody makes first: the error names the place and the cure.

use flatwater::{Database, Error, ErrorKind, Result, params};

use super::bad_input::{SECRET, all_errors, two_users};
use crate::place::{Place, in_both_places};

in_both_places!(
    an_unknown_column_is_answered_with_the_nearest_name,
    an_unknown_function_is_answered_with_the_nearest_name,
    a_misspelt_pragma_is_answered_with_the_nearest_name,
    a_failed_row_of_execute_many_is_named_by_its_number,
    a_script_that_fails_shows_the_text_around_its_place,
    a_list_that_is_too_long_or_in_the_wrong_place_gets_json_each,
    the_errors_of_closures_carry_their_operation,
    an_error_names_the_call_that_failed,
);

fn says(error: &Error, hint: &str) {
    assert!(error.hint().is_some_and(|said| said == hint), "{hint:?} is missing: {error}");
}

async fn an_unknown_column_is_answered_with_the_nearest_name(place: &Place) {
    let db = two_users(place).await;
    db.execute_script("CREATE TABLE \"my orders\" (id, \"the Price\", name_of_ship); CREATE TABLE other (nama)")
        .await
        .unwrap();
    for (sql, nearest) in [
        ("SELECT nam FROM users", "name in users"),
        ("SELECT u.nmae FROM users u", "name in users"),
        ("SELECT users.Naem FROM users", "name in users"),
        ("INSERT INTO users (naem) VALUES (1)", "name in users"),
        ("UPDATE users SET nme = 1", "name in users"),
        ("DELETE FROM users WHERE ids = 1", "id in users"),
        ("SELECT \"my orders\".\"the pricee\" FROM \"my orders\"", "the Price in my orders"),
        ("SELECT name_ofship FROM [my orders]", "name_of_ship in my orders"),
    ] {
        for error in all_errors(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
            says(&error, &format!("there is a column {nearest}"));
        }
    }
    let error = db.query("SELECT completely_different FROM users", ()).await.unwrap_err();
    assert_eq!(error.hint(), None, "{error}");
    db.close().await.unwrap();
}

async fn an_unknown_function_is_answered_with_the_nearest_name(place: &Place) {
    let db = two_users(place).await;
    for (sql, nearest) in [
        ("SELECT lenght(name) FROM users", "length"),
        ("SELECT json_extrakt(name, '$') FROM users", "json_extract"),
        ("UPDATE users SET name = uper(name)", "upper"),
    ] {
        for error in all_errors(&db, sql).await {
            says(&error, &format!("there is a function {nearest}"));
        }
    }
    let error = db.query("SELECT completely_different()", ()).await.unwrap_err();
    says(
        &error,
        "functions and collations of the program are registered with `Options::on_connect` or `db.functions()`",
    );
    db.close().await.unwrap();
}

async fn a_misspelt_pragma_is_answered_with_the_nearest_name(place: &Place) {
    let db = two_users(place).await;
    for (sql, nearest) in [
        ("PRAGMA foreign_key = on", "foreign_keys"),
        ("PRAGMA tabel_info(users)", "table_info"),
        ("PRAGMA jornal_mode", "journal_mode"),
    ] {
        let errors = [db.execute(sql, ()).await.unwrap_err(), db.query(sql, ()).await.unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().starts_with("there is no PRAGMA"), "{error}");
            says(&error, &format!("there is a PRAGMA {nearest}"));
        }
    }
    let error = db.query("PRAGMA completely_different", ()).await.unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("ignores")), "{error}");
    db.close().await.unwrap();
}

async fn a_failed_row_of_execute_many_is_named_by_its_number(place: &Place) {
    let db = two_users(place).await;
    let insert = "INSERT INTO users (name) VALUES (?)";
    let tx = db.begin().await.unwrap();
    let names = [SECRET, "Eve", "Ada", "Mallory"];
    let errors = [
        tx.execute_many(insert, names.map(|name| (name,))).await.unwrap_err(),
        tx.execute_many(insert, [params!["a"], params!["b"], params!["c", 1]]).await.unwrap_err(),
        tx.execute_many(insert, [0.5, 1.5, f64::NAN].map(|number| (number,))).await.unwrap_err(),
    ];
    tx.rollback().await.unwrap();
    let alone = [
        db.execute_many(insert, names.map(|name| (name,))).await.unwrap_err(),
        db.execute_many(insert, [params!["a"], params!["b"], params!["c", 1]]).await.unwrap_err(),
        db.execute_many(insert, [0.5, 1.5, f64::NAN].map(|number| (number,))).wait().unwrap_err(),
    ];
    for (error, same) in errors.iter().zip(&alone) {
        assert!(error.message().starts_with("row 2, counted from 0: "), "{error}");
        assert_eq!(error, same);
        assert!(!error.to_string().contains(SECRET));
    }
    assert_eq!(errors[0].kind(), ErrorKind::Constraint);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM users", ()).await, Ok(Some(2)));
    db.close().await.unwrap();
}

async fn a_script_that_fails_shows_the_text_around_its_place(place: &Place) {
    let db = two_users(place).await;
    let before = "INSERT INTO users (name) VALUES ('\u{fc}' || random());\n".repeat(100);
    let after = "\nUPDATE users SET name = name;".repeat(100);
    for (bad, word) in [
        ("SELEC 1;", "SELEC"),
        ("INSERT INTO users (name) VALUES ('Ada');", "INSERT INTO users (name) VALUES ('Ada')"),
        ("DELETE FROM users WHERE nam = 1;", "nam"),
        ("PRAGMA foreign_keys = off;", "PRAGMA"),
        ("BEGIN;", "BEGIN"),
        ("INSERT INTO users (name) VALUES (?);", "INSERT INTO users (name) VALUES (?)"),
    ] {
        let script = format!("{before}{bad}{after}");
        let tx = db.begin().await.unwrap();
        let inside = tx.execute_script(&script).await.unwrap_err();
        tx.rollback().await.unwrap();
        for error in [inside, db.execute_script(&script).await.unwrap_err()] {
            let sql = error.sql().unwrap();
            assert!(sql.contains(bad) && sql.starts_with("...") && sql.ends_with("...") && sql.len() < 220, "{error}");
            assert!(script[error.offset().unwrap()..].starts_with(word), "{error}");
        }
        let script = format!("{bad}{after}");
        let error = db.execute_script(&script).await.unwrap_err();
        assert!(error.sql().unwrap().starts_with(bad), "{error}");
    }
    // One long statement shows its place as well.
    let sql =
        format!("SELECT {} FROM users WHERE nam = 1 AND {}", "1, ".repeat(200) + "1", "id > 1 AND ".repeat(100) + "1");
    let error = db.query(&sql, ()).await.unwrap_err();
    assert!(error.sql().unwrap().contains("WHERE nam = 1"), "{error}");
    assert!(sql[error.offset().unwrap()..].starts_with("nam"));
    db.close().await.unwrap();
}

async fn a_list_that_is_too_long_or_in_the_wrong_place_gets_json_each(place: &Place) {
    let db = two_users(place).await;
    let too_long = flatwater::Sql::new("SELECT id FROM users WHERE id IN ").bind_list(0..32_767);
    let errors = [
        db.query(&too_long, ()).await.unwrap_err(),
        db.query("SELECT ?32767", ()).await.unwrap_err(),
        db.query("SELECT id FROM users WHERE id IN (?)", vec![1, 2]).await.unwrap_err(),
        db.query("SELECT id FROM users WHERE id IN ?", (1,)).await.unwrap_err(),
        db.query("SELECT id FROM users WHERE id IN :ids", flatwater::named! { "ids": "[1]" }).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.hint().is_some_and(|hint| hint.contains("json_each(?)")), "{error}");
    }
    let error = db.query("SELEC id FROM users WHERE id IN (?)", (1,)).await.unwrap_err();
    assert_eq!(error.hint(), None, "{error}");
    db.close().await.unwrap();
}

#[derive(Debug)]
struct Mine(Error);

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

async fn read_with_error(db: &Database) -> Error {
    db.read_with(|c| -> Result<i64> { Ok(c.query_row("SELECT a FROM nothing", [], |row| row.get(0))?) })
        .await
        .unwrap_err()
}

async fn the_errors_of_closures_carry_their_operation(place: &Place) {
    let db = two_users(place).await;
    assert_eq!(read_with_error(&db).await.operation(), Some("read_with"));
    let error = db.write_with(|c| -> Result<usize> { Ok(c.execute("DELETE FROM nothing", [])?) }).await.unwrap_err();
    assert_eq!((error.operation(), error.kind()), (Some("write_with"), ErrorKind::Sql));
    assert!(error.to_string().contains("in write_with"), "{error}");
    let error = db.read_with(|_| -> Result<()> { panic!("no") }).await.unwrap_err();
    assert_eq!(error.operation(), Some("read_with"));
    // An error of the caller's own type is returned as it is.
    let error = db.write_with(|c| -> Result<usize, Mine> { Ok(c.execute("x", []).map_err(Error::from)?) }).await;
    assert_eq!(error.unwrap_err().0.operation(), None);
    db.close().await.unwrap();
}

async fn an_error_names_the_call_that_failed(place: &Place) {
    let db = two_users(place).await;
    let sql = "SELECT * FROM nothing";
    let tx = db.begin().await.unwrap();
    let errors = [
        tx.query(sql, ()).await.unwrap_err(),
        tx.query_optional(sql, ()).await.unwrap_err(),
        tx.query_optional_value::<i64>(sql, ()).await.unwrap_err(),
        tx.query_as::<(i64,)>(sql, ()).await.unwrap_err(),
        tx.execute(sql, ()).await.unwrap_err(),
        tx.execute_script(sql).await.unwrap_err(),
    ];
    tx.rollback().await.unwrap();
    let outside = [
        db.query(sql, ()).await.unwrap_err(),
        db.query_optional(sql, ()).await.unwrap_err(),
        db.query_optional_value::<i64>(sql, ()).await.unwrap_err(),
        db.query_as::<(i64,)>(sql, ()).await.unwrap_err(),
        db.execute(sql, ()).await.unwrap_err(),
        db.execute_script(sql).await.unwrap_err(),
    ];
    let names = ["query", "query_optional", "query_optional_value", "query_as", "execute", "execute_script"];
    assert_eq!(errors.each_ref().map(Error::operation), names.map(Some));
    assert_eq!(outside, errors);
    db.close().await.unwrap();
}
