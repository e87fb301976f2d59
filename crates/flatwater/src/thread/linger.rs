//! Which threads of the process wait for more work when they have none.
//!
//! Owns: the number of threads that linger at once, over all databases. Runs on the threads that serve requests.
//! Invariant: the number never exceeds `most`. Leaves out: how a thread is woken, and how it ends.

use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::cores::cores;

/// How long a thread lingers that has a place. Starting a thread takes longer than waking one.
const LONG: Duration = Duration::from_secs(10);
/// Places for each core, and at least.
const PER_CORE: usize = 4;
const LEAST: usize = 16;

static LINGERING: PerProcess<usize> = PerProcess::new(|| 0);

/// The place of a thread that lingers, if it got one. Dropping it gives the place to another thread.
pub(crate) struct Linger {
    has_place: bool,
}

impl Linger {
    pub(crate) fn begin() -> Self {
        let most = cores().map_or(LEAST, |cores| (cores * PER_CORE).max(LEAST));
        Self { has_place: take(&mut LINGERING.lock(), most) }
    }

    pub(crate) fn has_place(&self) -> bool {
        self.has_place
    }

    /// Returns how long the thread may wait for work.
    pub(crate) fn time(&self) -> Duration {
        if self.has_place { LONG } else { Duration::ZERO }
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        if self.has_place {
            **LINGERING.lock() -= 1;
        }
    }
}

fn take(taken: &mut usize, most: usize) -> bool {
    let is_free = *taken < most;
    *taken += usize::from(is_free);
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_places_and_no_more() {
        let mut taken = 0;
        assert_eq!((0..5).filter(|_| take(&mut taken, 3)).count(), 3);
        taken -= 1;
        assert!(take(&mut taken, 3) && !take(&mut taken, 3));
    }

    #[test]
    fn a_thread_with_a_place_waits_and_one_without_does_not() {
        // It took no place, so it gives none back.
        let with = std::mem::ManuallyDrop::new(Linger { has_place: true });
        assert_eq!(with.time(), LONG);
        assert_eq!(Linger { has_place: false }.time(), Duration::ZERO);
    }
}
