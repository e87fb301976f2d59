//! The tasks of the clients.
//!
//! Owns: what they call, and what they conclude from its end. Invariant: a row has a number of its own, and is written by one call.
//! Leaves out: the comparison (`books`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind, params};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::books::{Books, Fate};
use super::place::Client;
use crate::finding::Finding;

/// Counts in the database, so that a write that is applied twice is seen.
const WRITE: &str = "INSERT INTO rows_of_act VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1";
const ACCOUNTS: i64 = 4;

pub(super) async fn create(on: &flatwater::Session) -> Result<(), Finding> {
    on.execute_script(
        "CREATE TABLE rows_of_act (id INTEGER PRIMARY KEY, n NOT NULL); CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents)",
    )
    .await?;
    on.execute_many("INSERT INTO accounts VALUES (?, 0)", (0..ACCOUNTS).map(|id| (id,))).await?;
    Ok(())
}

/// Watches the number of rows, until it is that of the end.
pub(super) async fn live_count(client: Client, books: Arc<Books>) -> Result<(), Finding> {
    let mut live = client.live("SELECT count(*) FROM rows_of_act");
    let mut count = -1;
    while books.last() != Some(count) {
        match tokio::time::timeout(Duration::from_millis(20), live.next()).await {
            Ok(Some(Ok(rows))) => {
                let newer: i64 = rows.get(0).map_or(Ok(-1), |row| row.get(0))?;
                if newer < count {
                    return Err(Finding::new(format!("a live query told of {count} rows, and then of {newer}")));
                }
                count = newer;
                books.count("live results");
            }
            // An error is an item, while the server is away.
            Ok(Some(Err(_))) | Err(_) => {}
            Ok(None) => return Err(Finding::new("a live query ended by itself")),
        }
    }
    Ok(())
}

pub(super) struct Task {
    client: Client,
    books: Arc<Books>,
    rng: StdRng,
}

impl Task {
    pub(super) fn new(client: Client, books: Arc<Books>, seed: u64, number: i64) -> Self {
        Self { client, books, rng: StdRng::seed_from_u64(seed.wrapping_add(number.unsigned_abs())) }
    }

    pub(super) async fn run(mut self, until: Instant) -> Result<(), Finding> {
        while Instant::now() < until {
            match self.rng.random_range(0..10) {
                0..=2 => self.write().await?,
                3 => self.batch().await?,
                4 => self.many().await?,
                5 => self.fails().await?,
                6 => self.leaves().await,
                7 => self.hurries().await?,
                8 => self.transfers().await?,
                _ => self.reads().await?,
            }
        }
        Ok(())
    }

    /// Writes a row, and reads it back.
    async fn write(&mut self) -> Result<(), Finding> {
        let rows = self.books.rows(1);
        let id = rows[0];
        let done = self.client.session().execute(WRITE, (id,)).await;
        if let Ok(done) = &done
            && (done.changes, done.last_insert_rowid) != (1, Some(id))
        {
            return Err(Finding::new(format!("row {id} was acknowledged with {done:?}")));
        }
        let is_there = done.is_ok();
        self.books.wrote(rows, fate(done)?);
        if is_there && self.rng.random_bool(0.3) {
            let fresh = self.client.fresh();
            let read =
                fresh.session().query_optional_value::<i64>("SELECT n FROM rows_of_act WHERE id = ?", (id,)).await;
            match read {
                Ok(Some(1)) => self.books.count("rows read back"),
                Ok(read) => {
                    return Err(Finding::new(format!("row {id} was acknowledged, and is there {read:?} times")));
                }
                Err(error) => outage(&error)?,
            }
        }
        Ok(())
    }

    async fn batch(&mut self) -> Result<(), Finding> {
        let rows = self.books.rows(2);
        let done = self.client.session().batch(rows.iter().map(|id| (WRITE, (*id,)))).await;
        self.books.wrote(rows, fate(done)?);
        Ok(())
    }

