//! The act of the longest commit: writes of 8 KiB at a fixed pace, enough of them that the WAL starts over several
//! times.
//!
//! Owns: the pace, the writes, and the check that all of them are in the file. While the writes go on, a checkpoint has
//! to copy the WAL into the database; the act shows which commits wait for it. Leaves out: the traffic of the chat
//! service.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Handle;

use crate::ROUNDS;
use crate::flatwater_side::FlatwaterSide;
use crate::mutex_side::MutexSide;
use crate::progress::Progress;
use crate::side::{FILE_BYTES, Result, Side};
use crate::table;
use crate::traffic::histogram;

/// The number of steps that the progress bar counts.
pub(crate) const ACTS: u64 = 2 * ROUNDS as u64;

const PACE: Duration = Duration::from_micros(400);

/// Both sides write in turns, each for `time`. Returns the report.
pub(crate) async fn act(
    ours: &Arc<FlatwaterSide>,
    theirs: &Arc<MutexSide>,
    time: Duration,
    progress: &Progress,
) -> Result<String> {
    let (mut our_times, mut their_times) = (histogram(), histogram());
    let resets = ours.resets();
    for round in 0..ROUNDS {
        for half in 0..2 {
            if (round + half) % 2 == 0 {
                progress.act(&format!("Flatwater writes 8 KiB at a time, round {} of {ROUNDS}.", round + 1));
                our_times += paced(ours, our_times.len(), time / ROUNDS).await?;
            } else {
                progress.act(&format!("The Mutex writes 8 KiB at a time, round {} of {ROUNDS}.", round + 1));
                their_times += paced(theirs, their_times.len(), time / ROUNDS).await?;
            }
        }
    }
    check(&**ours, our_times.len()).await?;
    check(&**theirs, their_times.len()).await?;
    Ok(report(&our_times, &their_times, ours.resets() - resets))
}

fn report(ours: &Histogram<u64>, theirs: &Histogram<u64>, resets: u64) -> String {
    format!(
        "\nThe longest commit while the WAL is copied into the database: a commit of\n\
         8 KiB every {} us, one after another, on each side in turn.\n\n",
        PACE.as_micros()
    ) + &table::heading("commit of 8 KiB", "commits")
        + &table::rows(&[(FlatwaterSide::NAME, ours.len(), ours), (MutexSide::NAME, theirs.len(), theirs)])
        + &table::comparison(ours, theirs)
        + table::LEGEND
        + &format!(
            "\nFlatwater    copies the WAL on its own thread, and started it over {} times\n\
             one Mutex    SQLite copies the WAL in the commit that has made it too long\n",
            table::thousands(resets)
        )
}

/// Writes rows numbered from `written` + 1, and returns the times of their commits. Runs on a thread that may block
/// between them.
async fn paced<S: Side>(side: &Arc<S>, written: u64, time: Duration) -> Result<Histogram<u64>> {
    let (side, runtime) = (side.clone(), Handle::current());
    tokio::task::spawn_blocking(move || runtime.block_on(write(&*side, written, time))).await?
}

async fn write<S: Side>(side: &S, written: u64, time: Duration) -> Result<Histogram<u64>> {
    let mut times = histogram();
    let began = Instant::now();
    let mut due = began;
    while due < began + time && Instant::now() < began + time {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let id = (written + times.len() + 1).cast_signed();
        let bytes = id.to_be_bytes().repeat(FILE_BYTES / 8);
        let called = Instant::now();
        side.store(id, bytes).await?;
        times.saturating_record(u64::try_from(called.elapsed().as_nanos())?);
        due += PACE;
    }
    Ok(times)
}

/// Returns an error unless all acknowledged writes are in the file.
async fn check<S: Side>(side: &S, acknowledged: u64) -> Result<()> {
    let (rows, bytes) = side.stored().await?;
    let count = acknowledged.cast_signed();
    if (rows, bytes) != (count, count * FILE_BYTES as i64) {
        return Err(format!("{}: {count} writes of 8 KiB were acknowledged, {rows} found", S::NAME).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_is_counted_and_found() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let side = Arc::new(MutexSide::open(&directory.path().join("x.db")).await.unwrap());
            let mut times = paced(&side, 0, Duration::from_millis(5)).await.unwrap();
            times += paced(&side, times.len(), Duration::from_millis(5)).await.unwrap();
            assert!(times.len() >= 2);
            check(&*side, times.len()).await.unwrap();
            let error = check(&*side, times.len() + 1).await.unwrap_err().to_string();
            assert!(error.contains("were acknowledged"), "{error}");
        });
    }

    #[test]
    fn the_report_fits_into_80_columns() {
        let mut slow = histogram();
        slow.record_n(3_599_000_000_000, 9_999_999_999).unwrap();
        for line in report(&slow, &slow, 999_999).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
