//! Types that derive `FromSql` and `ToSql`: newtypes and enums. What one writes, the other reads.

use flatwater::values::Json;
use flatwater::{ErrorKind, FromRow, FromSql, ToSql, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    a_newtype_is_stored_as_what_is_in_it,
    an_enum_is_stored_as_the_name_of_its_variant,
    an_enum_with_a_repr_is_stored_as_its_number,
    json_is_stored_as_text_and_read_as_a_value_or_as_a_field,
    code_of_the_macros_means_the_same_wherever_it_stands,
);

#[derive(Debug, Clone, PartialEq, FromSql, ToSql)]
struct Email(String);

#[derive(Debug, Clone, Copy, PartialEq, FromSql, ToSql)]
struct Id<T> {
    number: T,
}

async fn a_newtype_is_stored_as_what_is_in_it(place: &Place) {
    let db = place.open().await;
    let sql = "SELECT ?1, typeof(?1), ?2, typeof(?2)";
    let (email, id) = (Email("a@b".into()), Id { number: 7 });
    let read = db.query_one_as::<(Email, String, Id<i64>, String)>(sql, (email.clone(), id)).await.unwrap();
    assert_eq!(read, (email.clone(), "text".into(), id, "integer".into()));
    assert_eq!(db.query_optional_value::<Option<Email>>("SELECT ?", (None::<Email>,)).await, Ok(Some(None)));
    let error = db.query_optional_value::<Id<u8>>("SELECT ?", (300,)).await.unwrap_err();
    assert!(error.message().contains("does not fit into Id<u8>"), "{error}");
    db.close().await.unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq, FromSql, ToSql)]
#[flatwater(rename_all = "snake_case")]
enum State {
    Open,
    InProgress,
    #[flatwater(rename = "Closed!")]
    Closed,
}

async fn an_enum_is_stored_as_the_name_of_its_variant(place: &Place) {
    let db = place.open().await;
    for (state, text) in [(State::Open, "open"), (State::InProgress, "in_progress"), (State::Closed, "Closed!")] {
        let read = db.query_one_as::<(State, String)>("SELECT ?1, ?1", (state,)).await.unwrap();
        assert_eq!(read, (state, text.to_owned()));
    }
    let error = db.query_as::<(State,)>("VALUES ('open'), ('hunter2')", ()).await.unwrap_err();
    assert_eq!(
        error.message(),
        "column 0 (column1): its TEXT cannot be read as State: it is not one of \"open\", \"in_progress\", \"Closed!\""
    );
    assert_eq!((error.kind(), error.row()), (ErrorKind::Decode, Some(1)));
    let error = db.query_optional_value::<State>("SELECT 1", ()).await.unwrap_err();
    assert!(error.message().contains("INTEGER cannot be read as State"), "{error}");
    db.close().await.unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq, FromSql, ToSql)]
#[repr(i16)]
enum Level {
    Low = -5,
    Mid,
    High = 300,
}

