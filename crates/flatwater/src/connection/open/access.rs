//! Whether a file can be opened, and whether a connection that was opened to write can write.
//!
//! Owns: the paths that are refused before SQLite sees them, the message and hint for each of SQLite's refusals, finding out whether a
//! connection can write, and the errors for one that cannot. Runs on a thread that may block; reads the file system. SQLite opens a
//! file for reading if it cannot be opened for writing, for whatever reason: the permissions, or a limit of open files
//! that was reached for a moment (`unixOpen`, `unixOpenSharedMemory`). For the database file SQLite reports this
//! (`sqlite3_db_readonly`), for the `-wal` and the `-shm` it does not: each write fails with SQLITE_READONLY, for as
//! long as the connection lives. The `-shm` is open once for all connections of the process, so there the state lasts
//! until the last of them is closed. Leaves out: closing them.

use std::io::Read;
use std::path::{Path, PathBuf};

use flatwater_sqlite::{Sqlite, SqliteError, SystemFailure, has_nul, why_not_readable, why_not_writable};
use rusqlite::ffi;

use crate::options::resolve::beside;
use crate::options::uri::Mode;
use crate::options::{Attached, Options};
use flatwater_base::error::cause;
use flatwater_base::error::hint::{Sentence, hint};
use flatwater_base::error::kind::is_damage;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};

/// The header of a WAL (<https://sqlite.org/fileformat2.html#the_write_ahead_log>). A longer one has frames.
const WAL_HEADER_BYTES: u64 = 32;

/// Returns the WAL with frames, or the hot journal, that is left beside a file. SQLite reads neither for an immutable file.
fn left_over(path: &Path) -> Option<PathBuf> {
    let (wal, journal) = (beside(path, "-wal"), beside(path, "-journal"));
    if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > WAL_HEADER_BYTES) {
        return Some(wal);
    }
    // A journal whose header is zeroed is over (<https://sqlite.org/lockingv3.html#hot_journals>).
    let mut first = [0];
    let is_hot =
        std::fs::File::open(&journal).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first != [0];
    is_hot.then_some(journal)
}

/// Refuses paths for which SQLite has no good message. `creates`: a missing file is created.
pub(crate) fn check_path(options: &Options, creates: bool) -> Result<()> {
    let path: &Path = &options.path;
    let refuse = |sentence: String, hint: &'static Sentence| {
        Err(Error::new(ErrorCode::CannotOpen, sentence).with_hint(hint).in_operation("open"))
    };
    if options.is_memory() {
        return Ok(());
    }
    if has_nul(path) {
        return refuse(
            "the path has a NUL byte".into(),
            hint!["a path ends at a NUL, so another file would be opened"],
        );
    }
    if path.is_dir() {
        return refuse(format!("{} is a directory", path.display()), hint!["name a file in it"]);
    }
    if is_pipe(path) {
        return refuse(format!("{} is a pipe or a socket", path.display()), hint!["name a file"]);
    }
    let attached = options.attach.iter().filter(|attached| attached.immutable).map(|attached| &*attached.path);
    let immutable = options.assume_immutable.then_some(path).into_iter().chain(attached);
    if let Some(left) = immutable.filter_map(left_over).next() {
        return refuse(
            format!("{} has commits, or a rollback, that a reader of the immutable file would miss", left.display()),
            hint!["open the file once without `immutable`, as another program would, and close it"],
        );
    }
    if !path.exists() {
        if !creates {
            return refuse(format!("{} does not exist", path.display()), hint!["check the path, or " OpenToCreate]);
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
            && !parent.is_dir()
        {
            return refuse(format!("the directory {} does not exist", parent.display()), hint!["create it first"]);
        }
    }
    Ok(())
}

/// Returns true for a pipe or a socket. Opening a pipe to read it would wait for a process that writes to it.
#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo() || metadata.file_type().is_socket())
}

#[cfg(not(unix))]
fn is_pipe(_: &Path) -> bool {
    false
}

pub(crate) fn cannot_open(error: Error, options: &Options) -> Error {
    if error.operation().is_some() {
        return error;
    }
    let code = error.sqlite_code().unwrap_or(0);
    let error = named(error.in_operation("open"), options);
    match code & 0xff {
        ffi::SQLITE_NOTADB => error
            .with_kind(ErrorKind::Open)
            .with_message(format!("{} is not a SQLite database", options.path.display()))
            .with_hint("check the path; an encrypted database looks like this too"),
        _ if is_damage(code) => error.with_hint(
            "restore a backup, or save what can still be read (https://sqlite.org/recovery.html); a -wal or -journal of \
             another database beside it looks like this too",
        ),
        _ if code == ffi::SQLITE_READONLY_ROLLBACK => error
            .with_kind(ErrorKind::Open)
            .with_message(format!(
                "{} has a -journal, left by a program that died while it wrote, which must be rolled back first",
                options.path.display()
            ))
            .with_hint(hint!["open it once without " ReadOnly]),
        ffi::SQLITE_CANTOPEN if options.path.exists() && why_not_readable(&options.path).is_some() => error
            .with_kind(ErrorKind::Open)
            .with_message(format!("{} may not be read by this user: permission denied", options.path.display()))
            .with_hint("check the permissions of the file"),
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY | ffi::SQLITE_PERM => {
            // An existing WAL holds rows that are not in the file, and reading the file as immutable would miss them.
            let is_complete = options.read_only && !beside(&options.path, "-wal").exists();
            error.with_kind(ErrorKind::Open).with_hint(if is_complete {
                hint![
                    "the directory must be writable too: the -wal and -shm files are created beside the database; a \
                     file that no process changes can be read without them, with " Immutable
                ]
            } else {
                hint!["the directory must be writable too: the -wal and -shm files are created beside the database"]
            })
        }
        ffi::SQLITE_BUSY => error.with_hint(hint!["another process kept the file locked for longer than " BusyTimeout]),
        _ if error.kind() == ErrorKind::Misuse => error.with_kind(ErrorKind::Open),
        _ => error,
    }
}

