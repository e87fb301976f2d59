//! Resolves options: reads URIs, makes paths absolute, and refuses options that cannot work.
//!
//! Owns: the step from the caller's options to those that a database is opened with, and the comparison of two resolved
//! options. Runs on the thread that opens the database; inspects paths, opens no file. Invariant: resolved options are
//! consistent, and their paths name the same files even if links or the current directory change later. Leaves out:
//! checking whether the files can be used.

use std::path::{Path, PathBuf};

use super::uri::{self, Mode};
use crate::options::{Attached, Checkpoint, CheckpointLimits, MEMORY, Options, TempStore};
use flatwater_base::error::cause::caused_by;
use flatwater_base::error::{Error, ErrorCode, Result};

const MAX_ATTACHED: usize = 10;
const SMALLEST_WAL: u64 = 256 << 10;
/// The maximum number of symbolic links to follow, the same as in SQLite.
const MAX_LINKS: usize = 100;
/// How many steps a statement takes at most on an untrusted file. SQLite makes some ten millions in a second.
const UNTRUSTED_STEPS: u32 = 1_000_000_000;
/// How many bytes a result has at most on an untrusted file.
const UNTRUSTED_RESULT: usize = 64 << 20;
/// How much memory SQLite takes at most for one statement on an untrusted file.
const UNTRUSTED_MEMORY: usize = 128 << 20;

impl Options {
    pub(crate) fn is_memory(&self) -> bool {
        self.path.as_os_str() == MEMORY
    }

    /// Reads URIs, makes paths absolute, and refuses options that cannot work, before any file is opened.
    pub(crate) fn resolve(mut self) -> Result<Self> {
        self.read_uris()?;
        self.check()?;
        self.check_key()?;
        self.key = self.key.map(|key| key.of_its_own());
        self.anchor()?;
        self.check_attached()?;
        Ok(self)
    }

    /// Only makes its paths absolute, as they are once resolved.
    pub(crate) fn anchored(mut self) -> Result<Self> {
        self.anchor()?;
        Ok(self)
    }

    fn read_uris(&mut self) -> Result<()> {
        let read = uri::parse(&self.path)?;
        if uri::is_uri(&self.path) {
            self.path = read.path;
            let contradicts = match read.mode {
                Some(Mode::ReadWrite | Mode::ReadWriteCreate) => self.read_only.then_some("read_only"),
                Some(Mode::ReadOnly | Mode::Memory) | None => None,
            };
            let contradicts = contradicts
                .or_else(|| (read.mode == Some(Mode::ReadWriteCreate) && !self.create).then_some("create"))
                .or_else(|| (read.vfs.is_some() && self.vfs.is_some() && read.vfs != self.vfs).then_some("vfs"));
            if let Some(option) = contradicts {
                return refuse(format!("the `file:` URI contradicts the option `{option}`"));
            }
            self.assume_immutable |= read.immutable;
            self.read_only |= read.mode == Some(Mode::ReadOnly);
            self.create &= read.mode != Some(Mode::ReadWrite);
            self.vfs = read.vfs.or(self.vfs.take());
            if read.mode == Some(Mode::Memory) {
                self.path = MEMORY.into();
            }
        }
        self.read_only |= self.assume_immutable;
        if self.untrusted {
            // A database in memory has the content of its bytes, and nobody else does.
            self.read_only |= !self.writes && !self.is_memory();
            self.step_limit.get_or_insert(UNTRUSTED_STEPS);
            self.result_limit.get_or_insert(UNTRUSTED_RESULT);
            self.memory_limit.get_or_insert(UNTRUSTED_MEMORY);
        }
        self.attach.iter_mut().try_for_each(Attached::read_uri)
    }

