//! Reading one row, one column or a whole result as types, without the derive macros.

use std::net::IpAddr;

use flatwater::{Database, Error, ErrorKind, FromRow, Result, Row, Rows};

use crate::place::{Place, in_both_places};

in_both_places!(
    one_row_is_read_or_its_absence_is_an_error_and_an_optional_one_is_none,
    the_first_column_of_every_row_is_read_also_of_many_rows,
    a_null_is_read_as_an_option_and_no_row_is_none_or_an_error,
    an_option_of_a_row_is_none_if_all_its_columns_are_null,
    rows_are_iterated_by_reference_and_owned_and_from_both_ends,
    an_error_names_column_row_sql_and_both_types_and_no_value,
    a_result_that_does_not_fit_is_an_error_even_without_rows,
    a_type_of_ones_own_refuses_a_value_with_column_row_and_sql,
    a_write_that_returns_what_cannot_be_read_has_written,
);

async fn open(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'Ada'), (2, NULL)")
        .await
        .unwrap();
    db
}

async fn one_row_is_read_or_its_absence_is_an_error_and_an_optional_one_is_none(place: &Place) {
    let db = open(place).await;
    let by_id = "SELECT id, name FROM t WHERE id >= ? ORDER BY id";
    let prepared = db.prepare(by_id).await.unwrap();
    type Found = (i64, Option<String>);
    let ada = (1, Some("Ada".to_owned()));
    assert_eq!(db.query_one_as::<Found>(by_id, (1,)).await, Ok(ada.clone()));
    assert_eq!(prepared.query_one_as::<Found>((1,)).await, Ok(ada.clone()));
    assert_eq!(db.query_optional_as::<Found>(by_id, (1,)).await, Ok(Some(ada.clone())));
    assert_eq!(prepared.query_optional_as::<Found>((3,)).await, Ok(None));
    let missing = [db.query_one_as::<Found>(by_id, (3,)).await, prepared.query_one_as::<Found>((3,)).await];
    for error in missing.map(Result::unwrap_err) {
        assert_eq!(
            (error.kind(), error.operation(), error.sql()),
            (ErrorKind::RowNotFound, Some("query_one_as"), Some(by_id))
        );
        assert!(error.hint().is_some() && error.row().is_none() && !error.is_retryable(), "{error}");
    }
    let inside = db
        .transaction(async |tx| {
            assert_eq!(tx.query_one_as::<Found>(by_id, (9,)).await.unwrap_err().kind(), ErrorKind::RowNotFound);
            assert_eq!(tx.query_optional_as::<Found>(by_id, (9,)).await?, None);
            assert_eq!(tx.query_values::<i64>("SELECT id FROM t", ()).await?, [1, 2]);
            tx.query_one_as::<Found>(by_id, (1,)).await
        })
        .await;
    assert_eq!(inside, Ok(ada));
    db.close().await.unwrap();
}

async fn the_first_column_of_every_row_is_read_also_of_many_rows(place: &Place) {
    let db = open(place).await;
    let numbers =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT x, 'other' FROM n";
    for count in [1, 256, 257, 5000] {
        assert!(db.query_values::<i64>(numbers, (count,)).await.unwrap().into_iter().eq(1..=count));
    }
    assert_eq!(db.query_values::<i64>("SELECT id FROM t WHERE id > 9", ()).await, Ok(Vec::new()));
    let names = "SELECT name FROM t ORDER BY id";
    let both = [Some("Ada".to_owned()), None];
    assert_eq!(db.query_values::<Option<String>>(names, ()).await.unwrap(), both);
    assert_eq!(db.prepare(names).await.unwrap().query_values::<Option<String>>(()).await.unwrap(), both);
    for (count, last) in [(2, 1), (5000, 300)] {
        let sql = format!("SELECT iif(x = {}, NULL, x) FROM ({})", last + 1, numbers.replace('?', &count.to_string()));
        let error = db.query_values::<i64>(&sql, ()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.operation(), error.row()),
            (ErrorKind::Decode, Some("query_values"), Some(last))
        );
    }
    db.close().await.unwrap();
}

