//! Finds words in SQL that change how a text must be handled. Pure.
//!
//! Owns: the part of SQLite's tokenizer that is needed to skip strings, quoted names and comments
//! (<https://sqlite.org/lang_keywords.html>). Leaves out: parsing. It may report a conflict clause where there is none,
//! which only costs speed.

use std::collections::HashSet;

use flatwater_base::error::beginning;
use flatwater_base::growth_counter::step;

/// Returns true if the text has a conflict clause or RAISE that ends a statement without undoing it (FAIL), or ends the
/// whole transaction (ROLLBACK).
pub fn has_aborting_conflict_clause(sql: &str) -> bool {
    let mut before = "";
    let mut before_that = "";
    for word in words(sql) {
        let aborting = word.eq_ignore_ascii_case("FAIL") || word.eq_ignore_ascii_case("ROLLBACK");
        let is_clause = before.eq_ignore_ascii_case("OR") || before.eq_ignore_ascii_case("CONFLICT");
        let is_raise = before == "(" && before_that.eq_ignore_ascii_case("RAISE");
        if aborting && (is_clause || is_raise) {
            return true;
        }
        before_that = before;
        before = word;
    }
    false
}

/// Guesses whether a text that was never prepared writes, so that a write keeps its order among its caller's other
/// writes. A wrong guess is safe: the writer can read, and a reader refuses to write.
pub fn looks_like_a_write(sql: &str) -> bool {
    verb(sql).is_some_and(|verb| !is_any(verb, READS))
}

/// Guesses whether a text that was never prepared returns rows. A wrong guess is safe where the engine refuses a statement in
/// the wrong call.
pub fn looks_like_rows(sql: &str) -> bool {
    verb(sql).is_some_and(|verb| is_any(verb, READS)) || words(sql).any(|word| is_any(word, &["RETURNING"]))
}

const READS: &[&str] = &["SELECT", "VALUES", "EXPLAIN", "PRAGMA"];

/// Returns the word that says what the first statement of a text does: its first one, or that after the tables of WITH.
pub fn verb(sql: &str) -> Option<&str> {
    let mut words = words(sql).skip_while(|word| *word == ";");
    let first = words.next()?;
    if !is_any(first, &["WITH"]) {
        return Some(first);
    }
    // The first verb outside all parentheses belongs to the statement itself.
    let mut depth = 0_usize;
    let verb = words.find(|word| {
        match *word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_any(word, &["SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"])
    });
    // What cannot be prepared is a query like any other.
    Some(verb.unwrap_or("SELECT"))
}