/// Adds the error of the operating system, which rusqlite does not report.
pub(crate) fn because(error: Error, sqlite: &Sqlite) -> Error {
    match error.sqlite_code().and_then(|code| sqlite.handle().system_failure(code)) {
        Some(failure) if error.operation().is_none() => cause::because(error, failure),
        _ => error,
    }
}

/// Adds the path to the message, since SQLite does not.
fn named(error: Error, options: &Options) -> Error {
    let path = options.path.display().to_string();
    if options.is_memory() || error.message().contains(&path) {
        return error;
    }
    let message = format!("{path}: {}", error.message());
    error.with_message(message)
}

/// Returns true if SQLite refused to write.
pub(crate) fn is_read_only(error: &Error) -> bool {
    error.sqlite_code().is_some_and(|code| code & 0xff == ffi::SQLITE_READONLY)
}

/// Returns the error for a read that was refused as a write is, for its own reason: the `-shm` is open for reading
/// only, and its contents have to be written first.
pub(crate) fn of_read(error: Error) -> Error {
    error
        .with_kind(ErrorKind::Io)
        .with_message("SQLite could open the -shm file only for reading, and it is out of date".to_owned())
        .with_hint("try again: Flatwater closed the connection that has it open")
}

/// Returns true if one of the files beside the database, main or attached, is open for reading only. Waits for no lock:
/// if another connection holds the lock, this one was able to ask for it, so its files are open for writing.
pub(crate) fn is_half_open(sqlite: &Sqlite) -> Result<bool> {
    let busy = sqlite.hooks().set_busy(None);
    let begun = sqlite.begin_immediate().map_err(Error::from).and_then(|transaction| Ok(transaction.rollback()?));
    sqlite.hooks().set_busy(busy);
    match begun {
        Err(error) if is_read_only(&error) => Ok(true),
        Err(error) if error.kind() != ErrorKind::Busy => Err(error),
        _ => Ok(false),
    }
}

/// Refuses an attached file that is open for reading only, though it is to be written and, according to the operating
/// system, may be.
pub(crate) fn check_attached(sqlite: &Sqlite, attached: &Attached) -> Result<()> {
    let Attached { name, path, mode, immutable } = attached;
    let is_to_be_written = !immutable && !matches!(mode, Some(Mode::ReadOnly)) && why_not_writable(path).is_none();
    if is_to_be_written && sqlite.rusqlite().is_readonly(&**name)? {
        return Err(not_writable(path, None));
    }
    Ok(())
}

/// Refuses a connection that cannot write because of the files beside the one at `path`, which it opened last and which is
/// in WAL mode.
pub(crate) fn check_writable(sqlite: &Sqlite, path: &Path) -> Result<()> {
    if !is_half_open(sqlite)? {
        return Ok(());
    }
    let forbidden = [beside(path, "-wal"), beside(path, "-shm")]
        .into_iter()
        .find_map(|path| why_not_writable(&path).map(|why| (path, why)));
    Err(match forbidden {
        Some((path, why)) => not_writable(&path, Some(why)),
        None => not_writable(&both(path), None),
    })
}

/// Returns the error for a file that is open for reading only, with the reason why it may not be written, if there is
/// one.
pub(crate) fn not_writable(path: &Path, why: Option<SystemFailure>) -> Error {
    let message = format!("{} cannot be written", path.display());
    let error = Error::from(SqliteError { message, ..SqliteError::from_code(ffi::SQLITE_READONLY) });
    let error = error.with_kind(ErrorKind::Open).in_operation("open");
    match why {
        Some(why) => {
            cause::because(error, why).with_hint(hint!["check the permissions of the file, or open it with " ReadOnly])
        }
        None => error.with_hint(
            "the permissions allow it, but SQLite opened the file only for reading, as happens at the limit of open \
             files (ulimit -n), and cannot reopen it while a connection of this process has it open: close those that \
             are not Flatwater's, end long reads, and try again",
        ),
    }
}

/// Returns true if all files of the database may be written, according to the operating system: a file that is open for
/// reading only may then become writable. The files beside attached ones are treated the same.
pub(crate) fn may_pass(options: &Options) -> bool {
    let may_be_written = |path: &Path| matches!(why_not_writable(path), None | Some(SystemFailure::NotFound));
    let attached = options.attach.iter().map(|attached| &*attached.path);
    may_be_written(&options.path)
        && attached
            .chain([&*options.path])
            .all(|path| may_be_written(&beside(path, "-wal")) && may_be_written(&beside(path, "-shm")))
}

/// Returns the names of both files beside the database, as one path.
fn both(path: &Path) -> PathBuf {
    let mut both = beside(path, "-wal or ").into_os_string();
    both.push(beside(path, "-shm"));
    both.into()
}
