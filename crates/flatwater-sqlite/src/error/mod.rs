//! The errors of this floor: SQLite's own errors with their extended code, and bindings that do not fit.
//!
//! Owns: the error type of this crate, and making it of what SQLite and rusqlite report. Invariant: bound values are never
//! part of an error. Leaves out: kinds, hints and SQL text, which the engine adds.

pub(crate) mod cause;
pub(crate) mod system_failure;

use std::ffi::CStr;
use std::fmt;

use rusqlite::ffi;

use crate::error::cause::Cause;
use crate::error::system_failure::SystemFailure;

/// The result of a call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// SQLite returned an error.
    Sqlite(SqliteError),
    /// The number of values differs from the statement's number of parameters.
    ParameterCount {
        /// The number of parameters of the statement.
        expected: usize,
        /// The number of values given.
        given: usize,
    },
    /// Values were given in order for a statement in which `$2`, a name to SQLite, is not the second parameter.
    MisnumberedParameter {
        /// The parameter's name.
        name: String,
        /// Its place among the parameters, counted from 1.
        place: usize,
    },
    /// A value was given for a name that the statement does not have.
    UnknownParameter {
        /// The name as it was given.
        name: String,
        /// The parameter names of the statement.
        known: Vec<String>,
    },
    /// Two values were given for one parameter.
    RepeatedParameter {
        /// The parameter's name.
        name: String,
    },
    /// No value was given for this parameter of the statement.
    MissingParameter {
        /// The parameter's name, or `?N` for one without a name.
        name: String,
    },
    /// The [`StatementId`](crate::StatementId) belongs to another connection, or to a finalised statement.
    StaleStatement,
    /// The linked SQLite is older than Flatwater requires.
    LibraryTooOld {
        /// The version that is linked.
        found: &'static str,
    },
    /// The text is longer than SQLite can take (2 GiB).
    TextTooLong,
    /// The statement was ended at a limit that the engine has set.
    Limit(Limit),
    /// Code of the user failed where SQLite lets nothing fail. What it was called for is undone.
    Callback(String, Cause),
}

/// A limit of what one statement takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many steps of the virtual machine.
    Steps(u32),
    /// So many bytes of SQLite's memory.
    Memory(usize),
}

/// SQLite's report of a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteError {
    /// The extended result code (<https://sqlite.org/rescode.html>).
    pub code: i32,
    /// SQLite's message.
    pub message: String,
    /// Byte offset of the offending token in the SQL, if SQLite provides it.
    pub offset: Option<usize>,
    /// The operating system's error, if one is the cause and SQLite recorded it.
    pub system: Option<SystemFailure>,
    /// The error of the user's function that SQLite reports.
    pub cause: Cause,
}

impl SqliteError {
    /// The primary result code: the low 8 bits of the extended code.
    #[must_use]
    pub fn primary(&self) -> i32 {
        self.code & 0xff
    }

    /// Creates an error from a bare result code, with SQLite's general text for it.
    #[must_use]
    pub fn from_code(code: i32) -> Self {
        // SAFETY: sqlite3_errstr returns a static, NUL-terminated English text for every code.
        let message = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(code)) };
        Self {
            code,
            message: message.to_string_lossy().into_owned(),
            offset: None,
            system: None,
            cause: Cause::default(),
        }
    }

    /// The error of the most recent call on `db`, which returned `code`.
    ///
    /// # Safety
    /// `db` is an open connection that no other thread uses meanwhile.
    pub(crate) unsafe fn of(db: *mut ffi::sqlite3, code: i32) -> Self {
        // SAFETY: the caller promises that `db` is open and used here alone; the message lives until the next call on
        // it.
        unsafe {
            let extended = system_failure::of_read(ffi::sqlite3_extended_errcode(db));
            let same = extended & 0xff == code & 0xff;
            if !same {
                return Self::from_code(code);
            }
            let message = CStr::from_ptr(ffi::sqlite3_errmsg(db)).to_string_lossy().into_owned();
            let offset = usize::try_from(ffi::sqlite3_error_offset(db)).ok();
            let code = first(extended, &message);
            Self { code, message, offset, system: SystemFailure::of(db, extended), cause: Cause::default() }
        }
    }
}

