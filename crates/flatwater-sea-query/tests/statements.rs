//! Statements of all kinds, built by sea-query and executed by Flatwater; and the values that they bring.

use flatwater::{Database, ErrorKind, Value};
use flatwater_sea_query::Build;
use sea_query::{
    Alias, ColumnDef, CommonTableExpression, Cond, Expr, ExprTrait, Iden, OnConflict, Order, Query, SimpleExpr,
    SqliteQueryBuilder, Table, WithClause,
};

#[derive(Iden)]
enum Tasks {
    Table,
    Id,
    Title,
    Owner,
}

fn opened() -> Database {
    let db = Database::open(":memory:").wait().unwrap();
    let create = Table::create()
        .table(Tasks::Table)
        .col(ColumnDef::new(Tasks::Id).integer().primary_key())
        .col(ColumnDef::new(Tasks::Title).text().not_null().unique_key())
        .col(ColumnDef::new(Tasks::Owner).text())
        .to_string(SqliteQueryBuilder);
    db.execute(&create, ()).wait().unwrap();
    db
}

fn insert(titles: &[&str]) -> sea_query::InsertStatement {
    let mut insert = Query::insert().into_table(Tasks::Table).columns([Tasks::Title]).to_owned();
    for title in titles {
        insert.values_panic([(*title).into()]);
    }
    insert
}

#[test]
fn rows_are_written_found_and_changed() {
    let db = opened();
    let (sql, values) = insert(&["a", "it's b", "c"]).build_flatwater(SqliteQueryBuilder);
    assert_eq!(db.execute(&sql, values).wait().unwrap().changes, 3);

    let found = |condition: Cond| -> Vec<String> {
        let select = Query::select()
            .column(Tasks::Title)
            .from(Tasks::Table)
            .cond_where(condition)
            .order_by(Tasks::Id, Order::Asc)
            .take();
        let (sql, values) = select.build_flatwater(SqliteQueryBuilder);
        let rows: Vec<(String,)> = db.query_as(&sql, values).wait().unwrap();
        rows.into_iter().map(|(title,)| title).collect()
    };
    assert_eq!(found(Cond::all().add(Expr::col(Tasks::Title).is_in(["c", "it's b"]))), ["it's b", "c"]);
    assert_eq!(found(Cond::any().add(Expr::col(Tasks::Id).eq(1)).add(Expr::col(Tasks::Title).like("c%"))), ["a", "c"]);
    assert_eq!(found(Cond::all().add(Expr::col(Tasks::Title).is_in(Vec::<String>::new()))), [""; 0]);

    let update =
        Query::update().table(Tasks::Table).value(Tasks::Owner, "Ada").and_where(Expr::col(Tasks::Id).gt(1)).take();
    let (sql, values) = update.build_flatwater(SqliteQueryBuilder);
    assert_eq!(db.execute(&sql, values).wait().unwrap().changes, 2);
    let delete = Query::delete().from_table(Tasks::Table).and_where(Expr::col(Tasks::Owner).is_null()).take();
    let (sql, values) = delete.build_flatwater(SqliteQueryBuilder);
    assert_eq!(db.execute(&sql, values).wait().unwrap().changes, 1);
}

#[test]
fn an_upsert_returns_its_row_also_in_a_transaction() {
    let db = opened();
    let upsert = insert(&["a"])
        .on_conflict(OnConflict::column(Tasks::Title).value(Tasks::Owner, "again").to_owned())
        .returning(Query::returning().columns([Tasks::Id, Tasks::Owner]))
        .to_owned();
    let (sql, values) = upsert.build_flatwater(SqliteQueryBuilder);
    let ran = db.transaction(async |tx| {
        let first: (i64, Option<String>) = tx.query_one_as(&sql, values.clone()).await?;
        let second: (i64, Option<String>) = tx.query_one_as(&sql, values).await?;
        Ok((first, second))
    });
    assert_eq!(ran.wait().unwrap(), ((1, None), (1, Some("again".to_owned()))));
}

