//! Places in a script, for the errors of a migration. Pure.
//!
//! Owns: in which line a byte is. Leaves out: where statements begin and end (`flatwater_sqlite::statement_start`, SQLite).

/// Returns the number of the line at byte `at`, beginning with 1.
pub(crate) fn line(sql: &str, at: usize) -> usize {
    1 + sql.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!((line("a\nb\n", 0), line("a\nb\n", 2), line("a\nb\n", 100)), (1, 2, 3));
    }
}
