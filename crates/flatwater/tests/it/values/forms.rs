//! The forms of dates, times and UUIDs: what is written has one form, whichever crate the value is of.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use flatwater::{Database, ErrorKind, FromRow, FromSql, ToSql};
use proptest::prelude::*;
use time::{Month, OffsetDateTime, PrimitiveDateTime, UtcOffset};
use uuid::Uuid;

use crate::place::{Place, in_both_places};
use crate::support::run;

in_both_places!(
    a_row_with_a_date_and_a_uuid_is_written_and_read,
    each_type_has_one_form,
    a_time_that_sqlite_wrote_is_found_by_its_own_value,
    pages_by_a_time_that_sqlite_wrote_have_each_row_once,
    what_sqlite_and_other_libraries_write_is_read,
    what_is_no_date_time_or_uuid_is_an_error_without_the_value,
    what_has_no_form_is_refused_and_not_written,
);

async fn text(db: &Database, value: impl ToSql) -> String {
    let (text, kind) = db.query_one_as::<(String, String)>("SELECT ?1, typeof(?1)", (value,)).await.unwrap();
    assert_eq!(kind, "text");
    text
}

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2024, 2, 29).unwrap()
}

fn moment() -> NaiveDateTime {
    day().and_hms_micro_opt(23, 5, 6, 7).unwrap()
}

#[derive(Debug, PartialEq, FromRow)]
struct Event {
    name: String,
    at: DateTime<Utc>,
    id: Uuid,
}

async fn a_row_with_a_date_and_a_uuid_is_written_and_read(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE events (name, at, id)", ()).await.unwrap();
    let (at, id) = (moment().and_utc(), Uuid::from_u128(7));
    db.execute("INSERT INTO events VALUES (?, ?, ?)", ("start", at, id)).await.unwrap();
    let sql = "SELECT * FROM events WHERE at = ? AND id = ?";
    let row: (String, DateTime<Utc>, Uuid) = db.query_one_as(sql, (at, id)).await.unwrap();
    assert_eq!(row, ("start".to_owned(), at, id));
    assert_eq!(db.query_one_as::<Event>(sql, (at, id)).await.unwrap(), Event { name: "start".into(), at, id });
    assert_eq!(db.query_optional_value::<Option<DateTime<Utc>>>("SELECT NULL", ()).await, Ok(Some(None)));
    db.close().await.unwrap();
}

async fn each_type_has_one_form(place: &Place) {
    let db = place.open().await;
    let form = "2024-02-29 23:05:06.000007";
    let east = FixedOffset::east_opt(3600 * 2).unwrap();
    let aware = moment().and_utc().with_timezone(&east);
    assert_eq!(aware.hour(), 1);
    let chronos = [text(&db, moment()).await, text(&db, moment().and_utc()).await, text(&db, aware).await];
    assert_eq!(chronos, [form; 3]);
    let date = time::Date::from_calendar_date(2024, Month::February, 29).unwrap();
    let time_of_day = time::Time::from_hms_micro(23, 5, 6, 7).unwrap();
    let plain = PrimitiveDateTime::new(date, time_of_day);
    let aware = plain.assume_utc().to_offset(UtcOffset::from_hms(-3, 0, 0).unwrap());
    assert_eq!(aware.hour(), 20);
    let times = [text(&db, plain).await, text(&db, plain.assume_utc()).await, text(&db, aware).await];
    assert_eq!(times, [form; 3]);
    assert_eq!([text(&db, day()).await, text(&db, date).await], ["2024-02-29"; 2]);
    assert_eq!([text(&db, moment().time()).await, text(&db, time_of_day).await], ["23:05:06.000007"; 2]);
    let whole = NaiveTime::from_hms_opt(1, 2, 3).unwrap();
    assert_eq!(text(&db, whole).await, "01:02:03", "a fraction of zero is not written, as SQLite writes none");
    let whole = [text(&db, day().and_time(whole)).await, text(&db, day().and_time(whole).and_utc()).await];
    assert_eq!(whole, ["2024-02-29 01:02:03"; 2]);
    let id = Uuid::from_u128(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8);
    assert_eq!(text(&db, id).await, "67e55044-10b1-426f-9247-bb680e5fe0c8");
    db.close().await.unwrap();
}

async fn is_found<T: FromSql + ToSql + Send + 'static>(db: &Database, column: &str) {
    let at: T = db.query_value(format!("SELECT {column} FROM t"), ()).await.unwrap();
    let found: i64 = db.query_value(format!("SELECT count(*) FROM t WHERE {column} = ?"), (at,)).await.unwrap();
    assert_eq!(found, 1, "{column} as {}", std::any::type_name::<T>());
}

