//! The peer `raw`: rusqlite on the calling thread, which is what a call cannot cost less than; and its variants
//! `raw-held` (reads inside an open read transaction), `raw-streamed` (JSON written while the statement runs),
//! `raw-ckpt-10000` (a checkpoint every 10,000 pages instead of every 1,000) and `raw-passive-500` (a PASSIVE checkpoint
//! every 500 writes); and with the feature `encrypted` the peer `raw-encrypted`, SQLCipher with a raw key.
//!
//! Each thread that uses a handle has a connection of its own; all lanes but those with readers beside use one thread.
//! Leaves out: concurrency. It has none, so it is no peer to beat there.

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lab_kit::lane::Info;
use lab_kit::{About, Body, NoLive, Peer, Record, Result, Rows, Setup, Sum, Value, anyhow, version_in};
use lab_rusqlite::rusqlite::Connection;

const HELD: &str = "raw-held";
const STREAMED: &str = "raw-streamed";
const RARE_CHECKPOINTS: &str = "raw-ckpt-10000";
const COUNTED_CHECKPOINTS: &str = "raw-passive-500";
const ENCRYPTED: &str = "raw-encrypted";
const WRITES_APART: u64 = 500;

thread_local! {
    /// This thread's connection and the number of the handle it was opened for.
    static CONNECTION: RefCell<Option<(u64, Connection)>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Raw {
    number: u64,
    setup: Arc<Setup>,
    writes: Arc<AtomicU64>,
}

impl Raw {
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        CONNECTION.with_borrow_mut(|slot| {
            if slot.as_ref().is_none_or(|(number, _)| *number != self.number) {
                *slot = Some((self.number, self.connect()?));
            }
            let (_, connection) = slot.as_mut().ok_or_else(|| anyhow!("the connection is gone"))?;
            work(connection)
        })
    }

    fn connect(&self) -> Result<Connection> {
        let connection = lab_rusqlite::open(&self.setup)?;
        if self.setup.name == RARE_CHECKPOINTS {
            connection.pragma_update(None, "wal_autocheckpoint", 10_000)?;
        }
        if self.setup.name == COUNTED_CHECKPOINTS {
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        }
        Ok(connection)
    }
}

impl Peer for Raw {
    type Table<R: Record> = Vec<R>;
    type Live = NoLive;

    const HAS_FUNCTIONS: bool = true;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "rusqlite");
        About {
            names: &["raw", HELD, STREAMED, RARE_CHECKPOINTS, COUNTED_CHECKPOINTS, ENCRYPTED],
            version,
            one_thread: true,
        }
    }

    fn offers(name: &str, lane: &Info) -> bool {
        match name {
            // Its reads stay as they are, whatever is written beside them.
            HELD => lane.reads_only || lane.name == "point_query_writing",
            ENCRYPTED => cfg!(feature = "encrypted") && ["point_query", "insert_sequential"].contains(&&*lane.name),
            STREAMED => lane.name == "json_10k",
            RARE_CHECKPOINTS | COUNTED_CHECKPOINTS => lane.group == "tails",
            _ => true,
        }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let raw = Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            setup: Arc::new(setup.clone()),
            writes: Arc::default(),
        };
        raw.with(|_| Ok(()))?;
        Ok(raw)
    }

    async fn hold(&self) -> Result<()> {
        if self.setup.name != HELD {
            return Ok(());
        }
        self.with(|connection| {
            connection.execute_batch("BEGIN")?;
            Ok(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?)
        })
    }

    async fn create_half(&self) -> Result<()> {
        self.with(|connection| lab_rusqlite::create_half(connection))
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        let changed = self.with(|connection| lab_rusqlite::execute(connection, sql, params))?;
        let is_due = (self.writes.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(WRITES_APART);
        if is_due && self.setup.name == COUNTED_CHECKPOINTS {
            self.with(|connection| lab_rusqlite::execute(connection, "PRAGMA wal_checkpoint(PASSIVE)", &[]))?;
        }
        Ok(changed)
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        self.with(|connection| lab_rusqlite::many(connection, sql, rows))
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<R>> {
        self.with(|connection| lab_rusqlite::query(connection, sql, params))
    }

    async fn stream(&self, sql: &'static str) -> Result<Sum> {
        self.with(|connection| lab_rusqlite::stream(connection, sql))
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        let json = if self.setup.name == STREAMED { lab_rusqlite::json_streamed } else { lab_rusqlite::json };
        self.with(|connection| json(connection, sql))
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        self.with(|connection| lab_rusqlite::transaction(connection, body))
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        self.with(|connection| lab_rusqlite::snapshot::<R>(connection, sql, ids))
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        self.with(|connection| lab_rusqlite::read_for(connection, lasts))
    }

    async fn close(self) -> Result<()> {
        match CONNECTION.with_borrow_mut(Option::take) {
            Some((_, connection)) => connection.close().map_err(|(_, error)| error.into()),
            None => Ok(()),
        }
    }
}

fn main() -> ExitCode {
    lab_kit::main::<Raw>()
}
