//! live_latency_processes: from a commit of another process to the result of a live query by rowid.
//!
//! The other process changes the row, at moments that have nothing to do with when this one looks for commits. With the
//! mode `default` it is a plain rusqlite program. The sample is the time from the return of its commit until the
//! waiting task has the result; it is zero where the result was there before. Each change is delivered, and none twice.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flatwater::Live;

use crate::child::{Order, Work, cpu};
use crate::clock::Moment;
use crate::family::Process;
use crate::figures::Figures;
use crate::mode::{Mode, database};

pub const NAME: &str = "live_latency_processes";
pub const ABOUT: &str = "from a commit of another process to the result of a live query by rowid";

const TABLE: &str = "CREATE TABLE shown (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)";
const FIRST: &str = "INSERT INTO shown VALUES (1, 0)";
const SHOWN: &str = "SELECT value FROM shown WHERE id = 1";
/// What the other process runs, with the new value.
pub const CHANGE: &str = "UPDATE shown SET value = ? WHERE id = 1";
/// A result that has not come after this time never comes.
const HANGS: Duration = Duration::from_secs(60);

/// The modes that have this lane.
pub fn offered(mode: Mode) -> bool {
    mode.is_flatwater() || mode == Mode::Default
}

pub fn run(mode: Mode, path: &Path, quick: bool) -> Result<Figures> {
    let changes = if quick { 5 } else { 200 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ours = if mode.is_flatwater() { mode } else { Mode::BusyHandler };
    runtime.block_on(async {
        let db = database(ours, path)?;
        db.execute(TABLE, ()).await?;
        db.execute(FIRST, ()).await?;
        let mut shown = db.live(SHOWN, ());
        ensure!(next(&mut shown).await? == 0, "the first result is another");
        let mut other = Process::start(&Order { mode, path: path.to_owned(), process: 1, work: Work::Change })?;
        other.is_ready()?;
        let mut figures = Figures::new(mode, 2);
        let (began, before) = (Instant::now(), cpu()?);
        for value in 1..=changes {
            other.tell(&value)?;
            let delivered = next(&mut shown).await?;
            let arrived = Moment::now();
            ensure!(delivered == value, "{delivered} was delivered instead of {value}");
            let committed: Moment = other.hear()?;
            figures.times.record(arrived.since(committed));
        }
        figures.ops = changes.unsigned_abs();
        figures.seconds = began.elapsed();
        figures.cpu = cpu()?.saturating_sub(before);
        other.end()?;
        drop(shown);
        db.close().await?;
        for name in ["hold_us", "think_us"] {
            figures.extra(name, 0);
        }
        figures.turns("", &[changes.unsigned_abs()]);
        Ok(figures)
    })
}

async fn next(shown: &mut Live) -> Result<i64> {
    let rows = tokio::time::timeout(HANGS, shown.next_as::<(i64,)>()).await;
    let rows = rows.context("no result came")?.context("the live query is over")??;
    Ok(rows.first().context("the row is gone")?.0)
}
