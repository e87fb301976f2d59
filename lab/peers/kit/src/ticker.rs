//! A task that ticks every millisecond on the runtime it is begun on.
//!
//! Owns: the gaps between its ticks. On a runtime of one thread a gap is how long everything else there could not run, of
//! which 1000 to 2000 us are the timer's own. Leaves out: what the thread does meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::measure::Latencies;

/// A task that ticks, and the gaps between its ticks.
pub(crate) struct Ticker {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Latencies>,
}

impl Ticker {
    /// Begins to tick, each millisecond.
    pub(crate) fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let task = tokio::spawn(async move {
            let mut gaps = Latencies::default();
            let mut ticks = interval(Duration::from_millis(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks.tick().await;
            let mut last = Instant::now();
            while !told.load(Ordering::Relaxed) {
                ticks.tick().await;
                let now = Instant::now();
                gaps.record(now - last);
                last = now;
            }
            gaps
        });
        Self { stop, task }
    }

    /// Ends and answers the gaps.
    pub(crate) async fn end(self) -> Result<Latencies> {
        self.stop.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}
