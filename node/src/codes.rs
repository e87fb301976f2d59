//! What a call answers in place of a token, which is 0 or more.

/// It is done. What it returned is in the cells, if that is numbers.
pub(crate) const DONE: f64 = -1.0;
/// It failed. `failure()` says why.
pub(crate) const FAILED: f64 = -2.0;
/// The loop's turn is due before it goes on. Its token is in the cells.
pub(crate) const YIELDS: f64 = -3.0;
