//! Every setting of a database: its default and its check, in one place.
//!
//! Owns: `Options`. Defaults are API. Invariant: options that passed `check` are consistent; nothing was opened before.
//! Leaves out: applying them, which is the connection's and the backend's work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{Error, Kind, Result};

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, kill -9 included. A power failure may take back the last writes, in order, without
    /// damage (`PRAGMA synchronous=NORMAL`).
    #[default]
    Normal,
    /// A power failure too: one fsync per commit (`PRAGMA synchronous=FULL`).
    Full,
}

/// The limits of a group: writes that arrive together and share one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Members at most. Default 256.
    pub members: usize,
    /// No further member is begun once the group has run for this long. Default 1 ms.
    pub time: Duration,
    /// Bytes of text and blob parameters at most. Default 1 MiB.
    pub bytes: usize,
}

impl Default for Group {
    fn default() -> Self {
        Self { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }
    }
}

/// How to open a database. Made with a path; every setting has a default.
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
    pub(crate) readers: usize,
    pub(crate) queue: usize,
    pub(crate) group: Option<Group>,
    pub(crate) statement_cache: usize,
    pub(crate) writer_cache_bytes: usize,
    pub(crate) reader_cache_bytes: usize,
    pub(crate) mmap_bytes: usize,
    pub(crate) lock_wait: Duration,
    pub(crate) transaction_idle: Duration,
    pub(crate) close_wait: Duration,
    pub(crate) attach: Vec<(String, PathBuf)>,
}

/// The path of a private database in memory.
const MEMORY: &str = ":memory:";
const MAX_ATTACHED: usize = 10;

impl Options {
    /// The defaults for the database file at `path`. `":memory:"` is a private database in memory.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            read_only: false,
            create: true,
            durability: Durability::Normal,
            foreign_keys: true,
            readers: std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8)),
            queue: 1024,
            group: Some(Group::default()),
            statement_cache: 128,
            writer_cache_bytes: 16 << 20,
            reader_cache_bytes: 4 << 20,
            mmap_bytes: 0,
            lock_wait: Duration::from_secs(30),
            transaction_idle: Duration::from_secs(30),
            close_wait: Duration::from_secs(5),
            attach: Vec::new(),
        }
    }

    /// Only read; the file must exist and is never written. Default off.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Create the file if it does not exist. Default on.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// What an acknowledged write survives. Default [`Durability::Normal`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Enforce foreign keys. Default on.
    pub fn foreign_keys(mut self, on: bool) -> Self {
        self.foreign_keys = on;
        self
    }

    /// Reader connections at most. Default: the number of cores, at least 2 and at most 8.
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// Requests that may wait, for the writer and for the readers each. A call that finds the queue full waits for a
    /// place, in order. Default 1,024.
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// The limits of a group. Default on, see [`Group`].
    pub fn group(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }

    /// Every write is its own transaction.
    pub fn no_group(mut self) -> Self {
        self.group = None;
        self
    }

    /// Prepared statements kept per connection. Default 128.
    pub fn statement_cache(mut self, statements: usize) -> Self {
        self.statement_cache = statements;
        self
    }

    /// Page cache of the writer in bytes. Default 16 MiB.
    pub fn writer_cache_bytes(mut self, bytes: usize) -> Self {
        self.writer_cache_bytes = bytes;
        self
    }

    /// Page cache of each reader in bytes. Default 4 MiB.
    pub fn reader_cache_bytes(mut self, bytes: usize) -> Self {
        self.reader_cache_bytes = bytes;
        self
    }

    /// Bytes of the file to map into memory. Default 0: under writes a mapping is torn down at every commit.
    pub fn mmap_bytes(mut self, bytes: usize) -> Self {
        self.mmap_bytes = bytes;
        self
    }

    /// How long to wait for a lock that another process holds. Default 30 s.
    pub fn lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// A transaction that is not used for this long is rolled back. Default 30 s.
    pub fn transaction_idle(mut self, limit: Duration) -> Self {
        self.transaction_idle = limit;
        self
    }

    /// How long `close` waits for an open transaction before it rolls it back. Default 5 s.
    pub fn close_wait(mut self, wait: Duration) -> Self {
        self.close_wait = wait;
        self
    }

    /// Attaches another database file under `name`, on every connection. It is opened as the main file is, but its
    /// journal mode is left as it is. Writes to it are never grouped. A transaction, also that of a `batch` or
    /// `execute_many`, takes the write lock of every attached file, needed or not: that is what BEGIN IMMEDIATE does.
    pub fn attach(mut self, name: impl Into<String>, path: impl AsRef<Path>) -> Self {
        self.attach.push((name.into(), path.as_ref().to_owned()));
        self
    }

    pub(crate) fn is_memory(&self) -> bool {
        self.path.as_os_str() == MEMORY
    }

    /// With absolute paths: connections are opened later too, when the current directory may be another one.
    pub(crate) fn anchored(mut self) -> Result<Self> {
        let anchor = |path: &mut PathBuf| -> Result<()> {
            if path.as_os_str() != MEMORY {
                *path = std::path::absolute(&*path).map_err(|error| {
                    Error::new(Kind::Open, format!("{} cannot be made absolute: {error}", path.display()))
                        .in_operation("open")
                })?;
            }
            Ok(())
        };
        anchor(&mut self.path)?;
        self.attach.iter_mut().try_for_each(|(_, path)| anchor(path))?;
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let main = real(&self.path);
        if let Some((name, _)) = self.attach.iter().find(|(_, path)| main.is_some() && real(path) == main) {
            return Err(itself(name));
        }
        Ok(self)
    }

    /// Refuses what cannot work, before anything is opened.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |sentence: String| Err(Error::misuse(sentence).in_operation("open"));
        if self.path.as_os_str().is_empty() {
            return refuse("the path is empty; use \":memory:\" for a database in memory".into());
        }
        let is_uri = |path: &Path| path.as_os_str().as_encoded_bytes().starts_with(b"file:");
        if is_uri(&self.path) || self.attach.iter().any(|(_, path)| is_uri(path)) {
            return refuse("a `file:` URI is not accepted; give the path of the file".into());
        }
        if self.is_memory() && self.read_only {
            return refuse("a database in memory cannot be read-only: it would stay empty".into());
        }
        for (name, value) in
            [("readers", self.readers), ("queue", self.queue), ("statement_cache", self.statement_cache)]
        {
            if value == 0 {
                return refuse(format!("`{name}` must be at least 1"));
            }
        }
        if let Some(group) = self.group
            && (group.members < 2 || group.bytes == 0)
        {
            return refuse(
                "a group needs `members` of at least 2 and `bytes` of at least 1; use `no_group` to turn it off".into(),
            );
        }
        if self.transaction_idle.is_zero() {
            return refuse("`transaction_idle` must be longer than zero, or no transaction could be used".into());
        }
        self.check_attached()
    }

    fn check_attached(&self) -> Result<()> {
        let refuse = |sentence: String| Err(Error::misuse(sentence).in_operation("open"));
        if self.attach.len() > MAX_ATTACHED {
            return refuse(format!("at most {MAX_ATTACHED} databases can be attached"));
        }
        for (at, (name, path)) in self.attach.iter().enumerate() {
            if name.is_empty() || name.contains('\0') {
                return refuse(format!("{name:?} cannot be the name of an attached database"));
            }
            if ["main", "temp"].iter().any(|taken| name.eq_ignore_ascii_case(taken)) {
                return refuse(format!("the name {name:?} is SQLite's own; attach under another one"));
            }
            if self.attach[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return refuse(format!("two databases are attached as {name:?}"));
            }
            if path.as_os_str().is_empty() || (path.as_os_str() == MEMORY && !self.is_memory()) {
                return refuse(format!("{name:?} needs a file: each connection would have its own, empty database"));
            }
            if *path == self.path && !self.is_memory() {
                return Err(itself(name));
            }
        }
        Ok(())
    }
}

