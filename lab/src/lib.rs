//! The measuring lab: starts peers, stores their measurements, and decides whether a change made a difference.
//!
//! The lab links neither SQLite nor Flatwater: every peer is a separate program, described by a `peer.json`. What figures mean
//! is decided by pure functions (`figures`, `verdicts`, and the `plan` of a measurement). `measuring` starts processes, `records`
//! has what is kept of a result, and `commands` is what the command line calls.

pub mod commands;
pub mod figures;
pub mod measuring;
pub mod records;
pub mod verdicts;
