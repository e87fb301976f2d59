//! Values of jiff, rust_decimal and bytes. Built with these features only.

use bytes::Bytes;
use flatwater::{Database, ErrorKind, FromSql, ToSql};
use jiff::civil::{Date, DateTime, Time};
use jiff::{Timestamp, Zoned};
use rust_decimal::Decimal;

use crate::place::{Place, in_both_places};

in_both_places!(
    times_of_jiff_have_the_forms_of_the_other_crates,
    a_decimal_keeps_its_digits_as_text,
    bytes_are_a_blob,
    what_does_not_fit_is_an_error_without_the_value,
);

async fn text(db: &Database, value: impl ToSql) -> String {
    db.query_value("SELECT ?", (value,)).await.unwrap()
}

async fn read<T: FromSql>(db: &Database, sql: &str) -> flatwater::Result<T> {
    db.query_value(sql, ()).await
}

async fn times_of_jiff_have_the_forms_of_the_other_crates(place: &Place) {
    let db = place.open().await;
    let moment: Timestamp = "2024-02-29T23:05:06.000007Z".parse().unwrap();
    assert_eq!(text(&db, moment).await, "2024-02-29 23:05:06.000007");
    let zoned: Zoned = "2024-03-01T00:05:06+01:00[+01:00]".parse().unwrap();
    assert_eq!(text(&db, zoned).await, "2024-02-29 23:05:06");
    assert_eq!(text(&db, DateTime::constant(2024, 2, 29, 1, 2, 3, 0)).await, "2024-02-29 01:02:03");
    assert_eq!(text(&db, Date::constant(24, 2, 29)).await, "0024-02-29");
    assert_eq!(text(&db, Time::constant(1, 2, 3, 4_000)).await, "01:02:03.000004");
    for sql in [
        "SELECT '2024-02-29 23:05:06.000007'",
        "SELECT '2024-02-29T23:05:06.000007Z'",
        "SELECT '2024-03-01T00:05:06.000007+01:00'",
    ] {
        assert_eq!(read(&db, sql).await, Ok(moment), "{sql}");
    }
    let written: Timestamp = read(&db, "SELECT datetime('2024-02-29 23:05:06')").await.unwrap();
    assert_eq!(written.to_string(), "2024-02-29T23:05:06Z");
    assert_eq!(read(&db, "SELECT '2024-02-29 01:02:03'").await, Ok(DateTime::constant(2024, 2, 29, 1, 2, 3, 0)));
    assert_eq!(read(&db, "SELECT '0024-02-29'").await, Ok(Date::constant(24, 2, 29)));
    assert_eq!(read(&db, "SELECT '01:02:03.000004'").await, Ok(Time::constant(1, 2, 3, 4_000)));
    assert_eq!(read(&db, "SELECT NULL").await, Ok(None::<Timestamp>));
    db.close().await.unwrap();
}

async fn a_decimal_keeps_its_digits_as_text(place: &Place) {
    let db = place.open().await;
    for digits in ["1.10", "-0.001", "79228162514264337593543950335", "0"] {
        let decimal: Decimal = digits.parse().unwrap();
        assert_eq!(text(&db, decimal).await, digits);
        assert_eq!(db.query_value::<Decimal>("SELECT ?", (decimal,)).await.unwrap().to_string(), digits);
    }
    assert_eq!(read::<Decimal>(&db, "SELECT -7").await.unwrap().to_string(), "-7");
    // What a column with numeric affinity makes of it.
    db.execute("CREATE TABLE t (price DECIMAL(10, 2))", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (?)", (Decimal::new(1999, 2),)).await.unwrap();
    assert_eq!(
        read::<Decimal>(&db, "SELECT price FROM t WHERE typeof(price) = 'real'").await,
        Ok(Decimal::new(1999, 2))
    );
    db.close().await.unwrap();
}

async fn bytes_are_a_blob(place: &Place) {
    let db = place.open().await;
    let bytes = Bytes::from_static(b"a\0\xff");
    let sql = "SELECT ?1 WHERE typeof(?1) = 'blob'";
    assert_eq!(db.query_value::<Bytes>(sql, (bytes.clone(),)).await, Ok(bytes));
    assert_eq!(read::<Bytes>(&db, "SELECT x''").await, Ok(Bytes::new()));
    db.close().await.unwrap();
}

async fn what_does_not_fit_is_an_error_without_the_value(place: &Place) {
    let db = place.open().await;
    let errors = [
        read::<Timestamp>(&db, "SELECT '2024-02-30 00:00:00' AS x").await.unwrap_err(),
        read::<Date>(&db, "SELECT 'hunter2' AS x").await.unwrap_err(),
        read::<Time>(&db, "SELECT '25:00:00' AS x").await.unwrap_err(),
        read::<Decimal>(&db, "SELECT 'hunter2' AS x").await.unwrap_err(),
        read::<Decimal>(&db, "SELECT '0.12345678901234567890123456789012' AS x").await.unwrap_err(),
        read::<Decimal>(&db, "SELECT 9e999 AS x").await.unwrap_err(),
        read::<Bytes>(&db, "SELECT 'hunter2' AS x").await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
        let without_sql = error.message();
        assert!(!without_sql.contains("hunter") && !without_sql.contains("1234567890"), "{error}");
    }
    let year = db.query("SELECT ?", (Date::constant(-1, 1, 1),)).await.unwrap_err();
    assert!(year.message().contains("a year outside of 0 to 9999"), "{year}");
    db.close().await.unwrap();
}
