//! The errors of SQLite and of `flatwater-sqlite` as errors of Flatwater.
//!
//! Owns: their kinds, and the hints that follow from SQLite's code and message alone. Runs where the failure happens.
//! Leaves out: what only a connection can find out (`connection::run::failures`), and hiding bound values.

use flatwater_sqlite::{Limit, Refused, SqliteError, SystemFailure, refused};
use rusqlite::ffi;

use super::Error;
use super::cause::caused_by_user;
use super::hint::{Sentence, hint};
use super::kind::{ErrorKind, is_failed_sync, kind_of};

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        let (code, new) = match refused(error.code) {
            Some(Refused::Snapshot | Refused::CommitSnapshot) => {
                let message = "another process holds a lock that a read transaction needs";
                (ffi::SQLITE_PROTOCOL, Self::new(ErrorKind::Busy, message))
            }
            _ => (error.code, Self::new(kind_of(error.code), error.message)),
        };
        let mut new = caused_by_user(new, error.cause);
        (new.0.code, new.0.offset) = (Some(code), error.offset);
        let is_io = error.code & 0xff == ffi::SQLITE_IOERR && !is_failed_sync(error.code);
        if is_io && error.system == Some(SystemFailure::DiskFull) {
            new.0.kind = ErrorKind::Full;
        }
        if error.code == ffi::SQLITE_CORRUPT_VTAB {
            if new.message() == SqliteError::from_code(error.code).message {
                new = new.with_message(OUT_OF_STEP.into());
            }
            new = new.with_hint(REBUILD);
        }
        if is_unsafe_schema(&new) {
            new = new.with_kind(ErrorKind::Sql).with_hint(UNSAFE);
        } else if new.message().ends_with(SINGLE_QUOTES) {
            new = new.with_hint(DOUBLE_QUOTED);
        } else if let Some(hint) = rebuild(new.message()) {
            new = new.with_hint(hint);
        }
        match error.system {
            Some(failure) => new.because(failure),
            None if new.0.kind == ErrorKind::Full => new.with_hint(FULL),
            None => new,
        }
    }
}

/// Returns true if SQLite refuses the whole schema for a function in one of its definitions, and calls it malformed.
fn is_unsafe_schema(error: &Error) -> bool {
    error.message().starts_with("malformed database schema") && error.message().contains(" - unsafe use of ")
}

const UNSAFE: &str = "the schema is untrusted, and a generated column, a CHECK or an index in it calls a function of the \
    program: register it as innocuous if it has no effects, or not on this database";

/// The hint for a name in double quotes that names no column: in the text, or in what a view or a trigger says, or, where
/// SQLite runs or checks the definitions of the file again, in a constraint.
const DOUBLE_QUOTED: &Sentence = hint![
    "a text is written in single quotes, or bound; for a program or a file that has texts in double quotes, set "
    DoubleQuotedStrings
];

/// How SQLite's message for such a name ends, after the name in its quotes.
pub(crate) const SINGLE_QUOTES: &str = "\" - should this be a string literal in single-quotes?";

/// Returns the hint for an ALTER TABLE that fails because of a view or a trigger. SQLite reads all of them when a table is
/// renamed or loses a column (<https://sqlite.org/lang_altertable.html>).
fn rebuild(message: &str) -> Option<String> {
    let object = message.strip_prefix("error in ")?.split_once(": ")?.0;
    let object = object.split_once(" after ").map_or(object, |(object, _)| object);
    (object.starts_with("view ") || object.starts_with("trigger ")).then(|| {
        format!(
            "drop the {object} before the ALTER TABLE, and create it again afterwards; or begin a migration with \
             `PRAGMA legacy_alter_table = ON`, so that SQLite does not check views and triggers"
        )
    })
}

/// What stands in the place of SQLite's text, which is that of a damaged file.
const OUT_OF_STEP: &str = "a virtual table is out of step with its content";
const REBUILD: &str = "the file is not damaged: INSERT INTO name(name) VALUES ('rebuild') makes the index of a full-text table \
                       anew; other virtual tables are created again";

/// The hint for a failure that SQLite reports in the same way for the disk and for its own limit.
const FULL: &str = "free space on the disk, or raise `max_page_count` if it was set";

impl From<flatwater_sqlite::Error> for Error {
    fn from(error: flatwater_sqlite::Error) -> Self {
        match error {
            flatwater_sqlite::Error::Sqlite(error) => error.into(),
            flatwater_sqlite::Error::Callback(message, cause) => {
                caused_by_user(Self::new(ErrorKind::Sql, message), cause)
            }
            flatwater_sqlite::Error::Limit(limit) => {
                let new = Self::new(ErrorKind::Sql, error.to_string());
                new.with_hint(match limit {
                    Limit::Steps(_) => hint!["if it may take that much, raise " StepLimit],
                    Limit::Memory(_) => hint!["if it may take that much, raise " MemoryLimit],
                })
            }
            flatwater_sqlite::Error::LibraryTooOld { .. } => Self::new(ErrorKind::Open, error.to_string()),
            other @ flatwater_sqlite::Error::MisnumberedParameter { .. } => {
                Self::misuse(other.to_string()).with_hint("write `?1`, `?2`, which SQLite numbers, or bind by name")
            }
            other => Self::misuse(other.to_string()),
        }
    }
}

/// For errors inside closures: SQLite's own errors keep their code; all others become `Misuse`.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        flatwater_sqlite::from_rusqlite(error).into()
    }
}
