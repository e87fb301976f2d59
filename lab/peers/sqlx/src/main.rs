//! The peer `sqlx`: `query` with `bind` on two pools, one connection that writes and several that read, which spares it
//! SQLite's waiting between writers. Leaves out: its macros, which check SQL when a program is compiled and cost nothing
//! when it runs.

use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

use lab_kit::peer::{BUSY_TIMEOUT, CACHE_KIB, STATEMENT_CACHE};
use lab_kit::{
    About, Body, Cells, Durability, Named, NoLive, Peer, Record, Result, Rows, Setup, Step, Sum, Table, Transaction,
    Value, anyhow, bail, json, version_in,
};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Column, Connection, Decode, FromRow, Row, Sqlite, TypeInfo, ValueRef};

const READERS: u32 = 4;

#[derive(Clone)]
struct Pools {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Peer for Pools {
    type Table<R: Record> = Fetched<R>;
    type Live = NoLive;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "sqlx");
        About { names: &["sqlx"], version, one_thread: false }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        let synchronous = match setup.durability {
            Durability::Normal => SqliteSynchronous::Normal,
            Durability::Full => SqliteSynchronous::Full,
        };
        let options = SqliteConnectOptions::new()
            .filename(&setup.path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(STATEMENT_CACHE)
            .pragma("cache_size", format!("-{CACHE_KIB}"))
            .pragma("mmap_size", "0");
        let writer = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        let readers = SqlitePoolOptions::new().max_connections(READERS).connect_with(options).await?;
        Ok(Self { writer, readers })
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        Ok(bound(sql, params).execute(&self.writer).await?.rows_affected())
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        let mut open = Open(self.writer.begin().await?);
        let changed = open.many(sql, rows).await?;
        open.0.commit().await?;
        Ok(changed)
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Fetched<R>> {
        Ok(Fetched(bound(sql, params).fetch_all(&self.readers).await?, PhantomData))
    }

    async fn query_as(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Named>> {
        Ok(bound(sql, params).try_map(|row| Named::from_row(&row)).fetch_all(&self.readers).await?)
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        let rows = sqlx::query(sql).fetch_all(&self.readers).await?;
        let names: Vec<String> = rows
            .first()
            .map_or_else(Vec::new, |row| row.columns().iter().map(|column| column.name().to_owned()).collect());
        let maps = rows.iter().map(|row| json::map(&names, &RowCells(row))).collect::<Result<Vec<_>>>()?;
        Ok(serde_json::to_vec(&maps)?)
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        let mut open = Open(self.writer.begin_with("BEGIN IMMEDIATE").await?);
        // An error drops the transaction, which rolls back.
        let answer = body.run(&mut open).await?;
        open.0.commit().await?;
        Ok(answer)
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        let mut open = Open(self.readers.begin().await?);
        let mut sum = Sum::default();
        for id in ids {
            sum += open.query::<R>(sql, &[id.into()]).await?;
        }
        open.0.commit().await?;
        Ok(sum)
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        let mut read = self.readers.begin().await?;
        sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut *read).await?;
        tokio::time::sleep(lasts).await;
        Ok(read.commit().await?)
    }

    async fn close(self) -> Result<()> {
        self.readers.close().await;
        self.writer.close().await;
        Ok(())
    }
}

struct Open<'a>(sqlx::Transaction<'a, Sqlite>);

impl Transaction for Open<'_> {
    async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        Ok(bound(sql, params).execute(&mut *self.0).await?.rows_affected())
    }

    async fn many(&mut self, sql: &'static str, rows: &Rows) -> Result<u64> {
        let mut changed = 0;
        for row in rows.iter() {
            changed += self.execute(sql, row).await?;
        }
        Ok(changed)
    }

    async fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Sum> {
        Ok(Fetched::<R>(bound(sql, params).fetch_all(&mut *self.0).await?, PhantomData).touch())
    }

    async fn integer(&mut self, sql: &'static str) -> Result<i64> {
        let row = sqlx::query(sql).fetch_optional(&mut *self.0).await?;
        Ok(row.ok_or_else(|| anyhow!("{sql} answered no row"))?.try_get(0)?)
    }

    async fn savepoint<S: Step>(&mut self, step: S) -> Result<()> {
        let mut nested = Open(self.0.begin().await?);
        step.run(&mut nested).await?;
        Ok(nested.0.commit().await?)
    }
}

/// The rows of a query, as the library answers them.
struct Fetched<R>(Vec<SqliteRow>, PhantomData<fn() -> R>);

impl<R: Record> Table<R> for Fetched<R> {
    fn touch(&self) -> Sum {
        let mut sum = Sum { rows: self.0.len() as u64, cells: 0 };
        for row in &self.0 {
            for at in 0..R::COLUMNS {
                sum.add(&RowCells(row).cell(at).unwrap_or(Value::Null));
            }
        }
        sum
    }

    fn records(&self) -> Result<Vec<R>> {
        self.0.iter().map(|row| R::read(&RowCells(row))).collect()
    }
}

struct RowCells<'a>(&'a SqliteRow);

impl Cells for RowCells<'_> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        let value = self.0.try_get_raw(at)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        let decoded = match value.type_info().name() {
            "INTEGER" => i64::decode(value).map(Value::from),
            "REAL" => f64::decode(value).map(Value::from),
            "TEXT" => <&str>::decode(value).map(Value::from),
            "BLOB" => <&[u8]>::decode(value).map(Value::from),
            other => bail!("column {at} is of the unknown type {other}"),
        };
        decoded.map_err(|error| anyhow!("column {at}: {error}"))
    }
}

fn bound<'q>(sql: &'static str, params: &[Value<'q>]) -> Query<'q, Sqlite, SqliteArguments> {
    params.iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Null => query.bind(None::<i64>),
        Value::Integer(value) => query.bind(*value),
        Value::Real(value) => query.bind(*value),
        Value::Text(text) => query.bind(text.clone().into_owned()),
        Value::Blob(bytes) => query.bind(bytes.clone().into_owned()),
    })
}

fn main() -> ExitCode {
    lab_kit::main::<Pools>()
}
