//! Every setting of a database and its default.
//!
//! Owns: `Options`, a plain value, usable on any thread. Invariant: the defaults are part of the API. Leaves out:
//! checking which settings contradict each other (`resolve`), and applying them, which the connection and the backend
//! do.

mod choices;
mod files;
pub(crate) mod json;
mod reads;
pub(crate) mod resolve;
mod statements;
pub(crate) mod uri;
mod url;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use super::options::choices::{
    AutoVacuum, Checkpoint, CheckpointLimits, Durability, Fairness, GroupLimits, Journal, SecondCopy, TempStore,
};
use super::options::uri::Mode;
use crate::inline::limits::Inline;
use crate::migrations::Migrations;
use crate::statement_event::Listener;
use crate::thread::cores::cores;

/// How to open a database. The path is required; every other setting has a default.
///
/// ```no_run
/// # async fn example() -> flatwater::Result<()> {
/// use flatwater::{Durability, Options};
/// let db = Options::new("app.db").durability(Durability::Full).readers(4).open().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Options {
    pub(crate) path: PathBuf,
    pub(crate) read_only: bool,
    pub(crate) create: bool,
    pub(crate) durability: Durability,
    pub(crate) foreign_keys: bool,
    pub(crate) cascading_drop: bool,
    pub(crate) readers: usize,
    pub(crate) extra_readers: usize,
    pub(crate) stream_idle: Duration,
    pub(crate) live_poll: Duration,
    pub(crate) snapshot_age: Duration,
    pub(crate) queue: usize,
    pub(crate) max_open: usize,
    pub(crate) group: Option<GroupLimits>,
    pub(crate) statement_cache: usize,
    pub(crate) writer_cache_bytes: usize,
    pub(crate) reader_cache_bytes: usize,
    pub(crate) spill_bytes: usize,
    pub(crate) temp_store: TempStore,
    pub(crate) mmap_bytes: usize,
    pub(crate) page_bytes: Option<u32>,
    pub(crate) auto_vacuum: AutoVacuum,
    pub(crate) busy_timeout: Duration,
    pub(crate) fairness: Fairness,
    pub(crate) transaction_idle: Duration,
    pub(crate) close_wait: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attach: Vec<Attached>,
    pub(crate) journal: Journal,
    pub(crate) immutable: bool,
    pub(crate) vfs: Option<String>,
    pub(crate) network_filesystem: bool,
    pub(crate) second_copy: SecondCopy,
    pub(crate) on_open: Vec<String>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) read_limit: Option<Duration>,
    pub(crate) leases: bool,
    pub(crate) inline: Inline,
    pub(crate) migrations: Option<Migrations>,
    pub(crate) on_statement: Option<Listener>,
    pub(crate) slow_statement: Option<Duration>,
}

/// Another database file that is attached on every connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The `mode` in its URI, if any.
    pub(crate) mode: Option<Mode>,
    pub(crate) immutable: bool,
}

/// The path of a private in-memory database.
pub(crate) const MEMORY: &str = ":memory:";

