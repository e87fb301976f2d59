//! The settings that most programs leave as they are.
//!
//! Owns: their setters. Plain values, usable on any thread. Invariant: the defaults are part of the API. Leaves out:
//! applying them, and what protects a connection (`connection::open::switches`).

use std::path::Path;
use std::time::Duration;

use super::choices::{AutoVacuum, Fairness, GroupLimits, TempStore};
use super::{Attached, Inline, Options};

/// The second tier of [`Options`]: settings that most programs leave as they are. Set by [`Options::tuning`].
#[derive(Debug)]
#[must_use]
pub struct Tuning(pub(crate) Options);

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

    /// Sets how long a transaction may stay unused before it is rolled back. Default 30 s.
    transaction_idle: Duration;

    /// Sets how long `close` waits for submitted calls. Then it rolls an open transaction back, interrupts reads, and
    /// returns within two more seconds, even if a closure still runs. Default 5 s.
    close_wait: Duration;

    /// Sets the number of requests that may wait in a queue. The writer has one queue, the readers share another, and a
    /// third holds streams, snapshots, read closures and backups. A call that finds its queue full waits for a free place, in
    /// order of arrival. Default 1,024.
    queue: usize;

    /// Groups writes that arrive together, within these limits. Default on, see [`GroupLimits`].
    group: GroupLimits => Some;

    /// Sets the number of prepared statements kept per connection. Default 128.
    statement_cache: usize;

    /// Sets the size of the writer's page cache in bytes. Default 16 MiB.
    writer_cache_bytes: usize;

    /// Sets the size of each reader's page cache in bytes. Default 4 MiB.
    reader_cache_bytes: usize;

    /// Sets where large sorts and other temporary data are kept. Default [`TempStore::Auto`].
    temp_store: TempStore;

    /// Sets whether processes that write take turns in the order in which they came (the file `<db>-turn`), or only poll
    /// for the lock. Default [`Fairness::Auto`].
    fairness: Fairness;

    /// Takes a name in double quotes for a text if there is no column of that name, as SQLite does by itself
    /// (<https://sqlite.org/quirks.html#double_quoted_string_literals_are_accepted>). Default off: `"name"` is a column, a
    /// misspelt one an error, and a text is written `'text'`. A file with such texts in its schema is opened either way, and
    /// its tables and indexes work. Its views and triggers with them need this, and so does an ALTER TABLE that renames, or
    /// drops a column.
    double_quoted_strings: bool;

    /// Asserts that no process changes the file while it is open. The file is then only read, without locks, and needs
    /// no other file beside it. If a process changes the file anyway, reads return wrong results
    /// (<https://sqlite.org/uri.html#uriimmutable>). Default off.
    assume_immutable: bool;

    /// Allows opening a file on a network or shared file system. WAL mode needs memory that all users of the file
    /// share. So this is safe only while a single machine, or a single side of the share, uses the file. Default off.
    allow_network_filesystem: bool;

    /// Allows another SQLite library in this process to have the file open. When it closes the file, the operating system drops
    /// the locks of this one, too, and other processes may overwrite what it has written
    /// (<https://sqlite.org/howtocorrupt.html#multiple_copies_of_sqlite_linked_into_the_same_application>). Guard descriptors
    /// keep the WAL meanwhile. Default off: then such an opening is refused, and writes are if the library comes later; it is looked
    /// for when the database is opened and every few seconds, on Linux and in WAL mode. What is allowed is counted, in
    /// [`Stats::second_copies`](crate::stats::Stats::second_copies).
    allow_second_sqlite: bool;

    /// Sets whether short calls may run on the thread that polls them. When a statement is used for the second time,
    /// Flatwater decides from its bytecode whether it is short. Other calls, and writes outside a transaction with
    /// [`Durability::Full`](super::Durability::Full), always run on a worker. The result of a call is the same either way.
    /// If a page is not in
    /// the cache, the polling thread reads it from the disk. Default [`Inline::Auto`] with a limit of 50 us.
    inline: Inline;

    /// Sets how many connections beyond [`Options::readers`] may be held by read closures, snapshots, streams
    /// and backups, so that other reads never wait for them. They are opened when needed. When all are held, further
    /// such calls wait. Default 8.
    extra_readers: usize;

    /// Shows the figures of the open database to `flatwater top`: twice a second a helper thread writes them, with the
    /// SQL of the oldest read and of what the writer runs, into the file `<db>-observe-RANDOM`, which has the rights of the database and is
    /// removed at the close. No call does more for it. If the file cannot be written, the figures are not shown, and an event for `tracing` says
    /// so. On Unix systems, and for files only. Default off.
    observe: bool;

    /// Sets how long a [stream](crate::Session::stream) may stay without its rows being fetched before it ends with
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired) and its reader is given back. Default 30 s.
    stream_idle: Duration;

    /// Sets how long a [snapshot](crate::Database::snapshot) may be open before it ends with
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired), because it blocks a restart of the WAL.
    /// Default 5 minutes.
    snapshot_age: Duration;

    /// Ends a read that has been running for longer than this *and* prevents the WAL from restarting
    /// (<https://sqlite.org/wal.html#avoiding_excessively_large_wal_files>). The read fails with
    /// [`ErrorKind::SnapshotTooOld`](crate::ErrorKind::SnapshotTooOld). A read that does not block a WAL restart continues.
    /// Default: no read is ended.
    read_limit: Duration => Some;

    /// Sets whether a file that is created gives the space of deleted rows back. A file that exists, and is not empty,
    /// keeps its setting. Default [`AutoVacuum::None`].
    auto_vacuum: AutoVacuum;

    /// Sets the number of bytes of the file to map into memory. Default 0, because SQLite unmaps the file at every
    /// commit while there are writes.
    mmap_bytes: usize;

    /// Sets the page size of a file that is created, in bytes: a power of two from 512 to 65,536. A file that exists,
    /// and is not empty, keeps the page size it has (<https://sqlite.org/pragma.html#pragma_page_size>). Default:
    /// SQLite's, 4,096.
    page_size: u32 => Some;

    /// Ends a statement after about so many steps of SQLite's virtual machine, with
    /// [`ErrorKind::Sql`](crate::ErrorKind::Sql). Of a stream this counts for each fetch. Default: no limit, except for
    /// a file that is [`untrusted`](Self::untrusted).
    step_limit: u32 => Some;

    /// Ends a statement whose result takes more than so many bytes of memory, with [`ErrorKind::Sql`](crate::ErrorKind::Sql):
    /// 16 bytes for each value, and the bytes of texts and blobs; or the length of the JSON. Of a stream this counts for
    /// each fetch. A write that returns too much is executed, and the error says so. Default: no limit, except for a file
    /// that is [`untrusted`](Self::untrusted).
    result_limit: usize => Some;

    /// Ends a statement for which SQLite takes more than so many bytes of memory, with
    /// [`ErrorKind::Sql`](crate::ErrorKind::Sql): values that it computes, what it gathers, and the pages that it reads into the
    /// cache, so it has to be larger than the caches. Of a stream this counts for each fetch. SQLite ends a transaction or a
    /// snapshot with such a statement. It has no effect in a program that used SQLite before its first use of Flatwater. Default:
    /// no limit, except for a file that is [`untrusted`](Self::untrusted).
    memory_limit: usize => Some;
}