fn is_any(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns the name of a PRAGMA and what it is set to, if the statement is one. Both may be written in quotes.
pub fn pragma(sql: &str) -> Option<(&str, Option<&str>)> {
    let mut tokens = tokens(sql).skip_while(|token| matches!(token, Token::Other(";")));
    let Token::Word(first) = tokens.next()? else { return None };
    let mut next = || tokens.next().map(Token::text).filter(|text| *text != ";");
    let mut name = next().filter(|_| is_any(first, &["PRAGMA"]))?;
    let mut sign = next();
    if sign == Some(".") {
        (name, sign) = (next()?, next());
    }
    let value = sign.filter(|sign| ["=", "("].contains(sign)).and_then(|_| next());
    Some((name, if value == Some("+") { next() } else { value }))
}

/// Returns whether a PRAGMA that is on or off is off with this value (`sqlite3GetBoolean`).
pub fn is_off(value: &str) -> bool {
    let number: String = value.chars().take_while(char::is_ascii_digit).collect();
    if number.is_empty() { !is_any(value, &["ON", "YES", "TRUE"]) } else { number.bytes().all(|digit| digit == b'0') }
}

/// Returns whether the text is a PRAGMA, or begins with EXPLAIN or DROP. The result of such a statement, or what is found out
/// about it before it runs, depends on the schema at the time of its prepare. A PRAGMA that lists objects even keeps
/// pointers into that schema, and does not check whether it still exists.
pub fn tells_of_its_prepare(sql: &str) -> bool {
    let first = words(sql).find(|word| *word != ";");
    first.is_some_and(|word| ["PRAGMA", "EXPLAIN", "DROP"].iter().any(|one| word.eq_ignore_ascii_case(one)))
}

/// Returns whether the text is a ROLLBACK of a whole transaction.
pub fn rolls_back(sql: &str) -> bool {
    let mut words = words(sql).skip_while(|word| *word == ";");
    words.next().is_some_and(|first| first.eq_ignore_ascii_case("ROLLBACK"))
        && !words.any(|word| word.eq_ignore_ascii_case("TO"))
}

/// Returns whether the text may set a PRAGMA.
pub fn may_set(sql: &str) -> bool {
    sql.as_bytes().windows(6).any(|part| part.eq_ignore_ascii_case(b"pragma"))
}

/// Returns whether the text may attach a file or detach one.
pub fn may_attach(sql: &str) -> bool {
    sql.as_bytes().windows(5).any(|part| part.eq_ignore_ascii_case(b"ttach") || part.eq_ignore_ascii_case(b"etach"))
}

/// Returns the milliseconds that the text, a PRAGMA `busy_timeout`, sets.
pub fn busy_timeout_set(sql: &str) -> Option<u64> {
    match pragma(sql) {
        // Below 0 it is as 0.
        Some((name, Some("-"))) if name.eq_ignore_ascii_case("busy_timeout") => Some(0),
        Some((name, Some(value))) if name.eq_ignore_ascii_case("busy_timeout") => value.parse().ok(),
        _ => None,
    }
}

/// Returns whether the text names an object in the schema `temp`.
pub fn names_temp(sql: &str) -> bool {
    let words: Vec<&str> = words(sql).collect();
    words.windows(2).any(|two| two[0].eq_ignore_ascii_case("TEMP") && two[1] == ".")
}

/// How far behind a name its parentheses are looked for. Further, they are taken to be there.
const CALL_BYTES: usize = 256;

/// Returns whether the text may call the function `function`, given in lower case. A name in a comment or a string also
/// counts.
pub fn may_call(sql: &str, function: &str, has_arguments: bool) -> bool {
    let lower = sql.to_ascii_lowercase();
    lower.match_indices(function).any(|(at, _)| {
        let after = &lower[at + function.len()..];
        !lower[..at].ends_with(is_word) && !after.starts_with(is_word) && is_call(after, has_arguments)
    })
}

/// Returns whether the text may call one of these functions with arguments, whose names are in lower case, as
/// [`may_call`] does for each.
pub fn may_call_any(sql: &str, functions: &HashSet<String>) -> bool {
    let lower = sql.to_ascii_lowercase();
    let mut rest = &*lower;
    let mut next = || {
        rest = rest.trim_start_matches(|c| !is_word(c));
        let (name, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        step(name.len());
        rest = after;
        (!name.is_empty()).then_some((name, after))
    };
    let is_any = std::iter::from_fn(&mut next).any(|(name, after)| functions.contains(name) && is_call(after, true));
    let is_odd = |function: &&String| !function.chars().all(is_word);
    is_any || functions.iter().filter(is_odd).any(|function| may_call(sql, function, true))
}

/// Returns whether the parentheses of a call may begin here, behind the name.
fn is_call(after: &str, has_arguments: bool) -> bool {
    let behind = after.strip_prefix(['"', ']', '`']).unwrap_or(after);
    let near = beginning(behind, CALL_BYTES);
    let mut next = words(near);
    let mut follows = |word| next.next().map_or(near.len() < behind.len(), |next| next == word);
    follows("(") && (has_arguments || follows(")"))
}

/// Returns whether the text contains `IN (?)` or `IN ?`, for whose single parameter the caller may have passed a list.
pub fn has_in_with_one_parameter(sql: &str) -> bool {
    let words: Vec<&str> = words(sql).collect();
    let lists = words.iter().enumerate().filter(|(_, word)| word.eq_ignore_ascii_case("IN"));
    lists.map(|(at, _)| &words[at + 1..]).any(|list| {
        let (is_in_parentheses, list) = list.strip_prefix(&["("]).map_or((false, list), |list| (true, list));
        let length = match list {
            ["?", number, ..] if number.bytes().all(|byte| byte.is_ascii_digit()) => 2,
            ["?", ..] => 1,
            [":" | "@", _, ..] => 2,
            [word, ..] if word.starts_with('$') => 1,
            _ => return false,
        };
        !is_in_parentheses || list.get(length) == Some(&")")
    })
}

/// Passes each token of the text to `f`, and an empty one for each literal. Returns whether there was a literal. The
/// texts of two writes that differ only in numbers, strings and blobs have the same tokens.
pub fn without_literals(sql: &str, mut f: impl FnMut(&str)) -> bool {
    let mut any = false;
    let mut before = Token::Other("");
    for token in tokens(sql) {
        match token {
            // A quote inside a string is written twice, which is two strings here.
            Token::Text(_) if matches!(before, Token::Text(_)) => {}
            Token::Text(_) => {
                f("");
                any = true;
            }
            // It is the number or the name of a parameter.
            Token::Word(word)
                if word.starts_with(|c: char| c.is_ascii_digit())
                    && !matches!(before, Token::Other("?" | ":" | "@")) =>
            {
                f("");
                any = true;
            }
            Token::Word(token) | Token::Name(token) | Token::Other(token) => f(token),
        }
        before = token;
    }
    any
}

/// Returns a name as SQL spells it in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns words and single other characters, without white space, comments, strings and quoted names.
pub(super) fn words(sql: &str) -> impl Iterator<Item = &str> {
    tokens(sql).filter_map(|token| match token {
        Token::Word(word) | Token::Other(word) => Some(word),
        Token::Text(_) | Token::Name(_) => None,
    })
}

/// Returns what may be names: words, and what stands in quotes of any kind.
pub fn names(sql: &str) -> impl Iterator<Item = &str> {
    tokens(sql).filter(|token| !matches!(token, Token::Other(_))).map(Token::text)
}

/// Returns the tokens of the text, each with its kind and the white space and comments before it, and an empty one at the end.
pub fn with_gaps(sql: &str) -> impl Iterator<Item = (&'static str, &str, &str)> {
    let (mut tokens, mut rest) = (tokens(sql), Some(sql));
    std::iter::from_fn(move || {
        let behind = rest.take()?;
        let (kind, token) = match tokens.next() {
            Some(Token::Word(token)) => ("word", token),
            Some(Token::Text(token)) => ("text", token),
            Some(Token::Name(token)) => ("name", token),
            Some(Token::Other(token)) => ("other", token),
            None => return Some(("end", "", behind)),
        };
        let gap = token.as_ptr() as usize - behind.as_ptr() as usize;
        rest = Some(&behind[gap + token.len()..]);
        Some((kind, token, &behind[..gap]))
    })
}

#[derive(Clone, Copy)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A string, with its quotes.
    Text(&'a str),
    /// A quoted name, with its quotes.
    Name(&'a str),
    /// One other character.
    Other(&'a str),
}

impl<'a> Token<'a> {
    /// What is written, without quotes around it.
    fn text(self) -> &'a str {
        match self {
            Token::Word(word) | Token::Other(word) => word,
            Token::Text(quoted) | Token::Name(quoted) => quoted.get(1..quoted.len().max(2) - 1).unwrap_or_default(),
        }
    }
}

/// Returns the tokens of the text, without white space and comments.
pub(super) fn tokens(sql: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}');
            let first = rest.chars().next()?;
            let length = match first {
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
                '\'' | '"' | '`' => 1 + rest[1..].find(first).map_or(rest.len() - 1, |end| end + 1),
                '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            step(length);
            let (token, tail) = rest.split_at(length);
            rest = tail;
            return Some(match first {
                '-' | '/' if length > 1 => continue,
                '\'' => Token::Text(token),
                '"' | '`' | '[' => Token::Name(token),
                c if is_word(c) => Token::Word(token),
                _ => Token::Other(token),
            });
        }
    })
}

