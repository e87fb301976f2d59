//! Copying the database of a connection, page by page, into a new file.
//!
//! Owns: the read transaction that is copied, the file until it is whole, and its name. Runs on the thread that uses
//! the connection, and blocks it. Invariants: all pages are of one commit; the file gets its name when it is whole and
//! on the disk, and replaces nothing; a backup that fails leaves no file. Leaves out: which connection copies.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flatwater_sqlite::{Interrupt, has_nul, set_key};
use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};
use tempfile::NamedTempFile;

use crate::connection::EngineConnection;
use crate::connection::exclusive::copy_with_key::export;
use crate::error::cause::caused_by_io;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::options::key::{Key, check_encryption};
use crate::options::resolve::beside;

/// The pages that are copied between two looks at whether the backup is still wanted.
const STEP_PAGES: i32 = 64;
/// The steps between two syncs. A sync cannot be interrupted, so none of them has much to write.
const SYNC_STEPS: usize = 256;

/// The endings of files beside a database, which belong to it (<https://sqlite.org/tempfiles.html>): SQLite would take
/// a copy named `app.db-journal` for what undoes a commit of `app.db`, and delete it; and Flatwater's own.
const SIDE_FILES: [&str; 4] = ["-journal", "-wal", "-shm", "-turn"];

/// The file that a backup makes: an absolute path, and its key.
#[derive(Debug)]
pub(crate) struct Target(PathBuf, CopyKey);

