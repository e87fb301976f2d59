//! Structs that derive `FromRow`.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use flatwater::{Database, ErrorKind, FromRow, FromSql};

use crate::place::{Place, in_both_places};

in_both_places!(
    fields_are_read_from_the_columns_of_their_names_in_any_order,
    names_can_be_given_and_cased,
    an_absent_column_is_the_default_or_an_error_and_null_is_never_replaced,
    a_flattened_struct_reads_its_own_columns_and_is_none_after_a_left_join,
    tuple_structs_and_newtypes_are_read_by_position,
    a_converted_value_that_does_not_fit_names_both_types,
    generic_structs_are_read,
    an_error_in_a_late_row_of_a_large_result_names_it,
);

#[derive(Debug, PartialEq, FromRow)]
struct User {
    id: i64,
    name: Option<String>,
    r#type: String,
}

async fn fields_are_read_from_the_columns_of_their_names_in_any_order(place: &Place) {
    let db = place.open().await;
    let sql =
        "SELECT 'x' AS other, 'admin' AS type, column2 AS NAME, column1 AS id FROM (VALUES (1, 'Ada'), (2, NULL))";
    let users: Vec<User> = db.query_as(sql, ()).await.unwrap();
    let ada = || User { id: 1, name: Some("Ada".into()), r#type: "admin".into() };
    assert_eq!(users, [ada(), User { id: 2, name: None, r#type: "admin".into() }]);
    assert_eq!(db.query_one_as::<User>(sql, ()).await.unwrap(), ada());
    assert_eq!(db.query_optional_as::<User>(sql, ()).await.unwrap(), Some(ada()));
    let rows = db.query(sql, ()).await.unwrap();
    assert_eq!(rows.get(0).unwrap().read::<User>().unwrap(), ada());
    assert_eq!(User::from_row(&rows.get(0).unwrap()).unwrap(), ada());
    assert_eq!(rows.read::<User>().unwrap(), users);
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq, FromRow)]
#[flatwater(rename_all = "camelCase")]
struct Renamed {
    user_id: i64,
    #[flatwater(rename = "the name")]
    full_name: String,
}

async fn names_can_be_given_and_cased(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT 0 AS user_id, 'no' AS fullName, 1 AS userId, 'Ada' AS \"the name\"";
    assert_eq!(db.query_one_as::<Renamed>(sql, ()).await.unwrap(), Renamed { user_id: 1, full_name: "Ada".into() });
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq, FromRow)]
struct Defaults {
    id: i64,
    #[flatwater(default)]
    stars: u8,
    #[flatwater(default = "five")]
    limit: i64,
    #[flatwater(skip)]
    seen: BTreeSet<i64>,
}

fn five() -> i64 {
    5
}

async fn an_absent_column_is_the_default_or_an_error_and_null_is_never_replaced(place: &Place) {
    let db = place.open().await;
    let read = async |sql: &str| db.query_one_as::<Defaults>(sql, ()).await;
    let absent = Defaults { id: 1, stars: 0, limit: 5, seen: BTreeSet::new() };
    assert_eq!(read("SELECT 1 AS id, 'x' AS seen").await, Ok(absent));
    let there = Defaults { id: 1, stars: 2, limit: 3, seen: BTreeSet::new() };
    assert_eq!(read("SELECT 3 AS \"limit\", 1 AS id, 2 AS stars").await, Ok(there));
    let null = read("SELECT 1 AS id, NULL AS stars").await.unwrap_err();
    assert!(null.message().contains("column 1 (stars): NULL cannot be read as u8"), "{null}");
    for sql in ["SELECT 1 AS key, 2 AS stars", "SELECT 1 AS key, 2 AS stars LIMIT 0"] {
        let error = db.query_as::<Defaults>(sql, ()).await.unwrap_err();
        assert_eq!((error.kind(), error.row(), error.sql()), (ErrorKind::Misuse, None, Some(sql)));
        assert!(error.message().contains("no column named \"id\"; the result has key, stars"), "{error}");
        assert!(error.hint().unwrap().contains("rename"), "{error}");
    }
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq, FromRow)]
struct Author {
    author_id: i64,
    #[flatwater(rename = "author_name")]
    name: Option<String>,
    #[flatwater(flatten)]
    place: Option<Town>,
}

#[derive(Debug, PartialEq, FromRow)]
struct Town {
    town: String,
    #[flatwater(default)]
    inhabitants: Option<i64>,
}

#[derive(Debug, PartialEq, FromRow)]
struct Post {
    id: i64,
    #[flatwater(flatten)]
    author: Option<Author>,
    title: String,
}

async fn posts(db: &Database, author: &str) -> Vec<Post> {
    let sql = format!("SELECT posts.id, title, a.* FROM posts LEFT JOIN ({author}) AS a ON posts.author = author_id");
    db.query_as(&sql, ()).await.unwrap()
}

async fn a_flattened_struct_reads_its_own_columns_and_is_none_after_a_left_join(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE posts (id, title, author); INSERT INTO posts VALUES (1, 'a', 7), (2, 'b', 8)")
        .await
        .unwrap();
    let post = |id, title: &str, author| Post { id, title: title.to_owned(), author };
    let ada = |place| Some(Author { author_id: 7, name: None, place });
    let london = Some(Town { town: "London".into(), inhabitants: None });
    let found = posts(&db, "SELECT 7 AS author_id, NULL AS author_name, 'London' AS town").await;
    assert_eq!(found, [post(1, "a", ada(london)), post(2, "b", None)]);
    let found = posts(&db, "SELECT 7 AS author_id, NULL AS author_name, NULL AS town").await;
    assert_eq!(found, [post(1, "a", ada(None)), post(2, "b", None)]);
    let found = posts(&db, "SELECT 7 AS author_id, NULL AS author_name, NULL AS town, 3 AS inhabitants LIMIT 0").await;
    assert_eq!(found, [post(1, "a", None), post(2, "b", None)]);
    let sql = "SELECT 1 AS id, 't' AS title, 7 AS author_id, NULL AS author_name, NULL AS town, 3 AS inhabitants";
    let half = db.query_as::<Post>(sql, ()).await.unwrap_err();
    assert!(half.message().contains("(town): NULL cannot be read as String"), "{half}");
    let error = db.query_as::<Post>("SELECT 1 AS id, 't' AS title, 7 AS author_id", ()).await.unwrap_err();
    assert!(error.message().contains("author_name"), "an Option may be NULL, and its columns must be there: {error}");
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq, FromRow)]
struct Point(i64, #[flatwater(skip)] &'static str, f64);

#[derive(Debug, PartialEq, FromRow, FromSql)]
struct Id(i64);

async fn tuple_structs_and_newtypes_are_read_by_position(place: &Place) {
    let db = place.open().await;
    assert_eq!(db.query_one_as::<Point>("SELECT 1, 2.5", ()).await.unwrap(), Point(1, "", 2.5));
    let error = db.query_one_as::<Point>("SELECT 1, 2.5, 3", ()).await.unwrap_err();
    assert!(error.message().contains("3 column(s) and is read as 2"), "{error}");
    let ids = "SELECT column1 FROM (VALUES (1), (2))";
    assert_eq!(db.query_as::<Id>(ids, ()).await.unwrap(), [Id(1), Id(2)]);
    assert_eq!(db.query_values::<Id>(ids, ()).await.unwrap(), [Id(1), Id(2)]);
    assert_eq!(db.query_value::<Option<Id>>("SELECT max(1) WHERE 0", ()).await, Ok(None));
    assert_eq!(db.query_optional_value::<Option<Id>>("SELECT sum(1) WHERE 0", ()).await, Ok(Some(None)));
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq)]
struct Email(String);