impl Tuning {
    /// Opens a file that a stranger may have made, such as an upload (<https://sqlite.org/security.html>). Default off.
    ///
    /// - It is opened [`read_only`](Options::read_only), unless that is set to false.
    /// - Its schema runs no function and no virtual table that has effects or is not known to have none: functions of
    ///   the program in its views, triggers, indexes and constraints fail unless they are
    ///   [`SQLITE_INNOCUOUS`](https://sqlite.org/c3ref/c_deterministic.html). The program's own statements may call
    ///   them.
    /// - No SQL writes its schema or its pages directly, and each page is checked when it is read.
    /// - Lengths (16 MiB), columns (500), the depth of expressions (100) and other sizes have low limits, beyond which
    ///   a statement fails. A statement ends after 1,000,000,000 steps, or after [`Self::step_limit`].
    /// - A result has at most 64 MiB, or [`Self::result_limit`]. A stream may be longer: its parts may not.
    /// - SQLite takes at most 128 MiB of memory for a statement, or [`Self::memory_limit`].
    ///
    /// It does not limit time: set a [`timeout`](Options::timeout).
    /// [`integrity_check`](crate::Database::integrity_check) says whether it is damaged.
    pub fn untrusted(mut self) -> Self {
        self.0.untrusted = true;
        self
    }

    /// Attaches another database file as `name` on every connection. It is opened like the main file, but its journal
    /// mode is left unchanged. A `file:` URI may set `mode` and `immutable`. Writes to it are never grouped. Every
    /// transaction, including that of a `batch` or `execute_many`, takes the write lock of every attached file, even if
    /// it does not use the file, because BEGIN IMMEDIATE does so.
    pub fn attach(mut self, name: impl Into<String>, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.0.attach.push(Attached { name: name.into(), path, mode: None, immutable: false });
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
