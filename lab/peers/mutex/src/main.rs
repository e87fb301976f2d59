//! The peer `mutex`: one rusqlite connection behind a mutex, and `spawn_blocking` for every call, which is what programs
//! without a library for it do. Leaves out: a pool of readers.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab_kit::value::owned;
use lab_kit::{About, Body, NoLive, Peer, Record, Result, Rows, Setup, Sum, Value, anyhow, version_in};
use lab_rusqlite::rusqlite::Connection;

#[derive(Clone)]
struct Shared(Arc<Mutex<Connection>>);

impl Shared {
    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let connection = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().map_err(|_| anyhow!("an earlier call panicked"))?;
            work(&mut connection)
        });
        done.await?
    }
}

impl Peer for Shared {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "rusqlite");
        About { names: &["mutex"], version, one_thread: false }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        let setup = setup.clone();
        let connection = tokio::task::spawn_blocking(move || lab_rusqlite::open(&setup)).await??;
        Ok(Self(Arc::new(Mutex::new(connection))))
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
        // The last handle closes the connection, on a thread that may block.
        Ok(tokio::task::spawn_blocking(move || drop(self)).await?)
    }
}

fn main() -> ExitCode {
    lab_kit::main::<Shared>()
}
