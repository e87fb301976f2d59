//! The peer `trailbase-sqlite`: its connection, which has a thread for writes and some for reads; reads by its own calls for rows.
//! Leaves out: its hooks.

use std::process::ExitCode;
use std::time::Duration;

use lab_kit::peer::BUSY_TIMEOUT;
use lab_kit::value::owned;
use lab_kit::{About, Body, Cells, NoLive, Peer, Record, Result, Rows, Setup, Sum, Value, anyhow, version_in};
use lab_rusqlite::rusqlite::{self, types};
use trailbase_sqlite::connection::Options;
use trailbase_sqlite::{Connection, Error, Row};

const READERS: usize = 4;

#[derive(Clone)]
struct Called(Connection);

impl Called {
    /// Runs it on the thread for writes.
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = self.0.call(move |connection| work(connection).map_err(|error| Error::Other(error.into()))).await;
        done.map_err(|error| anyhow!("{error}"))
    }
}

impl Peer for Called {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "trailbase-sqlite");
        About { names: &["trailbase-sqlite"], version, one_thread: false }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        let options = Options { busy_timeout: BUSY_TIMEOUT, n_read_threads: READERS };
        Ok(Self(Connection::new(|| lab_rusqlite::open(setup), Some(options))?))
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        let params = owned(params);
        self.call(move |connection| lab_rusqlite::execute(connection, sql, &params)).await
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        let rows = rows.clone();
        self.call(move |connection| lab_rusqlite::many(connection, sql, &rows)).await
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<R>> {
        // Its threads for reads take only what SQLite says to be one, which a PRAGMA may not be.
        if sql.starts_with("PRAGMA") {
            return self.call(move |connection| lab_rusqlite::query(connection, sql, &[])).await;
        }
        let params: Vec<types::Value> = params.iter().map(bound).collect();
        self.0.read_query_rows(sql, params).await?.iter().map(|row| R::read(&RowCells(row))).collect()
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        self.call(move |connection| lab_rusqlite::json(connection, sql)).await
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        self.call(move |connection| lab_rusqlite::transaction(connection, body)).await
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        self.call(move |connection| lab_rusqlite::snapshot::<R>(connection, sql, ids)).await
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        self.call(move |connection| lab_rusqlite::read_for(connection, lasts)).await
    }

    async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

fn bound(value: &Value<'_>) -> types::Value {
    match value {
        Value::Null => types::Value::Null,
        Value::Integer(value) => (*value).into(),
        Value::Real(value) => (*value).into(),
        Value::Text(text) => text.clone().into_owned().into(),
        Value::Blob(bytes) => bytes.clone().into_owned().into(),
    }
}

struct RowCells<'a>(&'a Row);

impl Cells for RowCells<'_> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        Ok(match self.0.get_value(at).ok_or_else(|| anyhow!("there is no column {at}"))? {
            types::Value::Null => Value::Null,
            types::Value::Integer(value) => Value::Integer(*value),
            types::Value::Real(value) => Value::Real(*value),
            types::Value::Text(text) => text.as_str().into(),
            types::Value::Blob(bytes) => bytes.as_slice().into(),
        })
    }
}

fn main() -> ExitCode {
    lab_kit::main::<Called>()
}
