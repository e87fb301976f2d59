//! Looking at the files of a database from outside: lengths and times, by path.
//!
//! Owns: the WAL's size over time, watched from a thread, and whether the database file was written, which in WAL mode only a checkpoint does.
//! Never opens a file of the database: closing it would drop the locks that the peer holds in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow};

use crate::measure::Measured;

const EVERY: Duration = Duration::from_millis(10);
/// Points of a chart.
const POINTS: usize = 200;

/// The length of the file in bytes; 0 if there is none.
pub(crate) fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// When the file was last written.
pub(crate) fn written(path: &Path) -> Result<SystemTime> {
    Ok(path.metadata()?.modified()?)
}

/// How many bytes were seen, and when.
pub(crate) type Seen = Vec<(Instant, u64)>;

/// Watches the length of a WAL, or another number of bytes, on a thread of its own.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watch {
    pub(crate) fn begin(wal: PathBuf) -> Self {
        Self::of(move || length(&wal))
    }

    /// Watches what `bytes` answers.
    pub(crate) fn of(bytes: impl Fn() -> u64 + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::spawn(move || {
            let mut seen = Vec::new();
            while !told.load(Ordering::Relaxed) {
                seen.push((Instant::now(), bytes()));
                thread::sleep(EVERY);
            }
            seen.push((Instant::now(), bytes()));
            seen
        });
        Self { stop, thread }
    }

    /// Ends the watch and answers what it saw, which is at least one number.
    pub(crate) fn seen(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the thread that watches the WAL panicked"))
    }

    /// Ends the watch of a length and adds what it saw to the lane's figures.
    pub(crate) fn end(self, measured: &mut Measured) -> Result<()> {
        let seen = self.seen()?;
        let began = seen.first().map(|(at, _)| *at);
        let since = |at: Instant| began.map_or(0.0, |began| (at - began).as_secs_f64());
        let lengths: Vec<_> = seen.into_iter().map(|(at, bytes)| (since(at), bytes)).collect();
        measured.extra("wal_bytes_max", lengths.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0));
        measured.extra("wal_bytes_end", lengths.last().map_or(0, |(_, bytes)| *bytes));
        measured.extra("wal_bytes_over_time", serde_json::to_value(thinned(&lengths))?);
        Ok(())
    }
}

/// At most `POINTS` points: the largest length of each stretch, at its time.
fn thinned(lengths: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let stretch = lengths.len().div_ceil(POINTS).max(1);
    lengths.chunks(stretch).filter_map(|chunk| chunk.iter().copied().max_by_key(|(_, bytes)| *bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_largest_length() {
        let mut lengths: Vec<_> = (0..2_003).map(|at| (f64::from(at), 7)).collect();
        lengths[1234].1 = 99;
        let thin = thinned(&lengths);
        assert!(thin.len() <= POINTS && thin.contains(&(1234.0, 99)), "{} points", thin.len());
        assert_eq!(thinned(&lengths[..3]).len(), 3);
    }
}
