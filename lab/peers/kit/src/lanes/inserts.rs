//! insert_sequential, single_insert, insert_at_once_100: small INSERTs, each a write of its own.
//!
//! `insert_sequential` awaits one after another into a growing table. SQLite's own checkpoint falls into about one insert
//! of a thousand, at the edge of p99.9; `p9999_us` is well inside. `single_insert` is its profile form: the table is
//! emptied every 100 rows, and `work_us` is the median above a write that does nothing. `insert_at_once_100` issues 100
//! at once and awaits them together; its sample is the time until all are answered.

use anyhow::Result;

use super::noop;
use crate::data::{self, DELETE_T, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, time};
use crate::peer::Peer;

const AT_ONCE: usize = 100;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        Lane::new(
            "writes",
            "insert_sequential",
            "small inserts, awaited one after another",
            "inserts",
            sequential::<P>,
        )
        .release(),
        Lane::new(
            "profile",
            "single_insert",
            "small inserts into a small table, above the noop",
            "inserts",
            single::<P>,
        ),
        Lane::new("writes", "insert_at_once_100", "100 small inserts issued at once", "inserts", at_once::<P>)
            .release()
            .tasks(),
    ]
}

async fn sequential<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(50_000, 200);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let names = data::names(count);
    let floor = noop::write_floor(&trial, &peer).await?;
    let mut timing = Timing::begin()?;
    for (i, name) in names.iter().enumerate() {
        let row = [name.as_str().into(), data::value(i).into()];
        time!(timing.latencies, peer.execute(INSERT_T, &row).await?);
    }
    let mut measured = timing.end(count as u64)?.over(&floor);
    measured.extra("p9999_us", measured.latencies.us(0.9999));
    data::expect_t(&peer, count).await?;
    peer.close().await?;
    Ok(measured)
}

async fn single<P: Peer>(trial: Trial) -> Result<Measured> {
    let rounds = trial.size(100, 3);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let names = data::names(AT_ONCE);
    let floor = noop::write_floor(&trial, &peer).await?;
    let mut timing = Timing::begin()?;
    for _ in 0..rounds {
        timing.pause()?;
        peer.execute(DELETE_T, &[]).await?;
        timing.resume()?;
        for (i, name) in names.iter().enumerate() {
            let row = [name.as_str().into(), data::value(i).into()];
            time!(timing.latencies, peer.execute(INSERT_T, &row).await?);
        }
    }
    let measured = timing.end((rounds * AT_ONCE) as u64)?.over(&floor);
    data::expect_t(&peer, AT_ONCE).await?;
    peer.close().await?;
    Ok(measured)
}

async fn at_once<P: Peer>(trial: Trial) -> Result<Measured> {
    let rounds = trial.size(200, 3);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let names = data::names(AT_ONCE);
    let mut timing = Timing::begin()?;
    for _ in 0..rounds {
        timing.pause()?;
        peer.execute(DELETE_T, &[]).await?;
        let tasks = names.clone().into_iter().enumerate();
        timing.resume()?;
        timing.time(issue(&peer, tasks)).await?;
    }
    let measured = timing.end((rounds * AT_ONCE) as u64)?;
    data::expect_t(&peer, AT_ONCE).await?;
    peer.close().await?;
    Ok(measured)
}

async fn issue<P: Peer>(peer: &P, rows: impl Iterator<Item = (usize, String)>) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for (i, name) in rows {
        let peer = peer.clone();
        tasks.spawn(async move { peer.execute(INSERT_T, &[name.into(), data::value(i).into()]).await });
    }
    while let Some(answer) = tasks.join_next().await {
        answer??;
    }
    Ok(())
}
