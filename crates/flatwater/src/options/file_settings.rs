//! The options of files: what a new one has from its first page on, how much of one is mapped, and how often `PRAGMA optimize`
//! runs on it.
//!
//! Owns: setting them. Plain values, usable on any thread. Leaves out: applying them to a connection.

use std::time::Duration;

use super::choices::AutoVacuum;
use super::setters::setters;
use super::tuning::Tuning;

setters! {
    Tuning, options => options.0;

    /// Sets whether a file that is created gives the space of deleted rows back. A file that exists, and is not empty,
    /// keeps its setting. Default [`AutoVacuum::None`].
    auto_vacuum: AutoVacuum;

    /// Sets the number of bytes of the file to map into memory. Default 0, because SQLite unmaps the file at every
    /// commit while there are writes.
    mmap_bytes: usize;
}

impl Tuning {
    /// Brings the statistics of SQLite's query planner up to date, with [`PRAGMA
    /// optimize`](https://sqlite.org/pragma.html#pragma_optimize), when the database is closed and this often while it
    /// is open, such as once a day. Default: never.
    ///
    /// A table whose size has changed much, or with an index that has no statistics, is analysed: a few thousand rows
    /// of each index are read, and the table `sqlite_stat1` is written. It holds the writer for a second at most, and a
    /// close for 200 ms at most; then it is undone. Live queries run once more if it wrote. It never runs for a
    /// read-only database, after a failed sync, or where another program copies the WAL.
    pub fn optimize_every(mut self, every: Duration) -> Self {
        self.0.optimize_every = Some(every);
        self
    }

    /// Sets the page size of a file that is created, in bytes: a power of two from 512 to 65,536. A file that exists,
    /// and is not empty, keeps the page size it has (<https://sqlite.org/pragma.html#pragma_page_size>). Default:
    /// SQLite's, 4,096.
    pub fn page_size(mut self, bytes: u32) -> Self {
        self.0.page_size = Some(bytes);
        self
    }
}
