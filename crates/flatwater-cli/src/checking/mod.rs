//! SQL in the sources of a program: finding it, checking it, and saying what is wrong where.
//!
//! Owns: a text with its place in a file, and a finding. Invariant: a finding names the file, and the line and column in it. Leaves out:
//! the languages (a file each), and the check itself, which is `flatwater-check`'s.

pub(crate) mod files;
pub(crate) mod report;
mod rust;
mod scripts;
mod sql;

use std::path::{Path, PathBuf};

use flatwater_check::Fault;

/// A text of SQL in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) sql: String,
    /// The byte of the file for bytes of the text: what lies between follows the one before.
    places: Vec<(usize, usize)>,
    /// The database that it names.
    pub(crate) database: Option<String>,
    /// Whether a part of it comes when the program runs: a value, or more SQL.
    pub(crate) has_parts: bool,
}

impl Text {
    fn new() -> Self {
        Self { sql: String::new(), places: Vec::new(), database: None, has_parts: false }
    }

    /// A whole file.
    pub(crate) fn of_file(content: &str) -> Self {
        let mut text = Self::new();
        text.push(content, 0);
        text
    }

    /// Adds a part of the text that stands at a byte of the file.
    fn push(&mut self, part: &str, at: usize) {
        self.places.push((self.sql.len(), at));
        self.sql.push_str(part);
    }

    /// The byte of the file that has a byte of the text.
    fn in_file(&self, offset: usize) -> usize {
        let place = self.places.iter().rev().find(|(begin, _)| *begin <= offset);
        place.map_or(0, |(begin, at)| at + (offset - begin))
    }
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Finding {
    /// The finding of a text in a file.
    pub(crate) fn of(path: &Path, content: &str, text: &Text, fault: Fault) -> Self {
        let at = text.in_file(fault.offset.unwrap_or_else(|| text.sql.len() - text.sql.trim_start().len()));
        let before = &content[..content.floor_char_boundary(at.min(content.len()))];
        let begin = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[begin..].chars().count() + 1,
            message: fault.message,
            hint: fault.hint,
        }
    }
}

/// The texts of a file, by its ending; none for a file of another kind.
pub(crate) fn texts(path: &Path, content: &str) -> Vec<Text> {
    match path.extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
        "sql" => sql::texts(content),
        "rs" => rust::texts(content),
        "ts" | "mts" | "cts" => scripts::texts(content, scripts::Language::TypeScript),
        "tsx" | "jsx" | "js" | "mjs" | "cjs" => scripts::texts(content, scripts::Language::Tsx),
        "py" | "pyi" => scripts::texts(content, scripts::Language::Python),
        _ => Vec::new(),
    }
}
