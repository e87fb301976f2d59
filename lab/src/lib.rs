//! The measuring lab: starts peers, stores their measurements, and decides whether a change made a difference.
//!
//! The lab links neither SQLite nor Flatwater: every peer is a separate program, described by a `peer.json`. The
//! decisions are pure (`metric`, `statistics`, `verdict`, `compare`, `plan`, `floor`, `summary`). Separate modules
//! start processes (`process`, `peer`, `pace`, `session`, `repository`) and implement the commands (`run`, `ab`, `list`, ...).

pub mod ab;
pub mod aggregates;
pub mod busy;
pub mod compare;
pub mod experiment;
pub mod floor;
pub mod lines;
pub mod list;
pub mod machine;
pub mod metric;
pub mod pace;
pub mod peer;
pub mod places;
pub mod plan;
pub mod process;
pub mod readme;
pub mod record;
pub mod report;
pub mod repository;
pub mod result;
pub mod run;
pub mod session;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod verdict;
