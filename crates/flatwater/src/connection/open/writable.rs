//! Whether a connection that was opened to write can write.
//!
//! Owns: finding that out, and the errors for a connection that cannot. Runs on a thread that may block. SQLite opens a
//! file for reading if it cannot be opened for writing, for whatever reason: the permissions, or a limit of open files
//! that was reached for a moment (`unixOpen`, `unixOpenSharedMemory`). For the database file SQLite reports this
//! (`sqlite3_db_readonly`), for the `-wal` and the `-shm` it does not: each write fails with SQLITE_READONLY, for as
//! long as the connection lives. The `-shm` is open once for all connections of the process, so there the state lasts
//! until the last of them is closed. Leaves out: closing them.

use std::path::{Path, PathBuf};

use flatwater_sqlite::{Sqlite, SqliteError, SystemFailure, why_not_writable};
use rusqlite::ffi;

use crate::error::hint::hint;
use crate::error::{Error, ErrorKind, Result};
use crate::options::resolve::beside;
use crate::options::uri::Mode;
use crate::options::{Attached, Options};

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
        return Err(refused(path, None));
    }
    Ok(())
}

/// Refuses a connection that cannot write because of the files beside the one at `path`, which it opened last and which is
/// in WAL mode.
pub(crate) fn check(sqlite: &Sqlite, path: &Path) -> Result<()> {
    if !is_half_open(sqlite)? {
        return Ok(());
    }
    let forbidden = [beside(path, "-wal"), beside(path, "-shm")]
        .into_iter()
        .find_map(|path| why_not_writable(&path).map(|why| (path, why)));
    Err(match forbidden {
        Some((path, why)) => refused(&path, Some(why)),
        None => refused(&both(path), None),
    })
}

/// Returns the error for a file that is open for reading only, with the reason why it may not be written, if there is
/// one.
pub(crate) fn refused(path: &Path, why: Option<SystemFailure>) -> Error {
    let message = format!("{} cannot be written", path.display());
    let error = Error::from(SqliteError { message, ..SqliteError::from_code(ffi::SQLITE_READONLY) });
    let error = error.with_kind(ErrorKind::Open).in_operation("open");
    match why {
        Some(why) => {
            error.because(why).with_hint(hint!["check the permissions of the file, or open it with " ReadOnly])
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
