//! The measuring lab: starts peers, keeps what they measured, and decides what it says.
//!
//! The lab links neither SQLite nor Flatwater: every peer is a program of its own, described by a `peer.json`. Deciding
//! is pure (`metric`, `statistics`, `verdict`, `compare`, `plan`, `summary`), apart from starting processes (`process`,
//! `peer`, `session`, `repository`) and from the commands (`run`, `ab`, `list`, ...).

pub mod ab;
pub mod compare;
pub mod experiment;
pub mod list;
pub mod machine;
pub mod metric;
pub mod peer;
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
