//! The kinds of failure, the names of SQLite's result codes (<https://sqlite.org/rescode.html>), and the errors of SQLite and of
//! `flatwater-sqlite` as errors of Flatwater.
//!
//! Owns: the kinds, the mapping from result codes to kinds, the list of their names, and the hints that follow from SQLite's code and
//! message alone. Runs where the failure happens. Invariants: every result code has a kind; an extended code that is not listed gets
//! the name of its primary code. Leaves out: all other parts of an error; what only a connection can find out
//! (`connection::run::failures`), and hiding bound values.

use flatwater_sqlite::{Limit, Refused, SqliteError, SystemFailure, refused};
use rusqlite::ffi;

use super::cause::{because, caused_by_user};
use super::constraint::Constraint;
use super::hint::{Sentence, hint};
use super::{Error, ErrorCode, Origin, made};

/// Declares the kinds, each with its name.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// The kind of a failure. The list is stable: a new SQLite code is mapped to one of these kinds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// Returns the kind's name in lower case, as used in logs and metrics.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// The database could not be opened.
    Open "open",
    /// The key does not open the file: it is another one, or it is missing, or the file is not encrypted.
    Key "key",
    /// SQLite refused the SQL or a value in it; or the index of a virtual table, such as one of FTS5, is out of step with its
    /// content.
    Sql "sql",
    /// A UNIQUE, NOT NULL, CHECK, PRIMARY KEY or FOREIGN KEY constraint failed.
    Constraint "constraint",
    /// Another connection or process held a lock for longer than the busy timeout; or this process still has the file open,
    /// because an earlier close has not finished.
    Busy "busy",
    /// The call's deadline passed.
    Timeout "timeout",
    /// The caller dropped the call, and its work was interrupted.
    Cancelled "cancelled",
    /// The disk or the database is full.
    Full "full",
    /// An operation of the file system failed.
    Io "io",
    /// The file is damaged.
    Corrupt "corrupt",
    /// The database is closed.
    Closed "closed",
    /// The call is wrong, regardless of what the database contains.
    Misuse "misuse",
    /// A value of the result cannot be read as the type asked for, or has no form in JSON or in the language. Its
    /// statement has run.
    Decode "decode",
    /// A call that needs a row, such as `query_one`, found none.
    RowNotFound "row_not_found",
    /// A COMMIT failed, and it is unknown whether the transaction will be present after a restart.
    CommitUnknown "commit_unknown",
    /// Flatwater ended a read that blocked a restart of the WAL for longer than `Tuning::read_limit`.
    SnapshotTooOld "snapshot_too_old",
    /// A limit ended what the call belongs to: a transaction that was not used for `Tuning::transaction_idle`, a snapshot
    /// that was open for `Tuning::snapshot_age`, a stream whose rows were not fetched for `Tuning::stream_idle`. No call on
    /// it can succeed any more.
    Expired "expired",
}

impl ErrorKind {
    /// Returns true if an error of this kind that is not SQLite's may pass by itself: it depends on what the machine, other
    /// calls or code of the program, such as a collation (`Sql`), do at the moment, and not on what the call asks for.
    #[doc(hidden)]
    pub fn passes(self) -> bool {
        use ErrorKind::{Busy, Cancelled, Expired, Full, Io, SnapshotTooOld, Sql, Timeout};
        matches!(self, Io | Busy | Full | Timeout | Cancelled | SnapshotTooOld | Expired | Sql)
    }
}

