//! The error text for failures of the operating system.
//!
//! Owns: a clause and a hint for each failure, and the error of a thread that cannot be started. Pure, on any thread. Leaves out: where the failure came from, and hints
//! that depend on the operation.

use std::borrow::Cow;

use flatwater_sqlite::SystemFailure;

use super::cause::caused_by_io;
use super::{Error, ErrorKind};

/// The error if a thread of this crate cannot be started: this one.
pub(crate) fn no_thread(which: &str, error: &std::io::Error) -> Error {
    let new = Error::new(ErrorKind::Io, format!("{which} cannot be started: {error}"));
    let new = new.with_hint(
        "the system has no thread or memory for it now; if that persists, raise the limit of processes (ulimit -u), or \
         start fewer threads",
    );
    caused_by_io(new, error)
}

/// Returns what happened, as a clause for a message; `None` if the failure adds no information.
pub(crate) fn clause(failure: SystemFailure) -> Option<Cow<'static, str>> {
    Some(match failure {
        SystemFailure::TooManyFiles => "this process has too many open files".into(),
        SystemFailure::TooManyFilesInSystem => "there are too many open files on this machine".into(),
        SystemFailure::Permission => "permission denied".into(),
        SystemFailure::ReadOnlyFileSystem => "the file system is mounted read-only".into(),
        SystemFailure::DiskFull => "there is no space left on the disk".into(),
        SystemFailure::Device => "the disk failed".into(),
        SystemFailure::Memory => "the machine is out of memory".into(),
        // SQLite looks up a file that it is about to create a second time, without creating it. This is that second
        // result.
        SystemFailure::NotFound => return None,
        SystemFailure::Other(number) => std::io::Error::from_raw_os_error(number).to_string().into(),
        _ => return None,
    })
}

/// Returns a hint if it does not depend on the operation.
pub(crate) fn hint(failure: SystemFailure) -> Option<&'static str> {
    Some(match failure {
        SystemFailure::TooManyFiles => {
            "raise the limit of open files (ulimit -n), or open fewer: each connection has a file and its -wal"
        }
        SystemFailure::TooManyFilesInSystem => "close files in other programs, or raise the system's limit",
        SystemFailure::DiskFull => "free space on the disk, or raise this user's quota",
        SystemFailure::Device => "the file may be intact: check the system's log and the disk first",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_can_do_something_about_has_a_hint_and_everything_told_has_words() {
        use SystemFailure as F;
        let table = [
            (F::TooManyFiles, "too many open files", Some("ulimit -n")),
            (F::TooManyFilesInSystem, "on this machine", Some("limit")),
            (F::Permission, "permission", None),
            (F::ReadOnlyFileSystem, "read-only", None),
            (F::DiskFull, "space", Some("free space")),
            (F::Device, "the disk failed", Some("may be intact")),
            (F::Memory, "memory", None),
        ];
        for (failure, words, advice) in table {
            assert!(clause(failure).unwrap().contains(words), "{failure:?}");
            assert_eq!(hint(failure).is_some(), advice.is_some(), "{failure:?}");
            assert!(advice.is_none_or(|advice| hint(failure).unwrap().contains(advice)), "{failure:?}");
        }
        assert_eq!((clause(F::NotFound), hint(F::NotFound)), (None, None));
    }
}
