//! The beginning of a script that has a transaction of its own, as the dump of a database has. Pure.
//!
//! Owns: recognizing one by its first statements: PRAGMAs, and then BEGIN. Leaves out: the statements after it, which SQLite
//! reads.

use super::tokens::words;

/// What a script says before its own BEGIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dump {
    /// `PRAGMA foreign_keys = OFF`.
    pub(crate) without_foreign_keys: bool,
}

/// Returns what the script says before its own BEGIN, if it has one.
pub(crate) fn dump(script: &str) -> Option<Dump> {
    let mut words = words(script).skip_while(|word| *word == "\u{feff}").peekable();
    let mut without_foreign_keys = false;
    loop {
        let first = words.find(|word| *word != ";")?;
        if first.eq_ignore_ascii_case("BEGIN") {
            return Some(Dump { without_foreign_keys });
        }
        if !first.eq_ignore_ascii_case("PRAGMA") {
            return None;
        }
        let mut sets_foreign_keys = false;
        while let Some(word) = words.next_if(|word| *word != ";") {
            let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
            sets_foreign_keys |= is(&["foreign_keys"]);
            if sets_foreign_keys {
                without_foreign_keys = is(&["OFF", "NO", "FALSE", "0"]) || (without_foreign_keys && !is(&["ON", "1"]));
            }
        }
    }
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
        ] {
            assert_eq!(dump(script), Some(Dump { without_foreign_keys }), "{script}");
        }
        for other in ["", ";", "CREATE TABLE t (a); BEGIN; COMMIT", "PRAGMA foreign_keys = OFF", "'BEGIN'", "SELECT 1"]
        {
            assert_eq!(dump(other), None, "{other}");
        }
    }
}
