//! The result of a statement on either side, and the comparison of two results.

use std::fmt;

use flatwater::{Error, ErrorKind, ValueRef};
use rusqlite::ffi;

use super::ask::Ask;

/// A value, compared bit by bit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(integer) => Self::Integer(integer),
            ValueRef::Real(real) => Self::Real(real.to_bits()),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(blob) => Self::Blob(blob.to_vec()),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => write!(f, "NULL"),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Real(bits) => write!(f, "{}", f64::from_bits(*bits)),
            Self::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            Self::Blob(blob) => write!(f, "x'{}' of {} bytes", hex(&blob[..blob.len().min(20)]), blob.len()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Rows(Vec<Vec<Cell>>),
    /// The statement succeeded and changed this number of rows.
    Done(u64),
    /// SQLite's extended code, the message, and the kind for an error from Flatwater.
    Failed {
        code: Option<i32>,
        said: String,
        kind: Option<ErrorKind>,
    },
    /// The statement took too long, or a lock was held: the result is unknown.
    NotKnown(String),
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Busy => Self::NotKnown(error.to_string()),
            kind => Self::Failed { code: error.sqlite_code(), said: error.message().to_owned(), kind: Some(kind) },
        }
    }
}

impl From<rusqlite::Error> for Answer {
    fn from(error: rusqlite::Error) -> Self {
        let code = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => Some(failure.extended_code),
            rusqlite::Error::SqlInputError { error, .. } => Some(error.extended_code),
            _ => None,
        };
        match code.map(|code| code & 0xff) {
            Some(ffi::SQLITE_INTERRUPT | ffi::SQLITE_BUSY) => Self::NotKnown(error.to_string()),
            _ => Self::Failed { code, said: error.to_string(), kind: None },
        }
    }
}

impl Answer {
    /// Returns all texts as lines in order, one per row, for a check whose findings have no fixed order. Leaves out
    /// failed CHECK constraints: SQLite does not load them for a schema that it reads through a read-only connection
    /// (`sqlite3AddCheckConstraint`), and a check in Flatwater may run on a reader or on the writer.
    pub(super) fn sorted(self) -> Self {
        let Self::Rows(rows) = self else { return self };
        let mut lines = Vec::new();
        for row in rows {
            match &row[..] {
                [Cell::Text(text)] => {
                    lines.extend(text.split(|byte| *byte == b'\n').map(|line| vec![Cell::Text(line.to_vec())]));
                }
                _ => lines.push(row),
            }
        }
        lines.retain(|line| !is_about_a_constraint(line));
        if lines.is_empty() {
            lines.push(vec![Cell::Text(b"ok".to_vec())]);
        }
        lines.sort();
        Self::Rows(lines)
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// Shortens the answer to a few lines for a report.
    pub(super) fn in_short(&self) -> String {
        let mut text = match self {
            Self::Rows(rows) => format!("{} rows: {rows:?}", rows.len()),
            other => format!("{other:?}"),
        };
        if let Some((end, _)) = text.char_indices().nth(600) {
            text.truncate(end);
            text.push_str("...");
        }
        text
    }
}

fn is_about_a_constraint(line: &[Cell]) -> bool {
    matches!(line, [Cell::Text(text)] if text.starts_with(b"CHECK constraint failed in "))
}

/// Returns whether one side's check ended with an error of an expression in the schema, that is, of a CHECK that cannot
/// be evaluated. Only one side may have loaded it, as with all CHECKs.
pub(super) fn is_check_of_expressions(ask: Option<&Ask>, ours: &Answer, plain: &Answer) -> bool {
    let failed = |answer: &Answer| matches!(answer, Answer::Failed { code: Some(ffi::SQLITE_ERROR), .. });
    matches!(ask, Some(Ask::Check(_))) && failed(ours) != failed(plain)
}

/// Returns how Flatwater's answer differs from plain SQLite's answer to the same statement on an equal file, if it
/// does.
pub(super) fn difference(ours: &Answer, plain: &Answer) -> Option<&'static str> {
    match (ours, plain) {
        (Answer::NotKnown(_), _) | (_, Answer::NotKnown(_)) => None,
        // Whole pages of what is no text may be an encrypted file, which has a sentence of its own.
        (Answer::Failed { kind: Some(ErrorKind::Key), .. }, Answer::Failed { code: Some(ffi::SQLITE_NOTADB), .. }) => {
            None
        }
        (Answer::Failed { code: ours, .. }, Answer::Failed { code: plain, .. }) => {
            (ours != plain).then_some("it fails in another way")
        }
        (Answer::Failed { .. }, _) => Some("it fails where plain SQLite answers"),
        (_, Answer::Failed { .. }) => Some("it answers where plain SQLite fails"),
        (ours, plain) => (ours != plain).then_some("it answers something else"),
    }
}

