//! How long a run takes on this thread, but for waiting for the lock of a host's interpreter.
//!
//! Owns: how long this thread has waited for such a lock. A function of the host takes it for each call, and what waits
//! then is not the function: on the thread of its caller, which has the lock, it would not wait. Leaves out: the lock.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds a wait of this thread.
pub fn waited(time: Duration) {
    WAITED.set(WAITED.get() + time);
}

/// The time of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunTime {
    began: Instant,
    waited_before: Duration,
}

impl RunTime {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), waited_before: WAITED.get() }
    }

    /// Returns how long the run has taken until now.
    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed().saturating_sub(WAITED.get() - self.waited_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_the_host_is_no_time_of_the_run() {
        let long = Duration::from_secs(3600);
        waited(long);
        let run = RunTime::begin();
        std::thread::sleep(Duration::from_millis(1));
        assert!(run.took() >= Duration::from_millis(1), "what was waited for before is not subtracted");
        waited(long);
        assert_eq!(run.took(), Duration::ZERO);
    }
}