async fn a_null_is_read_as_an_option_and_no_row_is_none_or_an_error(place: &Place) {
    let db = open(place).await;
    let sum = "SELECT sum(id) FROM t WHERE id > ?";
    let (none, name) = ("SELECT id FROM t WHERE id > 9", "SELECT name FROM t WHERE id = ?");
    assert_eq!(db.query_value::<i64>(sum, (0,)).await, Ok(3));
    assert_eq!(db.query_value::<Option<i64>>(sum, (9,)).await, Ok(None));
    assert_eq!(db.query_optional_value::<i64>(sum, (0,)).await, Ok(Some(3)));
    assert_eq!(db.query_optional_value::<Option<i64>>(sum, (9,)).await, Ok(Some(None)));
    assert_eq!(db.query_optional_value::<i64>(none, ()).await, Ok(None));
    let prepared = db.prepare(name).await.unwrap();
    assert_eq!(prepared.query_value::<String>((1,)).await.as_deref(), Ok("Ada"));
    assert_eq!(prepared.query_optional_value::<String>((9,)).await, Ok(None));
    assert_eq!(db.query_one(name, (1,)).await.unwrap().get(0), Ok("Ada".to_owned()));
    assert!(db.query_optional(name, (9,)).await.unwrap().is_none());
    for (operation, missing) in [
        ("query_value", db.query_value::<i64>(none, ()).await.unwrap_err()),
        ("query_one", db.query_one(none, ()).await.unwrap_err()),
    ] {
        assert_eq!(
            (missing.kind(), missing.operation(), missing.sql()),
            (ErrorKind::RowNotFound, Some(operation), Some(none))
        );
        assert!(missing.hint().unwrap().contains("optional"), "{missing}");
    }
    for error in [
        db.query_value::<i64>(sum, (9,)).await.unwrap_err(),
        db.query_optional_value::<i64>(sum, (9,)).await.unwrap_err(),
        db.query_value::<i64>("SELECT 'text'", ()).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Decode);
    }
    let null = db.query_value::<i64>(sum, (9,)).await.unwrap_err();
    assert!(null.to_string().contains("NULL"), "{null}");
}

async fn an_option_of_a_row_is_none_if_all_its_columns_are_null(place: &Place) {
    let db = open(place).await;
    type Pair = Option<(Option<i64>, Option<String>)>;
    let pairs: Vec<Pair> = db.query_as("VALUES (1, 'a'), (NULL, NULL), (NULL, 'b')", ()).await.unwrap();
    assert_eq!(pairs, [Some((Some(1), Some("a".into()))), None, Some((None, Some("b".into())))]);
    assert_eq!(db.query_one_as::<Option<(i64, i64)>>("SELECT NULL, NULL", ()).await, Ok(None));
    assert_eq!(db.query_one_as::<Option<Option<(i64,)>>>("SELECT NULL", ()).await, Ok(None));
    assert_eq!(db.query_one_as::<Option<Option<(i64,)>>>("SELECT 1", ()).await, Ok(Some(Some((1,)))));
    let half = db.query_one_as::<Option<(i64, i64)>>("SELECT 1, NULL", ()).await.unwrap_err();
    assert!(half.message().contains("column 1"), "{half}");
    assert_eq!(db.query_one_as::<Option<Name>>("SELECT NULL AS name", ()).await, Ok(None));
    assert_eq!(db.query_one_as::<Option<Name>>("SELECT 'A' AS name", ()).await, Ok(Some(Name("A".into()))));
    db.close().await.unwrap();
}

/// Implemented by hand: reads its columns in each row.
#[derive(Debug, PartialEq)]
struct Name(String);

impl FromRow for Name {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        row.get("name").map(Self)
    }
}

async fn rows_are_iterated_by_reference_and_owned_and_from_both_ends(place: &Place) {
    let db = open(place).await;
    let rows = db.query("SELECT id, name FROM t ORDER BY id", ()).await.unwrap();
    let mut ids = Vec::new();
    for row in &rows {
        ids.push(row.get::<i64>("id").unwrap());
    }
    assert_eq!(ids, [1, 2]);
    assert_eq!((rows.iter().len(), rows.iter().nth(1).unwrap().get::<i64>(0)), (2, Ok(2)));
    assert!(rows.iter().rev().map(|row| row.get::<i64>(0).unwrap()).eq([2, 1]));
    let mut owned = rows.clone().into_iter();
    let (first, second) = (owned.next().unwrap(), owned.next().unwrap());
    assert!(owned.next().is_none() && owned.next().is_none());
    drop((rows, owned));
    let elsewhere = std::thread::spawn(move || first.get::<String>("name")).join().unwrap();
    assert_eq!((elsewhere.as_deref(), second.get(0)), (Ok("Ada"), Ok(2)));
    assert!(Rows::default().into_iter().next().is_none());
    db.close().await.unwrap();
}