fn itself(name: &str) -> Error {
    Error::misuse(format!("{name:?} is the database itself; it would deadlock with its own writer"))
        .in_operation("open")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::error::Kind;

    fn refused(options: Options) -> String {
        let error = options.check().unwrap_err();
        assert_eq!(error.kind(), Kind::Misuse);
        error.message().to_owned()
    }

    #[test]
    fn the_defaults_are_these() {
        let options = Options::new("a.db");
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        assert_eq!(options.durability, Durability::Normal);
        assert!(options.foreign_keys && options.create && !options.read_only);
        assert_eq!(options.readers, cores.clamp(2, 8));
        assert_eq!(options.queue, 1024);
        assert_eq!(options.group, Some(Group { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }));
        assert_eq!(options.statement_cache, 128);
        assert_eq!((options.writer_cache_bytes, options.reader_cache_bytes), (16 << 20, 4 << 20));
        assert_eq!(options.mmap_bytes, 0);
        assert_eq!(options.lock_wait, Duration::from_secs(30));
        assert_eq!(options.transaction_idle, Duration::from_secs(30));
        assert_eq!(options.close_wait, Duration::from_secs(5));
        assert!(options.attach.is_empty());
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_sentence() {
        assert!(refused(Options::new("")).contains("empty"));
        assert!(refused(Options::new("file:a.db?mode=ro")).contains("URI"));
        assert!(refused(Options::new(":memory:").read_only(true)).contains("stay empty"));
        assert!(refused(Options::new("a").readers(0)).contains("`readers`"));
        assert!(refused(Options::new("a").queue(0)).contains("`queue`"));
        assert!(refused(Options::new("a").statement_cache(0)).contains("`statement_cache`"));
        assert!(refused(Options::new("a").group(Group { members: 1, ..Group::default() })).contains("no_group"));
        assert!(refused(Options::new("a").transaction_idle(Duration::ZERO)).contains("`transaction_idle`"));
        assert!(refused(Options::new("a").attach("Main", "b")).contains("SQLite's own"));
        assert!(refused(Options::new("a").attach("b", "b").attach("B", "c")).contains("two databases"));
        assert!(refused(Options::new("a").attach("b", "a")).contains("itself"));
        assert!(refused(Options::new("a").attach("b", ":memory:")).contains("needs a file"));
        assert!(refused(Options::new("a").attach("b", "file:b")).contains("URI"));
    }
}
