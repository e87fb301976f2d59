//! live_initial, live_churn: the first result of a live query by rowid.
//!
//! In `live_initial` the sample is the time from beginning a live query until its first result is there; it is dropped
//! afterwards, which is not timed. In `live_churn` the sample is 100 live queries, one after another, with their ends. No
//! two look up the same row, so none finds a result that was kept.

use anyhow::{Result, ensure};

use super::lane;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Live, Named, Peer};
use crate::record::sum_of;

const SELECT: &str = "SELECT id, name, value FROM items WHERE id = ?";
const ROWS: usize = 10_000;
const AT_ONCE: usize = 100;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        lane("live_initial", "from beginning a live query by rowid to its first result", "queries", initial::<P>),
        lane(
            "live_churn",
            "100 live queries by rowid, one after another, each with its first result",
            "queries",
            churn::<P>,
        ),
    ]
}

async fn initial<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = trial.size(ROWS, 100);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    let mut timing = Timing::begin()?;
    for at in 0..rows {
        let live = timing.time(first(&peer, at)).await?;
        timing.pause()?;
        drop(live);
        timing.resume()?;
    }
    let measured = timing.end(rows as u64)?;
    peer.close().await?;
    Ok(measured)
}

async fn churn<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = trial.size(ROWS, 2 * AT_ONCE);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    let mut timing = Timing::begin()?;
    for begin in (0..rows).step_by(AT_ONCE) {
        let cycles = async {
            for at in begin..begin + AT_ONCE {
                drop(first(&peer, at).await?);
            }
            Ok(())
        };
        timing.time(cycles).await?;
    }
    let measured = timing.end(rows as u64)?;
    peer.close().await?;
    Ok(measured)
}

/// Begins a live query of this row and awaits its first result.
async fn first<P: Peer>(peer: &P, at: usize) -> Result<P::Live> {
    let (id, name, _, value, ..) = data::item(at);
    let mut live = peer.live(SELECT, &[id.into()])?;
    let expected: Named = (id, name, value);
    ensure!(live.next().await? == sum_of(&[expected]), "the first result of row {id} is not what was written");
    Ok(live)
}
