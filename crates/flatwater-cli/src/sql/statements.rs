//! The statements of a text.
//!
//! Owns: where each begins, and whether the last one is complete. Pure. Invariant: what ends a statement is what ends it for the
//! library. Leaves out: what a statement does, which only SQLite says.

use flatwater::bindings;

/// A statement, without its semicolon, and the byte of the text at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Statement<'a> {
    pub(crate) sql: &'a str,
    pub(crate) begin: usize,
}

/// Returns the statements of a text.
pub(crate) fn statements(text: &str) -> impl Iterator<Item = Statement<'_>> {
    bindings::statements(text).map(|(sql, ..)| Statement { sql, begin: sql.as_ptr().addr() - text.as_ptr().addr() })
}

/// Returns whether the last statement has its semicolon, or there is none (`sqlite3_complete`). A word behind the text is a
/// statement of its own only then.
pub(crate) fn is_complete(text: &str) -> bool {
    let count = |text: &str| bindings::statements(text).count();
    count(&format!("{text}\nx")) == count(text) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_places() {
        let text = "SELECT 1;\n-- one;\nSELECT ';' ; ";
        let found: Vec<(&str, usize)> = statements(text).map(|statement| (statement.sql, statement.begin)).collect();
        assert_eq!(found, [("SELECT 1", 0), ("SELECT ';'", 18)]);
    }

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        let trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; ";
        for complete in ["", "  ", "-- a", "SELECT 1;", "SELECT ';';-- done", &format!("{trigger}END;"), "/* a */"] {
            assert!(is_complete(complete), "{complete}");
        }
        for open in ["SELECT 1", "SELECT ';", "SELECT 1; SELECT", trigger, "/* SELECT 1;", "SELECT \"a;"] {
            assert!(!is_complete(open), "{open}");
        }
    }
}
