//! SQL that has the key of a database in it.
//!
//! Owns: recognising it. Pure. Invariant: what sets a key by SQLCipher's own means (`PRAGMA key`, ATTACH with KEY) is
//! recognised, with some texts that do not. Leaves out: refusing such SQL (`sql::policy`).

use std::borrow::Cow;

/// The PRAGMAs that take a key (<https://www.zetetic.net/sqlcipher/sqlcipher-api/>).
pub(crate) const KEY_PRAGMAS: [&str; 6] = ["key", "rekey", "hexkey", "hexrekey", "textkey", "textrekey"];

/// Returns the SQL, or what stands for it if it may have a key in it.
pub(super) fn without_key(sql: &str) -> Cow<'_, str> {
    if has_key(sql) { "(not shown, because it has a key in it)".into() } else { sql.into() }
}

/// Looks at the words alone. Between the word PRAGMA and the name there may be that of a database, and comments.
fn has_key(sql: &str) -> bool {
    let mut words = sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let is_key = |word: &str| KEY_PRAGMAS.iter().any(|key| word.eq_ignore_ascii_case(key));
    match words.find(|word| ["pragma", "attach"].iter().any(|begin| word.eq_ignore_ascii_case(begin))) {
        Some(_) => words.any(is_key),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_that_sets_a_key_is_not_shown() {
        for sql in
            ["PRAGMA key = 's'", "pragma main . \"ReKey\"('s')", "PRAGMA/**/hexkey='73'", "ATTACH 'a' AS b KEY 's'"]
        {
            assert!(without_key(sql).starts_with("(not shown"), "{sql}");
        }
        for sql in ["PRAGMA foreign_keys = ON", "SELECT key FROM t", "INSERT INTO keys (key) VALUES (1)"] {
            assert_eq!(without_key(sql), sql);
        }
    }
}