async fn a_time_that_sqlite_wrote_is_found_by_its_own_value(place: &Place) {
    let db = place.open().await;
    let columns = "at DEFAULT CURRENT_TIMESTAMP, clock DEFAULT CURRENT_TIME, day DEFAULT CURRENT_DATE, \
                   made DEFAULT (datetime('now', '-7 days')), hour DEFAULT (time('10:00'))";
    db.execute(format!("CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})"), ()).await.unwrap();
    db.execute("INSERT INTO t DEFAULT VALUES", ()).await.unwrap();
    for column in ["at", "made"] {
        is_found::<DateTime<Utc>>(&db, column).await;
        is_found::<NaiveDateTime>(&db, column).await;
        is_found::<OffsetDateTime>(&db, column).await;
        is_found::<PrimitiveDateTime>(&db, column).await;
    }
    for column in ["clock", "hour"] {
        is_found::<NaiveTime>(&db, column).await;
        is_found::<time::Time>(&db, column).await;
    }
    is_found::<NaiveDate>(&db, "day").await;
    is_found::<time::Date>(&db, "day").await;
    db.close().await.unwrap();
}

async fn pages_by_a_time_that_sqlite_wrote_have_each_row_once(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DEFAULT CURRENT_TIMESTAMP)", ()).await.unwrap();
    let written = [1, 10, 999_999].map(|micros| (day().and_hms_micro_opt(10, 0, 0, micros).unwrap(),));
    db.execute_many("INSERT INTO t (at) VALUES (?)", written).await.unwrap();
    for _ in 0..4 {
        db.execute("INSERT INTO t DEFAULT VALUES", ()).await.unwrap();
    }
    let (mut last, mut seen) = ((DateTime::UNIX_EPOCH.naive_utc(), 0), Vec::new());
    let next = "SELECT at, id FROM t WHERE (at, id) > (?, ?) ORDER BY at, id LIMIT 1";
    while let Some(row) = db.query_optional_as::<(NaiveDateTime, i64)>(next, last).await.unwrap() {
        last = row;
        seen.push(row.1);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
    db.close().await.unwrap();
}

async fn read<T: FromSql + Send + 'static>(db: &Database, expression: &str) -> flatwater::Result<T> {
    Ok(db.query_values(format!("SELECT {expression}"), ()).await?.remove(0))
}

async fn what_sqlite_and_other_libraries_write_is_read(place: &Place) {
    let db = place.open().await;
    for expression in
        ["'2024-02-29T23:05:06.000007Z'", "'2024-02-29 23:05:06.000007+00:00'", "'2024-03-01T00:05:06.000007+01:00'"]
    {
        assert_eq!(read::<DateTime<Utc>>(&db, expression).await.unwrap(), moment().and_utc(), "{expression}");
        let read = read::<OffsetDateTime>(&db, expression).await.unwrap();
        assert_eq!((read.unix_timestamp(), read.microsecond()), (moment().and_utc().timestamp(), 7), "{expression}");
    }
    // A type without a zone has the moment in UTC, in which times with a zone are stored.
    for expression in [
        "'2024-02-29 23:05:06.000007'",
        "'2024-02-29T23:05:06.0000070'",
        "'2024-02-29T23:05:06.000007Z'",
        "'2024-02-29 23:05:06.000007+00:00'",
        "'2024-03-01t00:05:06.000007+01:00'",
        "'2024-02-29 20:05:06.000007-0300'",
    ] {
        assert_eq!(read::<NaiveDateTime>(&db, expression).await, Ok(moment()), "{expression}");
        let read = read::<PrimitiveDateTime>(&db, expression).await.unwrap().assume_utc();
        assert_eq!((read.unix_timestamp(), read.microsecond()), (moment().and_utc().timestamp(), 7), "{expression}");
    }
    for digits in 1..=9 {
        let (fraction, nanos) = (&"123456789"[..digits], 123_456_789 / 10_u32.pow(9 - u32::try_from(digits).unwrap()));
        let nanos = nanos * 10_u32.pow(9 - u32::try_from(digits).unwrap());
        for separator in [' ', 'T'] {
            let expression = format!("'2024-02-29{separator}23:05:06.{fraction}'");
            let read_nanos = read::<NaiveDateTime>(&db, &expression).await.map(|read| read.nanosecond());
            assert_eq!(read_nanos, Ok(nanos), "{expression}");
        }
    }
    for expression in ["date('2024-02-29 23:05')", "'2024-02-29T00:00'", "datetime('2024-02-29')"] {
        assert_eq!(read::<NaiveDateTime>(&db, expression).await, Ok(day().into()), "{expression}");
    }
    let whole = moment().and_utc() - TimeDelta::microseconds(7);
    let from_sqlite = read::<DateTime<Utc>>(&db, "datetime('2024-02-29 23:05:06.9')").await.unwrap();
    assert_eq!(from_sqlite, whole);
    assert!(read::<NaiveDateTime>(&db, "CURRENT_TIMESTAMP").await.is_ok());
    assert!(
        read::<time::Date>(&db, "CURRENT_DATE").await.is_ok() && read::<time::Time>(&db, "CURRENT_TIME").await.is_ok()
    );
    assert_eq!(read::<NaiveTime>(&db, "'07:08'").await, Ok(NaiveTime::from_hms_opt(7, 8, 0).unwrap()));
    let id = Uuid::from_u128(7);
    for expression in ["X'00000000000000000000000000000007'", "'00000000000000000000000000000007'"] {
        assert_eq!(read::<Uuid>(&db, expression).await, Ok(id));
    }
    let seconds: Option<i64> = db.query_optional_value("SELECT unixepoch(?)", (moment(),)).await.unwrap();
    assert_eq!(seconds, Some(moment().and_utc().timestamp()), "SQLite's functions understand the form");
    db.close().await.unwrap();
}

