//! SQL that is put together at run time, and the forms that parameters may have.

use flatwater::values::IntoParams;
use flatwater::{Database, ErrorKind, Params, Sql, ToSql, Value, named, params};

use crate::errors::bad_input::{SECRET, two_users};
use crate::place::{Place, in_both_places};

in_both_places!(
    every_operation_takes_a_text_and_its_values,
    optional_filters_find_what_they_say,
    a_list_may_have_any_length_that_sqlite_takes,
    lists_of_several_lengths_have_one_text_and_mean_what_they_say,
    an_identifier_is_a_name_whatever_it_contains,
    a_value_that_cannot_be_stored_is_an_error_of_the_call,
    a_list_of_bytes_is_refused_with_a_hint,
    values_of_two_places_are_refused,
    batches_and_boxed_values_take_every_form_of_parameters,
);

async fn every_operation_takes_a_text_and_its_values(place: &Place) {
    let db = two_users(place).await;
    let insert = Sql::new("INSERT INTO users (name) VALUES ").bind_row(["Eve"]);
    assert_eq!(db.execute(&insert, ()).await.unwrap().last_insert_rowid, Some(3));
    let find = Sql::new("SELECT id FROM users WHERE name = ").bind("Eve");
    assert_eq!(db.query(&find, ()).await.unwrap().len(), 1);
    assert_eq!(db.query_optional(&find, ()).await.unwrap().unwrap().get(0), Ok(3));
    assert_eq!(db.query_optional_value(&find, ()).await, Ok(Some(3)));
    assert_eq!(db.query_as(&find, ()).await, Ok(vec![(3,)]));
    assert_eq!(db.prepare(find.text()).await.unwrap().query_optional_value(find.params()).await, Ok(Some(3)));
    let update = Sql::new("UPDATE users SET name = ").bind("Mallory").push(" WHERE id = ").bind(3);
    let tx = db.begin().await.unwrap();
    assert_eq!(tx.execute_many(update.text(), [update.params()]).await, Ok(1));
    let batch = tx.batch([(&find, ()), (&update, ())]).await.unwrap();
    assert_eq!(batch[0].rows.as_ref().map(flatwater::Rows::len), Some(0));
    assert_eq!(batch[1].changes, 1);
    tx.commit().await.unwrap();
    db.close().await.unwrap();
}

/// Returns the ids of the users that pass all the filters.
async fn found(db: &Database, name: Option<&str>, ids: Option<&[i64]>) -> Vec<i64> {
    let mut filters = Sql::new(" WHERE 1");
    if let Some(name) = name {
        filters = filters.push(" AND name = ").bind(name);
    }
    if let Some(ids) = ids {
        filters = filters.push(" AND id IN ").bind_list(ids);
    }
    let count = Sql::new("SELECT count(*) FROM users").push_sql(&filters);
    let rows = Sql::new("SELECT id FROM users").push_sql(&filters).push(" ORDER BY id LIMIT ").bind(10);
    let found: Vec<(i64,)> = db.query_as(&rows, ()).await.unwrap();
    assert_eq!(db.query_optional_value(&count, ()).await, Ok(Some(found.len())));
    found.into_iter().map(|(id,)| id).collect()
}

async fn optional_filters_find_what_they_say(place: &Place) {
    let db = two_users(place).await;
    assert_eq!(found(&db, None, None).await, [1, 2]);
    assert_eq!(found(&db, Some("Grace"), None).await, [2]);
    assert_eq!(found(&db, Some("Grace' OR ''='"), None).await, [0_i64; 0]);
    assert_eq!(found(&db, Some("Grace"), Some(&[1, 3])).await, [0_i64; 0]);
    assert_eq!(found(&db, None, Some(&[3, 2, 1])).await, [1, 2]);
    assert_eq!(found(&db, None, Some(&[])).await, [0_i64; 0]);
    db.close().await.unwrap();
}

async fn a_list_may_have_any_length_that_sqlite_takes(place: &Place) {
    let db = two_users(place).await;
    for length in [0_i64, 1, 2, 999, 32_766] {
        let sql = Sql::new("SELECT count(*) FROM users WHERE id IN ").bind_list(0..length);
        let expected = (length - 1).clamp(0, 2);
        assert_eq!(db.query_optional_value(&sql, ()).await, Ok(Some(expected)), "{length}");
    }
    db.close().await.unwrap();
}