/// The key of a copy.
#[derive(Debug)]
enum CopyKey {
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
            Err(Error::misuse(format!("a backup cannot be written to {:?}: {what}", path.display().to_string()))
                .with_hint(hint))
        };
        if path == ":memory:" || path.as_os_str().as_encoded_bytes().starts_with(b"file:") {
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
            .map(|path| Self(path, key))
            .map_err(|error| Error::new(ErrorKind::Io, format!("the current directory cannot be read: {error}")))
    }

    fn directory(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("/"))
    }

    /// Refuses a name that is taken, and one beside which SQLite would find the WAL or the journal of another file.
    pub(super) fn refuse_taken(&self) -> Result<()> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        if self.0.is_dir() {
            return Err(Error::misuse(format!("{} is a directory", self.0.display())).with_hint("name a file in it"));
        }
        if exists(&self.0) {
            return Err(self.is_taken());
        }
        let left = ["-wal", "-journal"].map(|end| beside(&self.0, end));
        left.iter().find(|path| exists(path)).map_or(Ok(()), |path| {
            Err(Error::misuse(format!("{} exists, and would become a part of the backup", path.display()))
                .with_hint("remove it, or choose another name"))
        })
    }

    fn is_taken(&self) -> Error {
        Error::misuse(format!("{} exists already, and a backup overwrites nothing", self.0.display()))
            .with_hint("remove it, or choose another name")
    }

    /// Creates the file under a name of its own, which tells what it was to be.
    pub(super) fn create(&self, options: &Options) -> Result<NamedTempFile> {
        let directory = self.directory();
        if !directory.is_dir() {
            let message = format!("the directory {} does not exist", directory.display());
            return Err(Error::new(ErrorKind::Open, message).with_hint("create it first"));
        }
        let mut prefix = self.0.file_name().unwrap_or(OsStr::new("backup")).to_owned();
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
        file.persist_noclobber(&self.0).map_err(|kept| match kept.error.kind() {
            io::ErrorKind::AlreadyExists => self.is_taken(),
            _ => self.failed("renamed", &kept.error),
        })?;
        sync_directory(self.directory()).map_err(|error| {
            // Whether the name survives a power loss is not known, so there is none.
            let _ = std::fs::remove_file(&self.0);
            self.failed("synced", &error)
        })
    }

    #[cold]
    fn failed(&self, what: &str, error: &io::Error) -> Error {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        let new = Error::new(kind, format!("the backup {} cannot be {what}: {error}", self.0.display()));
        let error = caused_by_io(new, error);
        if kind == ErrorKind::Full { error.with_hint(ROOM) } else { error.with_hint(WRITABLE) }
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

/// Copies the main database into a new file, until `ends` says stop. The read transaction stays open.
pub(super) fn backup(
    connection: &mut EngineConnection,
    options: &Options,
    target: &Target,
    ends: &Arc<dyn Interrupt>,
) -> Result<()> {
    target.refuse_taken()?;
    let file = target.create(options)?;
    hold_snapshot(connection, ends)?;
    let source = connection.sqlite.rusqlite();
    let copied = match &target.1 {
        CopyKey::Same => copy(source, options, target, &file, &**ends),
        CopyKey::Other(key) => {
            export(source, options, key.as_ref(), file.path(), ends).map_err(|e| exported(e, target))
        }
    };
    // What is ended fails in the middle of something.
    stop(&**ends).and(copied)?;
    target.publish(file)
}

/// Begins a read transaction, which stays open, and takes its snapshot.
pub(super) fn hold_snapshot(connection: &mut EngineConnection, ends: &Arc<dyn Interrupt>) -> Result<()> {
    connection.control.begin_read(&mut connection.sqlite)?;
    connection.sqlite.hooks().interrupts.arm(ends.clone());
    // The first read takes the snapshot.
    let begun = connection.schema.cookie(&mut connection.sqlite);
    connection.sqlite.hooks().interrupts.disarm();
    begun.map(drop)
}

/// Copies all pages into the file.
fn copy(
    source: &rusqlite::Connection,
    options: &Options,
    target: &Target,
    file: &NamedTempFile,
    ends: &dyn Interrupt,
) -> Result<()> {
    let told = |error: rusqlite::Error| of_sqlite(Error::from(error), target);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match options.vfs.as_deref() {
        Some(vfs) => rusqlite::Connection::open_with_flags_and_vfs(file.path(), flags, vfs),
        None => rusqlite::Connection::open_with_flags(file.path(), flags),
    };
    let mut copy = opened.map_err(told)?;
    // The copy of an encrypted file has its key.
    if let Some(key) = &options.key {
        let key = key.of_file(&options.path)?;
        set_key(&copy, key.bytes()).map_err(|error| of_sqlite(error.into(), target))?;
    }
    // A file that is not whole is removed, so nothing has to be undone in it.
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").map_err(told)?;
    copy_pages(source, &mut copy, ends, told, |step| match step % SYNC_STEPS {
        0 => file.as_file().sync_data().map_err(|error| target.failed("synced", &error)),
        _ => Ok(()),
    })?;
    // A VFS may keep its files elsewhere, in memory for instance.
    match file.as_file().metadata() {
        Ok(written) if written.len() > 0 => Ok(()),
        Ok(_) => Err(Error::misuse(format!("the VFS of the database wrote no file {}", target.0.display()))
            .with_hint("a backup needs a VFS that keeps its files in the file system")),
        Err(error) => Err(target.failed("read", &error)),
    }
}

/// Copies all pages, without a pause between the steps: the transaction is open, so SQLite never begins anew. `after`
/// is called with the number of each step but the last.
pub(super) fn copy_pages(
    source: &rusqlite::Connection,
    copy: &mut rusqlite::Connection,
    ends: &dyn Interrupt,
    told: impl Fn(rusqlite::Error) -> Error,
    mut after: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let backup = Backup::new(source, copy).map_err(&told)?;
    for step in 1.. {
        stop(ends)?;
        match backup.step(STEP_PAGES).map_err(&told)? {
            StepResult::Done => break,
            StepResult::More => after(step)?,
            _ => return Err(Error::misuse("the backup's connection has a write transaction; please report it")),
        }
    }
    Ok(())
}

pub(super) fn stop(ends: &dyn Interrupt) -> Result<()> {
    if ends.should_stop() { Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled")) } else { Ok(()) }
}

#[cold]
fn exported(error: Error, target: &Target) -> Error {
    let message = format!("the database cannot be exported to {}: {}", target.0.display(), error.message());
    error.with_message(message)
}

/// SQLite's message is that of the connection, which knows nothing of a step.
#[cold]
pub(super) fn of_sqlite(error: Error, target: &Target) -> Error {
    let path = target.0.display();
    if error.kind() == ErrorKind::Full {
        return Error::new(ErrorKind::Full, format!("there is no space left for the backup {path}")).with_hint(ROOM);
    }
    let name = error.sqlite_name().unwrap_or("no reason given");
    let message = format!("the database cannot be copied to {path}: {name}");
    error.with_message(message).with_hint(WRITABLE)
}
