//! The peer `tokio-rusqlite`: its connection, which lives on a thread of its own, and `call` for everything. Leaves out:
//! further connections for reads, which the library does not have.

use std::process::ExitCode;
use std::time::Duration;

use lab_kit::value::owned;
use lab_kit::{About, Body, NoLive, Peer, Record, Result, Rows, Setup, Sum, Value, anyhow, version_in};
use tokio_rusqlite::{Connection, Error, rusqlite};

#[derive(Clone)]
struct Called(Connection);

impl Called {
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.0.call(work).await.map_err(|error| match error {
            Error::Error(error) => error,
            Error::ConnectionClosed => anyhow!("the connection is closed"),
            other => anyhow!("{other:?}"),
        })
    }
}

impl Peer for Called {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "tokio-rusqlite");
        About { names: &["tokio-rusqlite"], version, one_thread: false }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        let connection = Connection::open(&setup.path).await?;
        let setup = setup.clone();
        let called = Self(connection);
        called.call(move |connection| Ok(lab_rusqlite::configure(connection, &setup)?)).await?;
        Ok(called)
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
        let params = owned(params);
        self.call(move |connection| lab_rusqlite::query(connection, sql, &params)).await
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

fn main() -> ExitCode {
    lab_kit::main::<Called>()
}
