//! transaction_interactive, transaction_batched, transaction_loop, transaction_reads, snapshot_reads, savepoints, savepoints_deep.
//!
//! A sample is one whole transaction. Where a library's transactions are closures on its own thread the whole body runs
//! there; where they await between statements it awaits. `savepoints` nests 50 one after another, `savepoints_deep` 5
//! into each other, with one insert in each. `snapshot_reads` only reads, in a transaction that need not be immediate.

use anyhow::{Result, ensure};

use crate::data::{self, DELETE_T, INSERT_T, Item, SELECT_ITEM, SELECT_ITEMS, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, time};
use crate::peer::{Body, Peer, Step, Transaction};
use crate::record::{Sum, sum_of};
use crate::value::Rows;

const INTS: &str = "CREATE TABLE ints (n INTEGER NOT NULL)";
const SEEDS: i64 = 100;
const BATCH: usize = 1000;
const LOOP: usize = 100;
const READ: usize = 500;
const SHALLOW: usize = 50;
const DEEP: usize = 5;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let lane = |name, about, unit, run: fn(Trial) -> super::Running| Lane::new("transactions", name, about, unit, run);
    vec![
        lane("transaction_interactive", "insert, count, delete if there are many, commit", "transactions", |trial| {
            Box::pin(interactive::<P>(trial))
        })
        .release(),
        lane("transaction_batched", "1000 rows by one call inside a transaction", "rows", |trial| {
            Box::pin(writes::<P, _>(trial, Batched(data::t_rows(BATCH)), BATCH, 150))
        })
        .release(),
        lane("transaction_loop", "100 single inserts inside a transaction", "rows", |trial| {
            Box::pin(writes::<P, _>(trial, Loop(data::names(LOOP)), LOOP, 300))
        })
        .release(),
        lane("transaction_reads", "500 rows of 6 columns read inside a transaction", "transactions", |trial| {
            Box::pin(reads::<P>(trial))
        })
        .release(),
        lane("snapshot_reads", "3 rows by primary key, all of one point in time", "snapshots", |trial| {
            Box::pin(snapshots::<P>(trial))
        })
        .release(),
        lane("savepoints", "50 nested transactions one after another, an insert in each", "savepoints", |trial| {
            Box::pin(writes::<P, _>(trial, Shallow, SHALLOW, 200))
        })
        .release(),
        lane("savepoints_deep", "5 nested transactions inside each other, an insert in each", "savepoints", |trial| {
            Box::pin(writes::<P, _>(trial, Deep(0), DEEP, 1000))
        }),
    ]
}

async fn interactive<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(3_000, 30);
    let peer = trial.open::<P>().await?;
    peer.execute(INTS, &[]).await?;
    for n in 0..SEEDS {
        peer.execute("INSERT INTO ints VALUES (?)", &[n.into()]).await?;
    }
    let mut timing = Timing::begin()?;
    for _ in 0..count {
        let counted = timing.time(peer.transaction(Interactive)).await?;
        ensure!(counted == SEEDS + 1, "the transaction counted {counted} rows");
    }
    let measured = timing.end(count as u64)?;
    let left: Vec<_> = (0..SEEDS).map(|n| (n,)).collect();
    data::expect_rows(&peer, "SELECT n FROM ints ORDER BY n", &left).await?;
    peer.close().await?;
    Ok(measured)
}

struct Interactive;

impl Body for Interactive {
    type Answer = i64;

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<i64> {
        transaction.execute("INSERT INTO ints VALUES (?)", &[999.into()]).await?;
        let counted = transaction.integer("SELECT count(*) FROM ints").await?;
        if counted > 50 {
            transaction.execute("DELETE FROM ints WHERE n = ?", &[999.into()]).await?;
        }
        Ok(counted)
    }
}

/// Transactions that write the rows `0..rows` of `t`, which is emptied between them.
async fn writes<P: Peer, B: Body + Clone>(trial: Trial, body: B, rows: usize, count: usize) -> Result<Measured> {
    let count = trial.size(count, 3);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let mut timing = Timing::begin()?;
    for _ in 0..count {
        timing.pause()?;
        peer.execute(DELETE_T, &[]).await?;
        let body = body.clone();
        timing.resume()?;
        timing.time(peer.transaction(body)).await?;
    }
    let measured = timing.end((count * rows) as u64)?;
    data::expect_t(&peer, rows).await?;
    peer.close().await?;
    Ok(measured)
}

#[derive(Clone)]
struct Batched(Rows);

impl Body for Batched {
    type Answer = ();

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        let changed = transaction.many(INSERT_T, &self.0).await?;
        ensure!(changed == self.0.len() as u64, "{changed} rows were written");
        Ok(())
    }
}

#[derive(Clone)]
struct Loop(Vec<String>);

impl Body for Loop {
    type Answer = ();

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        for (i, name) in self.0.iter().enumerate() {
            transaction.execute(INSERT_T, &[name.as_str().into(), data::value(i).into()]).await?;
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Shallow;

impl Body for Shallow {
    type Answer = ();

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        for i in 0..SHALLOW {
            transaction.savepoint(Insert(i)).await?;
        }
        Ok(())
    }
}

struct Insert(usize);

impl Step for Insert {
    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        let name = format!("item_{}", self.0);
        transaction.execute(INSERT_T, &[name.as_str().into(), data::value(self.0).into()]).await?;
        Ok(())
    }
}

/// Row number `.0` and, in a savepoint, those after it.
#[derive(Clone)]
struct Deep(usize);

impl Body for Deep {
    type Answer = ();

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        transaction.savepoint(self).await
    }
}

impl Step for Deep {
    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<()> {
        Insert(self.0).run(transaction).await?;
        if self.0 + 1 < DEEP {
            Box::pin(transaction.savepoint(Self(self.0 + 1))).await?;
        }
        Ok(())
    }
}

async fn reads<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(1_000, 5);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, READ).await?;
    let expected = sum_of(&data::items(READ));
    let mut timing = Timing::begin()?;
    for _ in 0..count {
        let sum = timing.time(peer.transaction(Reads)).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn snapshots<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(10_000, 50);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, READ).await?;
    let items = data::items(READ);
    let mut timing = Timing::begin()?;
    for n in 0..count {
        let at = n % (READ - 2);
        let id = i64::try_from(at)? + 1;
        let sum = time!(timing.latencies, peer.snapshot::<Item>(SELECT_ITEM, [id, id + 1, id + 2]).await?);
        ensure!(sum == sum_of(&items[at..at + 3]), "the rows are not those that were written");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

struct Reads;

impl Body for Reads {
    type Answer = Sum;

    async fn run<T: Transaction>(self, transaction: &mut T) -> Result<Sum> {
        transaction.query::<Item>(SELECT_ITEMS, &[]).await
    }
}