#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("there is no @ in it")
    }
}

impl TryFrom<String> for Email {
    type Error = Refused;

    fn try_from(text: String) -> Result<Self, Refused> {
        if text.contains('@') { Ok(Self(text)) } else { Err(Refused) }
    }
}

#[derive(Debug, PartialEq, FromRow)]
struct Account {
    #[flatwater(try_from = "String")]
    email: Email,
    #[flatwater(try_from = "i64", default)]
    level: u8,
}

#[derive(Debug, PartialEq, FromRow)]
struct OneEmail(#[flatwater(try_from = "String")] Email);

async fn a_converted_value_that_does_not_fit_names_both_types(place: &Place) {
    let db = place.open().await;
    let read = async |sql: &str| db.query_as::<Account>(sql, ()).await;
    let email = || Email("a@b".into());
    assert_eq!(read("SELECT 'a@b' AS email, 3 AS level").await.unwrap(), [Account { email: email(), level: 3 }]);
    assert_eq!(read("SELECT 'a@b' AS email").await.unwrap(), [Account { email: email(), level: 0 }]);
    assert_eq!(db.query_one_as::<OneEmail>("SELECT 'a@b'", ()).await, Ok(OneEmail(email())));
    let sql = "VALUES ('a@b'), ('hunter2')";
    let error = db.query_as::<OneEmail>(sql, ()).await.unwrap_err();
    assert_eq!(error.message(), "column 0 (column1): String is not a Email: there is no @ in it");
    assert_eq!((error.row(), error.sql()), (Some(1), Some(sql)));
    let error = read("SELECT 'a@b' AS email, 300 AS level").await.unwrap_err();
    assert!(error.message().starts_with("column 1 (level): i64 is not a u8: ") && !error.message().contains("300"));
    let error = read("SELECT 'a@b' AS email, 'x' AS level").await.unwrap_err();
    assert_eq!(error.message(), "column 1 (level): TEXT cannot be read as i64");
    db.close().await.unwrap();
}

#[derive(Debug, PartialEq, FromRow)]
struct Counted<T, U = i64>
where
    U: Copy,
{
    #[flatwater(flatten)]
    item: T,
    total: U,
    #[flatwater(skip)]
    marker: PhantomData<T>,
}

async fn generic_structs_are_read(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT 'London' AS town, 2 AS total";
    let item = || Town { town: "London".into(), inhabitants: None };
    let counted: Counted<Town> = db.query_one_as(sql, ()).await.unwrap();
    assert_eq!(counted, Counted { item: item(), total: 2, marker: PhantomData });
    let counted: Counted<Option<Town>, u8> = db.query_one_as(sql, ()).await.unwrap();
    assert_eq!(counted, Counted { item: Some(item()), total: 2, marker: PhantomData });
    db.close().await.unwrap();
}

async fn an_error_in_a_late_row_of_a_large_result_names_it(place: &Place) {
    let db = place.open().await;
    let sql = "WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < 9999)
               SELECT id, iif(id = 7777, x'00', 'London') AS town, NULL AS inhabitants FROM n";
    let error = db.query_as::<Town>(sql, ()).await.unwrap_err();
    assert_eq!((error.row(), error.operation()), (Some(7777), Some("query_as")));
    assert_eq!(error.message(), "column 1 (town): BLOB cannot be read as String");
    let good = sql.replace("x'00'", "'Paris'");
    let towns = db.query_as::<Town>(&good, ()).await.unwrap();
    assert_eq!((towns.len(), &*towns[7777].town), (10_000, "Paris"));
    db.close().await.unwrap();
}
