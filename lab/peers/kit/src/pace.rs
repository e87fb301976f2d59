//! Waiting for a point in time to within a few microseconds.
//!
//! Owns: the wait. It sleeps while that is safe and spins at the end, because a sleep wakes some 50 us late.

use std::thread;
use std::time::{Duration, Instant};

const SPIN: Duration = Duration::from_micros(60);

/// Blocks this thread until `point`.
pub fn wait_until(point: Instant) {
    let left = point.saturating_duration_since(Instant::now());
    if left > SPIN {
        thread::sleep(left - SPIN);
    }
    while Instant::now() < point {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_returns_early() {
        for micros in [0, 10, 100, 1000] {
            let point = Instant::now() + Duration::from_micros(micros);
            wait_until(point);
            assert!(Instant::now() >= point);
        }
    }
}
