//! The peers `turso` and `turso-mvcc`: the engine `turso`, with a connection for each call at work.
//!
//! Connections that are idle are used again, with their prepared statements. `turso` keeps a WAL: one call at a time writes, which
//! spares the others its busy handler's waits. `turso-mvcc` keeps the engine's own journal of versions, in which calls write at once, each in a
//! `BEGIN CONCURRENT` that is tried again after a conflict. Leaves out: its encryption, search and synchronization.

mod pool;

use std::process::ExitCode;
use std::time::Duration;

use lab_kit::lane::Info;
use lab_kit::{
    About, Body, NoLive, Peer, Record, Result, Rows, Setup, Step, Sum, Transaction, Value, anyhow, json, record,
    version_in,
};
use pool::{Lent, Pool};
use turso::{Connection, Error};

/// Conflicts of one write before the lane fails.
const TRIES: usize = 10_000;

const NAME: &str = "turso";
const CONCURRENT: &str = "turso-mvcc";

impl Peer for Pool {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    fn about() -> About {
        About {
            names: &[NAME, CONCURRENT],
            version: version_in(include_str!("../Cargo.lock"), "turso"),
            one_thread: false,
        }
    }

    /// Concurrent transactions are for lanes in which tasks write. The engine lacks the module `fts5`, and opens no file whose WAL
    /// a killed process left.
    fn offers(name: &str, lane: &Info) -> bool {
        (name == NAME || lane.tasks) && !["long_queries", "reopen_wal"].contains(&&*lane.name)
    }

    fn journal_mode(name: &str) -> &'static str {
        if name == CONCURRENT { "mvcc" } else { "wal" }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        Self::new(setup, Self::journal_mode(&setup.name)).await
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        let (_turn, connection) = (self.turn().await, self.lend().await?);
        if !self.is_concurrent() {
            return execute(&connection, sql, params).await;
        }
        for _ in 0..TRIES {
            connection.execute("BEGIN CONCURRENT", ()).await?;
            let done = match run(&connection, sql, params).await {
                Ok(changed) => connection.execute("COMMIT", ()).await.map(|_| changed),
                Err(error) => Err(error),
            };
            let Err(error) = done else { return Ok(done?) };
            if !connection.is_autocommit()? {
                connection.execute("ROLLBACK", ()).await?;
            }
            if !matches!(error, Error::Busy(_) | Error::BusySnapshot(_)) {
                // A change of the schema is refused there.
                return execute(&connection, sql, params).await;
            }
            tokio::task::yield_now().await;
        }
        Err(anyhow!("{sql} had {TRIES} conflicts"))
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        let (_turn, connection) = (self.turn().await, self.lend().await?);
        connection.execute("BEGIN", ()).await?;
        let changed = each(&connection, sql, rows).await?;
        connection.execute("COMMIT", ()).await?;
        Ok(changed)
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<R>> {
        query(&*self.lend().await?, sql, params).await
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        let connection = self.lend().await?;
        let mut statement = connection.prepare_cached(sql).await?;
        let names = statement.column_names();
        let mut rows = statement.query(()).await?;
        let mut maps = Vec::new();
        while let Some(row) = rows.next().await? {
            maps.push(json::map(&names, &cells(&row)?)?);
        }
        Ok(serde_json::to_vec(&maps)?)
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        let (_turn, connection) = (self.turn().await, self.lend().await?);
        connection.execute("BEGIN IMMEDIATE", ()).await?;
        let answer = body.run(&mut Open(&connection)).await;
        connection.execute(if answer.is_ok() { "COMMIT" } else { "ROLLBACK" }, ()).await?;
        answer
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        let connection = self.lend().await?;
        connection.execute("BEGIN", ()).await?;
        let mut sum = Sum::default();
        for id in ids {
            sum += record::sum_of(&query::<R>(&connection, sql, &[id.into()]).await?);
        }
        connection.execute("COMMIT", ()).await?;
        Ok(sum)
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        let connection = self.lend().await?;
        connection.execute("BEGIN", ()).await?;
        query::<(i64,)>(&connection, "SELECT count(*) FROM sqlite_schema", &[]).await?;
        tokio::time::sleep(lasts).await;
        connection.execute("COMMIT", ()).await?;
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }
}

async fn run(connection: &Connection, sql: &str, params: &[Value<'_>]) -> turso::Result<u64> {
    connection.prepare_cached(sql).await?.execute(bound(params)).await
}

async fn execute(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<u64> {
    Ok(run(connection, sql, params).await?)
}

async fn each(connection: &Connection, sql: &str, rows: &Rows) -> Result<u64> {
    let mut statement = connection.prepare_cached(sql).await?;
    let mut changed = 0;
    for row in rows.iter() {
        changed += statement.execute(bound(row)).await?;
    }
    Ok(changed)
}

async fn query<R: Record>(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<Vec<R>> {
    let mut rows = connection.prepare_cached(sql).await?.query(bound(params)).await?;
    let mut records = Vec::new();
    while let Some(row) = rows.next().await? {
        records.push(R::read(&cells(&row)?)?);
    }
    Ok(records)
}

struct Open<'a>(&'a Lent<'a>);

impl Transaction for Open<'_> {
    async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        execute(self.0, sql, params).await
    }

    async fn many(&mut self, sql: &'static str, rows: &Rows) -> Result<u64> {
        each(self.0, sql, rows).await
    }

    async fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Sum> {
        Ok(record::sum_of(&query::<R>(self.0, sql, params).await?))
    }

    async fn integer(&mut self, sql: &'static str) -> Result<i64> {
        let rows = query::<(i64,)>(self.0, sql, &[]).await?;
        Ok(rows.first().ok_or_else(|| anyhow!("{sql} answered no row"))?.0)
    }

    async fn savepoint<S: Step>(&mut self, step: S) -> Result<()> {
        self.0.execute("SAVEPOINT step", ()).await?;
        let answer = step.run(self).await;
        let end = if answer.is_ok() { "RELEASE step" } else { "ROLLBACK TO step; RELEASE step" };
        self.0.execute_batch(end).await?;
        answer
    }
}

fn bound(params: &[Value<'_>]) -> Vec<turso::Value> {
    params
        .iter()
        .map(|value| match value {
            Value::Null => turso::Value::Null,
            Value::Integer(value) => turso::Value::Integer(*value),
            Value::Real(value) => turso::Value::Real(*value),
            Value::Text(text) => turso::Value::Text(text.clone().into_owned()),
            Value::Blob(bytes) => turso::Value::Blob(bytes.clone().into_owned()),
        })
        .collect()
}

/// The cells of a row, which the library answers as values of their own.
fn cells(row: &turso::Row) -> Result<Vec<Value<'static>>> {
    let cell = |at| {
        Ok(match row.get_value(at)? {
            turso::Value::Null => Value::Null,
            turso::Value::Integer(value) => Value::Integer(value),
            turso::Value::Real(value) => Value::Real(value),
            turso::Value::Text(text) => text.into(),
            turso::Value::Blob(bytes) => Value::Blob(bytes.into()),
        })
    };
    (0..row.column_count()).map(cell).collect()
}

fn main() -> ExitCode {
    lab_kit::main::<Pool>()
}