    fn check(&self) -> Result<()> {
        refuse_first([
            (self.path.as_os_str().is_empty(), "the path is empty; use \":memory:\" for a database in memory"),
            (self.is_memory() && self.read_only, "a database in memory cannot be read-only: it would stay empty"),
            (
                self.image.is_some() && !self.is_memory(),
                "`deserialize` is for a database in memory; open `:memory:`, or write the bytes into a file",
            ),
            (self.untrusted && self.mmap_bytes > 0, "an `untrusted` file is not mapped: set no `mmap_bytes`"),
            (
                self.untrusted && self.temp_store == TempStore::Memory,
                "temporary data of an `untrusted` file may grow, and is not kept in memory: set no `temp_store`",
            ),
            (self.observe && self.is_memory(), "`observe` is for a database in a file: nobody could look into memory"),
            (self.observe && cfg!(not(unix)), "`observe` needs a Unix system"),
            (self.readers == 0, "`readers` must be at least 1"),
            (self.extra_readers == 0, "`extra_readers` must be at least 1"),
            (self.queue == 0, "`queue` must be at least 1"),
            (self.statement_cache == 0, "`statement_cache` must be at least 1"),
            (
                self.group.is_some_and(|group| group.members < 2 || group.bytes == 0),
                "a group needs `members` of at least 2 and `bytes` of at least 1; use `no_group` to turn it off",
            ),
            (
                matches!(self.checkpoint, Checkpoint::Managed(CheckpointLimits { limit_bytes, hard_limit_bytes })
                    if limit_bytes < SMALLEST_WAL || hard_limit_bytes <= limit_bytes),
                "a managed WAL needs `limit_bytes` of at least 256 KiB and a larger `hard_limit_bytes`",
            ),
            (self.stream_idle.is_zero(), "`stream_idle` must be longer than zero"),
            (self.snapshot_age.is_zero(), "`snapshot_age` must be longer than zero"),
            (self.optimize_every.is_some_and(|every| every.is_zero()), "`optimize_every` must be longer than zero"),
        ])?;
        self.check_work()
    }

    /// Checks what is done when the database is opened, and with its transactions.
    fn check_work(&self) -> Result<()> {
        if let Some(migrations) = &self.migrations {
            migrations.steps()?;
        }
        refuse_first([
            (
                self.migrations.is_some() && self.read_only,
                "`migrations` cannot be applied through a handle that is `read_only`",
            ),
            (
                self.transaction_idle.is_zero(),
                "`transaction_idle` must be longer than zero, or no transaction could be used",
            ),
            (
                self.page_size.is_some_and(|bytes| !(512..=65_536).contains(&bytes) || !bytes.is_power_of_two()),
                "`page_size` must be a power of two from 512 to 65,536",
            ),
            (
                self.vfs.as_ref().is_some_and(|name| name.is_empty() || name.contains('\0')),
                "`vfs` needs the name of a VFS",
            ),
            (self.on_open.iter().any(|sql| sql.contains('\0')), "`on_open` has a NUL byte"),
            (
                self.load_extension.iter().any(|extension| extension.path.as_os_str().is_empty()),
                "`load_extension` needs the path of an extension",
            ),
        ])
    }

    /// Makes paths absolute and free of links. Connections are also opened later, when the current directory or a link
    /// may have changed.
    fn anchor(&mut self) -> Result<()> {
        let attached = self.attach.iter_mut().map(|attached| &mut attached.path);
        for path in std::iter::once(&mut self.path).chain(attached).filter(|path| path.as_os_str() != MEMORY) {
            if path.as_os_str().is_empty() {
                continue;
            }
            *path = real(absolute(path)?, MAX_LINKS);
        }
        // A name without a directory is searched for by the system.
        let has_directory = |path: &&mut PathBuf| path.components().count() > 1;
        for path in self.load_extension.iter_mut().map(|extension| &mut extension.path).filter(has_directory) {
            *path = absolute(path)?;
        }
        Ok(())
    }

    fn check_attached(&self) -> Result<()> {
        if self.attach.len() > MAX_ATTACHED {
            return refuse(format!("at most {MAX_ATTACHED} databases can be attached"));
        }
        for (at, Attached { name, path, .. }) in self.attach.iter().enumerate() {
            if name.is_empty() || name.contains('\0') {
                return refuse(format!("{name:?} cannot be the name of an attached database"));
            }
            if ["main", "temp"].iter().any(|taken| name.eq_ignore_ascii_case(taken)) {
                return refuse(format!("the name {name:?} is SQLite's own; attach under another one"));
            }
            if self.attach[..at].iter().any(|earlier| earlier.name.eq_ignore_ascii_case(name)) {
                return refuse(format!("two databases are attached as {name:?}"));
            }
            if path.as_os_str().is_empty() || (path.as_os_str() == MEMORY && !self.is_memory()) {
                return refuse(format!("{name:?} needs a file: each connection would have its own, empty database"));
            }
            if *path == self.path && !self.is_memory() {
                return refuse(format!("{name:?} is the database itself; it would deadlock with its own writer"));
            }
        }
        Ok(())
    }

