//! Functions and collations that a schema uses: in indexes, generated columns, CHECK constraints, defaults and triggers.
//! Random statements run on Flatwater and on plain rusqlite with the same functions, and have the same effects.
//!
//! `FLATWATER_SEED` repeats one list, `FLATWATER_LISTS` sets the number of lists.

use flatwater::{Database, Error, Options};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;
use rusqlite::functions::Context;

use super::registered::PURE;
use crate::support::run;

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE by_length, b INT DEFAULT (seven()),
        made INT AS (weight(a)), kept INT AS (weight(a) + b) STORED, CHECK (weight(a) < 90));
    CREATE INDEX t_weight ON t (weight(a));
    CREATE INDEX t_some ON t (b) WHERE weight(a) > 20;
    CREATE UNIQUE INDEX t_a ON t (a);
    CREATE TABLE log (what TEXT, weight INT);
    CREATE TRIGGER inserted AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('+' || new.a, weight(new.a)); END;
    CREATE TRIGGER deleted AFTER DELETE ON t WHEN weight(old.a) > 10 BEGIN INSERT INTO log VALUES ('-' || old.a, 0); END;
    CREATE VIEW heavy AS SELECT id, a FROM t WHERE weight(a) > 20;";

/// Returns the sum of the letters' places in the alphabet.
fn weight(context: &Context<'_>) -> rusqlite::Result<i64> {
    let text = context.get::<String>(0)?;
    Ok(text.bytes().map(|byte| i64::from(byte) - 96).sum())
}

fn by_length(one: &str, other: &str) -> std::cmp::Ordering {
    one.len().cmp(&other.len())
}

fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = PURE | rusqlite::functions::FunctionFlags::SQLITE_UTF8;
    connection.create_scalar_function("weight", 1, flags, weight)?;
    connection.create_scalar_function("seven", 0, flags, |_| Ok(7))?;
    connection.create_collation("by_length", by_length)
}

fn register_on(db: &Database) {
    db.functions().create_scalar_function("weight", 1, PURE, weight).unwrap();
    db.functions().create_scalar_function("seven", 0, PURE, |_| Ok(7)).unwrap();
    db.functions().create_collation("by_length", by_length).unwrap();
}

fn word(random: &mut StdRng) -> String {
    (0..random.random_range(1..9)).map(|_| char::from(b'a' + random.random_range(0..20_u8))).collect()
}

fn statement(random: &mut StdRng) -> String {
    let (one, other, id) = (word(random), word(random), random.random_range(0..30));
    match random.random_range(0..10) {
        0..3 => format!("INSERT INTO t (a) VALUES ('{one}')"),
        3 => format!("INSERT OR REPLACE INTO t (id, a, b) VALUES ({id}, '{one}', weight('{other}'))"),
        4 => format!("INSERT INTO t (a) VALUES ('{one}') ON CONFLICT (a) DO UPDATE SET b = weight(excluded.a)"),
        5 => format!("UPDATE t SET a = '{one}' WHERE id = {id}"),
        6 => format!("UPDATE t SET b = b + made WHERE weight(a) BETWEEN {id} AND {id} + 20"),
        7 => format!("DELETE FROM t WHERE a = '{one}'"),
        8 => format!("DELETE FROM t WHERE weight(a) = {id}"),
        _ => format!("UPDATE t SET id = id + 100 WHERE a > '{one}' AND kept > {id}"),
    }
}

const CONTENT: &str = "SELECT group_concat(line, char(10)) FROM (
    SELECT format('%d %s %d %d %d', id, a, b, made, kept) AS line FROM (SELECT * FROM t ORDER BY id)
    UNION ALL SELECT format('%s %d', what, weight) FROM log
    UNION ALL SELECT 'heavy ' || a FROM (SELECT * FROM heavy ORDER BY id)
    UNION ALL SELECT format('by index %d', count(*)) FROM t INDEXED BY t_weight WHERE weight(a) > 20
    UNION ALL SELECT a FROM (SELECT a FROM t ORDER BY a, id))";

async fn compare(options: Options, at_open: bool, seed: u64) {
    let plain = Connection::open_in_memory().unwrap();
    register(&plain).unwrap();
    plain.execute_batch(SCHEMA).unwrap();
    let db = if at_open { options.on_connect(register) } else { options }.open().await.unwrap();
    if !at_open {
        register_on(&db);
    }
    db.execute_script(SCHEMA).await.unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    for at in 0..120 {
        let sql = statement(&mut random);
        let (here, there) = (db.execute(&*sql, ()).await, plain.execute(&sql, []));
        match (&here, &there) {
            (Ok(here), Ok(there)) => {
                assert_eq!(usize::try_from(here.changes).unwrap(), *there, "seed {seed}, {at}: {sql}")
            }
            (Err(_), Err(_)) => {}
            _ => panic!("seed {seed}, {at}: {sql}: {here:?}, {there:?}"),
        }
        let content: Option<String> = db.query_value(CONTENT, ()).await.unwrap();
        let expected: Option<String> = plain.query_row(CONTENT, [], |row| row.get(0)).unwrap();
        assert_eq!(content, expected, "seed {seed}, {at}: {sql}");
        if at == 60 && !at_open {
            // Each connection gets them once more.
            register_on(&db);
        }
    }
    let check = |c: &Connection| Ok::<String, Error>(c.query_row("PRAGMA integrity_check", [], |row| row.get(0))?);
    assert_eq!(db.read_with(check).await.unwrap(), "ok");
    db.close().await.unwrap();
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn compare_all(in_memory: bool, at_open: bool) {
    let lists = number("FLATWATER_LISTS").unwrap_or(10);
    let seeds = number("FLATWATER_SEED").map_or(0..lists, |seed| seed..seed + 1);
    run(async {
        for seed in seeds {
            let directory = tempfile::tempdir().unwrap();
            let path = if in_memory { ":memory:".into() } else { directory.path().join("a.db") };
            compare(Options::new(path), at_open, seed).await;
        }
    });
}

#[test]
fn a_schema_with_functions_of_on_connect_is_as_in_plain_sqlite() {
    compare_all(false, true);
    compare_all(true, true);
}

#[test]
fn a_schema_with_functions_of_the_open_database_is_as_in_plain_sqlite() {
    compare_all(false, false);
    compare_all(true, false);
}