    async fn many(&mut self) -> Result<(), Finding> {
        let rows = self.books.rows(3);
        let done = self.client.session().execute_many(WRITE, rows.iter().map(|id| (*id,))).await;
        self.books.wrote(rows, fate(done)?);
        Ok(())
    }

    /// A write that fails: nothing of it is there.
    async fn fails(&mut self) -> Result<(), Finding> {
        let rows = self.books.rows(2);
        let batch = [(WRITE, params![rows[0]]?), ("INSERT INTO rows_of_act VALUES (?, NULL)", params![rows[1]]?)];
        match self.client.session().batch(batch).await {
            Err(error) if error.kind() == ErrorKind::Constraint => self.books.count("failed writes"),
            Err(error) => outage(&error)?,
            Ok(done) => return Err(Finding::new(format!("a write that must fail did not: {done:?}"))),
        }
        self.books.wrote(rows, Fate::NotThere);
        Ok(())
    }

    /// A write whose caller leaves.
    async fn leaves(&mut self) {
        let rows = self.books.rows(1);
        let mut call = self.client.session().execute(WRITE, (rows[0],));
        for _ in 0..self.rng.random_range(1..4) {
            if futures_util::poll!(&mut call).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
        self.books.count("dropped calls");
        self.books.wrote(rows, Fate::Unknown);
    }

    /// A write with little time.
    async fn hurries(&mut self) -> Result<(), Finding> {
        let rows = self.books.rows(1);
        let time = Duration::from_millis(self.rng.random_range(0..80));
        let done = self.client.within(time).session().execute(WRITE, (rows[0],)).await;
        self.books.wrote(rows, fate(done)?);
        Ok(())
    }

    /// Moves money in a transaction, where there are transactions.
    async fn transfers(&mut self) -> Result<(), Finding> {
        let Client::Libsql(client) = &self.client else { return Ok(()) };
        let (from, to) = (self.rng.random_range(0..ACCOUNTS), self.rng.random_range(0..ACCOUNTS));
        let rows = self.books.rows(1);
        let id = rows[0];
        let done = client
            .transaction(async |tx| {
                let had: i64 = tx.query_value("SELECT cents FROM accounts WHERE id = ?", (from,)).await?;
                tx.execute("UPDATE accounts SET cents = ? WHERE id = ?", (had - 1, from)).await?;
                tx.execute("UPDATE accounts SET cents = cents + 1 WHERE id = ?", (to,)).await?;
                tx.execute(WRITE, (id,)).await.map(drop)
            })
            .await;
        self.books.count("transactions");
        self.books.wrote(rows, fate(done)?);
        Ok(())
    }

    async fn reads(&mut self) -> Result<(), Finding> {
        match self.client.session().query_value::<i64>("SELECT count(*) FROM rows_of_act", ()).await {
            Ok(_) => self.books.count("reads"),
            Err(error) => outage(&error)?,
        }
        Ok(())
    }
}

/// What a write has come to.
fn fate<T>(done: Result<T, Error>) -> Result<Fate, Finding> {
    let Err(error) = done else { return Ok(Fate::There) };
    outage(&error)?;
    Ok(match (error.kind(), error.applied()) {
        (_, Some(TimeoutEffect::Yes)) => Fate::There,
        (_, Some(TimeoutEffect::No)) => Fate::NotThere,
        (ErrorKind::CommitUnknown, _) | (_, Some(TimeoutEffect::Unknown)) => Fate::Unknown,
        // A transaction that is lost: nothing of it was written.
        (ErrorKind::Io | ErrorKind::Misuse, _) => Fate::NotThere,
        _ => Fate::Unknown,
    })
}

/// Refuses errors that no outage explains.
fn outage(error: &Error) -> Result<(), Finding> {
    let is_lost = error.message().contains("transaction");
    match error.kind() {
        ErrorKind::Timeout
        | ErrorKind::Expired
        | ErrorKind::CommitUnknown
        | ErrorKind::Io
        | ErrorKind::Open
        | ErrorKind::Busy => Ok(()),
        ErrorKind::Misuse if is_lost => Ok(()),
        _ => Err(Finding::new(format!("unexpected error: {error}"))),
    }
}