async fn what_is_no_date_time_or_uuid_is_an_error_without_the_value(place: &Place) {
    let db = place.open().await;
    let check = |error: flatwater::Error, value: &str| {
        assert_eq!((error.kind(), error.row()), (ErrorKind::Decode, Some(0)), "{value}");
        assert!(!error.message().contains(value.trim_matches('\'')), "{error}");
    };
    for value in
        ["'2023-02-29 01:02:03'", "'2024-13-01 01:02:03'", "'2024-02-29 24:00:00'", "'yesterday'", "1709208184"]
    {
        let column = format!("{value} AS at");
        check(read::<DateTime<Utc>>(&db, &column).await.unwrap_err(), value);
        check(read::<NaiveDateTime>(&db, &column).await.unwrap_err(), value);
        check(read::<OffsetDateTime>(&db, &column).await.unwrap_err(), value);
        check(read::<PrimitiveDateTime>(&db, &column).await.unwrap_err(), value);
        check(read::<NaiveDate>(&db, &column).await.unwrap_err(), value);
        check(read::<time::Time>(&db, &column).await.unwrap_err(), value);
        check(read::<Uuid>(&db, &column).await.unwrap_err(), value);
    }
    check(read::<Uuid>(&db, "X'070809' AS id").await.unwrap_err(), "070809");
    let error = read::<PrimitiveDateTime>(&db, "'2024-02-29 01:02:03 Z' AS at").await.unwrap_err();
    assert!(error.message().contains("not of the form YYYY-MM-DD HH:MM:SS[.ffffff]"), "{error}");
    db.close().await.unwrap();
}

async fn what_has_no_form_is_refused_and_not_written(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let late = NaiveDate::from_ymd_opt(10_000, 1, 1).unwrap();
    let early = NaiveDate::from_ymd_opt(-1, 1, 1).unwrap();
    let leap = day().and_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
    let insert = "INSERT INTO t VALUES (?)";
    let last = PrimitiveDateTime::MAX.assume_offset(UtcOffset::from_hms(-5, 0, 0).unwrap());
    let refused = [
        db.execute(insert, (late,)).await,
        db.execute(insert, (early,)).await,
        db.execute(insert, (leap,)).await,
        db.execute(insert, (DateTime::<Utc>::MAX_UTC,)).await,
        db.execute(insert, (last,)).await,
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("execute")));
        assert!(error.message().contains("cannot be stored"), "{error}");
    }
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(Some(0)));
    db.close().await.unwrap();
}

/// Times that are near to each other, with and without a fraction, some finer than what is stored.
fn times() -> impl Strategy<Value = Vec<DateTime<Utc>>> {
    let nanos = prop_oneof![Just(0), (0_u32..1_000_000).prop_map(|micros| micros * 1000), 0_u32..1_000_000_000];
    let near = prop::collection::vec((0_i64..3, nanos), 8);
    (-62_167_219_200_i64..253_402_300_797, near).prop_map(|(first, near)| {
        near.iter().map(|&(second, nanos)| DateTime::from_timestamp(first + second, nanos).unwrap()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn texts_sort_in_the_order_of_time_and_come_back_as_any_type(times in times()) {
        run(async move {
            let db = Database::open(":memory:").await.unwrap();
            db.execute("CREATE TABLE t (at)", ()).await.unwrap();
            db.execute_many("INSERT INTO t VALUES (?)", times.iter().map(|&at| (at,))).await.unwrap();
            let cut = |at: &DateTime<Utc>| at.with_nanosecond(at.nanosecond() / 1000 * 1000).unwrap();
            let mut sorted: Vec<_> = times.iter().map(cut).collect();
            sorted.sort();
            let all = "SELECT at FROM t ORDER BY at";
            assert_eq!(db.query_values::<DateTime<Utc>>(all, ()).await.unwrap(), sorted);
            let others = db.query_values::<OffsetDateTime>(all, ()).await.unwrap();
            let nanos = |at: &DateTime<Utc>| i128::from(at.timestamp()) * 1_000_000_000 + i128::from(at.timestamp_subsec_nanos());
            assert!(others.iter().map(|at| at.unix_timestamp_nanos()).eq(sorted.iter().map(nanos)));
            for at in &others {
                let sql = "SELECT count(*) > 0, ?1 = datetime(?1) FROM t WHERE at = ?1";
                let found: (bool, bool) = db.query_one_as(sql, (at,)).await.unwrap();
                assert_eq!(found, (true, at.microsecond() == 0), "{at}");
            }
            db.execute("DELETE FROM t", ()).await.unwrap();
            db.execute_many("INSERT INTO t VALUES (?)", others.into_iter().map(|at| (at,))).await.unwrap();
            assert_eq!(db.query_values::<DateTime<Utc>>(all, ()).await.unwrap(), sorted, "both crates write one form");
        });
    }
}
