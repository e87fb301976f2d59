//! Errors for a file that cannot be opened.
//!
//! Owns: the paths that are refused before SQLite sees them, and the message and hint for each of SQLite's refusals.
//! Runs on the thread that opens the connection; reads the file system. Leaves out: a connection that opened and cannot
//! write (`writable`).

use std::io::Read;
use std::path::{Path, PathBuf};

use flatwater_sqlite::{Sqlite, has_nul, why_not_readable};
use rusqlite::ffi;

use crate::error::hint::{Sentence, hint};
use crate::error::kind::is_damage;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::options::resolve::beside;

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
        Err(Error::new(ErrorKind::Open, sentence).with_hint(hint).in_operation("open"))
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
    let immutable = options.immutable.then_some(path).into_iter().chain(attached);
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
            let is_whole = options.read_only && !beside(&options.path, "-wal").exists();
            error.with_kind(ErrorKind::Open).with_hint(if is_whole {
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
        Some(failure) if error.operation().is_none() => error.because(failure),
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