/// Returns the code of the failure that came first, according to SQLite's message. SQLite calls the progress handler
/// once more after a statement failed (`vdbe_return` in `sqlite3VdbeExec`). If the handler then ends the statement, the
/// code is SQLITE_INTERRUPT, but the message and the effect are those of the failure: after an I/O error the
/// transaction is rolled back.
fn first(code: i32, message: &str) -> i32 {
    let failures = [ffi::SQLITE_IOERR, ffi::SQLITE_FULL, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT];
    let is_first = |failure: &i32| SqliteError::from_code(*failure).message == message;
    if code == ffi::SQLITE_INTERRUPT { failures.into_iter().find(is_first).unwrap_or(code) } else { code }
}

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        Self::Sqlite(error)
    }
}

/// Converts an error of rusqlite to the error of this crate.
#[must_use]
pub fn from_rusqlite(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(e, message) => {
            let general = SqliteError::from_code(e.extended_code);
            SqliteError { message: message.unwrap_or(general.message), ..general }.into()
        }
        rusqlite::Error::SqlInputError { error: e, msg, offset, .. } => {
            let offset = usize::try_from(offset).ok();
            SqliteError { message: msg, offset, ..SqliteError::from_code(e.extended_code) }.into()
        }
        other => SqliteError { message: other.to_string(), ..SqliteError::from_code(ffi::SQLITE_MISUSE) }.into(),
    }
}

impl Error {
    /// The extended result code, if this is SQLite's own error.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(e) => Some(e.code),
            _ => None,
        }
    }

    /// Returns true if memory or a file failed, so that SQLite may have rolled back more than a statement. An entry that is not
    /// where a comparison says (SQLITE_CORRUPT_INDEX), or a virtual table out of step with its content, is no damage of the file.
    pub(crate) fn is_of_files(&self) -> bool {
        let serious = [ffi::SQLITE_IOERR, ffi::SQLITE_FULL, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT];
        let harmless = [ffi::SQLITE_CORRUPT_INDEX, ffi::SQLITE_CORRUPT_VTAB];
        self.code().is_some_and(|code| serious.contains(&(code & 0xff)) && !harmless.contains(&code))
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLite {})", self.message, self.code)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(e) => e.fmt(f),
            Self::ParameterCount { expected, given } => {
                write!(f, "the statement has {expected} parameter(s) and {given} value(s) were given")
            }
            Self::MisnumberedParameter { name, place } => {
                write!(f, "{name} is parameter {place} of the statement: SQLite takes it as a name, not a number")
            }
            Self::UnknownParameter { name, known } if known.is_empty() => {
                write!(f, "the statement has no parameter named {name:?}: it has no named parameters")
            }
            Self::UnknownParameter { name, known } => {
                write!(f, "the statement has no parameter named {name:?}; it has {}", known.join(", "))
            }
            Self::RepeatedParameter { name } => write!(f, "two values were given for the parameter {name}"),
            Self::MissingParameter { name } => write!(f, "no value was given for the parameter {name}"),
            Self::StaleStatement => f.write_str("the statement belongs to another connection"),
            Self::LibraryTooOld { found } => write!(
                f,
                "the linked SQLite is {found}; Flatwater needs 3.51.3 or later, because earlier ones can corrupt a \
                 WAL database (https://sqlite.org/wal.html#walresetbug)"
            ),
            Self::TextTooLong => f.write_str("the text is longer than 2 GiB"),
            Self::Limit(Limit::Steps(most)) => {
                write!(f, "the statement was ended: it took more than {most} steps, which is the limit")
            }
            Self::Limit(Limit::Memory(most)) => {
                write!(f, "the statement was ended: SQLite took more than {most} bytes for it, which is the limit")
            }
            Self::Callback(message, _) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for SqliteError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_interrupted_after_it_failed_has_the_code_of_its_failure() {
        let table = [
            (ffi::SQLITE_INTERRUPT, "disk I/O error", ffi::SQLITE_IOERR),
            (ffi::SQLITE_INTERRUPT, "database or disk is full", ffi::SQLITE_FULL),
            (ffi::SQLITE_INTERRUPT, "interrupted", ffi::SQLITE_INTERRUPT),
            (ffi::SQLITE_INTERRUPT, "UNIQUE constraint failed: t.a", ffi::SQLITE_INTERRUPT),
            (ffi::SQLITE_IOERR_READ, "disk I/O error", ffi::SQLITE_IOERR_READ),
        ];
        for (code, message, expected) in table {
            assert_eq!(first(code, message), expected, "{code} {message}");
        }
    }
}
