//! What the words of a text tell, without a connection: its statements, its parameters, whether it only begins or ends a transaction,
//! and what it, or a definition of the schema, does that SQLite does not report. Pure.
//!
//! Owns: reading them, and the form in which a script is given to SQLite statement by statement. Invariants: a statement of a script is
//! prepared without a copy of what follows it; a semicolon in a string, a quoted name, a comment or the body of a trigger ends no
//! statement; a dump is recognised by its first statements: PRAGMAs, and then BEGIN; a text is a bracket only if SQLite takes it for
//! that too; a text that may replace rows, empty a table, or join by name is found, and one that does not may be found too, which only
//! costs precision. Leaves out: running it; savepoints; checking what was given for parameters, which `flatwater-sqlite` does where
//! there is a connection; and what follows from changes without a report (`dependencies`).

use std::collections::HashSet;

use flatwater_sqlite::REPORTS_ALL_ROWS;

use super::tokens::{Token, is_off, pragma, tokens, verb, words};
use crate::dependencies::change::Unreported;
use crate::dependencies::tables::Kind;

/// Returns a script with the NUL behind it without which SQLite copies all that follows a statement before it prepares it
/// (`sqlite3Prepare`).
pub fn terminated(script: &str) -> String {
    [script, "\0"].concat()
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
pub fn statements(script: &str) -> impl Iterator<Item = &str> {
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
        Within::Trigger | Within::TriggerSemicolon if word == ";" => Within::TriggerSemicolon,
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
pub struct Dump {
    /// `PRAGMA foreign_keys = OFF`.
    pub without_foreign_keys: bool,
}

/// Returns what the script says before its own BEGIN, if it has one.
pub fn dump(script: &str) -> Option<Dump> {
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

/// What a text does that begins or ends a transaction, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bracket {
    /// BEGIN, which takes no lock.
    Begin,
    /// BEGIN IMMEDIATE or EXCLUSIVE, which take the lock of writers.
    BeginWriting,
    /// COMMIT or END.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// Returns what the text does to the transaction, if it is nothing but that.
pub fn bracket(sql: &str) -> Option<Bracket> {
    let mut tokens =
        tokens(sql).map(|token| if let Token::Word(word) | Token::Other(word) = token { word } else { "" });
    let is = |word: &str, name: &str| word.eq_ignore_ascii_case(name);
    let first = tokens.next()?;
    let mut next = tokens.next();
    let bracket = match first {
        word if is(word, "BEGIN") => {
            let writes = next.is_some_and(|word| is(word, "IMMEDIATE") || is(word, "EXCLUSIVE"));
            if writes || next.is_some_and(|word| is(word, "DEFERRED")) {
                next = tokens.next();
            }
            if writes { Bracket::BeginWriting } else { Bracket::Begin }
        }
        word if is(word, "COMMIT") || is(word, "END") => Bracket::Commit,
        word if is(word, "ROLLBACK") => Bracket::Rollback,
        _ => return None,
    };
    if next.is_some_and(|word| is(word, "TRANSACTION")) {
        next = tokens.next();
    }
    next.into_iter().chain(tokens).all(|word| word == ";").then_some(bracket)
}

/// Returns the names of the parameters, without their sign, in the order of the text. One that is used twice comes twice.
pub fn parameter_names(sql: &str) -> impl Iterator<Item = &str> {
    named(sql).map(|(_, name)| name)
}

/// Returns the names of the parameters with their signs, in the order of the text. One that is used twice comes twice.
pub fn signed_parameters(sql: &str) -> impl Iterator<Item = String> {
    named(sql).map(|(sign, name)| format!("{sign}{name}"))
}

/// Each name behind its sign.
fn named(sql: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut before = "";
    words(sql).filter_map(move |word| {
        let sign = std::mem::replace(&mut before, word);
        if matches!(sign, ":" | "@") && word.starts_with(is_of_name) {
            return Some((sign, word));
        }
        word.strip_prefix('$').filter(|name| !name.is_empty()).map(|name| ("$", name))
    })
}

/// Returns how many values a run needs: the highest number of a parameter.
pub fn parameter_count(sql: &str) -> usize {
    positions(sql, |_, _, _| {})
}

/// Returns the names of the parameters by position, with their signs; the name of `?7` is `?7`, and `?` has none.
pub fn parameters_by_position(sql: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let count = positions(sql, |position, sign, name| {
        if (1..=MOST).contains(&position) {
            names.resize(names.len().max(position), String::new());
            names[position - 1] = format!("{sign}{name}");
        }
    });
    names.resize(count.min(MOST), String::new());
    names
}

/// The highest number of a parameter (SQLITE_MAX_VARIABLE_NUMBER).
const MOST: usize = 32_766;

/// Passes on the position of each parameter that has a name or a number, with its sign, and returns the highest position. `?` has the
/// next number, and so has a name when it stands there first (<https://sqlite.org/lang_expr.html#varparam>).
fn positions<'a>(sql: &'a str, mut found: impl FnMut(usize, &'a str, &'a str)) -> usize {
    let (mut highest, mut named) = (0_usize, HashSet::new());
    let mut words = words(sql).peekable();
    while let Some(word) = words.next() {
        let name = match word {
            "?" => {
                let number = words.peek().and_then(|next| Some((next.parse().ok()?, *next)));
                highest = number.map_or(highest + 1, |(number, _): (usize, _)| highest.max(number));
                if let Some((number, digits)) = number {
                    found(number, word, digits);
                }
                continue;
            }
            ":" | "@" => words.next_if(|next| next.starts_with(is_of_name)).map(|name| (word, name)),
            word => word.strip_prefix('$').filter(|name| !name.is_empty()).map(|name| ("$", name)),
        };
        if let Some((sign, name)) = name.filter(|name| named.insert(*name)) {
            highest += 1;
            found(highest, sign, name);
        }
    }
    highest
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Returns what the text of a write shows about rows that go without a report.
pub fn unreported(sql: &str) -> Unreported {
    Unreported { replaces: !REPORTS_ALL_ROWS && may_replace(sql), empties: may_empty(sql) }
}

/// Returns true if the text, or a definition, may resolve a conflict by deleting the row that is there.
pub fn may_replace(sql: &str) -> bool {
    let words: Vec<&str> = words(sql).collect();
    let replaces = |at: usize| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case("REPLACE"));
    // Otherwise it is the function.
    (0..words.len()).any(|at| replaces(at) && words.get(at + 1) != Some(&"("))
}

/// Returns true for a DELETE without WHERE, for which SQLite may empty the table at once
/// (<https://sqlite.org/lang_delete.html#the_truncate_optimization>).
fn may_empty(sql: &str) -> bool {
    let mut rest = words(sql).skip_while(|word| !word.eq_ignore_ascii_case("DELETE"));
    rest.next().is_some() && !rest.any(|word| word.eq_ignore_ascii_case("WHERE"))
}

/// Returns true if the text of a query, or of a view, may join tables by USING or NATURAL: the authorizer is not asked for
/// the columns that such a join compares (`sqlite3ProcessJoin`).
pub fn joins_by_name(sql: &str) -> bool {
    words(sql).any(|word| word.eq_ignore_ascii_case("USING") || word.eq_ignore_ascii_case("NATURAL"))
}

/// Returns the module of a virtual table with this definition.
pub fn module_of(definition: &str) -> &str {
    words(definition).skip_while(|word| !word.eq_ignore_ascii_case("USING")).nth(1).unwrap_or_default()
}

/// Returns the kind of a virtual table with this definition.
pub fn kind_of_virtual(definition: &str) -> Kind {
    let module = module_of(definition);
    let words = words(definition).skip_while(|word| !word.eq_ignore_ascii_case("USING")).skip(2);
    let keeps_its_rows =
        ["fts3", "fts4", "fts5", "rtree", "rtree_i32"].iter().any(|one| one.eq_ignore_ascii_case(module));
    let words: Vec<&str> = words.collect();
    // With `content=` the rows are those of another table. FTS5 takes the beginning of the word for it too.
    let is_content = |two: &[&str]| two[1] == "=" && "content".starts_with(&*two[0].to_ascii_lowercase());
    if keeps_its_rows && !words.windows(2).any(is_content) { Kind::Shadowed } else { Kind::Virtual }
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

    #[test]
    fn a_text_that_only_begins_or_ends_a_transaction_is_distinguished_from_others() {
        for (sql, expected) in [
            ("BEGIN", Some(Bracket::Begin)),
            ("begin deferred transaction;", Some(Bracket::Begin)),
            ("/* x */ BEGIN TRANSACTION -- y", Some(Bracket::Begin)),
            ("BEGIN IMMEDIATE", Some(Bracket::BeginWriting)),
            ("BEGIN EXCLUSIVE TRANSACTION", Some(Bracket::BeginWriting)),
            ("COMMIT", Some(Bracket::Commit)),
            ("end transaction ;;", Some(Bracket::Commit)),
            ("ROLLBACK", Some(Bracket::Rollback)),
            ("ROLLBACK TRANSACTION", Some(Bracket::Rollback)),
            ("ROLLBACK TO a", None),
            ("ROLLBACK TRANSACTION TO a", None),
            ("COMMIT 'a'", None),
            ("BEGIN; SELECT 1", None),
            ("BEGIN CONCURRENT", None),
            ("; COMMIT", None),
            ("COMMIT\0", None),
            ("SAVEPOINT a", None),
            ("", None),
        ] {
            assert_eq!(bracket(sql), expected, "{sql}");
        }
    }

    #[test]
    fn names_are_found_outside_of_strings_names_and_comments() {
        let sql = "SELECT :a, @b, $c, :a, :\u{e4}, :1, ?, ?2, ':d', \"x:e\", [:f] /* :g */ -- :h\n, :i";
        assert_eq!(parameter_names(sql).collect::<Vec<_>>(), ["a", "b", "c", "a", "\u{e4}", "1", "i"]);
        assert_eq!(parameter_names("SELECT ?, '$5'").count(), 0);
        assert_eq!(signed_parameters("SELECT :a, @b, $c, ':d', :a").collect::<Vec<_>>(), [":a", "@b", "$c", ":a"]);
    }

    #[test]
    fn there_are_as_many_as_sqlite_counts() {
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        for sql in [
            "SELECT 1",
            "SELECT ?, ?",
            "SELECT ?3, ?",
            "SELECT ?, ?1, ?",
            "SELECT :a, :a, @a, $a, ?",
            "SELECT ?2, :a, '?', \"?\" /* ? */ -- ?\n, ?",
            "SELECT :a, ?5, :b, :a",
            "SELECT ?, (SELECT ?) WHERE ? IN (?, ?)",
        ] {
            let statement = sqlite.prepare(sql).unwrap();
            assert_eq!(parameter_count(sql), statement.parameter_count(), "{sql}");
            let named = |at| statement.parameter_name(at).unwrap_or_default().to_owned();
            let names: Vec<String> = (1..=statement.parameter_count()).map(named).collect();
            assert_eq!(parameters_by_position(sql), names, "{sql}");
        }
    }

    #[test]
    fn texts_that_may_replace_rows_are_found() {
        for sql in [
            "REPLACE INTO t VALUES (1)",
            "insert or replace into t values (1)",
            "UPDATE OR REPLACE t SET a = 1",
            "CREATE TABLE t (a UNIQUE ON CONFLICT REPLACE, b)",
            "CREATE TRIGGER x AFTER INSERT ON t BEGIN REPLACE INTO u VALUES (1); END",
        ] {
            assert!(may_replace(sql), "{sql}");
        }
        for sql in
            ["UPDATE t SET a = replace(a, 'x', 'y')", "INSERT INTO t VALUES ('OR REPLACE')", "SELECT \"replace\""]
        {
            assert!(!may_replace(sql), "{sql}");
        }
    }

    #[test]
    fn a_delete_without_where_is_found() {
        let with = "WITH x AS (SELECT a FROM u WHERE a > 1) DELETE FROM t";
        for sql in ["DELETE FROM t", with, "DELETE FROM t RETURNING a"] {
            assert!(may_empty(sql), "{sql}");
        }
        for sql in ["DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1"] {
            assert!(!may_empty(sql), "{sql}");
        }
    }

    #[test]
    fn a_join_by_name_is_found() {
        for sql in ["SELECT 1 FROM a JOIN b using(k)", "CREATE VIEW v AS SELECT 1 FROM a NATURAL LEFT JOIN b"] {
            assert!(joins_by_name(sql), "{sql}");
        }
        assert!(!joins_by_name("SELECT 'USING', \"natural\" FROM a JOIN b ON a.k = b.k -- NATURAL"));
    }

    #[test]
    fn a_virtual_table_that_keeps_its_own_rows_is_known() {
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5(body, tokenize='porter')"), Kind::Shadowed);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING FTS5(body, content='docs')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5(body, Cont = 'docs')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts4(content='')"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE f USING fts5vocab(g, row)"), Kind::Virtual);
        assert_eq!(kind_of_virtual("CREATE VIRTUAL TABLE temp.f USING dbstat"), Kind::Virtual);
    }
}
