//! What the writer's connection has besides SQLite's connection.
//!
//! Owns: what these values consist of. Guarded by the slot, on whichever thread holds it. Leaves out: what becomes of each,
//! which is where its name says: `writer_lease`, `interrupts`, `commits_seen`, `disk_full`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::connection::functions::Functions;
use crate::lease::Lease;
use crate::options::Options;
use flatwater_base::error::Error;

/// What a connection of a caller has instead of what is the engine's.
pub(crate) struct OwnSettings {
    pub(crate) options: Arc<Options>,
    pub(crate) functions: Arc<Functions>,
}

/// The state of the lease. Guarded by the slot. Of other connections' commits it knows only the change counter of the
/// WAL: SQLite itself checks for them before it writes.
pub(crate) struct WriterLease {
    pub(crate) state: Lease<u32>,
    /// The change counter when the last write began.
    pub(crate) entered: u32,
    /// `None` if no lease is possible.
    pub(crate) age: Option<Duration>,
}

/// What interrupts whatever runs: a close that leaves it behind.
pub(crate) struct EndsWhenLeft(pub(crate) Arc<AtomicBool>);

/// The commits up to some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commits {
    /// The stamp of the WAL's state.
    pub(crate) stamp: u32,
    /// The commits of all connections: the change counter of the WAL.
    pub(crate) all: u32,
    /// The commits of this connection.
    pub(crate) own: u32,
}

/// What is known of earlier tries to make room.
#[derive(Default)]
pub(crate) struct Room {
    /// When the last try failed, if none succeeded since.
    pub(crate) failed: Option<Instant>,
    /// A write may profit from a try that succeeded.
    pub(crate) is_made: bool,
    /// A failure inside a transaction, where room cannot be made.
    pub(crate) noted: Option<Error>,
}

/// The page limit of a connection (<https://sqlite.org/pragma.html#pragma_max_page_count>).
pub(crate) struct PageLimit {
    /// As it was when the connection was opened; `None` until it is read.
    pub(crate) own: Option<u32>,
    /// The last one that was asked for.
    pub(crate) asked: u32,
}
