//! live_keyed_10, live_keyed_10k: writes to rows that live queries look up by rowid.
//!
//! Of 20,000 rows, 10 or 10,000 are watched by a live query each. The sample is an UPDATE of one of the watched rows, at
//! random; the next one begins when its result was delivered, so each write must cause one run, of that row's query.
//! `same_*` are the same for 10 rows that are watched in both lanes, so that their pages are in the caches of both alike.
//! `unwatched_*` are UPDATES of rows that nobody watches, at random, and must cause no run. The budget is 1.2 times the cost
//! with 10.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::record::sum_of;
use crate::traffic::Traffic;

const CREATE: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL, updated_at INTEGER NOT NULL)";
const INSERT: &str = "INSERT INTO notes (body, updated_at) VALUES (?, 0)";
const UPDATE: &str = "UPDATE notes SET body = ?, updated_at = ? WHERE id = ?";
const BY_ID: &str = "SELECT id, body, updated_at FROM notes WHERE id = ?";

/// How many rows are watched in both lanes.
const SAME: usize = 10;

type Note = (i64, String, i64);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let keyed = |(word, shown, watched, quick)| {
        let about = format!("an UPDATE of one of {shown} rows with a live query each");
        lane(format!("live_keyed_{word}"), about, "writes", move |trial| {
            let watched = trial.size(watched, quick);
            run::<P>(trial, watched)
        })
        .release()
    };
    [("10", "10", SAME, SAME), ("10k", "10,000", 10_000, 200)].map(keyed).into()
}

async fn run<P: Peer>(trial: Trial, watched: usize) -> Result<Measured> {
    let (pairs, writes) = (trial.size(10_000, 200), trial.size(5_000, 20));
    let peer = trial.open::<P>().await?;
    peer.execute(CREATE, &[]).await?;
    peer.many(INSERT, &Arc::new((0..2 * pairs).map(|row| vec![body(row).into()]).collect())).await?;
    // Even ids, evenly spaced; nobody watches an odd one.
    let ids: Vec<i64> = (1..=watched).map(|place| (2 * place * (pairs / watched)) as i64).collect();
    let mut watch = Watch::begin(&peer, BY_ID, ids.iter().map(|id| vec![(*id).into()]).collect()).await?;
    let mut traffic = Traffic::default();
    let runs = peer.live_counts().runs;
    let mut timing = Timing::begin()?;
    for write in 1..=writes {
        let place = traffic.below(watched);
        deliver(&peer, &mut watch, &mut timing.latencies, place, (ids[place], body(write), write as i64)).await?;
    }
    let mut measured = timing.end(writes as u64)?;
    let (mut same, mut unwatched) = (Latencies::default(), Latencies::default());
    for write in writes + 1..=2 * writes {
        let place = (traffic.below(SAME) + 1) * (watched / SAME) - 1;
        deliver(&peer, &mut watch, &mut same, place, (ids[place], body(write), write as i64)).await?;
    }
    expect_runs(&peer, runs, 2 * writes)?;
    for write in 1..=writes {
        let id = 2 * traffic.below(pairs) as i64 + 1;
        unwatched.time(update(&peer, &(id, body(write), write as i64))).await?;
    }
    expect_runs(&peer, runs, 2 * writes)?;
    measured.extra_latencies("same", &same);
    measured.extra_latencies("unwatched", &unwatched);
    watch.settle::<P, Note>(&peer).await?;
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}

/// Updates a watched row, and awaits the result of its live query, which is not part of the latency.
async fn deliver<P: Peer>(
    peer: &P,
    watch: &mut Watch,
    latencies: &mut Latencies,
    place: usize,
    note: Note,
) -> Result<()> {
    latencies.time(update(peer, &note)).await?;
    let arrival = watch.next().await?;
    ensure!(arrival.query == place, "an update of row {} was delivered to query {}", note.0, arrival.query);
    ensure!(arrival.sum == sum_of(&[note]), "query {place} delivered another row than was written");
    Ok(())
}

fn expect_runs<P: Peer>(peer: &P, before: u64, expected: usize) -> Result<()> {
    let runs = peer.live_counts().runs - before;
    ensure!(runs == expected as u64, "live queries ran {runs} times, expected {expected}");
    Ok(())
}

fn body(number: usize) -> String {
    format!("The body of a note that was written as number {number:>6}")
}

async fn update<P: Peer>(peer: &P, (id, body, updated_at): &Note) -> Result<()> {
    let changed = peer.execute(UPDATE, &[body.as_str().into(), (*updated_at).into(), (*id).into()]).await?;
    ensure!(changed == 1, "{changed} rows were updated");
    Ok(())
}
