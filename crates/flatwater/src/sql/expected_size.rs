//! The size of the results of a text, as far as it can be expected.
//!
//! Owns: the size of the largest recent result. Any thread may use it: the numbers are hints, and an error in them costs memory or
//! time, never correctness. Leaves out: who makes room by it.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of cells and bytes of the largest recent result.
#[derive(Debug, Default)]
pub(crate) struct ExpectedSize {
    cells: AtomicU32,
    bytes: AtomicU32,
}

impl ExpectedSize {
    /// Returns the number of cells and bytes to expect of a result.
    pub(crate) fn get(&self) -> (usize, usize) {
        (self.cells.load(Ordering::Relaxed) as usize, self.bytes.load(Ordering::Relaxed) as usize)
    }

    /// Records the size of a result. A larger size counts at once; a smaller one lowers the expected size gradually.
    pub(crate) fn had(&self, cells: usize, bytes: usize) {
        for (seen, now) in [(&self.cells, cells), (&self.bytes, bytes)] {
            let before = seen.load(Ordering::Relaxed);
            let now = u32::try_from(now).unwrap_or(u32::MAX);
            let next = if now >= before { now } else { before - (before - now).div_ceil(8) };
            if next != before {
                seen.store(next, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_size_follows_the_largest_recent_result() {
        let size = ExpectedSize::default();
        size.had(800, 80);
        assert_eq!(size.get(), (800, 80));
        for _ in 0..200 {
            size.had(1, 0);
        }
        assert_eq!(size.get(), (1, 0));
    }
}