async fn an_error_names_column_row_sql_and_both_types_and_no_value(place: &Place) {
    let db = open(place).await;
    let sql = "SELECT id, coalesce(name, 'hunter2') AS who FROM t ORDER BY id";
    let rows = db.query(sql, ()).await.unwrap();
    let one = db.query_optional(sql, ()).await.unwrap().unwrap();
    let errors = [
        (rows.read::<(i64, Option<u8>)>().unwrap_err(), Some(0)),
        (db.query_as::<(i64, Option<u8>)>(sql, ()).await.unwrap_err(), Some(0)),
        (db.query_one_as::<(i64, Option<u8>)>(sql, ()).await.unwrap_err(), Some(0)),
        (db.query_optional_as::<(i64, Option<u8>)>(sql, ()).await.unwrap_err(), Some(0)),
        (one.get::<Option<u8>>("who").unwrap_err(), Some(0)),
        (rows.get(1).unwrap().get::<Option<u8>>(1).unwrap_err(), Some(1)),
        (rows.get(1).unwrap().read::<(i64, Option<u8>)>().unwrap_err(), Some(1)),
    ];
    for (error, row) in errors {
        assert_eq!((error.kind(), error.row(), error.sql()), (ErrorKind::Decode, row, Some(sql)));
        assert_eq!(error.message(), "column 1 (who): TEXT cannot be read as Option<u8>");
        let text = format!("{error} {error:?}");
        assert!(text.contains(&format!("(row {})", row.unwrap())) && !text.contains("Ada"), "{text}");
    }
    let null = db.query_as::<(String,)>("SELECT name FROM t ORDER BY id", ()).await.unwrap_err();
    assert_eq!((null.message(), null.row()), ("column 0 (name): NULL cannot be read as String", Some(1)));
    assert!(null.hint().unwrap().contains("Option<String>"), "{null}");
    let large = db.query_as::<(u8,)>("SELECT 4321 AS age", ()).await.unwrap_err();
    assert!(large.message().contains("INTEGER does not fit into u8") && !large.message().contains("4321"), "{large}");
    db.close().await.unwrap();
}

async fn a_result_that_does_not_fit_is_an_error_even_without_rows(place: &Place) {
    let db = open(place).await;
    let none = "SELECT id, name FROM t WHERE id > 9";
    for error in [
        db.query_as::<(i64,)>(none, ()).await.unwrap_err(),
        db.query_one_as::<(i64,)>(none, ()).await.unwrap_err(),
        db.query_optional_as::<(i64,)>(none, ()).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.row(), error.sql()), (ErrorKind::Misuse, None, Some(none)));
        assert!(error.message().contains("2 column(s)"), "{error}");
    }
    let row = db.query_optional("SELECT id FROM t", ()).await.unwrap().unwrap();
    let error = row.get::<i64>("nmae").unwrap_err();
    assert!(error.message().contains("nmae") && error.sql() == Some("SELECT id FROM t"), "{error}");
    assert!(row.value(7).unwrap_err().message().contains("no column 7"));
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq)]
struct Host(IpAddr);

impl FromRow for Host {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let address: String = row.get("address")?;
        Ok(Self(address.parse().map_err(|error| Error::decode("address", error))?))
    }
}

async fn a_type_of_ones_own_refuses_a_value_with_column_row_and_sql(place: &Place) {
    let db = open(place).await;
    let sql = "SELECT column1 AS address FROM (VALUES ('::1'), ('nowhere'))";
    assert_eq!(db.query_one_as::<Host>(sql, ()).await, Ok(Host("::1".parse().unwrap())));
    let rows = db.query(sql, ()).await.unwrap();
    let errors = [db.query_as::<Host>(sql, ()).await.unwrap_err(), rows.get(1).unwrap().read::<Host>().unwrap_err()];
    for error in errors {
        assert_eq!((error.kind(), error.row(), error.sql()), (ErrorKind::Decode, Some(1), Some(sql)));
        assert_eq!(error.message(), "column address: invalid IP address syntax");
    }
    db.close().await.unwrap();
}

async fn a_write_that_returns_what_cannot_be_read_has_written(place: &Place) {
    let db = open(place).await;
    let insert = "INSERT INTO t (name) VALUES (?) RETURNING name";
    db.query_one_as::<(i64,)>(insert, ("Eve",)).await.unwrap_err();
    assert_eq!(db.query_values::<String>(insert, ("Eve",)).await.unwrap(), ["Eve"]);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(Some(4)));
    db.close().await.unwrap();
}
