//! The beginning of a script that has a transaction of its own, as the dump of a database has. Pure.
//!
//! Owns: recognizing one by its first statements: PRAGMAs, and then BEGIN. Leaves out: the statements after it, which SQLite
//! reads.

use super::script::statements;
use super::tokens::{is_off, pragma, verb};

/// What a script says before its own BEGIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dump {
    /// `PRAGMA foreign_keys = OFF`.
    pub(crate) without_foreign_keys: bool,
}

/// Returns what the script says before its own BEGIN, if it has one.
pub(crate) fn dump(script: &str) -> Option<Dump> {
    let mut without_foreign_keys = false;
    for statement in statements(script) {
        if verb(statement)?.eq_ignore_ascii_case("BEGIN") {
            return Some(Dump { without_foreign_keys });
        }
        match pragma(statement)? {
            (name, Some(value)) if name.eq_ignore_ascii_case("foreign_keys") => without_foreign_keys = is_off(value),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_begins_its_transaction_after_pragmas_only() {
        for (script, without_foreign_keys) in [
            ("BEGIN TRANSACTION;\nCREATE TABLE t (a);\nCOMMIT;", false),
            ("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;", true),
            ("\u{feff}-- a comment\n;PRAGMA main.foreign_keys(no); begin immediate", true),
            ("PRAGMA foreign_keys = ON; PRAGMA user_version = 0; BEGIN", false),
            ("PRAGMA [foreign_keys] = 'off'; PRAGMA \"user_version\" = 0; BEGIN", true),
            ("PRAGMA foreign_keys = +0; PRAGMA foreign_keys; BEGIN", true),
        ] {
            assert_eq!(dump(script), Some(Dump { without_foreign_keys }), "{script}");
        }
        for other in ["", ";", "CREATE TABLE t (a); BEGIN; COMMIT", "PRAGMA foreign_keys = OFF", "'BEGIN'", "SELECT 1"]
        {
            assert_eq!(dump(other), None, "{other}");
        }
    }
}
