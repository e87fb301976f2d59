//! The one error type of Flatwater.
//!
//! Owns: the error and its text, built on the thread where the failure happens. Invariant: an error never contains a
//! bound value; it contains the SQL, shortened. Leaves out: conversions of errors from other modules, which are in
//! those modules.

pub mod cause;
pub mod code;
pub mod constraint;
pub mod hint;
pub mod kind;
pub mod location;

use std::borrow::Cow;
use std::fmt;

use cause::Cause;
pub use code::ErrorCode;
use constraint::Constraint;
use hint::Hint;
pub use kind::ErrorKind;
use kind::code_name;
use location::shorten_around;
pub use location::{after_the_write, beginning, shorten};

/// The result of a Flatwater call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether a call that timed out, or whose result could not be made, has taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeoutEffect {
    /// No part of the work was done.
    No,
    /// The work was done.
    Yes,
    /// It is unknown whether the work was done.
    Unknown,
}

/// Why a call failed: a [`ErrorKind`], SQLite's result code or an [`ErrorCode`], the operation, the SQL, and a hint.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    origin: Origin,
    operation: Option<&'static str>,
    sql: Option<Box<str>>,
    row: Option<usize>,
    offset: Option<usize>,
    hint: Option<Hint>,
    applied: Option<TimeoutEffect>,
    cause: Cause,
    constraint: Option<Box<Constraint>>,
}

/// Who found the failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// SQLite, with its extended result code.
    Sqlite(i32),
    Flatwater(ErrorCode),
}

impl Error {
    /// The error that Flatwater found.
    #[cold]
    #[doc(hidden)]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        made(Origin::Flatwater(code), code.kind(), message.into())
    }

    #[cold]
    #[doc(hidden)]
    pub fn closed() -> Self {
        Self::new(ErrorCode::DatabaseClosed, "the database is closed")
    }

    #[doc(hidden)]
    pub fn with_hint(mut self, hint: impl Into<Hint>) -> Self {
        self.0.hint.get_or_insert(hint.into());
        self
    }

    #[doc(hidden)]
    pub fn in_operation(mut self, operation: &'static str) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    #[doc(hidden)]
    pub fn with_sql(mut self, sql: &str) -> Self {
        let offset = self.0.offset.unwrap_or(0);
        self.0.sql.get_or_insert_with(|| shorten_around(sql, offset).into());
        self
    }

    #[doc(hidden)]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    #[doc(hidden)]
    pub fn with_message(mut self, message: String) -> Self {
        self.0.message = message.into();
        self
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what went wrong, if the error did not come from SQLite. An error has either this code or
    /// [`sqlite_code`](Self::sqlite_code).
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self.0.origin {
            Origin::Flatwater(code) => Some(code),
            Origin::Sqlite(_) => None,
        }
    }

    /// Returns SQLite's extended result code if the error came from SQLite (<https://sqlite.org/rescode.html>).
    #[must_use]
    pub fn sqlite_code(&self) -> Option<i32> {
        match self.0.origin {
            Origin::Sqlite(code) => Some(code),
            Origin::Flatwater(_) => None,
        }
    }

    /// Returns the name of [`sqlite_code`](Self::sqlite_code), such as `SQLITE_CONSTRAINT_UNIQUE`.
    #[must_use]
    pub fn sqlite_name(&self) -> Option<&'static str> {
        self.sqlite_code().map(code_name)
    }

    /// Returns the message alone, without the SQL and the hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the name of the call that failed, such as `execute`.
    #[must_use]
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// Returns the SQL, cut to 200 bytes around the place of the failure. It never contains bound values.
    #[must_use]
    pub fn sql(&self) -> Option<&str> {
        self.0.sql.as_deref()
    }

    /// Returns the byte offset of the offending token in the SQL as it was given, if SQLite reported one; for a script,
    /// at least that of the statement that failed.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    /// Returns a hint on how to resolve the error, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_ref().map(Hint::rust)
    }

    /// For a [`ErrorKind::Timeout`], and for a write whose rows cannot be written as JSON, returns whether the work was done.
    #[must_use]
    pub fn applied(&self) -> Option<TimeoutEffect> {
        self.0.applied
    }

    /// Returns true if the same call may succeed later without any change, and this attempt did none of its work.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.0.kind {
            ErrorKind::Busy => true,
            ErrorKind::Timeout => self.0.applied == Some(TimeoutEffect::No),
            _ => false,
        }
    }
}

