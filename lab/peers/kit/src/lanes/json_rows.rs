//! json_10k: 10,000 rows of 6 columns as the bytes of a JSON array of objects.
//!
//! `raw` and all peers without JSON of their own make a `serde_json::Map` of each row and then bytes of all, as programs
//! do; `raw-streamed` writes each row while the statement runs, which is the floor. The sample is one whole call.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::data::{self, SELECT_ITEMS};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        Lane::new("reads", "json_10k", "10,000 rows of 6 columns as JSON bytes", "queries", run::<P>)
            .release()
            .reads_only(),
    ]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, calls) = (trial.size(10_000, 1_000), trial.size(60, 2));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.hold().await?;
    let bytes = peer.json(SELECT_ITEMS).await?;
    check(&bytes, rows)?;
    let mut timing = Timing::begin()?;
    for _ in 0..calls {
        let again = timing.time(peer.json(SELECT_ITEMS)).await?;
        ensure!(again.len() == bytes.len(), "the JSON has {} bytes, then {}", bytes.len(), again.len());
    }
    let mut measured = timing.end(calls as u64)?;
    measured.extra("json_bytes", bytes.len());
    peer.close().await?;
    Ok(measured)
}

fn check(bytes: &[u8], rows: usize) -> Result<()> {
    let found: Vec<Value> = serde_json::from_slice(bytes)?;
    ensure!(found.len() == rows, "the JSON has {} rows, expected {rows}", found.len());
    for (found, item) in found.iter().zip(data::items(rows)) {
        let (id, name, description, value, category, created_at) = item;
        let expected = json!({
            "id": id, "name": name, "description": description, "value": value, "category": category,
            "created_at": created_at
        });
        ensure!(*found == expected, "an object is {found}, expected {expected}");
    }
    Ok(())
}
