//! The peer `deadpool-sqlite`: `interact` on two pools, one connection that writes and several that read, which spares it
//! SQLite's waiting between writers. Leaves out: a pool of connections that all write.

use std::process::ExitCode;
use std::time::Duration;

use deadpool_sqlite::{Config, Object, Pool, PoolConfig, Runtime};
use lab_kit::value::owned;
use lab_kit::{About, Body, NoLive, Peer, Record, Result, Rows, Setup, Sum, Value, anyhow, version_in};
use lab_rusqlite::rusqlite::Connection;

const READERS: usize = 4;

#[derive(Clone)]
struct Pools {
    writer: Pool,
    readers: Pool,
}

impl Peer for Pools {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "deadpool-sqlite");
        About { names: &["deadpool-sqlite"], version, one_thread: false }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        Ok(Self { writer: pool(setup, 1).await?, readers: pool(setup, READERS).await? })
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        let params = owned(params);
        call(&self.writer, move |connection| lab_rusqlite::execute(connection, sql, &params)).await
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        let rows = rows.clone();
        call(&self.writer, move |connection| lab_rusqlite::many(connection, sql, &rows)).await
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<R>> {
        let params = owned(params);
        call(&self.readers, move |connection| lab_rusqlite::query(connection, sql, &params)).await
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        call(&self.readers, move |connection| lab_rusqlite::json(connection, sql)).await
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        call(&self.writer, move |connection| lab_rusqlite::transaction(connection, body)).await
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        call(&self.readers, move |connection| lab_rusqlite::snapshot::<R>(connection, sql, ids)).await
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        call(&self.readers, move |connection| lab_rusqlite::read_for(connection, lasts)).await
    }

    async fn close(self) -> Result<()> {
        for pool in [self.readers, self.writer] {
            for connection in all(&pool).await? {
                // The pool drops a connection on a thread for which nobody waits.
                interact(&connection, |connection| {
                    let open = std::mem::replace(connection, Connection::open_in_memory()?);
                    open.close().map_err(|(_, error)| error.into())
                })
                .await?;
            }
            pool.close();
        }
        Ok(())
    }
}

/// Opens all connections of a pool, with the settings all peers share.
async fn pool(setup: &Setup, connections: usize) -> Result<Pool> {
    let mut config = Config::new(&setup.path);
    config.pool = Some(PoolConfig::new(connections));
    let pool = config.create_pool(Runtime::Tokio1)?;
    for connection in all(&pool).await? {
        let setup = setup.clone();
        interact(&connection, move |connection| Ok(lab_rusqlite::configure(connection, &setup)?)).await?;
    }
    Ok(pool)
}

/// Takes every connection out of a pool; each goes back when it is dropped.
async fn all(pool: &Pool) -> Result<Vec<Object>> {
    let mut taken = Vec::new();
    for _ in 0..pool.status().max_size {
        taken.push(pool.get().await?);
    }
    Ok(taken)
}

async fn call<T: Send + 'static>(
    pool: &Pool,
    work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
) -> Result<T> {
    interact(&pool.get().await?, work).await
}

async fn interact<T: Send + 'static>(
    connection: &Object,
    work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
) -> Result<T> {
    connection.interact(work).await.map_err(|error| anyhow!("{error}"))?
}

fn main() -> ExitCode {
    lab_kit::main::<Pools>()
}