#[test]
fn a_statement_with_a_common_table_has_its_values_in_order() {
    let db = opened();
    let (sql, values) = insert(&["a", "b", "c"]).build_flatwater(SqliteQueryBuilder);
    db.execute(&sql, values).wait().unwrap();
    let late = Query::select().column(Tasks::Title).from(Tasks::Table).and_where(Expr::col(Tasks::Id).gt(1)).take();
    let common = CommonTableExpression::new().query(late).table_name(Alias::new("late")).to_owned();
    let select = Query::select()
        .column(Tasks::Title)
        .from(Alias::new("late"))
        .and_where(Expr::col(Tasks::Title).ne("b"))
        .take()
        .with(WithClause::new().cte(common).to_owned());
    let (sql, values) = select.build_flatwater(SqliteQueryBuilder);
    assert_eq!(db.query_value::<String>(&sql, values).wait().unwrap(), "c");
}

/// What SQLite stores for a value of sea-query.
fn stored(value: impl Into<SimpleExpr>) -> flatwater::Result<Value> {
    let db = Database::open(":memory:").wait().unwrap();
    let (sql, values) = Query::select().expr(value).take().build_flatwater(SqliteQueryBuilder);
    db.query_value(&sql, values).wait()
}

#[test]
fn numbers_texts_and_bytes_are_stored_as_they_are() {
    assert_eq!(stored(true).unwrap(), Value::Integer(1));
    assert_eq!(stored(-7_i8).unwrap(), Value::Integer(-7));
    assert_eq!(stored(u32::MAX).unwrap(), Value::Integer(u32::MAX.into()));
    assert_eq!(stored(i64::MIN).unwrap(), Value::Integer(i64::MIN));
    assert_eq!(stored(0.5_f32).unwrap(), Value::Real(0.5));
    assert_eq!(stored('ä').unwrap(), Value::Text("ä".to_owned()));
    assert_eq!(stored("o'clock; --").unwrap(), Value::Text("o'clock; --".to_owned()));
    assert_eq!(stored(vec![0_u8, 255]).unwrap(), Value::Blob(vec![0, 255]));
    assert_eq!(stored(None::<String>).unwrap(), Value::Null);
    assert_eq!(stored(None::<i64>).unwrap(), Value::Null);
}

#[test]
fn what_cannot_be_stored_is_refused_before_the_call_begins() {
    for value in [SimpleExpr::from(u64::MAX), f64::NAN.into()] {
        let error = stored(value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("parameter 1"), "{error}");
    }
}

#[cfg(all(
    feature = "with-chrono",
    feature = "with-time",
    feature = "with-jiff",
    feature = "with-json",
    feature = "with-rust_decimal",
    feature = "with-uuid"
))]
#[test]
fn values_of_other_crates_have_the_form_of_flatwater() {
    /// The same value, bound by sea-query and by a call.
    fn alike(built: impl Into<SimpleExpr>, bound: impl flatwater::ToSql) {
        let db = Database::open(":memory:").wait().unwrap();
        let direct: Value = db.query_value("SELECT ?", (bound,)).wait().unwrap();
        assert_eq!(stored(built).unwrap(), direct);
    }
    let at = chrono::DateTime::from_timestamp(1_000_000_000, 500_000_000).unwrap();
    alike(at, at);
    alike(at.naive_utc(), at.naive_utc());
    alike(at.date_naive(), at.date_naive());
    alike(at.time(), at.time());
    let fixed = at.with_timezone(&chrono::FixedOffset::east_opt(3600).unwrap());
    alike(fixed, fixed);
    let at = time::OffsetDateTime::from_unix_timestamp(1_000_000_000).unwrap();
    alike(at, at);
    alike(at.date(), at.date());
    alike(at.time(), at.time());
    let at = jiff::Timestamp::from_second(1_000_000_000).unwrap();
    alike(at, at);
    let civil = jiff::civil::date(2026, 2, 28).at(1, 2, 3, 0);
    alike(civil, civil);
    alike(civil.date(), civil.date());
    alike(civil.time(), civil.time());
    let decimal: rust_decimal::Decimal = "12.340".parse().unwrap();
    alike(decimal, decimal);
    alike(uuid::Uuid::from_u128(7), uuid::Uuid::from_u128(7));
    alike(serde_json::json!({"a": [1, null]}), r#"{"a":[1,null]}"#);
}
