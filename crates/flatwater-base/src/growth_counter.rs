//! Counting the steps of functions, for tests of how the work grows with the input.
//!
//! Owns: the counter, one for each thread, in a build with debug assertions; elsewhere counting is nothing. Invariant: whoever goes
//! through an input counts what it looks at, so that a loop within a loop shows. Leaves out: the tests (`growth_tests` of crate `flatwater`).

/// Counts so many steps.
#[inline]
#[cfg_attr(
    not(debug_assertions),
    expect(clippy::missing_const_for_fn, reason = "it counts in builds with debug assertions")
)]
pub fn step(steps: usize) {
    #[cfg(debug_assertions)]
    counted::TAKEN.set(counted::TAKEN.get().wrapping_add(steps));
    #[cfg(not(debug_assertions))]
    let _ = steps;
}

/// The steps of this thread.
#[cfg(debug_assertions)]
pub mod counted {
    use std::cell::Cell;

    thread_local! {
        pub(super) static TAKEN: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns how many steps `f` takes on this thread.
    pub fn steps<T>(f: impl FnOnce() -> T) -> usize {
        let before = TAKEN.get();
        drop(f());
        TAKEN.get() - before
    }

    /// Checks that an input that is four times as large takes at most five times as many steps.
    pub fn grows_with<T>(what: &str, size: usize, mut f: impl FnMut(usize) -> T) {
        let [one, two, four] = [1, 2, 4].map(|times| steps(|| f(size * times)));
        assert!(one >= 1, "{what}: no step is counted");
        assert!(four <= 5 * one, "{what}: {one} steps, then {two}, then {four}");
    }
}
