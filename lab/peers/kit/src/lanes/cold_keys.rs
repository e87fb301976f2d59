//! cold_keys: point queries by random primary keys of a database of 200 MB that the system does not have in its cache.
//!
//! Nearly each key is in a page that is read from the disk. The file is written, synced and taken out of the system's cache
//! before it is opened again. One caller on a current-thread runtime, each poll timed as in `caller_polls`: how long a library
//! holds the runtime's thread while the disk reads. The sample is one query. Every row that is answered is checked.
//!
//! On a slow disk the lane says more. Whoever measures one slows it outside of the lab, with the I/O limits of Linux's control
//! groups for instance, and says so beside the figures. A system that keeps the file in its cache all the same has no figure,
//! and only Linux has the lane.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::random_keys::{FIND, fill, row_of};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Peer, Table};
use crate::polls::Polls;
use crate::process;
use crate::traffic::Traffic;

/// Queries at the same key, so that the library has learnt what it learns of a statement.
const WARM: usize = 20;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "one row by a random primary key of 200 MB that are not in the system's cache, and the longest poll";
    vec![Lane::new("reads", "cold_keys", about, "queries", run::<P>).current_thread(true)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, queries) = (trial.size(200_000, 4_000), trial.size(2_000, 200));
    fill::<P>(&trial, rows).await?;
    forget(&trial)?;
    let peer = trial.open::<P>().await?;
    for _ in 0..WARM {
        ensure!(
            peer.query::<(i64, i64)>(FIND, &[0.into()]).await?.touch() == row_of(0),
            "row 0 is not what was written"
        );
    }
    let (mut polls, mut keys) = (Polls::default(), Traffic::default());
    let before = process::disk_reads();
    let mut timing = Timing::begin()?;
    for _ in 0..queries {
        let key = keys.below(rows) as i64;
        let found = timing.time(polls.time(peer.query::<(i64, i64)>(FIND, &[key.into()]))).await?.touch();
        ensure!(found == row_of(key), "row {key} is not what was written");
    }
    let mut measured = timing.end(queries as u64)?;
    if let (Some(before), Some(after)) = (before, process::disk_reads()) {
        let read = after.saturating_sub(before);
        ensure!(trial.quick || read > 0, "nothing was read from the disk, so the file was in the system's cache");
        measured.extra("disk_bytes_read", read);
    }
    polls.report(&mut measured).await?;
    peer.close().await?;
    Ok(measured)
}

/// Writes the file to the disk and takes it out of the system's cache.
fn forget(trial: &Trial) -> Result<()> {
    let file = File::open(trial.database()).context("the database is there")?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    Ok(())
}
