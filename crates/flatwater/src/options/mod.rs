//! Every setting of a database and its default.
//!
//! Owns: `Options`, a plain value, usable on any thread, the setters of the first tier, and the macros by which a setting and its
//! setter are declared once. Invariant: the defaults are part of the API. Leaves out: the second tier (`tuning`), checking which settings contradict each other (`resolve`),
//! and applying them, which connections, workers and the engine do.

/// Declares the settings, each with its type and its default. Handles of one open file have the same settings of the
/// file; `first_difference` names one that is not the same.
macro_rules! settings {
    (
        $(#[$doc:meta])* pub struct $type:ident;
        of the file { $($(#[$shared_note:meta])* $shared:ident: $shared_type:ty = $shared_default:expr;)* }
        of a handle { $($(#[$note:meta])* $name:ident: $of:ty = $default:expr;)* }
    ) => {
        $(#[$doc])*
        pub struct $type {
            $($(#[$shared_note])* pub(crate) $shared: $shared_type,)*
            $($(#[$note])* pub(crate) $name: $of,)*
        }

        impl $type {
            fn with_defaults() -> Self {
                Self { $($shared: $shared_default,)* $($name: $default,)* }
            }

            fn first_difference(&self, other: &Self) -> Option<&'static str> {
                let differ = [$((stringify!($shared), self.$shared != other.$shared)),*];
                differ.into_iter().find_map(|(name, differs)| differs.then_some(name))
            }
        }
    };
}

/// Declares the setters of a type. The second part says where its fields are. A field that has no value by default is
/// marked with `=> Some`.
macro_rules! setters {
    ($type:ident, $this:ident => $fields:expr; $($(#[$doc:meta])* $name:ident: $of:ty $(=> $some:ident)?;)*) => {
        impl $type {
            $(
                $(#[$doc])*
                pub fn $name(self, $name: $of) -> Self {
                    let mut $this = self;
                    $fields.$name = $($some)?($name);
                    $this
                }
            )*
        }
    };
}

mod choices;
pub(crate) mod given;
pub(crate) mod key;
pub(crate) mod resolve;
mod tuning;
pub(crate) mod uri;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::events::statement_event::{Listener, StatementEvent};
use crate::migrations::Migrations;
pub use choices::{AutoVacuum, Checkpoint, CheckpointLimits, Durability, Fairness, GroupLimits, Journal, TempStore};
#[doc(inline)]
pub use flatwater_base::inline::eligibility::{Inline, InlineLimits};
use flatwater_base::thread::cores;
use given::{Extension, Image, OnConnect};
pub use key::Key;
pub use tuning::Tuning;
use uri::Mode;

settings! {
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
    pub struct Options;

    of the file {
        key: Option<Key> = None;
        untrusted: bool = false;
        step_limit: Option<u32> = None;
        result_limit: Option<usize> = None;
        memory_limit: Option<usize> = None;
        durability: Durability = Durability::Normal;
        foreign_keys: bool = true;
        double_quoted_strings: bool = false;
        readers: usize = cores().map_or(2, |cores| cores.clamp(2, 8));
        extra_readers: usize = 8;
        stream_idle: Duration = Duration::from_secs(30);
        live_poll: Duration = Duration::from_millis(20);
        snapshot_age: Duration = Duration::from_secs(300);
        queue: usize = 1024;
        group: Option<GroupLimits> = Some(GroupLimits::default());
        statement_cache: usize = 128;
        writer_cache_bytes: usize = 16 << 20;
        reader_cache_bytes: usize = 4 << 20;
        spill_bytes: usize = 64 << 20;
        temp_store: TempStore = TempStore::Auto;
        mmap_bytes: usize = 0;
        page_size: Option<u32> = None;
        auto_vacuum: AutoVacuum = AutoVacuum::None;
        optimize_every: Option<Duration> = Some(Duration::from_secs(86_400));
        busy_timeout: Duration = Duration::from_secs(30);
        fairness: Fairness = Fairness::Auto;
        transaction_idle: Duration = Duration::from_secs(30);
        close_wait: Duration = Duration::from_secs(5);
        attach: Vec<Attached> = Vec::new();
        journal: Journal = Journal::Wal;
        assume_immutable: bool = false;
        vfs: Option<String> = None;
        allow_second_sqlite: bool = false;
        on_open: Vec<String> = Vec::new();
        load_extension: Vec<Extension> = Vec::new();
        on_connect: Vec<OnConnect> = Vec::new();
        checkpoint: Checkpoint = Checkpoint::default();
        read_limit: Option<Duration> = None;
        leases: bool = true;
        inline: Inline = Inline::default();
        on_statement: Option<Listener> = None;
        slow_statement: Option<Duration> = None;
        observe: bool = false;
    }
    of a handle {
        path: PathBuf = PathBuf::new();
        read_only: bool = false;
        /// The program asked to write.
        writes: bool = false;
        create: bool = true;
        timeout: Option<Duration> = None;
        /// Whoever has the file open already may have other options: they hold.
        joins: bool = false;
        allow_network_filesystem: bool = false;
        migrations: Option<Migrations> = None;
        image: Image = Image::default();
    }
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

    /// Sets how long to wait for a lock that another process holds. Default 30 s.
    busy_timeout: Duration;

    /// Sets the deadline of every call on the handle that this `open` returns, as
    /// [`Database::with_timeout`](crate::Database::with_timeout) does. Other handles of the file may have other
    /// deadlines. Default: none.
    timeout: Duration => Some;

    /// Sets the maximum number of reader connections. Default: the number of cores, at least 2 and at most 8.
    readers: usize;

    /// Sets what to do with the file's journal mode. Default [`Journal::Wal`].
    journal: Journal;

    /// Sets which program checkpoints the WAL to keep it short. Default [`Checkpoint::Managed`], 32 MiB. The WAL of an
    /// attached file is checkpointed when the database is closed.
    checkpoint: Checkpoint;

    /// Sets the duration from which a call counts as slow: then [`is_slow`](crate::events::StatementEvent::is_slow) is true, and its event for
    /// `tracing` has the level `warn` instead of `debug`. Default: no call is slow.
    slow_statement: Duration => Some;
}

impl Options {
    /// Returns the default options for the database file at `path`. `":memory:"` is a private in-memory database.
    ///
    /// A path that begins with `file:` is a URI (<https://sqlite.org/uri.html>). It may set `mode` (`ro`, `rw`, `rwc`,
    /// `memory`), `immutable` and `vfs`. Opening fails if it has any other key, and for the URLs of other libraries, such
    /// as `sqlite:app.db`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), ..Self::with_defaults() }
    }

    /// Opens the database read-only: the file must exist and is never written. Default off, except for a file that is
    /// [`untrusted`](Tuning::untrusted).
    pub fn read_only(mut self, on: bool) -> Self {
        (self.read_only, self.writes) = (on, !on);
        self
    }

    /// Brings the statistics of SQLite's query planner up to date, with [`PRAGMA
    /// optimize`](https://sqlite.org/pragma.html#pragma_optimize), when the database is closed and this often while it
    /// is open. Default: once a day, as [SQLite advises](https://sqlite.org/lang_analyze.html#recommended_usage_patterns). `None`
    /// turns it off.
    ///
    /// A table whose size has changed much, or with an index that has no statistics, is analysed: a few thousand rows
    /// of each index are read, and the table `sqlite_stat1` is written. It runs on the writer's thread. It holds the writer for a
    /// second at most, and a close for 200 ms at most; then it is undone. Live queries run once more if it wrote. It never runs for a
    /// read-only database, after a failed sync, or where another program copies the WAL.
    pub fn optimize_every(mut self, every: impl Into<Option<Duration>>) -> Self {
        self.optimize_every = every.into();
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

    /// Calls `listener` once for each call that ends, with its SQL, its times and its outcome: for a log of queries, for
    /// metrics, or for a list of slow statements. Without a listener nothing is measured. Default: none.
    ///
    /// The listener runs on the thread that polls the call to its end, or drops it, before the call returns. A slow
    /// listener delays everything on that thread, and in a transaction all other writes. It may call the database;
    /// these calls are not reported. It must not wait for the database while its own task has a transaction, a snapshot
    /// or a stream open. If the listener holds a handle, the database stays open until
    /// [`close`](crate::Database::close). If it panics, the call still returns its result. To open the file again in
    /// this process, pass a clone of these options.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::events::StatementEvent;
    /// use flatwater::Options;
    ///
    /// let log = |event: &StatementEvent<'_>| println!("{:?} {}", event.total, event.sql.unwrap_or(event.operation));
    /// let db = Options::new("app.db").on_statement(log).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn on_statement(mut self, listener: impl Fn(&StatementEvent<'_>) + Send + Sync + 'static) -> Self {
        self.on_statement = Some(Listener(Arc::new(listener)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((options.journal, options.allow_second_sqlite), (Journal::Wal, false));
        assert_eq!(options.optimize_every, Some(Duration::from_secs(86_400)));
        let managed = CheckpointLimits { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 };
        assert_eq!((options.checkpoint, options.read_limit), (Checkpoint::Managed(managed), None));
        assert!(options.leases && options.migrations.is_none());
        assert_eq!((options.step_limit, options.result_limit, options.memory_limit), (None, None, None));
        assert!(options.on_statement.is_none() && options.slow_statement.is_none() && !options.observe);
        let Inline::Auto(limits) = &options.inline else { panic!("{:?}", options.inline) };
        assert_eq!((limits.time, limits.rows, limits.bytes), (Duration::from_micros(50), 256, 64 << 10));
        assert!(
            !options.assume_immutable
                && !options.allow_network_filesystem
                && options.vfs.is_none()
                && options.on_open.is_empty()
        );
    }
}
