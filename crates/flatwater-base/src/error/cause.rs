//! What caused an error: a failure of the operating system, a type that refuses a value, a function of the user, or a panic.
//!
//! Owns: keeping the cause for `source`; a clause and a hint for each failure of the system; the errors of a thread that cannot be
//! started, and of code of the user that panicked. Usable on any thread. Invariant: a cause has no bound value in it, so SQLite's own
//! errors, whose messages may have some, are none; what the user's own code puts into its error is its own. Leaves out: the error
//! itself, hints that depend on the operation, and catching a panic.

use std::any::Any;
use std::io;
use std::sync::Arc;

use flatwater_sqlite::SystemFailure;

use super::{Error, ErrorCode};

#[derive(Clone, Default)]
pub(super) struct Cause(pub(super) Option<Arc<dyn std::error::Error + Send + Sync>>);

/// Two errors are compared without their causes, which cannot be compared.
impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

/// Adds the cause, unless there is one.
pub fn caused_by(mut error: Error, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    error.0.cause.0.get_or_insert_with(|| Arc::new(cause));
    error
}

/// Appends the operating system's failure to the message, and a hint if there is one.
pub fn because(error: Error, failure: SystemFailure) -> Error {
    match failure {
        SystemFailure::Other(number) => {
            let cause = io::Error::from_raw_os_error(number);
            let message = format!("{}: {cause}", error.0.message);
            return caused_by(error.with_message(message), cause);
        }
        // SQLite looks up a file that it is about to create a second time, without creating it. This is that second
        // result.
        SystemFailure::NotFound => return caused_by(error, io::Error::from(io::ErrorKind::NotFound)),
        _ => {}
    }
    let Some((clause, hint, kind)) = described(failure) else { return error };
    let message = format!("{}: {clause}", error.0.message);
    let mut error = error.with_message(message);
    if let Some(hint) = hint {
        error = error.with_hint(hint);
    }
    if let Some(kind) = kind {
        error = caused_by(error, io::Error::from(kind));
    }
    error
}

/// Adds an error of the operating system as the cause, unless there is one.
pub fn caused_by_io(error: Error, cause: &io::Error) -> Error {
    let same = || io::Error::new(cause.kind(), cause.to_string());
    caused_by(error, cause.raw_os_error().map_or_else(same, io::Error::from_raw_os_error))
}

/// Adds the error of the user's function, if there is one.
pub(super) fn caused_by_user(mut error: Error, cause: flatwater_sqlite::Cause) -> Error {
    if let Some(cause) = cause.0 {
        error.0.cause.0.get_or_insert(cause);
    }
    error
}

/// The error if a thread of this crate cannot be started: this one.
pub fn no_thread(which: &str, error: &std::io::Error) -> Error {
    let new = Error::new(ErrorCode::System, format!("{which} cannot be started: {error}"));
    let new = new.with_hint(
        "the system has no thread or memory for it now; if that persists, raise the limit of processes (ulimit -u), or \
         start fewer threads",
    );
    caused_by_io(new, error)
}

/// Returns what happened, as a clause for a message; a hint, if it does not depend on the operation; and what it is to the standard
/// library. `None` if the failure adds no words.
fn described(failure: SystemFailure) -> Option<(&'static str, Option<&'static str>, Option<io::ErrorKind>)> {
    Some(match failure {
        SystemFailure::TooManyFiles => {
            let hint =
                "raise the limit of open files (ulimit -n), or open fewer: each connection has a file and its -wal";
            ("this process has too many open files", Some(hint), None)
        }
        SystemFailure::TooManyFilesInSystem => {
            let hint = "close files in other programs, or raise the system's limit";
            ("there are too many open files on this machine", Some(hint), None)
        }
        SystemFailure::Permission => ("permission denied", None, Some(io::ErrorKind::PermissionDenied)),
        SystemFailure::ReadOnlyFileSystem => {
            ("the file system is mounted read-only", None, Some(io::ErrorKind::ReadOnlyFilesystem))
        }
        SystemFailure::DiskFull => {
            let hint = "free space on the disk, or raise this user's quota";
            ("there is no space left on the disk", Some(hint), Some(io::ErrorKind::StorageFull))
        }
        SystemFailure::Device => {
            ("the disk failed", Some("the file may be intact: check the system's log and the disk first"), None)
        }
        SystemFailure::Memory => ("the machine is out of memory", None, Some(io::ErrorKind::OutOfMemory)),
        _ => return None,
    })
}

/// Returns the error for a user closure that panicked. The hint depends on what was committed.
#[cold]
pub fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::new(ErrorCode::Panicked, format!("the closure panicked: {}", said(panic)))
}

/// Returns what the panic said.
pub fn said(panic: &(dyn Any + Send)) -> &str {
    let said = panic.downcast_ref::<&str>().copied();
    said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_of_the_system_keeps_its_identity() {
        let full = io::Error::from_raw_os_error(28);
        let error = caused_by_io(Error::new(ErrorCode::InvalidArgument, "it failed"), &full);
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!((source.kind(), source.raw_os_error()), (full.kind(), Some(28)));
        assert_eq!(error, Error::new(ErrorCode::InvalidArgument, "it failed"), "compared without it");
        let denied = because(Error::new(ErrorCode::InvalidArgument, "it failed"), SystemFailure::Permission);
        let source = denied.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        assert!(Error::new(ErrorCode::InvalidArgument, "it failed").source().is_none());
    }

    #[test]
    fn what_one_can_do_something_about_has_a_hint_and_everything_reported_has_words() {
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
            let error = because(Error::new(ErrorCode::InvalidArgument, "it failed"), failure);
            assert!(error.message().starts_with("it failed: ") && error.message().contains(words), "{failure:?}");
            assert_eq!(error.hint().is_some(), advice.is_some(), "{failure:?}");
            assert!(advice.is_none_or(|advice| error.hint().unwrap().contains(advice)), "{failure:?}");
        }
        let not_found = because(Error::new(ErrorCode::InvalidArgument, "it failed"), F::NotFound);
        assert_eq!((not_found.message(), not_found.hint()), ("it failed", None));
    }
}
