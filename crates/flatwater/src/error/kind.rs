//! The kinds of failure.
//!
//! Owns: the kinds, and the mapping from SQLite's result codes to kinds. Pure, on any thread. Leaves out: everything
//! else an error says.

use rusqlite::ffi;

/// The kind of a failure. Stable: a new SQLite code is mapped to one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The database could not be opened.
    Open,
    /// SQLite refused the SQL or a value in it.
    Sql,
    /// A UNIQUE, NOT NULL, CHECK, PRIMARY KEY or FOREIGN KEY constraint failed.
    Constraint,
    /// Another connection or process held a lock for longer than the busy timeout.
    Busy,
    /// The call's deadline passed, or a transaction was idle for too long.
    Timeout,
    /// The caller gave up, and its work was interrupted.
    Cancelled,
    /// The disk or the database is full.
    Full,
    /// The file system failed.
    Io,
    /// The file is damaged.
    Corrupt,
    /// The database is closed.
    Closed,
    /// Too many requests are waiting.
    Overloaded,
    /// The call is wrong whatever the database contains.
    Misuse,
    /// A COMMIT failed, and it cannot be known whether the transaction will be there after a restart.
    CommitUnknown,
    /// A read was ended because it kept the WAL from starting over for longer than `Options::read_limit`.
    SnapshotTooOld,
    /// A remote backend failed.
    Remote,
}

impl Kind {
    /// The kind's name in lower case, as logs and metrics use it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sql => "sql",
            Self::Constraint => "constraint",
            Self::Busy => "busy",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Full => "full",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Closed => "closed",
            Self::Overloaded => "overloaded",
            Self::Misuse => "misuse",
            Self::CommitUnknown => "commit_unknown",
            Self::SnapshotTooOld => "snapshot_too_old",
            Self::Remote => "remote",
        }
    }
}

/// The kind for a SQLite result code.
pub(crate) fn kind_of(code: i32) -> Kind {
    match code & 0xff {
        // SQLITE_LOCKED is a conflict within one connection, which waiting does not end.
        ffi::SQLITE_BUSY => Kind::Busy,
        ffi::SQLITE_INTERRUPT => Kind::Cancelled,
        ffi::SQLITE_FULL => Kind::Full,
        ffi::SQLITE_IOERR | ffi::SQLITE_PROTOCOL | ffi::SQLITE_NOMEM => Kind::Io,
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Kind::Corrupt,
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM | ffi::SQLITE_NOLFS => Kind::Open,
        ffi::SQLITE_CONSTRAINT => Kind::Constraint,
        ffi::SQLITE_MISUSE | ffi::SQLITE_RANGE | ffi::SQLITE_READONLY => Kind::Misuse,
        _ => Kind::Sql,
    }
}

/// True for a failure that says nothing about the SQL text, nor about the schema.
pub(crate) fn is_passing(code: i32) -> bool {
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
