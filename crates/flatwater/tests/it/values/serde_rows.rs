//! Rows that are read by serde.

use std::collections::BTreeMap;

use flatwater::values::Serde;
use flatwater::{Database, ErrorKind};
use serde::Deserialize;

use crate::place::{Place, in_both_places};

in_both_places!(
    a_struct_is_read_by_names_and_a_tuple_by_positions,
    every_form_of_a_cell_is_read,
    enums_options_and_newtypes_are_read,
    a_flattened_struct_a_map_and_a_tagged_enum_are_read,
    the_whole_row_may_be_optional_or_one_value,
    errors_name_column_row_sql_and_both_types_and_no_value,
    a_stream_reads_rows_by_serde,
);

#[derive(Debug, PartialEq, Deserialize)]
struct User {
    id: i64,
    name: Option<String>,
    #[serde(rename = "isAdmin")]
    admin: bool,
    #[serde(default)]
    age: u8,
}

async fn one<T: serde::de::DeserializeOwned + Send + 'static>(db: &Database, sql: &str) -> flatwater::Result<T> {
    db.query_one_as::<Serde<T>>(sql, ()).await.map(|Serde(value)| value)
}

async fn a_struct_is_read_by_names_and_a_tuple_by_positions(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT 9 AS other, 1 AS isAdmin, column2 AS name, column1 AS id FROM (VALUES (1, 'Ada'), (2, NULL))";
    let users: Vec<Serde<User>> = db.query_as(sql, ()).await.unwrap();
    let user = |id, name: Option<&str>| User { id, name: name.map(str::to_owned), admin: true, age: 0 };
    assert_eq!(users, [Serde(user(1, Some("Ada"))), Serde(user(2, None))]);
    // A field of type Option may have no column.
    assert_eq!(one::<User>(&db, "SELECT 3 AS id, 1 AS isAdmin, 255 AS age").await.unwrap().age, 255);
    assert_eq!(one::<(i64, String)>(&db, "SELECT 1, 'a'").await.unwrap(), (1, "a".to_owned()));
    assert_eq!(one::<[i64; 3]>(&db, "SELECT 1, 2, 3").await.unwrap(), [1, 2, 3]);
    assert_eq!(one::<Vec<Option<f64>>>(&db, "SELECT 1, NULL, 0.5").await.unwrap(), [Some(1.0), None, Some(0.5)]);
    #[derive(Debug, PartialEq, Deserialize)]
    struct Point(i32, i32);
    assert_eq!(one::<Point>(&db, "SELECT -1, 2").await.unwrap(), Point(-1, 2));
}

async fn every_form_of_a_cell_is_read(place: &Place) {
    #[derive(Debug, PartialEq, Deserialize)]
    struct All {
        small: i8,
        large: u64,
        float: f32,
        whole: f64,
        yes: bool,
        letter: char,
        text: String,
        bytes: Vec<u8>,
        four: [u8; 4],
        empty: Vec<u8>,
        empty_too: (),
    }
    let db = place.open().await;
    let sql = "SELECT -128 AS small, 9223372036854775807 AS large, 0.5 AS float, 3 AS whole, 1 AS yes, 'é' AS letter,
        'text' AS text, x'0001ff' AS bytes, x'01020304' AS four, x'' AS empty, NULL AS empty_too";
    let all = All {
        small: -128,
        large: i64::MAX as u64,
        float: 0.5,
        whole: 3.0,
        yes: true,
        letter: 'é',
        text: "text".into(),
        bytes: vec![0, 1, 255],
        four: [1, 2, 3, 4],
        empty: Vec::new(),
        empty_too: (),
    };
    assert_eq!(one::<All>(&db, sql).await.unwrap(), all);
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Open,
    InProgress,
}

async fn enums_options_and_newtypes_are_read(place: &Place) {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Id(i64);
    #[derive(Debug, PartialEq, Deserialize)]
    struct Task {
        id: Id,
        state: State,
        before: Option<State>,
        parent: Option<Id>,
        nested: Option<Option<i64>>,
    }
    let db = place.open().await;
    let sql = "SELECT 1 AS id, 'in_progress' AS state, NULL AS before, 2 AS parent, 5 AS nested";
    let task = Task { id: Id(1), state: State::InProgress, before: None, parent: Some(Id(2)), nested: Some(Some(5)) };
    assert_eq!(one::<Task>(&db, sql).await.unwrap(), task);
    assert_eq!(one::<Id>(&db, "SELECT 7").await.unwrap(), Id(7));
    assert_eq!(one::<State>(&db, "SELECT 'open'").await.unwrap(), State::Open);
}