/// Returns the kind for a SQLite result code.
pub fn kind_of(code: i32) -> ErrorKind {
    match code & 0xff {
        // It is about the place of the file, and not about the call.
        _ if code == ffi::SQLITE_READONLY_DIRECTORY => ErrorKind::Io,
        // SQLITE_LOCKED is a conflict within one connection. Waiting does not resolve it.
        ffi::SQLITE_BUSY => ErrorKind::Busy,
        ffi::SQLITE_INTERRUPT => ErrorKind::Cancelled,
        ffi::SQLITE_FULL => ErrorKind::Full,
        ffi::SQLITE_IOERR | ffi::SQLITE_PROTOCOL | ffi::SQLITE_NOMEM => ErrorKind::Io,
        _ if is_damage(code) => ErrorKind::Corrupt,
        ffi::SQLITE_NOTADB => ErrorKind::Corrupt,
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM | ffi::SQLITE_NOLFS => ErrorKind::Open,
        ffi::SQLITE_CONSTRAINT => ErrorKind::Constraint,
        ffi::SQLITE_MISUSE | ffi::SQLITE_RANGE | ffi::SQLITE_READONLY => ErrorKind::Misuse,
        _ => ErrorKind::Sql,
    }
}

/// Returns true if the file is damaged. A virtual table reports that its own tables do not fit together, or not to its content, as
/// a kind of damage too; the file is whole then.
pub fn is_damage(code: i32) -> bool {
    code & 0xff == ffi::SQLITE_CORRUPT && code != ffi::SQLITE_CORRUPT_VTAB
}

/// Returns true for a failure that depends neither on the SQL text nor on the schema.
pub fn is_passing(code: i32) -> bool {
    matches!(
        code & 0xff,
        ffi::SQLITE_INTERRUPT
            | ffi::SQLITE_BUSY
            | ffi::SQLITE_LOCKED
            | ffi::SQLITE_SCHEMA
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_IOERR
            | ffi::SQLITE_NOMEM
    )
}

