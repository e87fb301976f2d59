//! A script: a text of several statements, and whether it has a transaction of its own, as the dump of a database has.
//!
//! Owns: where its statements are, and the form in which it is given to SQLite statement by statement. Pure.
//! Invariants: a statement is prepared without a copy of what follows it; a semicolon in a string, a quoted name, a
//! comment or the body of a trigger ends no statement. A dump is recognised by its first statements: PRAGMAs, and then
//! BEGIN. Leaves out: running it.

use super::tokens::{Token, is_off, pragma, tokens, verb};

/// Returns a script with the NUL behind it without which SQLite copies all that follows a statement before it prepares it
/// (`sqlite3Prepare`).
pub(crate) fn terminated(script: &str) -> String {
    let mut terminated = String::with_capacity(script.len() + 1);
    terminated.push_str(script);
    terminated.push('\0');
    terminated
}

/// How far a statement was read, as `sqlite3_complete` has it: the body of a trigger ends with `; END`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Start,
    /// After EXPLAIN, before the statement that is explained.
    Explain,
    Create,
    Statement,
    Trigger,
    TriggerSemicolon,
    TriggerEnd,
}

/// Returns the statements of a script, each from its first token to its last: without its semicolon, and what stands around
/// it. Those that are empty are left out.
pub(crate) fn statements(script: &str) -> impl Iterator<Item = &str> {
    let offset = |token: &str| token.as_ptr().addr() - script.as_ptr().addr();
    let mut tokens = tokens(script).map(|token| match token {
        Token::Word(text) => (text, text),
        Token::Text(text) | Token::Name(text) => (text, ""),
        Token::Other(text) => (text, text),
    });
    std::iter::from_fn(move || {
        let (mut within, mut from, mut to) = (Within::Start, 0, 0);
        for (text, word) in tokens.by_ref() {
            let next = after(within, word);
            match (within, next) {
                (Within::Start, Within::Start) => continue,
                (_, Within::Start) => return Some(&script[from..to]),
                (Within::Start, _) => from = offset(text),
                _ => {}
            }
            to = offset(text) + text.len();
            within = next;
        }
        (within != Within::Start).then(|| &script[from..to])
    })
}

fn after(within: Within, word: &str) -> Within {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    match within {
        Within::Trigger if word == ";" => Within::TriggerSemicolon,
        Within::TriggerSemicolon if word == ";" => Within::TriggerSemicolon,
        Within::TriggerSemicolon if is(&["END"]) => Within::TriggerEnd,
        Within::TriggerEnd if word == ";" => Within::Start,
        Within::Trigger | Within::TriggerSemicolon | Within::TriggerEnd => Within::Trigger,
        _ if word == ";" => Within::Start,
        Within::Start if is(&["EXPLAIN"]) => Within::Explain,
        Within::Explain if is(&["QUERY", "PLAN"]) => Within::Explain,
        Within::Start | Within::Explain if is(&["CREATE"]) => Within::Create,
        Within::Create if is(&["TEMP", "TEMPORARY"]) => Within::Create,
        Within::Create if is(&["TRIGGER"]) => Within::Trigger,
        _ => Within::Statement,
    }
}

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
    fn a_script_is_cut_where_sqlite_ends_a_statement() {
        let trigger =
            "create temp trigger x after insert on t begin insert into t values (case 1 when 1 then 2 end); end";
        let explained = format!("explain query plan {trigger}");
        for (script, expected) in [
            ("", &[][..]),
            (" ; ;-- a;\n/* b; */", &[]),
            ("SELECT 1", &["SELECT 1"]),
            (
                ";; SELECT 1 ;\n-- after\nSELECT ';', \";\", [;], `;` -- last",
                &["SELECT 1", "SELECT ';', \";\", [;], `;`"],
            ),
            ("SELECT 'it''s;'; SELECT /* ; */ 2;", &["SELECT 'it''s;'", "SELECT /* ; */ 2"]),
            (&format!("{trigger}; SELECT 1"), &[trigger, "SELECT 1"]),
            (&format!("{explained};SELECT 1"), &[&explained, "SELECT 1"]),
            ("CREATE TABLE trigger_log (a); END", &["CREATE TABLE trigger_log (a)", "END"]),
            ("SELECT '\u{1f980};' AS \u{e4}; x", &["SELECT '\u{1f980};' AS \u{e4}", "x"]),
            ("SELECT 'open; SELECT 1", &["SELECT 'open; SELECT 1"]),
        ] {
            assert_eq!(statements(script).collect::<Vec<_>>(), expected, "{script}");
        }
    }

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
