//! Checks that the database works again after the calls have stopped failing.
//!
//! If a failed sync made the database refuse writes, it is opened again and must then work. No other call may be
//! refused. Each step has 30 s.

use std::path::Path;
use std::time::{Duration, Instant};

use flatwater::calls::CheckpointMode;
use flatwater::{Database, ErrorKind, Options};

use super::case::{LOADS, Load};
use super::load::{self, within};
use super::writes::Work;
use crate::faults;
use crate::finding::Finding;

const LIMIT: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(5);

/// Continues with the open database, or opens it; then closes it, and opens it once more.
pub(super) async fn goes_on(
    work: &Work,
    options: &Options,
    directory: &Path,
    db: Option<Database>,
) -> Result<(), Finding> {
    let db = match db {
        Some(db) => db,
        None => opened(options).await?,
    };
    let db = writes_again(work, options, db).await?;
    everything_works(work, &db).await?;
    wal_starts_over(work, &db).await?;
    within(LIMIT, "a checkpoint", db.checkpoint(CheckpointMode::Truncate)).await??;
    let length = std::fs::metadata(directory.join("main.db-wal")).map_or(0, |wal| wal.len());
    if length > 64 << 10 {
        return Err(Finding::new(format!("the WAL has {length} bytes after it was truncated")));
    }
    within(LIMIT, "close", db.close()).await??;
    let db = opened(options).await?;
    everything_works(work, &db).await?;
    within(LIMIT, "close", db.close()).await??;
    Ok(())
}

async fn opened(options: &Options) -> Result<Database, Finding> {
    Ok(within(LIMIT, "open", options.clone().open()).await??)
}

/// Checks that a write succeeds. After a failed sync it opens the database again first.
async fn writes_again(work: &Work, options: &Options, db: Database) -> Result<Database, Finding> {
    let failed = within(LIMIT, "a write", db.execute("UPDATE counter SET n = n WHERE id = 1", ())).await?;
    let Err(error) = failed else { return Ok(db) };
    if error.kind() != ErrorKind::Io || faults::failed_syncs()? == 0 {
        return Err(Finding::new(format!("no call fails any more, and no sync did, but a write was answered {error}")));
    }
    work.count("refusals after a failed sync");
    within(LIMIT, "close", db.close()).await??;
    opened(options).await
}

/// Checks that each kind of load succeeds.
async fn everything_works(work: &Work, db: &Database) -> Result<(), Finding> {
    for (seed, load) in (1..).zip(LOADS) {
        let what = format!("{load:?}");
        within(LIMIT, &what, load::step(work, db, load, seed)).await??;
    }
    Ok(())
}

/// Checks that the checkpointer restarts the WAL by itself during writes.
async fn wal_starts_over(work: &Work, db: &Database) -> Result<(), Finding> {
    let (before, until) = (db.stats().wal.resets, Instant::now() + LIMIT);
    while db.stats().wal.resets == before {
        if Instant::now() >= until {
            let wal = db.stats().wal;
            return Err(Finding::new(format!("the WAL was not started over within {} s: {wal:?}", LIMIT.as_secs())));
        }
        within(LIMIT, "a write", load::step(work, db, Load::Many, 7)).await??;
        // The pause prevents a WAL that never restarts from filling the disk.
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(())
}