async fn an_enum_with_a_repr_is_stored_as_its_number(place: &Place) {
    let db = place.open().await;
    for (level, number) in [(Level::Low, -5), (Level::Mid, -4), (Level::High, 300)] {
        assert_eq!(db.query_one_as::<(Level, i64)>("SELECT ?1, ?1", (level,)).await, Ok((level, number)));
    }
    for number in [0, 65_536 + 300, i64::MIN] {
        let error = db.query_optional_value::<Level>("SELECT ?", (number,)).await.unwrap_err();
        assert!(error.message().contains("cannot be read as Level: no variant has this number"), "{error}");
        assert!(!error.to_string().contains(&number.to_string()) || number == 0, "{error}");
    }
    db.close().await.unwrap();
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Settings {
    theme: String,
    sizes: Vec<u8>,
}

#[derive(Debug, PartialEq, FromRow)]
struct Profile {
    id: i64,
    #[flatwater(json)]
    settings: Settings,
    #[flatwater(json, default)]
    tags: Option<Vec<String>>,
}

async fn json_is_stored_as_text_and_read_as_a_value_or_as_a_field(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, settings TEXT, tags JSON)", ()).await.unwrap();
    let settings = Settings { theme: "é\"".into(), sizes: vec![1, 2] };
    let insert = "INSERT INTO t (settings, tags) VALUES (?, ?)";
    db.execute(insert, params![Json(&settings), None::<Json<Vec<String>>>]).await.unwrap();
    db.execute(insert, (Json(settings.clone()), Json(["x"]))).await.unwrap();
    let profile = |id, tags| Profile { id, settings: settings.clone(), tags };
    let all: Vec<Profile> = db.query_as("SELECT * FROM t ORDER BY id", ()).await.unwrap();
    assert_eq!(all, [profile(1, None), profile(2, Some(vec!["x".into()]))]);
    let kinds: Vec<String> = db.query_values("SELECT DISTINCT typeof(settings) FROM t", ()).await.unwrap();
    assert_eq!(kinds, ["text"]);
    let Json(read) = db.query_optional_value::<Json<Settings>>("SELECT settings FROM t", ()).await.unwrap().unwrap();
    assert_eq!(read, settings);
    db.execute("INSERT INTO t (tags) VALUES (?)", (Json(5),)).await.unwrap();
    let number: Vec<Json<i64>> = db.query_values("SELECT tags FROM t WHERE id = 3", ()).await.unwrap();
    assert_eq!(number, [Json(5)], "numeric affinity has made it a number");
    let error = db.query_as::<Profile>("SELECT 1 AS id, '{\"theme\": \"hunter2\"}' AS settings", ()).await.unwrap_err();
    assert!(
        error
            .message()
            .starts_with("column 1 (settings): its TEXT cannot be read as Json<Settings>: the JSON does not fit")
    );
    assert!(!error.message().contains("hunter2"), "{error}");
    assert!(db.query_as::<Profile>("SELECT 1 AS id, NULL AS settings", ()).await.is_err(), "null is no Settings");
    db.close().await.unwrap();
}

/// Everything that the code of the macros could take for something else has another meaning here.
mod hostile {
    #![expect(dead_code, reason = "they are in the way")]

    pub(super) use ::flatwater as another;

    mod flatwater {}
    mod core {}
    mod std {}
    struct Ok;
    struct Err;
    struct Some;
    struct None;
    struct Option;
    struct Result;
    struct String;
    struct Default;
    struct Row;
    struct Cells;
    struct Columns;
    struct Cell;
    trait FromRow {}
    trait FromSql {}
    trait ToSql {}
    fn drop() {}

    #[derive(Debug, PartialEq, ::flatwater::FromRow)]
    #[flatwater(crate = "another")]
    pub(super) struct Plain {
        pub(super) columns: i64,
        #[flatwater(default)]
        pub(super) cells: u8,
        #[flatwater(try_from = "i64")]
        pub(super) row: u8,
        #[flatwater(skip)]
        pub(super) cell: bool,
        #[flatwater(flatten)]
        pub(super) inner: Pair,
        #[flatwater(default = "cell")]
        pub(super) first: i64,
        #[flatwater(default = "cells")]
        pub(super) second: i64,
    }

    fn cell() -> i64 {
        4
    }

    fn cells() -> i64 {
        5
    }

    #[derive(Debug, PartialEq, ::flatwater::FromRow)]
    pub(super) struct Pair {
        #[flatwater(rename = "value")]
        pub(super) read: Value,
        #[flatwater(default = "self::answer")]
        pub(super) find: Number,
    }

    fn answer() -> Number {
        Number::Err
    }

    #[derive(Debug, PartialEq, ::flatwater::FromSql, ::flatwater::ToSql)]
    pub(super) enum Value {
        Ok,
        Err,
    }

    #[derive(Debug, PartialEq, ::flatwater::FromSql, ::flatwater::ToSql)]
    #[repr(u8)]
    pub(super) enum Number {
        Ok = 1,
        Err,
    }
}

async fn code_of_the_macros_means_the_same_wherever_it_stands(place: &Place) {
    use hostile::{Number, Pair, Plain, Value};
    let db = place.open().await;
    let sql = "SELECT 1 AS columns, 2 AS cells, 3 AS row, ?1 AS value";
    let inner = Pair { read: Value::Err, find: Number::Err };
    let plain = Plain { columns: 1, cells: 2, row: 3, cell: false, inner, first: 4, second: 5 };
    assert_eq!(db.query_one_as::<Plain>(sql, (Value::Err,)).await, Ok(plain));
    assert_eq!(db.query_optional_value::<i64>("SELECT ?", (Number::Ok,)).await, Ok(Some(1)));
    assert_eq!(db.query_optional_value::<Value>("SELECT ?", (Value::Ok,)).await, Ok(Some(Value::Ok)));
    db.close().await.unwrap();
}