    /// Returns the first setting that prevents two resolved options from sharing a database. Settings that only concern
    /// the access of one caller do not count: the path, its rights, permission to create the file, permission to use a
    /// network file system. Who joins takes all settings but the key.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        if other.joins {
            return (self.key != other.key).then_some("key");
        }
        // A handle that only reads cannot apply any.
        let migrations = || (!other.read_only && self.migrations != other.migrations).then_some("migrations");
        self.first_difference(other).or_else(migrations)
    }
}

impl Attached {
    fn read_uri(&mut self) -> Result<()> {
        let read = uri::parse(&self.path)?;
        if !uri::is_uri(&self.path) {
            return Ok(());
        }
        if read.vfs.is_some() || read.mode == Some(Mode::Memory) {
            return refuse(format!("the `file:` URI of {:?} may set `mode` (ro, rw, rwc) and `immutable`", self.name));
        }
        self.path = read.path;
        self.mode = if read.immutable { Some(Mode::ReadOnly) } else { read.mode };
        self.immutable = read.immutable;
        Ok(())
    }
}

/// Returns the path of the file beside a database whose name ends with `suffix`, such as `-wal`.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        let new = Error::new(ErrorCode::CannotOpen, format!("{} cannot be made absolute: {error}", path.display()));
        caused_by(new.in_operation("open"), error)
    })
}

/// Returns the path without links. For a file that does not exist yet, resolves its directory.
fn real(path: PathBuf, links: usize) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(&path) {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path };
    match std::fs::read_link(&path) {
        Ok(target) if links > 0 => real(parent.join(target), links - 1),
        _ => std::fs::canonicalize(parent).map(|parent| parent.join(name)).unwrap_or(path),
    }
}

/// Refuses the first of what must not be.
pub(super) fn refuse_first<const N: usize>(refusals: [(bool, &'static str); N]) -> Result<()> {
    match refusals.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, sentence)) => refuse(sentence),
        None => Ok(()),
    }
}