/// Returns what is wrong with the text of an error, if anything.
pub(super) fn unclear(answer: &Answer) -> Option<&'static str> {
    let Answer::Failed { code, said, kind: Some(kind) } = answer else { return None };
    if said.trim().is_empty() {
        return Some("an error says nothing");
    }
    if *code == Some(ffi::SQLITE_CORRUPT_VTAB) {
        // What a virtual table says of itself: the file is sound.
        return (!matches!(kind, ErrorKind::Sql | ErrorKind::Open)).then_some("a table's damage is told as the file's");
    }
    let damaged = code.is_some_and(|code| matches!(code & 0xff, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB));
    if damaged && !matches!(kind, ErrorKind::Corrupt | ErrorKind::Open) {
        return Some("damage has another kind than corrupt");
    }
    let about_somebody_else = matches!(kind, ErrorKind::Cancelled | ErrorKind::Closed | ErrorKind::SnapshotTooOld);
    about_somebody_else.then_some("an error blames what did not happen")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32) -> Answer {
        Answer::Failed { code: Some(code), said: "said".into(), kind: Some(ErrorKind::Corrupt) }
    }

    #[test]
    fn damage_that_is_swallowed_and_rows_that_are_missing_are_differences() {
        let rows = Answer::Rows(vec![vec![Cell::Integer(1)]]);
        let none = Answer::Rows(Vec::new());
        assert!(difference(&none, &failed(ffi::SQLITE_CORRUPT)).is_some());
        assert!(difference(&failed(ffi::SQLITE_CORRUPT), &rows).is_some());
        assert!(difference(&none, &rows).is_some());
        assert!(difference(&failed(ffi::SQLITE_ERROR), &failed(ffi::SQLITE_CORRUPT)).is_some());
        assert!(difference(&Answer::Done(1), &Answer::Done(2)).is_some());
        assert_eq!(difference(&rows, &rows), None);
        let key = Answer::Failed { code: None, said: "no key".into(), kind: Some(ErrorKind::Key) };
        assert_eq!(difference(&key, &failed(ffi::SQLITE_NOTADB)), None);
        assert!(difference(&key, &failed(ffi::SQLITE_CORRUPT)).is_some() && difference(&key, &rows).is_some());
        assert_eq!(difference(&failed(ffi::SQLITE_CORRUPT), &failed(ffi::SQLITE_CORRUPT)), None);
    }

    #[test]
    fn an_error_must_say_something_and_damage_must_be_called_damage() {
        assert_eq!(unclear(&failed(ffi::SQLITE_CORRUPT)), None);
        let silent =
            Answer::Failed { code: Some(ffi::SQLITE_CORRUPT), said: " ".into(), kind: Some(ErrorKind::Corrupt) };
        assert!(unclear(&silent).is_some());
        let misnamed = Answer::Failed { code: Some(ffi::SQLITE_CORRUPT), said: "x".into(), kind: Some(ErrorKind::Sql) };
        assert!(unclear(&misnamed).is_some());
    }
}
