//! A corpus of queries on random data of every declared type: no value that SQLite returns contradicts what was said of its column.
//!
//! `FLATWATER_SEED` is the seed of the first list of data, and `FLATWATER_LISTS` the number of lists.

mod support;

use flatwater_check::{Checked, Column, Kind};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Type, Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use support::{corpus, schema};

fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(corpus().join("queries.sql")).unwrap();
    text.lines().map(|line| line.trim_end_matches(';').to_owned()).collect()
}

struct Median;

impl Aggregate<Vec<f64>, Option<f64>> for Median {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, all: &mut Vec<f64>) -> rusqlite::Result<()> {
        all.extend(context.get::<f64>(0));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Vec<f64>>) -> rusqlite::Result<Option<f64>> {
        Ok(all.and_then(|all| all.first().copied()))
    }
}

/// A database with the schema, as a program has it.
fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("slug", 1, flags, |_| Ok("slug")).unwrap();
    connection.create_aggregate_function("median", 1, flags, Median).unwrap();
    connection.create_collation("german", |one: &str, other: &str| one.cmp(other)).unwrap();
    for file in ["migrations/001_shop.sql", "migrations/002_views.sql"] {
        connection.execute_batch(&std::fs::read_to_string(corpus().join(file)).unwrap()).unwrap();
    }
    let archive = std::fs::read_to_string(corpus().join("archive/1_old.sql")).unwrap();
    let archive = archive.replace("TABLE old", "TABLE archive.old");
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; ATTACH ':memory:' AS archive; {archive}")).unwrap();
    connection
}

fn pick<T: Clone>(random: &mut SmallRng, of: &[T]) -> T {
    of[random.random_range(0..of.len())].clone()
}

/// A value as the declared type says, or for a column that takes any, sometimes of any class.
fn value(random: &mut SmallRng, declared: &str, wild: bool) -> Value {
    let text = |text: &str| Value::Text(text.into());
    let any = [
        Value::Integer(0),
        Value::Integer(3),
        Value::Real(f64::INFINITY),
        text("9e999"),
        text("b"),
        Value::Blob(vec![7]),
    ];
    if wild && random.random_bool(0.3) {
        return pick(random, &any);
    }
    match declared {
        "INTEGER" if random.random_bool(0.1) => Value::Integer(pick(random, &[i64::MAX, i64::MIN, -1])),
        "INTEGER" => Value::Integer(random.random_range(0..8)),
        "BOOLEAN" => Value::Integer(random.random_range(0..2)),
        "REAL" | "NUMERIC" => {
            Value::Real(pick(random, &[0.0, 1.0, -2.5, 7.25, f64::INFINITY, f64::NEG_INFINITY, 1e300]))
        }
        "DATE" => text(pick(random, &["2024-02-29", "1999-12-31"])),
        "DATETIME" => text(pick(random, &["2024-02-29 10:00:00", "no time"])),
        "JSON" => text(pick(random, &["{\"a\": 1}", "{\"a\": null}", "[]", "{"])),
        "BLOB" => Value::Blob(pick(random, &[vec![], vec![0], vec![0xff, 0x61]])),
        "TEXT" | "VARCHAR(10)" => text(pick(random, &["", "a", "b", "alpha", "12", "1.5x", "\u{e4}"])),
        _ => pick(random, &any),
    }
}

