//! The settings that most programs leave as they are.
//!
//! Owns: their setters; those of reads and of files are in `reader_settings` and `files`. Plain values, usable on any thread.
//! Invariant: the defaults are part of the API. Leaves out: applying them.

use super::choices::{Checkpoint, Fairness, GroupLimits, Journal, SecondCopy, TempStore};
use super::setters::setters;
use super::{Inline, Options};

/// The second tier of [`Options`]: settings that most programs leave as they are. Set by [`Options::tuning`].
#[derive(Debug)]
#[must_use]
pub struct Tuning(pub(super) Options);

impl Options {
    /// Sets options of the second tier: see [`Tuning`].
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    /// let db = Options::new("app.db").tuning(|tuning| tuning.queue(100).extra_readers(2)).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn tuning(self, set: impl FnOnce(Tuning) -> Tuning) -> Self {
        set(Tuning(self)).0
    }
}

setters! {
    Tuning, options => options.0;

    /// Sets what to do with the file's journal mode. Default [`Journal::Wal`].
    journal: Journal;

    /// Sets which program checkpoints the WAL to keep it short. Default [`Checkpoint::Managed`], 32 MiB. The WAL of an
    /// attached file is checkpointed when the database is closed.
    checkpoint: Checkpoint;

    /// Sets the number of requests that may wait in a queue. The writer has one queue, the readers share another, and a
    /// third holds streams, snapshots, read closures and backups. A call that finds its queue full waits for a free place, in
    /// order of arrival. Default 1,024.
    queue: usize;

    /// Sets the number of prepared statements kept per connection. Default 128.
    statement_cache: usize;

    /// Sets the size of the writer's page cache in bytes. Default 16 MiB.
    writer_cache_bytes: usize;

    /// Sets the size of each reader's page cache in bytes. Default 4 MiB.
    reader_cache_bytes: usize;

    /// Sets how much of a transaction's changed pages the writer keeps in memory. A transaction that changes more writes
    /// the rest to the WAL before it commits (<https://sqlite.org/pragma.html#pragma_cache_spill>). Default 64 MiB.
    spill_bytes: usize;

    /// Sets where large sorts and other temporary data are kept. Default [`TempStore::Auto`].
    temp_store: TempStore;

    /// Sets whether processes that write take turns in the order in which they came (the file `<db>-turn`), or only poll
    /// for the lock. Default [`Fairness::Auto`].
    fairness: Fairness;

    /// Asserts that no process changes the file while it is open. The file is then only read, without locks, and needs
    /// no other file beside it. If a process changes the file anyway, reads return wrong results
    /// (<https://sqlite.org/uri.html#uriimmutable>). Default off.
    immutable: bool;

    /// Allows opening a file on a network or shared file system. WAL mode needs memory that all users of the file
    /// share. So this is safe only while a single machine, or a single side of the share, uses the file. Default off.
    network_filesystem: bool;

    /// Sets what to do about another SQLite library in this process. Default [`SecondCopy::Refuse`].
    second_copy: SecondCopy;

    /// Sets whether short calls may run on the thread that polls them. When a statement is used for the second time,
    /// Flatwater decides from its bytecode whether it is short. Other calls, and writes outside a transaction with
    /// [`Durability::Full`](super::Durability::Full), always run on a worker. The result of a call is the same either way.
    /// If a page is not in
    /// the cache, the polling thread reads it from the disk. Default [`Inline::Auto`] with a limit of 50 us.
    inline: Inline;
}

impl Tuning {
    /// Groups writes that arrive together, within these limits. Default on, see [`GroupLimits`].
    pub fn group(mut self, group: GroupLimits) -> Self {
        self.0.group = Some(group);
        self
    }

    /// Disables groups: every write runs in its own transaction.
    pub fn no_group(mut self) -> Self {
        self.0.group = None;
        self
    }

    /// Sets the VFS to open the file with, by its registered name (<https://sqlite.org/vfs.html>). Default: the default
    /// VFS of the operating system.
    pub fn vfs(mut self, name: impl Into<String>) -> Self {
        self.0.vfs = Some(name.into());
        self
    }
}