fn refuse<T>(sentence: impl Into<std::borrow::Cow<'static, str>>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidOption, sentence).in_operation("open"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Durability, GroupLimits};
    use flatwater_base::error::ErrorKind;
    use std::time::Duration;

    fn refused(options: Options) -> String {
        let error = options.resolve().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.message().to_owned()
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_sentence() {
        assert!(refused(Options::new("")).contains("empty"));
        assert!(refused(Options::new("file:?mode=ro")).contains("empty"));
        assert!(refused(Options::new("file:a.db?mode=rw").read_only(true)).contains("the option `read_only`"));
        assert!(refused(Options::new("file:a.db?mode=rwc").create(false)).contains("the option `create`"));
        assert!(refused(Options::new("file:a.db?vfs=a").tuning(|t| t.vfs("b"))).contains("the option `vfs`"));
        assert!(refused(Options::new("a").tuning(|t| t.vfs(""))).contains("`vfs`"));
        assert!(refused(Options::new("a").on_open("SELECT 1\0")).contains("NUL"));
        assert!(refused(Options::new(":memory:").read_only(true)).contains("stay empty"));
        assert!(refused(Options::new(":memory:").tuning(|t| t.assume_immutable(true))).contains("stay empty"));
        assert!(refused(Options::new("a").optimize_every(Duration::ZERO)).contains("`optimize_every`"));
        assert!(refused(Options::new("a").tuning(|t| t.deserialize(vec![0]))).contains("`deserialize`"));
        assert!(refused(Options::new(":memory:").tuning(|t| t.observe(true))).contains("`observe`"));
        assert!(refused(Options::new("a").readers(0)).contains("`readers`"));
        assert!(refused(Options::new("a").tuning(|t| t.queue(0))).contains("`queue`"));
        assert!(refused(Options::new("a").tuning(|t| t.statement_cache(0))).contains("`statement_cache`"));
        assert!(refused(Options::new("a").tuning(|t| t.group(GroupLimits::default().members(1)))).contains("no_group"));
        assert!(
            refused(Options::new("a").tuning(|t| t.transaction_idle(Duration::ZERO))).contains("`transaction_idle`")
        );
        assert!(refused(Options::new("a").tuning(|t| t.attach("Main", "b"))).contains("SQLite's own"));
        assert!(refused(Options::new("a").tuning(|t| t.attach("b", "b").attach("B", "c"))).contains("two databases"));
        assert!(refused(Options::new("a").tuning(|t| t.attach("b", "./a"))).contains("itself"));
        assert!(refused(Options::new("a").tuning(|t| t.attach("b", "file:a?mode=ro"))).contains("itself"));
        assert!(refused(Options::new("a").tuning(|t| t.attach("b", ":memory:"))).contains("needs a file"));
        assert!(refused(Options::new("a").tuning(|t| t.attach("b", "file:b?vfs=unix"))).contains("`mode`"));
    }

    #[test]
    fn a_uri_sets_what_it_says_and_nothing_else() {
        let options = Options::new("file:/d/a.db?mode=ro&vfs=unix").resolve().unwrap();
        assert_eq!(options.path, Path::new("/d/a.db"));
        assert!(options.read_only && !options.assume_immutable && options.create);
        assert_eq!(options.vfs.as_deref(), Some("unix"));
        assert!(!Options::new("file:/d/a.db?mode=rw").resolve().unwrap().create);
        assert!(Options::new("file:/d/a.db?immutable=1").resolve().unwrap().read_only);
        assert!(Options::new("file:any?mode=memory").resolve().unwrap().is_memory());
        assert!(Options::new("file::memory:").resolve().unwrap().is_memory());
        let attached =
            &Options::new("/d/a.db").tuning(|t| t.attach("b", "file:/d/b.db?immutable=1")).resolve().unwrap().attach[0];
        assert!(attached.mode == Some(Mode::ReadOnly) && attached.immutable && attached.path == Path::new("/d/b.db"));
    }

    #[test]
    fn an_untrusted_file_is_only_read_unless_the_program_asks_to_write() {
        let is_read_only = |options: Options| options.resolve().unwrap().read_only;
        let untrusted = || Options::new("/d/a").tuning(|t| t.untrusted());
        assert!(is_read_only(untrusted()) && is_read_only(untrusted().read_only(true)));
        assert!(!is_read_only(untrusted().read_only(false)));
        assert!(!is_read_only(Options::new("/d/a").read_only(false).tuning(|t| t.untrusted())), "in any order");
        assert!(!is_read_only(Options::new(":memory:").tuning(|t| t.untrusted())));
        assert_eq!(untrusted().resolve().unwrap().step_limit, Some(UNTRUSTED_STEPS));
        assert_eq!(untrusted().tuning(|t| t.step_limit(7)).resolve().unwrap().step_limit, Some(7));
        assert!(refused(untrusted().tuning(|t| t.mmap_bytes(1))).contains("`mmap_bytes`"));
        assert_eq!(untrusted().difference(&Options::new("/d/a")), Some("untrusted"));
    }

    #[test]
    fn the_file_beside_has_the_full_name_in_front() {
        assert_eq!(beside(Path::new("/d/a.db"), "-wal"), Path::new("/d/a.db-wal"));
    }

    #[test]
    fn options_differ_by_the_name_of_a_setting() {
        let options = Options::new("a");
        assert_eq!(options.difference(&Options::new("b").read_only(true).create(false)), None);
        assert_eq!(options.difference(&options.clone().durability(Durability::Full)), Some("durability"));
        assert_eq!(options.difference(&options.clone().on_open("SELECT 1")), Some("on_open"));
        assert_eq!(options.difference(&options.clone().tuning(|t| t.attach("b", "b"))), Some("attach"));
        let nothing = || Options::new("a").on_connect(|_| Ok(()));
        assert_eq!(nothing().difference(&nothing()), Some("on_connect"), "two closures");
        let one = nothing();
        assert_eq!(one.difference(&one.clone()), None);
        assert_eq!(options.difference(&options.clone().load_extension("a", None)), Some("load_extension"));
    }
}
