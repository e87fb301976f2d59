//! Why a text cannot run, or a schema cannot be built.
//!
//! Owns: the error, and how it is shown with its place marked. Invariant: the offset is that of a byte of the text as it was given.
//! Leaves out: finding the place of the text in a source file.

use std::fmt::Write as _;

/// Why a text cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// SQLite's message, or that of a rule.
    pub message: String,
    /// What to do, if that is known.
    pub hint: Option<String>,
    /// The byte of the text at which SQLite stopped, if it says.
    pub offset: Option<usize>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, offset: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn at(self, offset: usize) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// The message, the line of `sql` with a mark below the place, and the hint, on lines of their own.
    #[must_use]
    pub fn shown(&self, sql: &str) -> String {
        let mut text = self.message.clone();
        if let Some(offset) = self.offset {
            let (line, column) = place(sql, offset);
            let content = sql.lines().nth(line - 1).unwrap_or_default();
            let before: String = content.chars().take(column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
            let _ = write!(text, "\n  {content}\n  {before}^");
        }
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n{hint}");
        }
        text
    }
}

impl From<flatwater_sqlite::Error> for Fault {
    fn from(error: flatwater_sqlite::Error) -> Self {
        match error {
            flatwater_sqlite::Error::Sqlite(error) => Self { message: error.message, hint: None, offset: error.offset },
            other => Self::new(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        flatwater_sqlite::from_rusqlite(error).into()
    }
}

/// The line and the column of a byte, in characters, both from 1.
pub(crate) fn place(sql: &str, offset: usize) -> (usize, usize) {
    let end = (0..=offset.min(sql.len())).rev().find(|end| sql.is_char_boundary(*end));
    let before = &sql[..end.unwrap_or(0)];
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked_in_its_line() {
        let sql = "SELECT 1,\n\tnmae FROM t";
        let fault = Fault::new("no such column: nmae").at(11).with_hint("there is a column name in t");
        let shown = "no such column: nmae\n  \tnmae FROM t\n  \t^\nthere is a column name in t";
        assert_eq!(fault.shown(sql), shown);
        assert_eq!((place(sql, 0), place(sql, 11), place(sql, 99)), ((1, 1), (2, 2), (2, 13)));
    }
}
