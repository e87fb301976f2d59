//! The options of files: what a new one has from its first page on, and how much of one is mapped.
//!
//! Owns: setting them. Plain values, usable on any thread. Leaves out: applying them to a connection.

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
    /// Sets the page size of a file that is created, in bytes: a power of two from 512 to 65,536. A file that exists, and is
    /// not empty, keeps the page size it has (<https://sqlite.org/pragma.html#pragma_page_size>). Default: SQLite's, 4,096.
    pub fn page_size(mut self, bytes: u32) -> Self {
        self.0.page_size = Some(bytes);
        self
    }
}
