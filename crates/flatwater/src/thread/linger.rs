//! Which threads of the process wait for more work when they have none.
//!
//! Owns: the number of threads that linger at once, over all databases. Runs on the threads that serve requests.
//! Invariant: the number never exceeds `most`. Leaves out: how a thread is woken, and how it ends.

use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::cores;

/// How long a thread lingers that has a place. Starting a thread takes longer than waking one.
const LONG: Duration = Duration::from_secs(10);
/// Places for each core, and at least.
const PER_CORE: usize = 4;
const LEAST: usize = 16;

/// Places for threads that wait for commits of other processes, for as long as there are live queries.
const FOLLOWERS: usize = 8;

type Places = PerProcess<usize>;

static LINGERING: Places = PerProcess::new(|| 0);
static FOLLOWING: Places = PerProcess::new(|| 0);

/// The place of a thread that lingers, if it got one. Dropping it gives the place to another thread.
pub(crate) struct Linger {
    has_place: bool,
    of: &'static Places,
}

impl Linger {
    pub(crate) fn begin() -> Self {
        let most = cores().map_or(LEAST, |cores| (cores * PER_CORE).max(LEAST));
        Self::among(&LINGERING, most)
    }

    /// The same for a thread that waits for commits of other processes. These places are apart, for such a thread keeps its
    /// place for long.
    pub(crate) fn follow() -> Self {
        Self::among(&FOLLOWING, FOLLOWERS)
    }

    fn among(of: &'static Places, most: usize) -> Self {
        Self { has_place: take(&mut of.lock(), most), of }
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
            **self.of.lock() -= 1;
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
        let with = std::mem::ManuallyDrop::new(Linger { has_place: true, of: &LINGERING });
        assert_eq!(with.time(), LONG);
        assert_eq!(Linger { has_place: false, of: &LINGERING }.time(), Duration::ZERO);
    }
}
