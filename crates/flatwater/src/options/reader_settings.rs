//! The settings of reads: how many connections, and how long one may be kept.
//!
//! Owns: their setters. Usable on any thread. Invariant: the defaults are part of the API. Leaves out: applying them.

use std::time::Duration;

use super::Options;
use super::setters::setters;
use super::tuning::Tuning;

setters! {
    Options, options => options;

    /// Sets the maximum number of reader connections. Default: the number of cores, at least 2 and at most 8.
    readers: usize;
}

setters! {
    Tuning, options => options.0;

    /// Sets how many connections beyond [`Options::readers`] may be held by read closures, snapshots, streams
    /// and backups, so that other reads never wait for them. They are opened when needed. When all are held, further
    /// such calls wait. Default 8.
    extra_readers: usize;

    /// Sets how long a [stream](crate::Session::stream) may stay without its rows being fetched before it ends with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) and its reader is given back. Default 30 s.
    stream_idle: Duration;

    /// Sets how often Flatwater checks for commits of programs that do not use Flatwater, while a live query exists.
    /// Default 20 ms. A check takes less than a microsecond. Commits of this process, and of others that use Flatwater
    /// and take turns ([`fairness`](Self::fairness)), are reported at once.
    live_poll: Duration;

    /// Sets how long a [snapshot](crate::Database::snapshot) may be open before it ends with
    /// [`ErrorKind::SnapshotTooOld`](crate::ErrorKind::SnapshotTooOld), because it blocks a restart of the WAL.
    /// Default 5 minutes.
    snapshot_age: Duration;

    /// Lets a reader keep its read transaction open for the next read, for milliseconds, while there is no commit. The
    /// next read then needs no lock. In the same way the writer keeps its read transaction open for the next short
    /// write; each write is still committed when it ends. Results are the same either way. There are no leases with
    /// attached files, with an external checkpointer ([`Checkpoint::External`](crate::options::Checkpoint::External), or
    /// Litestream), or in a journal mode other than WAL. Default on.
    leases: bool;
}

impl Tuning {
    /// Ends a read that has been running for longer than this *and* prevents the WAL from restarting
    /// (<https://sqlite.org/wal.html#avoiding_excessively_large_wal_files>). The read fails with
    /// [`ErrorKind::SnapshotTooOld`](crate::ErrorKind::SnapshotTooOld). A read that does not block a WAL restart continues.
    /// Default: no read is ended.
    pub fn read_limit(mut self, limit: Duration) -> Self {
        self.0.read_limit = Some(limit);
        self
    }
}
