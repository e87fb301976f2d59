//! rusqlite as a program uses it: `prepare_cached`, typed rows, its own transactions' statements.
//!
//! Owns: what the peers that call rusqlite do on a connection. Leaves out: on which thread, and who waits for it.

mod transaction;

use std::thread;
use std::time::Duration;

use lab_kit::json::{Streamed, map};
use lab_kit::peer::{BUSY_TIMEOUT, CACHE_KIB, STATEMENT_CACHE, Setup};
use lab_kit::{Cells, Named, Record, Result, Rows, Sum, Value};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, Statement, params_from_iter};
use serde::Serializer as _;
use serde::ser::SerializeSeq as _;

pub use rusqlite;
pub use transaction::transaction;

/// Opens a connection with the settings all peers share.
pub fn open(setup: &Setup) -> rusqlite::Result<Connection> {
    let connection = Connection::open(&setup.path)?;
    configure(&connection, setup)?;
    Ok(connection)
}

/// Gives an open connection the settings all peers share.
pub fn configure(connection: &Connection, setup: &Setup) -> rusqlite::Result<()> {
    if setup.name.ends_with("-encrypted") {
        connection.pragma_update(None, "key", format!("x'{}'", "2a".repeat(32)))?;
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = {}; PRAGMA foreign_keys = on;
         PRAGMA cache_size = -{CACHE_KIB}; PRAGMA mmap_size = 0;",
        setup.durability.synchronous()
    ))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    Ok(())
}

pub fn execute(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql)?;
    // A statement such as `CREATE TABLE` counts no rows, and one such as a PRAGMA answers some.
    if statement.column_count() > 0 {
        let mut rows = statement.query(params_from_iter(params.iter().map(Bound)))?;
        while rows.next()?.is_some() {}
        return Ok(0);
    }
    Ok(statement.execute(params_from_iter(params.iter().map(Bound)))? as u64)
}

pub fn many(connection: &mut Connection, sql: &str, rows: &Rows) -> Result<u64> {
    let transaction = connection.transaction()?;
    let changed = each(&transaction, sql, rows)?;
    transaction.commit()?;
    Ok(changed)
}

fn each(connection: &Connection, sql: &str, rows: &Rows) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut changed = 0;
    for row in rows.iter() {
        changed += statement.execute(params_from_iter(row.iter().map(Bound)))? as u64;
    }
    Ok(changed)
}

pub fn query<R: Record>(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<Vec<R>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(params.iter().map(Bound)))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(R::read(&RowCells(row))?);
    }
    Ok(records)
}

/// The rows of the query for each id, in one transaction.
pub fn snapshot<R: Record>(connection: &mut Connection, sql: &str, ids: [i64; 3]) -> Result<Sum> {
    let transaction = connection.transaction()?;
    let mut records = Vec::new();
    for id in ids {
        records.append(&mut query::<R>(&transaction, sql, &[id.into()])?);
    }
    transaction.commit()?;
    Ok(lab_kit::record::sum_of(&records))
}

/// Creates the SQL function `half`.
pub fn create_half(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    Ok(connection.create_scalar_function("half", 1, flags, |context| Ok(context.get::<f64>(0)? / 2.0))?)
}

/// Reads each row into an owned value, and keeps none.
pub fn stream(connection: &Connection, sql: &str) -> Result<Sum> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next()? {
        Named::read(&RowCells(row))?.touch(&mut sum);
    }
    Ok(sum)
}

/// Stays in a read transaction for so long.
pub fn read_for(connection: &Connection, lasts: Duration) -> Result<()> {
    connection.execute_batch("BEGIN")?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    thread::sleep(lasts);
    Ok(connection.execute_batch("COMMIT")?)
}

/// A `serde_json::Map` for each row, then `to_vec`.
pub fn json(connection: &Connection, sql: &str) -> Result<Vec<u8>> {
    let mut statement = connection.prepare_cached(sql)?;
    let names = names(&statement)?;
    let mut rows = statement.query([])?;
    let mut maps = Vec::new();
    while let Some(row) = rows.next()? {
        maps.push(map(&names, &RowCells(row))?);
    }
    Ok(serde_json::to_vec(&maps)?)
}

/// Each row written from SQLite's cells while the statement runs.
pub fn json_streamed(connection: &Connection, sql: &str) -> Result<Vec<u8>> {
    let mut statement = connection.prepare_cached(sql)?;
    let names = names(&statement)?;
    let mut rows = statement.query([])?;
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    let mut array = serializer.serialize_seq(None)?;
    while let Some(row) = rows.next()? {
        array.serialize_element(&Streamed(&names, RowCells(row)))?;
    }
    array.end()?;
    Ok(bytes)
}

fn names(statement: &Statement<'_>) -> Result<Vec<String>> {
    (0..statement.column_count()).map(|at| Ok(statement.column_name(at)?.to_owned())).collect()
}

struct Bound<'a>(&'a Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

struct RowCells<'a, 'b>(&'a Row<'b>);

impl Cells for RowCells<'_, '_> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        Ok(match self.0.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::Real(value) => Value::Real(value),
            ValueRef::Text(text) => std::str::from_utf8(text)?.into(),
            ValueRef::Blob(bytes) => bytes.into(),
        })
    }
}
