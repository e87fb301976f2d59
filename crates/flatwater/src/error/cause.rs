//! What caused an error: the error of the operating system, of a type that refuses a value, or of a function of the user.
//!
//! Owns: keeping it for `source`. Usable on any thread. Invariant: a cause has no bound value in it, so SQLite's own errors, whose
//! messages may have some, are none; what the user's own code puts into its error is its own. Leaves out: the error itself.

use std::io;
use std::sync::Arc;

use flatwater_sqlite::SystemFailure;

use super::Error;

#[derive(Clone, Default)]
pub(super) struct Cause(pub(super) Option<Arc<dyn std::error::Error + Send + Sync>>);

/// Two errors are compared without their causes, which cannot be compared.
impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

impl Error {
    /// Adds the cause, unless there is one.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.cause.0.get_or_insert_with(|| Arc::new(cause));
        self
    }
}

/// Adds an error of the operating system as the cause, unless there is one.
#[must_use]
pub(crate) fn caused_by_io(error: Error, cause: &io::Error) -> Error {
    let same = || io::Error::new(cause.kind(), cause.to_string());
    error.caused_by(cause.raw_os_error().map_or_else(same, io::Error::from_raw_os_error))
}

/// Adds the error of the user's function, if there is one.
#[must_use]
pub(super) fn caused_by_user(mut error: Error, cause: flatwater_sqlite::Cause) -> Error {
    if let Some(cause) = cause.0 {
        error.0.cause.0.get_or_insert(cause);
    }
    error
}

/// Returns the failure as an error of the standard library.
pub(super) fn of(failure: SystemFailure) -> Option<io::Error> {
    Some(match failure {
        SystemFailure::Other(number) => io::Error::from_raw_os_error(number),
        SystemFailure::Permission => io::ErrorKind::PermissionDenied.into(),
        SystemFailure::ReadOnlyFileSystem => io::ErrorKind::ReadOnlyFilesystem.into(),
        SystemFailure::DiskFull => io::ErrorKind::StorageFull.into(),
        SystemFailure::Memory => io::ErrorKind::OutOfMemory.into(),
        SystemFailure::NotFound => io::ErrorKind::NotFound.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_of_the_system_keeps_its_identity() {
        let full = io::Error::from_raw_os_error(28);
        let error = caused_by_io(Error::misuse("it failed"), &full);
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!((source.kind(), source.raw_os_error()), (full.kind(), Some(28)));
        assert_eq!(error, Error::misuse("it failed"), "compared without it");
        let denied = Error::misuse("it failed").because(SystemFailure::Permission);
        let source = denied.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        assert!(Error::misuse("it failed").source().is_none());
    }
}
