//! What every peer of the lab has in common.
//!
//! Owns: the `Peer` trait, the lanes, deterministic data and traffic, measuring, and the program each peer is. Leaves
//! out: SQLite, which each peer brings in its own way; running trials and comparing them, which is the tool's work.

pub mod data;
pub mod json;
pub mod lane;
mod lanes;
pub mod measure;
pub mod pace;
pub mod peer;
mod polls;
mod process;
mod program;
pub mod record;
mod ticker;
pub mod traffic;
pub mod value;
mod wal;

pub use peer::{
    About, Body, Durability, Foreign, Live, LiveCounts, Named, NoLive, Peer, Setup, Step, Table, Transaction,
};
pub use program::{Asked, exit, main, say, version_in};
pub use record::{Record, Sum};
pub use value::{Cells, Rows, Value};

pub use anyhow::{Result, anyhow, bail, ensure};
