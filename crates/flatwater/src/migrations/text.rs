//! Places in a script, for the errors of a migration. Pure.
//!
//! Owns: where a statement begins, and in which line. Leaves out: finding the end of a statement, which SQLite does.

/// Returns the length of the white space, comments and semicolons at the start of `sql`.
pub(crate) fn start(sql: &str) -> usize {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ';' || c == '\u{feff}' || c.is_ascii_whitespace());
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

/// Returns the number of the line at byte `at`, beginning with 1.
pub(crate) fn line(sql: &str, at: usize) -> usize {
    1 + sql.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_begins_after_comments_and_its_line_is_counted() {
        for (sql, begins) in [
            ("SELECT 1", 0),
            (" ;\n-- a ' comment\n/* and\nanother */ SELECT 1", 36),
            ("\u{feff}SELECT 1", 3),
            ("-- only a comment", 17),
            ("/* not closed", 13),
            ("", 0),
        ] {
            assert_eq!(start(sql), begins, "{sql}");
        }
        assert_eq!((line("a\nb\n", 0), line("a\nb\n", 2), line("a\nb\n", 100)), (1, 2, 3));
    }
}
