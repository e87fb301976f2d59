//! The statements of a file of SQL.
//!
//! Owns: finding them. Invariant: a statement ends where it ends for SQLite. Leaves out: annotations above them.

use super::Text;
use crate::sql::statements::statements;

pub(super) fn texts(content: &str) -> Vec<Text> {
    let text = |statement: crate::sql::statements::Statement<'_>| {
        let mut text = Text::new();
        text.push(statement.sql, statement.begin);
        text
    };
    statements(content).map(text).collect()
}
