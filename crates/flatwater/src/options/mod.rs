//! Every setting of a database and its default.
//!
//! Owns: `Options`, a plain value, usable on any thread. Invariant: the defaults are part of the API. Leaves out:
//! checking which settings contradict each other (`resolve`), and applying them, which connections, workers and the
//! engine do.

mod choices;
mod file_settings;
pub(crate) mod foreign_code;
pub(crate) mod image;
pub(crate) mod json_options;
pub(crate) mod key;
mod reader_settings;
pub(crate) mod resolve;
mod setters;
mod statement_listeners;
mod tuning;
mod untrusted;
pub(crate) mod uri;
mod url;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::events::statement_event::Listener;
pub use crate::inline::limits::{Inline, InlineLimits};
use crate::migrations::Migrations;
use crate::thread::cores;
pub use choices::{
    AutoVacuum, Checkpoint, CheckpointLimits, Durability, Fairness, GroupLimits, Journal, SecondCopy, TempStore,
};
use foreign_code::{Extension, OnConnect};
use image::Image;
pub use json_options::JsonOptions;
pub use key::Key;
use setters::setters;
pub use tuning::Tuning;
use uri::Mode;

/// How to open a database. The path is required; every other setting has a default. [`tuning`](Self::tuning) has the
/// settings that most programs leave as they are.
///
/// ```no_run
/// # async fn example() -> flatwater::Result<()> {
/// use flatwater::options::Durability;
/// use flatwater::Options;
/// let db = Options::new("app.db").durability(Durability::Full).readers(4).open().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Options {
    pub(crate) path: PathBuf,
    pub(crate) key: Option<Key>,
    pub(crate) read_only: bool,
    /// The program asked to write.
    pub(crate) writes: bool,
    pub(crate) untrusted: bool,
    pub(crate) step_limit: Option<u32>,
    pub(crate) result_limit: Option<usize>,
    pub(crate) memory_limit: Option<usize>,
    pub(crate) create: bool,
    pub(crate) durability: Durability,
    pub(crate) foreign_keys: bool,
    pub(crate) double_quoted_strings: bool,
    pub(crate) readers: usize,
    pub(crate) extra_readers: usize,
    pub(crate) stream_idle: Duration,
    pub(crate) live_poll: Duration,
    pub(crate) snapshot_age: Duration,
    pub(crate) queue: usize,
    pub(crate) group: Option<GroupLimits>,
    pub(crate) statement_cache: usize,
    pub(crate) writer_cache_bytes: usize,
    pub(crate) reader_cache_bytes: usize,
    pub(crate) spill_bytes: usize,
    pub(crate) temp_store: TempStore,
    pub(crate) mmap_bytes: usize,
    pub(crate) page_size: Option<u32>,
    pub(crate) auto_vacuum: AutoVacuum,
    pub(crate) optimize_every: Option<Duration>,
    pub(crate) busy_timeout: Duration,
    pub(crate) fairness: Fairness,
    pub(crate) transaction_idle: Duration,
    pub(crate) close_wait: Duration,
    pub(crate) timeout: Option<Duration>,
    /// Whoever has the file open already may have other options: they hold.
    pub(crate) joins: bool,
    pub(crate) attach: Vec<Attached>,
    pub(crate) journal: Journal,
    pub(crate) immutable: bool,
    pub(crate) vfs: Option<String>,
    pub(crate) network_filesystem: bool,
    pub(crate) second_copy: SecondCopy,
    pub(crate) on_open: Vec<String>,
    pub(crate) load_extension: Vec<Extension>,
    pub(crate) on_connect: Vec<OnConnect>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) read_limit: Option<Duration>,
    pub(crate) leases: bool,
    pub(crate) inline: Inline,
    pub(crate) migrations: Option<Migrations>,
    pub(crate) on_statement: Option<Listener>,
    pub(crate) slow_statement: Option<Duration>,
    pub(crate) image: Image,
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

setters! {
    Options, options => options;

    /// Creates the file if it does not exist. Default on.
    create: bool;

    /// Sets which failures an acknowledged write survives. Default [`Durability::Normal`].
    durability: Durability;

    /// Enforces foreign keys. Default on.
    foreign_keys: bool;

    /// Takes a name in double quotes for a text if there is no column of that name, as SQLite does by itself
    /// (<https://sqlite.org/quirks.html#double_quoted_string_literals_are_accepted>). Default off: `"name"` is a column, a
    /// misspelt one an error, and a text is written `'text'`. A file with such texts in its schema is opened either way, and
    /// its tables and indexes work. Its views and triggers with them need this, and so does an ALTER TABLE that renames, or
    /// drops a column.
    double_quoted_strings: bool;

    /// Sets how long to wait for a lock that another process holds. Default 30 s.
    busy_timeout: Duration;

    /// Sets how long a transaction may stay unused before it is rolled back. Default 30 s.
    transaction_idle: Duration;

    /// Sets how long `close` waits for submitted calls. Then it rolls an open transaction back, interrupts reads, and
    /// returns within two more seconds, even if a closure still runs. Default 5 s.
    close_wait: Duration;
}

