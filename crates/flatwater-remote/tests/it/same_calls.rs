//! The same functions on a file and on a cluster.

use flatwater::{Database, Error, ErrorKind, FromRow, Result, Session, Sql, ValueRef, named, params};

use super::double::{Double, runtime};

#[derive(Debug, PartialEq, FromRow)]
struct User {
    id: i64,
    name: String,
    score: f64,
    picture: Option<Vec<u8>>,
}

/// What a program does with a session. Returns all that it got, as text.
pub(crate) async fn program(on: &Session) -> Result<Vec<String>> {
    let mut got = Vec::new();
    let mut add = |what: &dyn std::fmt::Debug| got.push(format!("{what:?}"));
    on.execute(
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, score REAL, picture BLOB) STRICT",
        (),
    )
    .await?;
    let insert = "INSERT INTO users (name, score, picture) VALUES (?, ?, ?)";
    add(&on.execute(insert, ("Ada", 1.0, vec![0_u8, 255])).await?);
    add(&on.execute(insert, ("Eve", 0.5, None::<Vec<u8>>)).await?);
    add(&on.execute("UPDATE users SET score = score + 1", ()).await?);
    add(&on.execute("UPDATE users SET score = 9 WHERE id > 100", ()).await?);
    let upsert =
        "INSERT INTO users (name, score) VALUES (:name, :score) ON CONFLICT DO UPDATE SET score = excluded.score";
    add(&on.execute(upsert, named! { ":name": "Ada", "score": 7.0 }).await?);
    add(&on.execute("DELETE FROM users WHERE name = ?1 AND ?1 = ?2", params!["Eve", "Eve"]).await?);
    add(&on
        .execute("WITH n(x) AS (VALUES ('Flo'), ('Gil')) INSERT INTO users (name, score) SELECT x, 3 FROM n", ())
        .await?);
    add(&on
        .execute_many(insert, (0..300).map(|number| (format!("user {number}"), f64::from(number), None::<Vec<u8>>)))
        .await?);
    add(&on.query_as::<User>("SELECT * FROM users ORDER BY id LIMIT 3", ()).await?);
    add(&on.query_value::<i64>("SELECT count(*) FROM users", ()).await?);
    add(&on.query_optional_value::<i64>("SELECT id FROM users WHERE name = ?", ("nobody",)).await?);
    add(&on.query_value::<i64>("SELECT ?", (i64::MIN,)).await?);
    add(&on.query_value::<String>("SELECT typeof(?1) || length(?1)", (Vec::<u8>::new(),)).await?);
    add(&on.query_values::<Option<String>>("SELECT name FROM users WHERE id < ? ORDER BY id", (4,)).await?);
    add(&on.query_json("SELECT id, name, score, picture FROM users ORDER BY id LIMIT 2", ()).await?);
    let returned = on.query("INSERT INTO users (name, score) VALUES (?, 1) RETURNING id, name", ("Bob",)).await?;
    let row = returned.get(0).unwrap();
    add(&row.values().collect::<Vec<_>>());
    let batch = on
        .batch([
            ("INSERT INTO users (name, score) VALUES (?, ?)", params!["Cid", 1.5]),
            ("UPDATE users SET score = 2.5 WHERE name = ?", params!["Cid"]),
            ("DELETE FROM users WHERE name = ? RETURNING id", params!["Cid"]),
        ])
        .await?;
    add(&batch
        .iter()
        .map(|one| (one.changes, one.last_insert_rowid, one.rows.as_ref().map(flatwater::Rows::len)))
        .collect::<Vec<_>>());
    on.execute_script("CREATE TABLE a (x); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)").await?;
    add(&on.query_values::<i64>(Sql::new("SELECT x FROM a WHERE x IN ").bind_list([1, 2, 3]), ()).await?);
    let mut rows = on.stream("SELECT x FROM a ORDER BY x", ());
    while let Some(row) = rows.next().await {
        add(&row?.get::<i64>(0)?);
    }
    let two = on.query("SELECT 1 AS a, 2 AS a", ()).await?;
    let row = two.get(0).unwrap();
    add(&(two.columns().collect::<Vec<_>>(), row.values().collect::<Vec<_>>()));
    add(&on.query_values::<i64>("SELECT count(*) FROM pragma_table_info('users')", ()).await?);
    let columns = on.query("PRAGMA table_info(users)", ()).await?;
    add(&(0..columns.len()).map(|row| columns.get(row).unwrap().get::<String>("name")).collect::<Vec<_>>());
    add(&on.query_value::<f64>("SELECT ?", (0.1 + 0.2,)).await?);
    add(&on.in_transaction());
    Ok(got)
}

