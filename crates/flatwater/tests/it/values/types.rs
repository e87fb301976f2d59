//! Values of the standard library, and of types that only know rusqlite's traits.

use std::borrow::Cow;
use std::num::{NonZeroI64, NonZeroU8};
use std::rc::Rc;
use std::sync::Arc;

use flatwater::rusqlite::types::{FromSqlResult, Null, ToSqlOutput};
use flatwater::values::Rusqlite;
use flatwater::{Database, FromSql, Params, ToSql, Value, ValueRef, params, rusqlite};

use crate::place::{Place, in_both_places};

in_both_places!(
    every_value_of_the_standard_library_is_bound_and_read_as_rusqlite_does,
    a_type_with_rusqlites_traits_is_wrapped,
    boxed_values_of_any_type_are_bound,
);

/// Binds a value, and returns it as it is read, with SQLite's type of it; rusqlite must store the same.
async fn stored<T: FromSql, V: ToSql + rusqlite::ToSql>(db: &Database, value: V) -> (T, String) {
    let sql = "SELECT ?1, typeof(?1)";
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    let expected: (Value, String) = plain.query_row(sql, [&value], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let params = Params::positional([&value]).unwrap();
    assert_eq!(db.query_one_as::<(Value, String)>(sql, params.clone()).await.unwrap(), expected);
    db.query_one_as(sql, params).await.unwrap()
}

async fn every_value_of_the_standard_library_is_bound_and_read_as_rusqlite_does(place: &Place) {
    let db = place.open().await;
    macro_rules! is_kept {
        ($($value:expr => $name:ty, $kind:literal;)+) => {$(
            let (read, kind) = stored::<$name, _>(&db, $value).await;
            assert_eq!((&read, &*kind), (&<$name>::from($value), $kind), stringify!($value));
        )+};
    }
    is_kept! {
        true => bool, "integer";
        i8::MIN => i8, "integer";
        i16::MIN => i16, "integer";
        i32::MIN => i32, "integer";
        i64::MIN => i64, "integer";
        isize::MIN => isize, "integer";
        u8::MAX => u8, "integer";
        u16::MAX => u16, "integer";
        u32::MAX => u32, "integer";
        i64::MAX.cast_unsigned() => u64, "integer";
        isize::MAX.cast_unsigned() => usize, "integer";
        NonZeroI64::MIN => NonZeroI64, "integer";
        NonZeroU8::MAX => NonZeroU8, "integer";
        0.5_f32 => f32, "real";
        f64::NEG_INFINITY => f64, "real";
        "a\0é" => String, "text";
        "" => Box<str>, "text";
        Box::<str>::from("a") => Box<str>, "text";
        Rc::<str>::from("a") => Rc<str>, "text";
        Arc::<str>::from("a") => Arc<str>, "text";
        Cow::Borrowed("a") => Cow<'_, str>, "text";
        vec![0_u8, 255] => Vec<u8>, "blob";
        [1_u8; 3] => [u8; 3], "blob";
        Vec::<u8>::new() => Box<[u8]>, "blob";
        vec![1_u8] => Rc<[u8]>, "blob";
        vec![1_u8] => Arc<[u8]>, "blob";
        Some(5) => Option<i64>, "integer";
        None::<i64> => Option<i64>, "null";
        Value::Real(1.0) => Value, "real";
    }
    assert_eq!(stored::<Option<String>, _>(&db, Null).await, (None, "null".to_owned()));
    assert_eq!(stored::<Option<Value>, _>(&db, Value::Null).await, (None, "null".to_owned()));
    let null = db.query_one_as::<(Cow<'static, str>,)>("SELECT NULL", ()).await.unwrap_err();
    assert!(null.message().contains("NULL cannot be read as Cow<"), "{null}");
    for refused in [db.query("SELECT ?", (u64::MAX,)).await, db.query("SELECT ?", (f64::NAN,)).await] {
        assert!(refused.unwrap_err().message().contains("stored"));
    }
    db.close().await.unwrap();
}

/// A type of another crate, as it is for that crate.
#[derive(Debug, PartialEq)]
struct Url(String);

impl rusqlite::ToSql for Url {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        rusqlite::ToSql::to_sql(&self.0)
    }
}

impl rusqlite::types::FromSql for Url {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(|text| Self(text.to_owned()))
    }
}

async fn a_type_with_rusqlites_traits_is_wrapped(place: &Place) {
    let db = place.open().await;
    let url = || Url("https://a".into());
    let read = db.query_optional_value::<Rusqlite<Url>>("SELECT ?", (Rusqlite(url()),)).await.unwrap();
    assert_eq!(read, Some(Rusqlite(url())));
    assert_eq!(db.query_value::<Option<Rusqlite<Url>>>("SELECT ?", (None::<Rusqlite<Url>>,)).await, Ok(None));
    db.close().await.unwrap();
}

async fn boxed_values_of_any_type_are_bound(place: &Place) {
    let db = place.open().await;
    let boxed: Vec<Box<dyn ToSql + Send>> = vec![Box::new(1), Box::new("two"), Box::new(None::<f64>)];
    let sql = "SELECT ?, ?, ?";
    let expected = (1, "two".to_owned(), None::<f64>);
    assert_eq!(db.query_one_as::<(i64, String, Option<f64>)>(sql, boxed).await.unwrap(), expected);
    let number = &mut 1;
    let mixed = params![number, Rc::new(Arc::new(Box::new("two"))), &&None::<f64>];
    assert_eq!(db.query_one_as::<(i64, String, Option<f64>)>(sql, mixed).await.unwrap(), expected);
    db.close().await.unwrap();
}