/// As SQLite has it: every character beyond ASCII may stand in a name.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_functions_is_found_as_each_alone() {
        let functions: HashSet<String> = ["mine", "my own", "x"].map(Into::into).into();
        for sql in [
            "SELECT mine(1)",
            "CHECK (a > MINE /* b */ (a))",
            "\"my own\"(1)",
            "[x] (2)",
            "xmine(1)",
            "mine, x",
            "x",
            "",
        ] {
            let each = functions.iter().any(|function| may_call(sql, function, true));
            assert_eq!(may_call_any(sql, &functions), each, "{sql}");
        }
    }

    #[test]
    fn the_busy_timeout_that_a_pragma_sets_is_found() {
        for (sql, expected) in [
            ("PRAGMA busy_timeout = 5000", Some(5000)),
            ("; pragma main.Busy_Timeout(7);", Some(7)),
            ("PRAGMA busy_timeout=-1", Some(0)),
            ("PRAGMA busy_timeout", None),
            ("PRAGMA cache_size = 5", None),
            ("SELECT busy_timeout = 5", None),
        ] {
            assert_eq!(busy_timeout_set(sql), expected, "{sql}");
        }
        assert!(may_set("SELECT 1; pragma x = 1") && !may_set("SELECT 1"));
        assert!(may_attach("attach 'x' AS y") && may_attach("DETACH y") && !may_attach("SELECT 1"));
    }

    #[test]
    fn a_pragma_is_read_in_any_spelling() {
        for (sql, expected) in [
            ("PRAGMA foreign_keys", Some(("foreign_keys", None))),
            ("pragma/* a */main . Foreign_Keys(+1);", Some(("Foreign_Keys", Some("1")))),
            ("; PRAGMA \"main\".[foreign_keys] = 'off'", Some(("foreign_keys", Some("off")))),
            ("PRAGMA cache_size = -8", Some(("cache_size", Some("-")))),
            ("PRAGMA foreign_keys; PRAGMA x = 1", Some(("foreign_keys", None))),
            ("PRAGMA", None),
            ("\"PRAGMA\" foreign_keys", None),
            ("SELECT 'PRAGMA foreign_keys = 1'", None),
        ] {
            assert_eq!(pragma(sql), expected, "{sql}");
        }
        assert!(["0", "00", "0x1", "off", "No", "FALSE", "-", "", "unknown"].iter().all(|value| is_off(value)));
        assert!(["1", "on", "YES", "true", "01"].iter().all(|value| !is_off(value)));
    }

    #[test]
    fn what_seems_to_have_rows_says_so_outside_of_quotes_and_comments() {
        for rows in [
            "-- insert\nSELECT 1",
            "/* x */ values (1)",
            "WITH x AS (VALUES (1)) SELECT * FROM x",
            "PRAGMA x",
            "INSERT INTO t VALUES ('a') RETURNING a",
        ] {
            assert!(looks_like_rows(rows), "{rows}");
        }
        for none in
            ["INSERT INTO t VALUES ('returning')", "DELETE FROM t -- returning", "WITH x AS (SELECT 1) DELETE FROM t"]
        {
            assert!(!looks_like_rows(none), "{none}");
        }
    }

    #[test]
    fn a_name_is_found_in_any_spelling() {
        let sql = "SELECT * FROM Both, [the one] b, \"two\"\"\", 'three', `four`, \u{1f980}x -- five";
        let expected = ["SELECT", "FROM", "Both", "the one", "b", "two", "", "three", "four", "\u{1f980}x"];
        assert_eq!(names(sql).collect::<Vec<_>>(), expected);
        assert_eq!(names("'").chain(names("[")).chain(names("\"a")).collect::<Vec<_>>(), ["", "", ""]);
    }

    #[test]
    fn tokens_with_what_is_before_them_are_the_text() {
        let sql = " SELECT 'it''s' -- one\n, \"a b\"/* \u{e4} */.[c], 1.5 /* open";
        let all: Vec<_> = with_gaps(sql).collect();
        assert_eq!(all.iter().flat_map(|(_, token, gap)| [*gap, *token]).collect::<String>(), sql);
        let kinds: Vec<_> = all.iter().map(|(kind, token, _)| (*kind, *token)).collect();
        let expected = [
            ("word", "SELECT"),
            ("text", "'it'"),
            ("text", "'s'"),
            ("other", ","),
            ("name", "\"a b\""),
            ("other", "."),
            ("name", "[c]"),
            ("other", ","),
            ("word", "1"),
            ("other", "."),
            ("word", "5"),
            ("end", ""),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(with_gaps("").collect::<Vec<_>>(), [("end", "", "")]);
    }

    #[test]
    fn conflict_clauses_that_do_not_undo_are_found() {
        for sql in [
            "INSERT OR FAIL INTO t VALUES (1)",
            "update or /* really */ rollback t set a = 1",
            "CREATE TABLE t (a UNIQUE ON CONFLICT FAIL)",
            "CREATE TRIGGER x BEFORE INSERT ON t BEGIN SELECT RAISE ( FAIL , 'no'); END",
            "INSERT OR -- comment\n FAIL INTO t VALUES (1)",
        ] {
            assert!(has_aborting_conflict_clause(sql), "{sql}");
        }
    }

    #[test]
    fn an_unknown_text_is_guessed_by_its_first_word() {
        for write in
            ["insert into t values (1) returning a", "/* x */ DELETE FROM t", "WITH x AS (SELECT 1) UPDATE t SET a = 1"]
        {
            assert!(looks_like_a_write(write), "{write}");
        }
        for read in [
            "SELECT 'insert'",
            "-- insert\n VALUES (1)",
            "WITH x AS (SELECT 'delete') SELECT * FROM x",
            "WITH x(a) AS (SELECT replace('a', 'b', 'c')) SELECT replace(a, 'b', 'c') FROM x",
            "; SELECT 1",
            "pragma user_version",
            "",
        ] {
            assert!(!looks_like_a_write(read), "{read}");
        }
    }

    #[test]
    fn texts_that_differ_in_literals_only_have_the_same_tokens_without_them() {
        let of = |sql| {
            let mut all = Vec::new();
            without_literals(sql, |token| all.push(token.to_owned())).then_some(all)
        };
        for (one, other) in [
            ("INSERT INTO t VALUES (1, 'a', x'00')", "INSERT INTO t VALUES\n(0x7f, 'it''s', x'')"),
            ("UPDATE t SET a = 1.5 -- half", "UPDATE t SET a = 22.75"),
            ("DELETE FROM \"t\" WHERE [a b] = 1e5", "DELETE FROM \"t\" WHERE [a b] = 2e7"),
        ] {
            assert!(of(one).is_some() && of(one) == of(other), "{one}: {:?} and {:?}", of(one), of(other));
        }
        for (one, other) in [
            ("UPDATE t SET a = 1", "UPDATE t SET a = -1"),
            ("UPDATE t SET a = 1", "UPDATE t SET a = ?"),
            ("DELETE FROM \"t\" WHERE a = 1", "DELETE FROM \"u\" WHERE a = 1"),
            ("DELETE FROM t WHERE a IN (1, 2)", "DELETE FROM t WHERE a IN (1)"),
            ("DELETE FROM t WHERE a = 'a' 'b'", "DELETE FROM t WHERE a = 'a' b"),
        ] {
            assert_ne!(of(one), of(other), "{one}");
        }
        for none in ["INSERT INTO t1 VALUES (?, :a2, ?3, :4)", "DELETE FROM t -- 1 'a'", "", "[1]"] {
            assert_eq!(of(none), None, "{none}");
        }
        assert!(of("INSERT INTO t VALUES ('unfinished").is_some());
    }

    #[test]
    fn a_pragma_and_a_listing_tell_of_the_schema_they_were_prepared_under() {
        for sql in [
            "pragma table_info(t)",
            " ; PRAGMA x",
            "/* */ EXPLAIN SELECT 1",
            "explain query plan SELECT 1",
            "drop table t",
        ] {
            assert!(tells_of_its_prepare(sql), "{sql}");
        }
        for sql in ["SELECT * FROM pragma_table_info('t')", "", ";", "'EXPLAIN'"] {
            assert!(!tells_of_its_prepare(sql), "{sql}");
        }
    }

    #[test]
    fn a_call_is_its_name_quoted_or_not_and_parentheses() {
        for call in ["DEFAULT (Changes())", "CHECK (0 < \"changes\" ( /* none */ ))", "[changes]()", "-- changes()"] {
            assert!(may_call(call, "changes", false), "{call}");
        }
        for other in ["CREATE TABLE changes (a)", "exchanges()", "changes_of()", "CHECK (changes > 0)", "changes"] {
            assert!(!may_call(other, "changes", false), "{other}");
        }
        assert!(may_call("CHECK (mine (a))", "mine", true) && !may_call("CHECK (mine)", "mine", true));
    }

    #[test]
    fn one_parameter_in_the_place_of_a_list_is_found() {
        for sql in ["a IN (?)", "a not in ( ?1 )", "a IN (:ids)", "a IN (@ids)", "a IN ($ids)", "a IN ?", "a IN :ids"] {
            assert!(has_in_with_one_parameter(sql), "{sql}");
        }
        for sql in ["a IN (?, ?)", "a IN (?1, :b)", "a IN (SELECT ?)", "a IN (1)", "'IN (?)'", "a IN t", "a = ?", "IN"]
        {
            assert!(!has_in_with_one_parameter(sql), "{sql}");
        }
    }

    #[test]
    fn words_in_strings_names_and_comments_do_not_count() {
        for sql in [
            "INSERT INTO t VALUES ('x or fail')",
            "SELECT fail FROM t WHERE a = 1 OR \"fail\" = 2",
            "SELECT 1 -- or fail",
            "SELECT 'it''s' /* or fail",
            "INSERT OR REPLACE INTO fail VALUES (1)",
            "SELECT [or fail",
            "INSERT OR ABORT INTO t VALUES (1)",
        ] {
            assert!(!has_aborting_conflict_clause(sql), "{sql}");
        }
    }
}