impl Options {
    /// Returns the default options for the database file at `path`. `":memory:"` is a private in-memory database.
    ///
    /// A path that begins with `file:` is a URI (<https://sqlite.org/uri.html>). It may set `mode` (`ro`, `rw`, `rwc`,
    /// `memory`), `immutable` and `vfs`. Opening fails if it has any other key, and for the URLs of other libraries, such
    /// as `sqlite:app.db`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            read_only: false,
            create: true,
            durability: Durability::Normal,
            foreign_keys: true,
            cascading_drop: false,
            readers: cores().map_or(2, |cores| cores.clamp(2, 8)),
            extra_readers: 8,
            stream_idle: Duration::from_secs(30),
            live_poll: Duration::from_millis(20),
            snapshot_age: Duration::from_secs(300),
            queue: 1024,
            max_open: 64,
            group: Some(GroupLimits::default()),
            statement_cache: 128,
            writer_cache_bytes: 16 << 20,
            reader_cache_bytes: 4 << 20,
            spill_bytes: 64 << 20,
            temp_store: TempStore::Auto,
            mmap_bytes: 0,
            page_bytes: None,
            auto_vacuum: AutoVacuum::None,
            busy_timeout: Duration::from_secs(30),
            fairness: Fairness::Auto,
            transaction_idle: Duration::from_secs(30),
            close_wait: Duration::from_secs(5),
            timeout: None,
            attach: Vec::new(),
            journal: Journal::Wal,
            immutable: false,
            vfs: None,
            network_filesystem: false,
            second_copy: SecondCopy::Refuse,
            on_open: Vec::new(),
            checkpoint: Checkpoint::default(),
            read_limit: None,
            leases: true,
            inline: Inline::default(),
            migrations: None,
            on_statement: None,
            slow_statement: None,
        }
    }

    /// Opens the database read-only: the file must exist and is never written. Default off.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Creates the file if it does not exist. Default on.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets which failures an acknowledged write survives. Default [`Durability::Normal`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Enforces foreign keys. Default on.
    pub fn foreign_keys(mut self, on: bool) -> Self {
        self.foreign_keys = on;
        self
    }

    /// Allows DROP TABLE to change rows of other tables: with foreign keys on, it first deletes all rows of the table, so
    /// that ON DELETE CASCADE, SET NULL and SET DEFAULT take effect. Otherwise such a DROP TABLE is refused with
    /// `Misuse`, unless no row would change. Closures and migrations are not concerned. Default off.
    pub fn cascading_drop(mut self, allowed: bool) -> Self {
        self.cascading_drop = allowed;
        self
    }

    /// Sets the number of requests that may wait in a queue. The writer has one queue, the readers share another, and a
    /// third holds streams, snapshots, read closures and backups. A call that finds its queue full waits for a free place, in
    /// order of arrival. Default 1,024.
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// Sets how many databases of the process may have connections at a time. Beyond that, the connections of those that
    /// were not used for longest are closed, and the next call on one of them opens them again: the databases stay open,
    /// and their handles valid. A call that needs connections while twice as many databases have some waits until others are
    /// closed, up to its deadline, unless transactions, snapshots or cursors are open in all of them. The limit of the
    /// database that opens its connections applies. Default 64.
    pub fn max_open(mut self, databases: usize) -> Self {
        self.max_open = databases;
        self
    }

    /// Groups writes that arrive together, within these limits. Default on, see [`GroupLimits`].
    pub fn group(mut self, group: GroupLimits) -> Self {
        self.group = Some(group);
        self
    }

    /// Disables groups: every write runs in its own transaction.
    pub fn no_group(mut self) -> Self {
        self.group = None;
        self
    }

    /// Sets the number of prepared statements kept per connection. Default 128.
    pub fn statement_cache(mut self, statements: usize) -> Self {
        self.statement_cache = statements;
        self
    }

    /// Sets the size of the writer's page cache in bytes. Default 16 MiB.
    pub fn writer_cache_bytes(mut self, bytes: usize) -> Self {
        self.writer_cache_bytes = bytes;
        self
    }

    /// Sets the size of each reader's page cache in bytes. Default 4 MiB.
    pub fn reader_cache_bytes(mut self, bytes: usize) -> Self {
        self.reader_cache_bytes = bytes;
        self
    }

    /// Sets how much of a transaction's changed pages the writer keeps in memory. A transaction that changes more writes
    /// the rest to the WAL before it commits (<https://sqlite.org/pragma.html#pragma_cache_spill>). Default 64 MiB.
    pub fn spill_bytes(mut self, bytes: usize) -> Self {
        self.spill_bytes = bytes;
        self
    }

    /// Sets where large sorts and other temporary data are kept. Default [`TempStore::Auto`].
    pub fn temp_store(mut self, store: TempStore) -> Self {
        self.temp_store = store;
        self
    }

    /// Sets how long to wait for a lock that another process holds. Default 30 s.
    pub fn busy_timeout(mut self, wait: Duration) -> Self {
        self.busy_timeout = wait;
        self
    }

    /// Sets whether processes that write take turns in the order in which they came (the file `<db>-turn`), or only poll
    /// for the lock. Default [`Fairness::Auto`].
    pub fn fairness(mut self, fairness: Fairness) -> Self {
        self.fairness = fairness;
        self
    }

    /// Sets how long a transaction may stay unused before it is rolled back. Default 30 s.
    pub fn transaction_idle(mut self, limit: Duration) -> Self {
        self.transaction_idle = limit;
        self
    }

    /// Sets how long `close` waits for what was submitted before: then it rolls an open transaction back and ends the reads,
    /// and it returns within two seconds more, whatever still runs. Default 5 s.
    pub fn close_wait(mut self, wait: Duration) -> Self {
        self.close_wait = wait;
        self
    }

    /// Sets the deadline of every call on the handle that this `open` returns, as [`Database::timeout`](crate::Database::timeout)
    /// does. Other handles of the file may have another. Default: none.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Attaches another database file as `name` on every connection. It is opened like the main file, but its journal
    /// mode is left unchanged. A `file:` URI may set `mode` and `immutable`. Writes to it are never grouped. Every
    /// transaction, including that of a `batch` or `execute_many`, takes the write lock of every attached file, even if
    /// it does not use the file, because BEGIN IMMEDIATE does so.
    pub fn attach(mut self, name: impl Into<String>, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.attach.push(Attached { name: name.into(), path, mode: None, immutable: false });
        self
    }

    /// Sets what to do with the file's journal mode. Default [`Journal::Wal`].
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = journal;
        self
    }

    /// Asserts that no process changes the file while it is open. The file is then only read, without locks, and needs
    /// no other file beside it. If a process changes the file anyway, reads return wrong results
    /// (<https://sqlite.org/uri.html#uriimmutable>). Default off.
    pub fn immutable(mut self, immutable: bool) -> Self {
        self.immutable = immutable;
        self
    }

    /// Sets the VFS to open the file with, by its registered name (<https://sqlite.org/vfs.html>). Default: the default
    /// VFS of the operating system.
    pub fn vfs(mut self, name: impl Into<String>) -> Self {
        self.vfs = Some(name.into());
        self
    }

    /// Allows opening a file on a network or shared file system. WAL mode needs memory that all users of the file
    /// share. So this is safe only while a single machine, or a single side of the share, uses the file. Default off.
    pub fn network_filesystem(mut self, allowed: bool) -> Self {
        self.network_filesystem = allowed;
        self
    }

    /// Sets what to do about another SQLite library in this process. Default [`SecondCopy::Refuse`].
    pub fn second_copy(mut self, second_copy: SecondCopy) -> Self {
        self.second_copy = second_copy;
        self
    }

    /// Adds SQL to run on every connection right after it is opened, such as a PRAGMA that no option sets. Calling this
    /// again adds more SQL. The SQL also runs on reader connections, which are read-only. If it fails, opening the
    /// database fails. Settings that have an option, ATTACH, transaction control and TEMP objects are refused.
    pub fn on_open(mut self, sql: impl Into<String>) -> Self {
        self.on_open.push(sql.into());
        self
    }

    /// Sets which program checkpoints the WAL to keep it short. Default [`Checkpoint::Managed`], 32 MiB. The WAL of an
    /// attached file is checkpointed when the database is closed.
    pub fn checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = checkpoint;
        self
    }

    /// Sets whether short calls may run on the thread that polls them. When a statement is used for the second time,
    /// Flatwater decides from its bytecode whether it is short. Other calls, and writes outside a transaction with
    /// [`Durability::Full`], always run on a worker. The result of a call is the same either way. If a page is not in
    /// the cache, the polling thread reads it from the disk. Default [`Inline::Auto`] with a limit of 50 us.
    pub fn inline(mut self, inline: Inline) -> Self {
        self.inline = inline;
        self
    }

    /// Applies these migrations when the database is opened, each once, whichever process comes first. The open fails if
    /// one of them fails. See [`Database::migrate`](crate::Database::migrate). Default: none.
    pub fn migrations(mut self, migrations: impl Into<Migrations>) -> Self {
        self.migrations = Some(migrations.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline::limits::InlineLimits;

    #[test]
    fn the_defaults_are_these() {
        let options = Options::new("a.db");
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        assert_eq!(options.durability, Durability::Normal);
        assert!(options.foreign_keys && options.create && !options.read_only && !options.cascading_drop);
        assert_eq!(options.readers, cores.clamp(2, 8));
        assert_eq!((options.queue, options.extra_readers), (1024, 8));
        assert_eq!(options.live_poll, Duration::from_millis(20));
        assert_eq!((options.stream_idle, options.snapshot_age), (Duration::from_secs(30), Duration::from_secs(300)));
        assert_eq!(options.group, Some(GroupLimits { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }));
        assert_eq!((options.statement_cache, options.max_open), (128, 64));
        assert_eq!((options.writer_cache_bytes, options.reader_cache_bytes), (16 << 20, 4 << 20));
        assert_eq!((options.spill_bytes, options.temp_store), (64 << 20, TempStore::Auto));
        assert_eq!((options.mmap_bytes, options.page_bytes), (0, None));
        assert_eq!(options.auto_vacuum, AutoVacuum::None);
        assert_eq!((options.busy_timeout, options.fairness), (Duration::from_secs(30), Fairness::Auto));
        assert_eq!(options.transaction_idle, Duration::from_secs(30));
        assert_eq!((options.close_wait, options.timeout), (Duration::from_secs(5), None));
        assert!(options.attach.is_empty());
        assert_eq!((options.journal, options.second_copy), (Journal::Wal, SecondCopy::Refuse));
        let managed = CheckpointLimits { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 };
        assert_eq!((options.checkpoint, options.read_limit), (Checkpoint::Managed(managed), None));
        assert!(options.leases && options.migrations.is_none());
        assert!(options.on_statement.is_none() && options.slow_statement.is_none());
        let limits = InlineLimits { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 };
        assert_eq!(options.inline, Inline::Auto(limits));
        assert!(
            !options.immutable && !options.network_filesystem && options.vfs.is_none() && options.on_open.is_empty()
        );
    }
}