async fn a_flattened_struct_a_map_and_a_tagged_enum_are_read(place: &Place) {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Place {
        city: String,
        zip: Option<u32>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Person {
        name: String,
        #[serde(flatten)]
        place: Place,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Event {
        Sent { to: String },
        Read { at: i64 },
    }
    let db = place.open().await;
    let person = one::<Person>(&db, "SELECT 'Ada' AS name, 'London' AS city, NULL AS zip").await.unwrap();
    assert_eq!(person, Person { name: "Ada".into(), place: Place { city: "London".into(), zip: None } });
    let map = one::<BTreeMap<String, i64>>(&db, "SELECT 1 AS a, 2 AS b").await.unwrap();
    assert_eq!(map, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
    let sql = "SELECT column1 AS kind, column2 AS at, column3 AS \"to\" FROM (VALUES ('read', 5, NULL), ('sent', NULL, 'Bo'))";
    let events: Vec<Serde<Event>> = db.query_as(sql, ()).await.unwrap();
    assert_eq!(events, [Serde(Event::Read { at: 5 }), Serde(Event::Sent { to: "Bo".into() })]);
}

async fn the_whole_row_may_be_optional_or_one_value(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT column1 AS id, column2 AS isAdmin FROM (VALUES (NULL, NULL), (1, 0))";
    let users: Vec<Option<Serde<User>>> = db.query_as(sql, ()).await.unwrap();
    assert!(users[0].is_none() && users[1].is_some());
    let users: Vec<Serde<Option<User>>> = db.query_as(sql, ()).await.unwrap();
    assert!(users[0].0.is_none() && users[1].0.is_some());
    assert_eq!(one::<String>(&db, "SELECT 'a'").await.unwrap(), "a");
    assert_eq!(one::<Option<i64>>(&db, "SELECT NULL").await.unwrap(), None);
    assert!(one::<i64>(&db, "SELECT 1, 2").await.unwrap_err().message().contains("2 column(s)"));
    assert!(db.query_as::<Serde<User>>("SELECT 1 AS id WHERE 0", ()).await.unwrap().is_empty());
}

async fn errors_name_column_row_sql_and_both_types_and_no_value(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT 1 AS id, 0 AS isAdmin, column1 AS age FROM (VALUES (1), (4321))";
    let error = db.query_as::<Serde<User>>(sql, ()).await.unwrap_err();
    assert_eq!((error.kind(), error.row(), error.sql()), (ErrorKind::Decode, Some(1), Some(sql)));
    assert_eq!(error.message(), "column 2 (age): its INTEGER does not fit into u8");
    for (value, what) in [
        ("'s3cret'", "column 2 (age): TEXT cannot be read as u8"),
        ("x'00'", "column 2 (age): BLOB cannot be read as u8"),
        ("0.5", "column 2 (age): REAL cannot be read as u8"),
        ("NULL", "column 2 (age): NULL cannot be read as u8"),
    ] {
        let error = one::<User>(&db, &format!("SELECT 1 AS id, 0 AS isAdmin, {value} AS age")).await.unwrap_err();
        assert_eq!(error.message(), what);
    }
    let null = one::<(i64,)>(&db, "SELECT NULL").await.unwrap_err();
    assert!(null.hint().unwrap().contains("Option"), "{null}");
    let missing = one::<User>(&db, "SELECT 1 AS isAdmin").await.unwrap_err();
    assert_eq!(missing.message(), "the result has no column id");
    let twice = one::<User>(&db, "SELECT 1 AS id, 2 AS id, 1 AS isAdmin").await.unwrap_err();
    assert!(twice.message().contains("two columns are read as id"), "{twice}");
    let unknown = one::<State>(&db, "SELECT 's3cret'").await.unwrap_err();
    assert_eq!(unknown.message(), "column 0 ('s3cret'): its TEXT is not one of the variants open, in_progress");
    let state = db.query_one_as::<Serde<State>>("SELECT ? AS state", ("s3cret",)).await.unwrap_err();
    assert_eq!(state.message(), "column 0 (state): its TEXT is not one of the variants open, in_progress");
    let number = db.query_one_as::<Serde<State>>("SELECT ? AS state", (5,)).await.unwrap_err();
    assert_eq!(number.message(), "column 0 (state): INTEGER cannot be read as an enum");
    let short = one::<([u8; 4],)>(&db, "SELECT x'01'").await.unwrap_err();
    assert!(short.message().contains("its BLOB has 1 bytes and is read as 4"), "{short}");
    let count = one::<(i64, i64)>(&db, "SELECT 1").await.unwrap_err();
    assert_eq!(count.message(), "the result has 1 column(s) and is read as 2");
    let blob = one::<(String,)>(&db, "SELECT x'41'").await.unwrap_err();
    assert_eq!(blob.message(), "column 0 (x'41'): BLOB cannot be read as a string");
    let bytes = one::<(Vec<u8>,)>(&db, "SELECT 'a'").await.unwrap_err();
    assert!(bytes.message().contains("TEXT cannot be read as"), "{bytes}");
    let malformed = one::<(String,)>(&db, "SELECT CAST(x'ff' AS TEXT) AS a").await.unwrap_err();
    assert_eq!(malformed.message(), "column 0 (a): its TEXT is not UTF-8");
    let nested = one::<(Vec<String>,)>(&db, "SELECT 'a'").await.unwrap_err();
    assert!(nested.message().contains("column 0 ('a'): TEXT cannot be read as a sequence"), "{nested}");
}

async fn a_stream_reads_rows_by_serde(place: &Place) {
    let db = place.open().await;
    let sql =
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT 3000) SELECT id, 0 AS isAdmin FROM n";
    let mut rows = db.stream_as::<Serde<User>>(sql, ());
    let mut sum = 0;
    while let Some(row) = rows.next().await {
        sum += row.unwrap().0.id;
    }
    assert_eq!(sum, 3000 * 3001 / 2);
}