fn made(origin: Origin, kind: ErrorKind, message: Cow<'static, str>) -> Error {
    Error(Box::new(Inner {
        kind,
        message,
        origin,
        operation: None,
        sql: None,
        row: None,
        offset: None,
        hint: None,
        applied: None,
        cause: Cause::default(),
        constraint: None,
    }))
}

/// Makes the error of a call that did not end in time.
#[cold]
pub fn timed_out(message: impl Into<Cow<'static, str>>, applied: TimeoutEffect) -> Error {
    let mut error = Error::new(ErrorCode::Deadline, message);
    error.0.applied = Some(applied);
    error
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        let operation = inner.operation.filter(|operation| *operation != inner.kind.name());
        let parts = [
            Some(format!("{}: {}", inner.kind.name(), inner.message)),
            self.sqlite_code().map(|code| format!(" ({} {code})", code_name(code))),
            inner.row.map(|row| format!(" (row {row})")),
            operation.map(|operation| format!(" in {operation}")),
            inner.sql.as_ref().map(|sql| format!(": {sql}")),
            inner.offset.map(|offset| format!(" [at byte {offset}]")),
            self.hint().map(|hint| format!(" -- {hint}")),
        ];
        parts.into_iter().flatten().try_for_each(|part| f.write_str(&part))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn shown(value: &Option<impl fmt::Debug>) -> Option<&dyn fmt::Debug> {
            value.as_ref().map(|value| value as _)
        }
        let Inner { kind, message, operation, sql, row, offset, applied, .. } = &*self.0;
        let (code, sqlite_code, name, hint) = (self.code(), self.sqlite_code(), self.sqlite_name(), self.hint());
        let mut out = f.debug_struct("Error");
        out.field("kind", kind).field("message", message);
        let others = [
            ("code", shown(&code)),
            ("sqlite_code", shown(&sqlite_code)),
            ("sqlite_name", shown(&name)),
            ("operation", shown(operation)),
            ("sql", shown(sql)),
            ("row", shown(row)),
            ("offset", shown(offset)),
            ("applied", shown(applied)),
            ("hint", shown(&hint)),
        ];
        for (name, value) in others {
            if let Some(value) = value {
                out.field(name, value);
            }
        }
        out.finish()
    }
}

/// The source is the operating system's error, as an `io::Error`, the error of a type that refuses a value
/// ([`Error::decode`]), or the one that an SQL function returned as a `rusqlite::Error::UserFunctionError`. SQLite's own errors are not sources: this error has their text, without bound values.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.0.as_ref().map(|cause| &**cause as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::SqliteError;

    use super::location::SQL_SHOWN_BYTES;
    use super::*;

    #[test]
    fn the_text_names_kind_code_operation_and_sql() {
        let error = Error::from(SqliteError {
            message: "UNIQUE constraint failed: t.a".into(),
            ..SqliteError::from_code(2067)
        })
        .in_operation("execute")
        .with_sql("INSERT INTO t VALUES (?)");
        assert_eq!(
            error.to_string(),
            "constraint: UNIQUE constraint failed: t.a (SQLITE_CONSTRAINT_UNIQUE 2067) in execute: INSERT INTO t VALUES (?)"
        );
        assert_eq!(error.kind(), ErrorKind::Constraint);
        assert!(!error.is_retryable());
    }

    #[test]
    fn long_sql_is_cut_at_a_character() {
        let sql = "é".repeat(300);
        let error = Error::new(ErrorCode::InvalidArgument, "x").with_sql(&sql);
        assert!(error.sql().unwrap().len() <= SQL_SHOWN_BYTES + 3);
        assert!(error.sql().unwrap().ends_with("..."));
    }
}