impl Options {
    /// Returns the default options for the database file at `path`. `":memory:"` is a private in-memory database.
    ///
    /// A path that begins with `file:` is a URI (<https://sqlite.org/uri.html>). It may set `mode` (`ro`, `rw`, `rwc`,
    /// `memory`), `immutable` and `vfs`. Opening fails if it has any other key, and for the URLs of other libraries, such
    /// as `sqlite:app.db`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            key: None,
            read_only: false,
            writes: false,
            untrusted: false,
            step_limit: None,
            result_limit: None,
            memory_limit: None,
            create: true,
            durability: Durability::Normal,
            foreign_keys: true,
            double_quoted_strings: false,
            readers: cores().map_or(2, |cores| cores.clamp(2, 8)),
            extra_readers: 8,
            stream_idle: Duration::from_secs(30),
            live_poll: Duration::from_millis(20),
            snapshot_age: Duration::from_secs(300),
            queue: 1024,
            group: Some(GroupLimits::default()),
            statement_cache: 128,
            writer_cache_bytes: 16 << 20,
            reader_cache_bytes: 4 << 20,
            spill_bytes: 64 << 20,
            temp_store: TempStore::Auto,
            mmap_bytes: 0,
            page_size: None,
            auto_vacuum: AutoVacuum::None,
            optimize_every: None,
            busy_timeout: Duration::from_secs(30),
            fairness: Fairness::Auto,
            transaction_idle: Duration::from_secs(30),
            close_wait: Duration::from_secs(5),
            timeout: None,
            joins: false,
            attach: Vec::new(),
            journal: Journal::Wal,
            immutable: false,
            vfs: None,
            network_filesystem: false,
            second_copy: SecondCopy::Refuse,
            on_open: Vec::new(),
            load_extension: Vec::new(),
            on_connect: Vec::new(),
            checkpoint: Checkpoint::default(),
            read_limit: None,
            leases: true,
            inline: Inline::default(),
            migrations: None,
            on_statement: None,
            slow_statement: None,
            image: Image::default(),
        }
    }

    /// Opens the database read-only: the file must exist and is never written. Default off, except for a file that is
    /// [`untrusted`](Self::untrusted).
    pub fn read_only(mut self, on: bool) -> Self {
        (self.read_only, self.writes) = (on, !on);
        self
    }

    /// Sets the deadline of every call on the handle that this `open` returns, as
    /// [`Database::with_timeout`](crate::Database::with_timeout) does. Other handles of the file may have other
    /// deadlines. Default: none.
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

    /// Adds SQL to run on every connection right after it is opened, such as a PRAGMA that no option sets. Calling this
    /// again adds more SQL. The SQL also runs on reader connections, which are read-only. If it fails, opening the
    /// database fails. Settings that have an option, ATTACH, transaction control and TEMP objects are refused.
    pub fn on_open(mut self, sql: impl Into<String>) -> Self {
        self.on_open.push(sql.into());
        self
    }

    /// Applies these migrations when the database is opened. Each is applied once, by the first process that opens the
    /// database. The open fails if one of them fails. See [`Database::migrate`](crate::Database::migrate). Default:
    /// none.
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
        assert!(options.foreign_keys && options.create && !options.read_only && !options.double_quoted_strings);
        assert_eq!(options.readers, cores.clamp(2, 8));
        assert_eq!((options.queue, options.extra_readers), (1024, 8));
        assert_eq!(options.live_poll, Duration::from_millis(20));
        assert_eq!((options.stream_idle, options.snapshot_age), (Duration::from_secs(30), Duration::from_secs(300)));
        assert_eq!(options.group, Some(GroupLimits { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }));
        assert_eq!(options.statement_cache, 128);
        assert_eq!((options.writer_cache_bytes, options.reader_cache_bytes), (16 << 20, 4 << 20));
        assert_eq!((options.spill_bytes, options.temp_store), (64 << 20, TempStore::Auto));
        assert_eq!((options.mmap_bytes, options.page_size), (0, None));
        assert_eq!(options.auto_vacuum, AutoVacuum::None);
        assert_eq!((options.busy_timeout, options.fairness), (Duration::from_secs(30), Fairness::Auto));
        assert_eq!(options.transaction_idle, Duration::from_secs(30));
        assert_eq!((options.close_wait, options.timeout), (Duration::from_secs(5), None));
        assert!(options.attach.is_empty() && !options.has_foreign_code() && options.key.is_none());
        assert_eq!((options.journal, options.second_copy), (Journal::Wal, SecondCopy::Refuse));
        let managed = CheckpointLimits { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 };
        assert_eq!((options.checkpoint, options.read_limit), (Checkpoint::Managed(managed), None));
        assert!(options.leases && options.migrations.is_none());
        assert_eq!((options.step_limit, options.result_limit, options.memory_limit), (None, None, None));
        assert!(options.on_statement.is_none() && options.slow_statement.is_none());
        let limits = InlineLimits { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 };
        assert_eq!(options.inline, Inline::Auto(limits));
        assert!(
            !options.immutable && !options.network_filesystem && options.vfs.is_none() && options.on_open.is_empty()
        );
    }
}