/// Fills every table with rows, as far as constraints take them.
fn fill(connection: &Connection, random: &mut SmallRng, wild: bool) {
    let tables = "SELECT l.schema, l.name, l.strict FROM pragma_table_list l
        WHERE l.type IN ('table', 'virtual') AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(tables).unwrap();
    let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let tables: Vec<(String, String, bool)> = tables.map(Result::unwrap).collect();
    for (schema, table, strict) in tables {
        let columns = "SELECT name, type, \"notnull\" FROM pragma_table_xinfo(?1, ?2) WHERE hidden = 0";
        let mut statement = connection.prepare(columns).unwrap();
        let columns =
            statement.query_map([&table, &schema], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        let columns: Vec<(String, String, bool)> = columns.map(Result::unwrap).collect();
        let names = columns.iter().map(|(name, ..)| &**name).collect::<Vec<_>>().join(", ");
        let marks = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {schema}.{table} ({names}) VALUES ({marks})");
        for _ in 0..random.random_range(0..12) {
            let row = columns.iter().map(|(name, declared, not_null)| match &**name {
                "status" => Value::Text(pick(random, &["new", "paid", "sent"]).into()),
                _ if !not_null && random.random_bool(0.3) => Value::Null,
                _ => value(random, declared, wild && !strict),
            });
            let row: Vec<Value> = row.collect();
            let _of_a_key = connection.execute(&insert, params_from_iter(row));
        }
    }
}

fn parameters(random: &mut SmallRng, checked: &Checked) -> Vec<Value> {
    let of = |parameter: &flatwater_check::Parameter, random: &mut SmallRng| match parameter.kind {
        _ if parameter.nullable && random.random_bool(0.3) => Value::Null,
        Kind::Integer | Kind::Boolean => value(random, "INTEGER", false),
        Kind::Real => value(random, "REAL", false),
        Kind::Text => value(random, "TEXT", false),
        Kind::Blob => value(random, "BLOB", false),
        _ => value(random, "", false),
    };
    checked.parameters.iter().map(|parameter| of(parameter, random)).collect()
}

/// Whether a column may return this value, by what was said of it. Without certainty only what passes through unchanged is judged,
/// and only if the data is as declared.
fn may_return(column: &Column, value: ValueRef<'_>, wild: bool) -> bool {
    if value == ValueRef::Null {
        return column.nullable;
    }
    if !column.certain && (wild || column.origin.is_none()) {
        return true;
    }
    let classes: &[Type] = match column.kind {
        Kind::Any | Kind::Uuid | Kind::Decimal => return true,
        Kind::Integer | Kind::Boolean => &[Type::Integer],
        Kind::Real => &[Type::Real],
        Kind::Number => &[Type::Integer, Type::Real],
        Kind::Text | Kind::Date | Kind::Time | Kind::DateTime | Kind::Json => &[Type::Text],
        Kind::Blob => &[Type::Blob],
    };
    classes.contains(&value.data_type())
}

/// Runs a query in a transaction that is rolled back, and returns the number of its rows.
fn run(connection: &Connection, sql: &str, checked: &Checked, parameters: &[Value], wild: bool) -> usize {
    connection.execute_batch("BEGIN").unwrap();
    let mut seen = 0;
    {
        let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut rows = statement.query(params_from_iter(parameters)).unwrap();
        // An error of the data, such as a sum that overflows, ends the query.
        while let Ok(Some(row)) = rows.next() {
            seen += 1;
            for (at, column) in checked.columns.iter().enumerate() {
                let value = row.get_ref(at).unwrap();
                assert!(may_return(column, value, wild), "{sql}\ncolumn {at}: {column:?}\nreturned {value:?}");
            }
        }
    }
    connection.execute_batch("ROLLBACK").unwrap();
    seen
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn no_value_contradicts_what_was_said_of_its_column() {
    let (mut schema, queries) = (schema(), queries());
    assert!(queries.len() >= 300, "only {} queries", queries.len());
    let checked: Vec<Checked> =
        queries.iter().map(|sql| schema.check(sql).unwrap_or_else(|fault| panic!("{sql}: {fault:?}"))).collect();
    let (seed, lists) = (setting("FLATWATER_SEED", 1), setting("FLATWATER_LISTS", 30));
    let mut seen = vec![0; queries.len()];
    for list in 0..lists {
        let mut random = SmallRng::seed_from_u64(seed + list);
        let (connection, wild) = (database(), list % 2 == 1);
        if list > 0 {
            fill(&connection, &mut random, wild);
        }
        for (at, sql) in queries.iter().enumerate() {
            let parameters = parameters(&mut random, &checked[at]);
            seen[at] += run(&connection, sql, &checked[at], &parameters, wild);
        }
    }
    let without: Vec<&String> = queries.iter().zip(&seen).filter(|(_, seen)| **seen == 0).map(|(sql, _)| sql).collect();
    assert!(without.len() < 30, "these have returned no row: {without:#?}");
}

/// What is said of nothing would never be contradicted.
#[test]
fn of_most_columns_something_is_said() {
    let mut schema = schema();
    let all: Vec<Column> = queries().iter().flat_map(|sql| schema.check(sql).unwrap().columns).collect();
    let known = all.iter().filter(|column| column.kind != Kind::Any).count();
    let never_null = all.iter().filter(|column| !column.nullable).count();
    assert!(known * 100 >= all.len() * 75, "the type of {known} of {}", all.len());
    assert!(never_null * 100 >= all.len() * 40, "{never_null} of {} are never NULL", all.len());
}