async fn lists_of_several_lengths_have_one_text_and_mean_what_they_say(place: &Place) {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE t (a, b TEXT); INSERT INTO t VALUES (1, '1'), (2.5, 'x'), (NULL, NULL), (x'01', '')",
    )
    .await
    .unwrap();
    let text = Value::Text("x".repeat(1000));
    let values =
        [Value::Integer(1), text, Value::Null, Value::Real(2.5), Value::Blob(vec![1]), Value::Text(String::new())];
    let mut texts = std::collections::HashSet::new();
    for length in 0..=values.len() {
        for column in ["a", "b"] {
            for of in ["IN", "NOT IN"] {
                let list = &values[..length];
                let plain = format!("SELECT rowid FROM t WHERE {column} {of} ({})", vec!["?"; length].join(", "));
                let sql = Sql::new("SELECT rowid FROM t WHERE ").push_identifier(column);
                let sql = if of == "IN" { sql.push(" IN ") } else { sql.push(" NOT IN ") }.bind_list(list);
                let found = db.query_values::<i64>(&sql, ()).await.unwrap();
                let expected = db.query_values::<i64>(&plain, Params::positional(list)).await.unwrap();
                assert_eq!(found, expected, "{plain}");
                texts.insert(sql.text().to_owned());
            }
        }
    }
    assert_eq!(texts.len(), 4 * 5, "lists have 0, 1, 2, 4 or 8 values");
    let row = Sql::new("SELECT count(*) FROM (VALUES ").bind_row([1, 2, 3]).push(")");
    assert_eq!(row.text(), "SELECT count(*) FROM (VALUES (?, ?, ?))");
    assert_eq!(db.query_value(&row, ()).await, Ok(1));
    let unstorable = Sql::new("SELECT 1 WHERE 1 IN ").bind_list([1.0, f64::NAN, 2.0]);
    assert!(db.query(&unstorable, ()).await.unwrap_err().message().contains("parameter 2"));
    db.close().await.unwrap();
}

async fn an_identifier_is_a_name_whatever_it_contains(place: &Place) {
    let db = place.open().await;
    for name in ["t", "a b", "a\"b", "'; DROP TABLE t; --", "select", "\u{fc}", "", "[x]", "\"\"", "`", "a``b"] {
        let create = Sql::new("CREATE TABLE ").push_identifier(name).push(" (").push_identifier(name).push(")");
        db.execute(&create, ()).await.unwrap();
        let insert = Sql::new("INSERT INTO ").push_identifier(name).push(" VALUES ").bind_row([name]);
        db.execute(&insert, ()).await.unwrap();
        let read = Sql::new("SELECT ").push_identifier(name).push(" FROM ").push_identifier(name);
        assert_eq!(db.query_optional_value(&read, ()).await, Ok(Some(name.to_owned())));
    }
    // In double quotes it would be a string, and the rows would be in no order.
    let unknown = Sql::new("SELECT t FROM t ORDER BY ").push_identifier("prize");
    let error = db.query(&unknown, ()).await.unwrap_err();
    assert!(error.message().contains("no such column: prize"), "{error}");
    let nul = Sql::new("SELECT 1 FROM ").push_identifier("a\0b");
    assert!(db.query(&nul, ()).await.unwrap_err().message().contains("NUL"));
    db.close().await.unwrap();
}

async fn a_value_that_cannot_be_stored_is_an_error_of_the_call(place: &Place) {
    let db = two_users(place).await;
    let sql = Sql::new("UPDATE users SET name = ").bind(f64::NAN).push(" WHERE name = ").bind(SECRET);
    let outer = Sql::new("").push_sql(&sql);
    for sql in [sql, outer] {
        let error = db.execute(&sql, ()).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("execute")), "{error}");
        assert!(error.message().contains("NaN"), "{error}");
    }
    let sql = Sql::new("SELECT ").bind(SECRET);
    assert!(!format!("{sql:?}").contains(SECRET), "{sql:?}");
    db.close().await.unwrap();
}

