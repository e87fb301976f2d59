//! Settings that tests and measurements change, and no program. Part of the interface that `bindings` is.
//!
//! Owns: their setters. Plain values, usable on any thread. Leaves out: applying them, which connections and workers do.

use std::time::Duration;

use crate::options::Tuning;

/// The internal settings of [`Tuning`], for tests, fault tests and measurements: import it, and they are methods like the others.
pub trait Internals {
    /// Lets a reader keep its read transaction open for the next read, and the writer for the next short write. Results are the same
    /// either way. Default on.
    fn leases(self, on: bool) -> Self;

    /// How much of a transaction's changed pages the writer keeps in memory; the rest is written to the WAL before the commit
    /// (<https://sqlite.org/pragma.html#pragma_cache_spill>). Default 64 MiB.
    fn spill_bytes(self, bytes: usize) -> Self;

    /// How often commits of programs that do not use Flatwater are looked for while a live query exists. Default 20 ms.
    fn live_poll(self, every: Duration) -> Self;
}

impl Internals for Tuning {
    fn leases(mut self, on: bool) -> Self {
        self.0.leases = on;
        self
    }

    fn spill_bytes(mut self, bytes: usize) -> Self {
        self.0.spill_bytes = bytes;
        self
    }

    fn live_poll(mut self, every: Duration) -> Self {
        self.0.live_poll = every;
        self
    }
}
