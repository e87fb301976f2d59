//! Writes, each applied exactly once.
//!
//! `guard` makes a request apply once; `group` says how many writers share one; `grouped` is such a request, and `settle` finds out what
//! became of it; `queue` serves the callers.

pub(crate) mod group;
pub(crate) mod grouped;
pub(crate) mod guard;
pub(crate) mod queue;
pub(crate) mod settle;
