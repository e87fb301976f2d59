//! Where the first statement of a text begins.
//!
//! Owns: skipping what SQLite's parser skips before a statement: white space, comments, a byte order mark, semicolons. Pure.
//! Invariant: it is the one place that does so, so that all who put a word before a statement, such as EXPLAIN, find the same
//! statement. Leaves out: where a statement ends, which only SQLite knows.

/// Returns the byte at which the first statement of `sql` begins; the length of `sql` if there is none.
#[must_use]
pub fn statement_start(sql: &str) -> usize {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| matches!(c, ';' | '\u{feff}' | '\u{b}') || c.is_ascii_whitespace());
        let length = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map_or(rest.len(), |end| end + 4)
        } else {
            return sql.len() - rest.len();
        };
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_begins_after_white_space_comments_and_semicolons() {
        for (sql, begins) in [
            ("SELECT 1", 0),
            (" ;\n-- a ' comment\n/* and\nanother */ SELECT 1", 36),
            ("\u{feff}SELECT 1", 3),
            ("\u{b};\u{c};SELECT 1", 4),
            ("-- only a comment", 17),
            ("/* not closed", 13),
            (";", 1),
            ("", 0),
        ] {
            assert_eq!(statement_start(sql), begins, "{sql}");
        }
    }
}
