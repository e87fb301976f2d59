//! The file that a copy of a database makes.
//!
//! Owns: what may name it, the file until it is complete, its name, and the errors of a copy. Runs on the thread that copies, and blocks
//! it. Invariants: the file gets its name when it is complete and on the disk, and replaces nothing; a copy that fails leaves no file.
//! Leaves out: copying (`copy`).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use flatwater_sqlite::has_nul;
use tempfile::NamedTempFile;

use crate::options::Options;
use crate::options::key::{Key, check_encryption};
use crate::options::resolve::beside;
use flatwater_base::error::cause::caused_by_io;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};

/// The endings of files beside a database, which belong to it (<https://sqlite.org/tempfiles.html>): SQLite would take
/// a copy named `app.db-journal` for what undoes a commit of `app.db`, and delete it; and Flatwater's own.
const SIDE_FILES: [&str; 4] = ["-journal", "-wal", "-shm", "-turn"];

/// The file that a backup makes, by its absolute path, its key, and who learns how far it is.
pub(crate) struct Target {
    pub(super) path: PathBuf,
    pub(super) key: CopyKey,
    pub(super) report: Option<Report>,
}

/// Called after each step of a copy of pages, on the thread that copies, with how many pages there are and are left.
pub(crate) type Report = Box<dyn Fn(u32, u32) + Send>;

/// The key of a copy.
pub(super) enum CopyKey {
    Same,
    Other(Option<Key>),
}

impl Target {
    /// Refuses what names no file.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        Self::checked(path, CopyKey::Same)
    }

    /// Of a copy that is encrypted with this key, or is plain.
    pub(crate) fn with_key(path: &Path, key: Option<Key>) -> Result<Self> {
        key.as_ref().map_or_else(check_encryption, Key::check)?;
        Self::checked(path, CopyKey::Other(key))
    }

    fn checked(path: &Path, key: CopyKey) -> Result<Self> {
        let refuse = |what: &str, hint: &'static str| {
            Err(Error::new(
                ErrorCode::InvalidTarget,
                format!("a backup cannot be written to {:?}: {what}", path.display().to_string()),
            )
            .with_hint(hint))
        };
        if path.as_os_str() == ":memory:" || path.as_os_str().as_encoded_bytes().starts_with(b"file:") {
            return refuse("it is not a path", "name a file that does not exist");
        }
        if has_nul(path) {
            return refuse("it has a NUL byte", "a path ends at a NUL, so another file would be written");
        }
        let Some(name) = path.file_name().map(OsStr::as_encoded_bytes) else {
            return refuse("it names no file", "name a file that does not exist");
        };
        if path.as_os_str().as_encoded_bytes().last().is_some_and(|last| std::path::is_separator(char::from(*last))) {
            return refuse("it names a directory", "name a file in it");
        }
        if SIDE_FILES.iter().any(|end| name.len() > end.len() && name.ends_with(end.as_bytes())) {
            return refuse("SQLite treats a file of that name as a part of another database", "choose another ending");
        }
        let absolute = std::path::absolute(path);
        absolute
            .map(|path| Self { path, key, report: None })
            .map_err(|error| Error::new(ErrorCode::System, format!("the current directory cannot be read: {error}")))
    }

    /// The same, which reports how far it is.
    pub(crate) fn reporting(self, report: Report) -> Self {
        Self { report: Some(report), ..self }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Refuses a name that is taken, and one beside which SQLite would find the WAL or the journal of another file.
    pub(super) fn refuse_taken(&self) -> Result<()> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        if self.path.is_dir() {
            return Err(Error::new(ErrorCode::InvalidTarget, format!("{} is a directory", self.path.display()))
                .with_hint("name a file in it"));
        }
        if exists(&self.path) {
            return Err(self.is_taken());
        }
        let left = ["-wal", "-journal"].map(|end| beside(&self.path, end));
        left.iter().find(|path| exists(path)).map_or(Ok(()), |path| {
            Err(Error::new(
                ErrorCode::InvalidTarget,
                format!("{} exists, and would become a part of the backup", path.display()),
            )
            .with_hint("remove it, or choose another name"))
        })
    }

    fn is_taken(&self) -> Error {
        Error::new(
            ErrorCode::InvalidTarget,
            format!("{} exists already, and a backup overwrites nothing", self.path.display()),
        )
        .with_hint("remove it, or choose another name")
    }

    /// Creates the file under a name of its own, which tells what it was to be.
    pub(super) fn create(&self, options: &Options) -> Result<NamedTempFile> {
        let directory = self.directory();
        if !directory.is_dir() {
            let message = format!("the directory {} does not exist", directory.display());
            return Err(Error::new(ErrorCode::CannotOpen, message).with_hint("create it first"));
        }
        let mut prefix = self.path.file_name().unwrap_or(OsStr::new("backup")).to_owned();
        prefix.push(".");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".partial");
        #[cfg(unix)]
        builder.permissions(permissions(options));
        #[cfg(not(unix))]
        let _ = options;
        builder.tempfile_in(directory).map_err(|error| {
            let failed = self.failed("created", &error);
            if failed.kind() == ErrorKind::Io { failed.with_kind(ErrorKind::Open) } else { failed }
        })
    }

    /// Gives the file its name. After an error there is no file.
    pub(super) fn publish(&self, file: NamedTempFile) -> Result<()> {
        file.as_file().sync_all().map_err(|error| self.failed("synced", &error))?;
        self.refuse_taken()?;
        file.persist_noclobber(&self.path).map_err(|kept| match kept.error.kind() {
            io::ErrorKind::AlreadyExists => self.is_taken(),
            _ => self.failed("renamed", &kept.error),
        })?;
        sync_directory(self.directory()).map_err(|error| {
            // Whether the name survives a power loss is not known, so there is none.
            let _ = std::fs::remove_file(&self.path);
            self.failed("synced", &error)
        })
    }

    #[cold]
    pub(super) fn failed(&self, what: &str, error: &io::Error) -> Error {
        let (code, hint) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (ErrorCode::NoRoom, ROOM),
            _ => (ErrorCode::System, WRITABLE),
        };
        let new = Error::new(code, format!("the backup {} cannot be {what}: {error}", self.path.display()));
        caused_by_io(new, error).with_hint(hint)
    }

    #[cold]
    pub(super) fn not_exported(&self, error: Error) -> Error {
        let message = format!("the database cannot be exported to {}: {}", self.path.display(), error.message());
        error.with_message(message)
    }

    /// The error of a step of the copy. SQLite's message is that of the connection, which knows nothing of a step.
    #[cold]
    pub(super) fn not_copied(&self, error: Error) -> Error {
        let path = self.path.display();
        if error.kind() == ErrorKind::Full {
            return Error::new(ErrorCode::NoRoom, format!("there is no space left for the backup {path}"))
                .with_hint(ROOM);
        }
        let name = error.sqlite_name().unwrap_or("no reason given");
        let message = format!("the database cannot be copied to {path}: {name}");
        error.with_message(message).with_hint(WRITABLE)
    }
}

const ROOM: &str = "free space on the disk of the backup; it needs as much as the database";
const WRITABLE: &str = "check the directory of the backup, its permissions and its disk";

/// The copy may be read by whom the database may be read by.
#[cfg(unix)]
fn permissions(options: &Options) -> std::fs::Permissions {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let of_source = if options.is_memory() { None } else { options.path.metadata().ok() };
    let mode = of_source.map_or(0o644, |source| source.mode() & 0o777);
    std::fs::Permissions::from_mode(mode | 0o600)
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    std::fs::File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