async fn a_list_of_bytes_is_refused_with_a_hint(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a, b)", ()).await.unwrap();
    let bytes = vec![1_u8, 2];
    let errors = [
        db.execute("INSERT INTO t VALUES (?, ?)", bytes.clone()).await.unwrap_err(),
        db.execute("INSERT INTO t VALUES (?, ?)", &bytes[..]).await.unwrap_err(),
        db.execute("INSERT INTO t VALUES (?, ?)", b"ab").await.unwrap_err(),
        db.execute_many("INSERT INTO t VALUES (?, ?)", [&bytes]).await.unwrap_err(),
        db.query("SELECT ?", bytes.clone()).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("(bytes,)")), "{error}");
    }
    let blobs = [bytes.clone(), b"x".to_vec()];
    db.execute("INSERT INTO t VALUES (?, ?)", &blobs).await.unwrap();
    assert_eq!(db.query_as("SELECT * FROM t", ()).await, Ok(vec![(bytes.clone(), b"x".to_vec())]));
    assert_eq!(db.query_optional_value("SELECT ?", (bytes.clone(),)).await, Ok(Some(bytes)));
    db.close().await.unwrap();
}

async fn batches_and_boxed_values_take_every_form_of_parameters(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a, b)", ()).await.unwrap();
    let insert = "INSERT INTO t VALUES (?, ?)";
    db.batch([(insert, (1, "tuple")), (insert, (2, "tuple"))]).await.unwrap();
    db.batch([(insert, params![3, "params!"]), ("INSERT INTO t VALUES (:a, :b)", named! { "a": 4, "b": "named!" })])
        .await
        .unwrap();
    db.batch([("DELETE FROM t WHERE a < 3", ())]).await.unwrap();
    let mut pushed = Params::default();
    pushed.push(5).unwrap();
    pushed.push(Some("push")).unwrap();
    db.batch([(insert, pushed)]).await.unwrap();
    let boxed: Vec<Box<dyn ToSql + Send>> = vec![Box::new(6), Box::new("boxed")];
    db.execute(insert, boxed).await.unwrap();
    let rows = || (7..9).map(|a| -> Vec<Box<dyn ToSql + Send + Sync>> { vec![Box::new(a), Box::new("rows")] });
    // A task of its own, which needs the call to be `Send`.
    let many = db.execute_many(insert, rows());
    assert_eq!(tokio::spawn(many).await.unwrap(), Ok(2));
    let values = vec![Value::from(9), Value::from("values".to_owned())];
    db.execute(insert, &values).await.unwrap();
    let all: Vec<(i64, String)> = db.query_as("SELECT a, b FROM t ORDER BY a", ()).await.unwrap();
    let forms = ["params!", "named!", "push", "boxed", "rows", "rows", "values"].map(str::to_owned);
    assert_eq!(all, (3..10).zip(forms).collect::<Vec<_>>());

    let mut named = named! { "a": 1 }.unwrap();
    assert_eq!(named.push(2).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(named, named! { "a": 1 }.into_params().unwrap());
    db.close().await.unwrap();
}

async fn values_of_two_places_are_refused(place: &Place) {
    let db = two_users(place).await;
    let by_id = Sql::new("SELECT name FROM users WHERE id = ").bind(1);
    let error = db.query(&by_id, (2,)).await.unwrap_err();
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Misuse, Some("pass `()` as the parameters of an `Sql`")));
    for error in [
        db.execute_many(&by_id, [(2,)]).await.unwrap_err(),
        db.execute_script(&by_id).await.unwrap_err(),
        db.prepare(&by_id).await.unwrap_err(),
    ] {
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("has values"), "{error}");
    }
    let open = Sql::new("SELECT name FROM users WHERE id = ?");
    assert_eq!(db.query_value::<String>(&open, (2,)).await.unwrap(), "Grace");
    assert_eq!(db.prepare(open).await.unwrap().query_value::<String>((2,)).await.unwrap(), "Grace");
    assert_eq!(db.query_value::<String>("SELECT name FROM users WHERE id = 1".to_owned(), ()).await.unwrap(), "Ada");
}