#[test]
fn a_program_gets_the_same_on_a_file_and_on_a_cluster() {
    let (double, file) = (Double::start(), Database::open(":memory:").wait().unwrap());
    let cluster = double.connect();
    runtime().block_on(async {
        assert_eq!(program(&cluster).await.unwrap(), program(&file).await.unwrap());
        cluster.close().await.unwrap();
        assert_eq!(cluster.execute("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_blob_of_an_expression_is_a_text_on_rqlite_and_no_other_text_if_bytes_are_lost() {
    let double = Double::start();
    let cluster = double.connect();
    runtime().block_on(async {
        let one = async |sql: &str, value: &[u8]| cluster.query(sql, (value,)).await.unwrap();
        assert_eq!(one("SELECT ?", b"ab").await.get(0).unwrap().get::<String>(0).unwrap(), "ab");
        let rows = one("SELECT 1, ?", &[0xff, b'a', 0]).await;
        let row = rows.get(0).unwrap();
        assert_eq!((row.get::<i64>(0).unwrap(), row.value(1).unwrap()), (1, ValueRef::Text(b"\xffa\0")));
        assert!(row.get::<String>(1).unwrap_err().to_string().to_lowercase().contains("utf-8"));
        let error = cluster.query_value::<flatwater::Value>("SELECT ?", (&[0xff_u8][..],)).await.unwrap_err();
        assert!(error.to_string().to_lowercase().contains("utf-8"), "{error}");
        let digits = "SELECT hex(?)";
        assert_eq!(one(digits, &[0xff]).await.get(0).unwrap().get::<String>(0).unwrap(), "FF");
        cluster.execute("CREATE TABLE t (a BLOB, b TEXT)", ()).await.unwrap();
        cluster.execute("INSERT INTO t VALUES (?1, ?1)", (&[0xff_u8][..],)).await.unwrap();
        let rows = cluster.query("SELECT a, b FROM t", ()).await.unwrap();
        assert_eq!(
            rows.get(0).unwrap().values().collect::<Vec<_>>(),
            [ValueRef::Blob(b"\xff"), ValueRef::Text(b"\xff")]
        );
    });
}

/// As `rqlite.md` says.
#[test]
fn what_is_declared_as_a_time_or_a_boolean_is_converted_on_rqlite_and_an_expression_is_not() {
    let double = Double::start();
    let cluster = double.connect();
    runtime().block_on(async {
        cluster.execute("CREATE TABLE t (at DATETIME, is_so BOOLEAN)", ()).await.unwrap();
        cluster.execute_many("INSERT INTO t VALUES (?, ?)", [("2024-02-29 23:05:06", 2), ("soon", -1)]).await.unwrap();
        let read = async |sql: &str| cluster.query_as::<(String, i64)>(sql, ()).await.unwrap();
        let expected = [("2024-02-29T23:05:06Z".to_owned(), 1), ("0001-01-01T00:00:00Z".to_owned(), 0)];
        assert_eq!(read("SELECT at, is_so FROM t").await, expected);
        let stored = [("2024-02-29 23:05:06".to_owned(), 2), ("soon".to_owned(), -1)];
        assert_eq!(read("SELECT +at, +is_so FROM t").await, stored);
    });
}

#[test]
fn what_each_node_would_make_another_value_of_is_refused_in_writes_and_read_as_it_is() {
    let double = Double::start();
    let cluster = double.connect();
    runtime().block_on(async {
        cluster.execute("CREATE TABLE t (a CHECK (datetime(a) IS NOT NULL))", ()).await.unwrap();
        let insert = "INSERT INTO t VALUES (datetime(?))";
        cluster.execute(insert, ("2024-02-29",)).await.unwrap();
        let rows = [("2024-03-01",), ("now",)];
        let refused = [
            cluster.execute("INSERT INTO t VALUES (datetime('now'))", ()).await.unwrap_err(),
            cluster.execute_many(insert, rows).await.unwrap_err(),
            cluster.batch([(insert, ("2024-03-01",)), (insert, ("now",))]).await.unwrap_err(),
            cluster.execute_script("DELETE FROM t; CREATE TABLE u (a DEFAULT CURRENT_TIMESTAMP)").await.unwrap_err(),
            cluster.query("INSERT INTO t VALUES (unixepoch()) RETURNING a", ()).await.unwrap_err(),
        ];
        for error in refused {
            assert!(error.message().contains("another value on each node") && error.hint().is_some(), "{error}");
        }
        let read = "SELECT a, datetime('now') > a FROM t";
        assert_eq!(
            cluster.query_as::<(String, bool)>(read, ()).await.unwrap(),
            [("2024-02-29 00:00:00".to_owned(), true)]
        );
    });
}

/// What programs do wrong. Returns each error.
fn mistakes(on: &Session) -> Vec<(&'static str, Error)> {
    on.execute_script(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c CHECK (c > 0)); INSERT INTO t VALUES (1, 1, 1)",
    )
    .wait()
    .unwrap();
    let executes = [
        "INSERT INTO t VALUES (2, 1, 1)",
        "INSERT INTO t VALUES (2, 2, 0)",
        "INSERT INTO missing VALUES (1)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO",
        "SELECT a FROM t",
        "INSERT INTO t VALUES (?, 5, 5)",
        "DELETE FROM t; DELETE FROM t",
        "",
        "BEGIN",
        "ROLLBACK",
        "SAVEPOINT a",
        "ATTACH ':memory:' AS other",
        "PRAGMA foreign_keys = OFF",
    ];
    let mut errors: Vec<_> =
        executes.into_iter().map(|sql| (sql, on.execute(sql, ()).wait().expect_err(sql))).collect();
    let queries = ["UPDATE t SET b = 3", "SELECT missing FROM t", "SELECT 1; SELECT 2", "VACUUM"];
    errors.extend(queries.into_iter().map(|sql| (sql, on.query(sql, ()).wait().expect_err(sql))));
    errors.push(("too few", on.query("SELECT ?, ?", (1,)).wait().unwrap_err()));
    errors.push(("too many", on.query("SELECT ?1, ?1", (1, 2)).wait().unwrap_err()));
    errors.push(("named", on.query("SELECT :a", named! { ":b": 1 }).wait().unwrap_err()));
    errors.push(("no row", on.query_one("SELECT a FROM t WHERE a = 9", ()).wait().unwrap_err()));
    errors.push(("another type", on.query_value::<bool>("SELECT 'text'", ()).wait().unwrap_err()));
    let batch = on.batch([("DELETE FROM t", ()), ("INSERT INTO missing VALUES (1)", ())]).wait().unwrap_err();
    errors.push(("batch", batch));
    let many = on.execute_many("INSERT INTO t (b) VALUES (?)", [(7,), (7,)]).wait().unwrap_err();
    errors.push(("many", many));
    assert_eq!(on.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 1, "nothing has stayed");
    errors
}

#[test]
fn a_mistake_is_the_same_error_on_a_file_and_on_a_cluster() {
    let (double, file) = (Double::start(), Database::open(":memory:").wait().unwrap());
    compare_mistakes(&file, &double.connect());
}

pub(crate) fn compare_mistakes(file: &Session, server: &Session) {
    for ((what, theirs), (_, ours)) in mistakes(file).into_iter().zip(mistakes(server)) {
        assert_eq!(ours.kind(), theirs.kind(), "{what}: {ours}");
        // A text that is refused before it is sent has no code of SQLite.
        if ours.sqlite_code().is_some() {
            assert_eq!(ours.sqlite_code(), theirs.sqlite_code(), "{what}");
            // A libSQL server reads each text before SQLite does.
            if !ours.message().starts_with("SQL string could not be parsed") {
                assert_eq!((ours.message(), ours.sql()), (theirs.message(), theirs.sql()), "{what}");
                assert!(ours.offset().is_none_or(|offset| Some(offset) == theirs.offset()), "{what}");
            }
        }
    }
}

#[test]
fn what_cannot_be_said_in_json_is_refused_before_it_is_sent() {
    let double = Double::start();
    let cluster = double.connect();
    let insert = "INSERT INTO t VALUES (?)";
    let errors = [
        cluster.execute(insert, (f64::INFINITY,)).wait().unwrap_err(),
        cluster.execute(insert, ("x'41'",)).wait().unwrap_err(),
        cluster.execute("UPDATE t SET a = ? WHERE a = :a", named! { ":a": 1 }).wait().unwrap_err(),
        cluster.query("INSERT INTO t VALUES (1) RETURNING\na", ()).wait().unwrap_err(),
        cluster.execute("INSERT INTO t VALUES (last_insert_rowid())", ()).wait().unwrap_err(),
        cluster.execute_script("INSERT INTO t VALUES (1); INSERT INTO t VALUES (changes())").wait().unwrap_err(),
        cluster.execute("CREATE TEMP TABLE t (a)", ()).wait().unwrap_err(),
        cluster.execute("INSERT INTO temp.t VALUES (1)", ()).wait().unwrap_err(),
        cluster.batch([("SELECT 1", ())]).wait().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.hint().is_some(), "{error}");
    }
    assert_eq!(double.requests(), 0);
}