/// Returns true if a sync failed. The content of the disk is then unknown.
pub fn is_failed_sync(code: i32) -> bool {
    matches!(code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

macro_rules! code_names {
    ($($name:ident)*) => {
        /// Returns the name of a result code of SQLite.
        pub fn code_name(code: i32) -> &'static str {
            match code {
                $(ffi::$name => stringify!($name),)*
                // An extended code that is not in the list has a primary code that is.
                _ if code > 0xff => code_name(code & 0xff),
                _ => "SQLITE_UNKNOWN",
            }
        }
    };
}

code_names! {
    SQLITE_ERROR SQLITE_INTERNAL SQLITE_PERM SQLITE_ABORT SQLITE_BUSY SQLITE_LOCKED SQLITE_NOMEM SQLITE_READONLY
    SQLITE_INTERRUPT SQLITE_IOERR SQLITE_CORRUPT SQLITE_NOTFOUND SQLITE_FULL SQLITE_CANTOPEN SQLITE_PROTOCOL
    SQLITE_EMPTY SQLITE_SCHEMA SQLITE_TOOBIG SQLITE_CONSTRAINT SQLITE_MISMATCH SQLITE_MISUSE SQLITE_NOLFS SQLITE_AUTH
    SQLITE_FORMAT SQLITE_RANGE SQLITE_NOTADB SQLITE_NOTICE SQLITE_WARNING
    SQLITE_ERROR_MISSING_COLLSEQ SQLITE_ERROR_RETRY SQLITE_ERROR_SNAPSHOT
    SQLITE_IOERR_READ SQLITE_IOERR_SHORT_READ SQLITE_IOERR_WRITE SQLITE_IOERR_FSYNC SQLITE_IOERR_DIR_FSYNC
    SQLITE_IOERR_TRUNCATE SQLITE_IOERR_FSTAT SQLITE_IOERR_UNLOCK SQLITE_IOERR_RDLOCK SQLITE_IOERR_DELETE
    SQLITE_IOERR_NOMEM SQLITE_IOERR_ACCESS SQLITE_IOERR_LOCK SQLITE_IOERR_CLOSE SQLITE_IOERR_SHMOPEN
    SQLITE_IOERR_SHMSIZE SQLITE_IOERR_SHMLOCK SQLITE_IOERR_SHMMAP SQLITE_IOERR_SEEK SQLITE_IOERR_MMAP
    SQLITE_IOERR_CORRUPTFS SQLITE_LOCKED_SHAREDCACHE SQLITE_LOCKED_VTAB SQLITE_BUSY_RECOVERY SQLITE_BUSY_SNAPSHOT
    SQLITE_BUSY_TIMEOUT SQLITE_CANTOPEN_ISDIR SQLITE_CANTOPEN_FULLPATH SQLITE_CANTOPEN_SYMLINK SQLITE_CORRUPT_VTAB
    SQLITE_CORRUPT_SEQUENCE SQLITE_CORRUPT_INDEX SQLITE_READONLY_RECOVERY SQLITE_READONLY_CANTLOCK
    SQLITE_READONLY_ROLLBACK SQLITE_READONLY_DBMOVED SQLITE_READONLY_CANTINIT SQLITE_READONLY_DIRECTORY
    SQLITE_ABORT_ROLLBACK SQLITE_CONSTRAINT_CHECK SQLITE_CONSTRAINT_COMMITHOOK SQLITE_CONSTRAINT_FOREIGNKEY
    SQLITE_CONSTRAINT_FUNCTION SQLITE_CONSTRAINT_NOTNULL SQLITE_CONSTRAINT_PRIMARYKEY SQLITE_CONSTRAINT_TRIGGER
    SQLITE_CONSTRAINT_UNIQUE SQLITE_CONSTRAINT_VTAB SQLITE_CONSTRAINT_ROWID SQLITE_CONSTRAINT_PINNED
    SQLITE_CONSTRAINT_DATATYPE SQLITE_AUTH_USER
}

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        let constraint = Constraint::of_message(error.code, &error.message, None);
        let new = match refused(error.code) {
            Some(Refused::Snapshot | Refused::CommitSnapshot) => {
                let message = "another process holds a lock that a read transaction needs";
                made(Origin::Sqlite(ffi::SQLITE_PROTOCOL), ErrorKind::Busy, message.into())
            }
            _ => made(Origin::Sqlite(error.code), kind_of(error.code), error.message.into()),
        };
        let mut new = caused_by_user(new, error.cause);
        (new.0.offset, new.0.constraint) = (error.offset, constraint.map(Box::new));
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
            Some(failure) => because(new, failure),
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
pub const SINGLE_QUOTES: &str = "\" - should this be a string literal in single-quotes?";

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
        use flatwater_sqlite::Error as Of;
        let own = |code| Self::new(code, error.to_string());
        match error {
            Of::ParameterCount { .. } => own(ErrorCode::ParameterCount),
            Of::MisnumberedParameter { .. } => {
                own(ErrorCode::ParameterName).with_hint("write `?1`, `?2`, which SQLite numbers, or bind by name")
            }
            Of::UnknownParameter { .. } | Of::RepeatedParameter { .. } | Of::MissingParameter { .. } => {
                own(ErrorCode::ParameterName)
            }
            Of::Limit(Limit::Steps(_)) => {
                own(ErrorCode::StatementLimit).with_hint(hint!["if it may take that much, raise " StepLimit])
            }
            Of::Limit(Limit::Memory(_)) => {
                own(ErrorCode::StatementLimit).with_hint(hint!["if it may take that much, raise " MemoryLimit])
            }
            Of::LibraryTooOld { .. } => own(ErrorCode::OldSqlite),
            Of::TextTooLong => own(ErrorCode::InvalidArgument),
            Of::Sqlite(error) => error.into(),
            Of::Callback(message, cause) => caused_by_user(Self::new(ErrorCode::UserCode, message), cause),
            _ => own(ErrorCode::Internal),
        }
    }
}

/// For errors inside closures: SQLite's own errors keep their code; all others become `Misuse`.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        flatwater_sqlite::from_rusqlite(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_extended_code_gets_its_primary_name() {
        assert_eq!(code_name(ffi::SQLITE_IOERR | (200 << 8)), "SQLITE_IOERR");
    }
}
