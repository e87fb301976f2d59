//! What each node of a cluster would make another value of: the time, and random values.
//!
//! Owns: finding that in a statement that writes. Pure. rqlite gives each node the text. It can put a time into the text before, but then it
//! prints the statement anew, without what its parser does not keep, such as STRICT and the RETURNING of an UPDATE; so it is asked not to, and such
//! statements are refused. Invariant: what is refused asks for the time or for a random value; a function of a date that is given does not.
//! Leaves out: a column that says `now`, and the defaults and triggers of a schema that another program has made.

use flatwater::bindings::server::{One, error};
use flatwater::bindings::tokens;
use flatwater::{Error, ErrorCode, Result, ValueRef};

/// Functions that take a time, or `now`, which they also do without arguments (<https://sqlite.org/lang_datefunc.html>).
const TIMES: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];
/// Words that are the time.
const CLOCKS: &[&str] = &["CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"];
const RANDOMS: &[&str] = &["random", "randomblob"];
/// As the first argument it is one of `now`.
const SUBSECONDS: &[&str] = &["subsec", "subsecond"];

type Token<'a> = (&'a str, &'a str);

/// Refuses a statement that writes what each node would have another value for. Returns a function of its that takes a time, which none of its
/// values may ask for (`check_now`).
pub(crate) fn check_each_node(sql: &str) -> Result<Option<&str>> {
    let mut takes_time = None;
    let all: Vec<Token<'_>> = tokens(sql).map(|(kind, token, _)| (kind, token)).collect();
    for (at, token) in all.iter().enumerate() {
        if is_word(token, CLOCKS) {
            return Err(refused(token.1));
        }
        let Some(arguments) = arguments(&all[at + 1..]) else { continue };
        let is_refused = match token {
            token if is_word(token, RANDOMS) => is_call(&all[..at], arguments),
            token if is_word(token, TIMES) => {
                takes_time = takes_time.or(Some(token.1));
                arguments.is_empty() || asks_for_now(token.1, arguments)
            }
            _ => false,
        };
        if is_refused {
            return Err(refused(&format!("{}()", token.1)));
        }
    }
    Ok(takes_time)
}

/// Refuses a value that is the time to a function that takes one.
pub(crate) fn check_now(function: &str, one: &One<'_>) -> Result<()> {
    let asks = one.values().any(|(_, value)| is_now(value));
    if asks { Err(refused(&format!("{function}()"))) } else { Ok(()) }
}

fn is_word(token: &Token<'_>, all: &[&str]) -> bool {
    token.0 == "word" && all.iter().any(|one| token.1.eq_ignore_ascii_case(one))
}

/// The tokens in the parentheses that stand next.
fn arguments<'a, 'b>(behind: &'b [Token<'a>]) -> Option<&'b [Token<'a>]> {
    let [(_, "("), inner @ ..] = behind else { return None };
    let mut depth = 0_u32;
    let end = inner.iter().position(|(_, token)| match *token {
        "(" => {
            depth += 1;
            false
        }
        ")" if depth == 0 => true,
        ")" => {
            depth -= 1;
            false
        }
        _ => false,
    });
    end.map(|end| &inner[..end])
}

/// A table may have the name of a function, with its columns in parentheses.
fn is_call(before: &[Token<'_>], arguments: &[Token<'_>]) -> bool {
    let is_table = before.last().is_some_and(|token| is_word(token, &["INTO", "TABLE", "EXISTS", "REFERENCES", "ON"]));
    arguments.is_empty() || !is_table
}

fn asks_for_now(function: &str, arguments: &[Token<'_>]) -> bool {
    let says = |(kind, token): &Token<'_>, all: &[&str]| {
        let text = token.trim_matches('\'').trim();
        *kind == "text" && all.iter().any(|one| text.eq_ignore_ascii_case(one))
    };
    let is_format_alone = function.eq_ignore_ascii_case("strftime") && arguments.len() == 1;
    is_format_alone
        || arguments.first().is_some_and(|first| says(first, SUBSECONDS))
        || arguments.iter().any(|token| says(token, &["now"]))
}

fn is_now(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Text(text) if text.trim_ascii().eq_ignore_ascii_case(b"now"))
}

fn refused(what: &str) -> Error {
    let message = format!("{what} would have another value on each node of the cluster");
    error(ErrorCode::Unsupported, message, "bind the time, or the random value, from the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(sql: &str) -> bool {
        check_each_node(sql).is_err()
    }

    #[test]
    fn what_asks_for_the_time_or_a_random_value_is_refused() {
        for sql in [
            "INSERT INTO t VALUES (datetime('now'))",
            "INSERT INTO t VALUES (datetime ('Now', 'localtime'))",
            "INSERT INTO t SELECT current_timestamp",
            "UPDATE t SET a = strftime('%s'), b = 1",
            "UPDATE t SET a = strftime('%s', ' now ')",
            "UPDATE t SET a = unixepoch('subsec')",
            "DELETE FROM t WHERE a < date()",
            "INSERT INTO t SELECT a FROM u ORDER BY random() LIMIT 1",
            "INSERT INTO t VALUES (hex(randomblob(16)))",
            "CREATE TABLE t (a DEFAULT CURRENT_TIMESTAMP)",
            "CREATE TABLE t (a DEFAULT (datetime('now')))",
            "CREATE TRIGGER a AFTER INSERT ON t BEGIN UPDATE t SET b = CURRENT_DATE; END",
        ] {
            assert!(is_refused(sql), "{sql}");
        }
        let asked = check_each_node("INSERT INTO t VALUES (datetime('now'))");
        assert!(asked.unwrap_err().message().starts_with("datetime() would have another value"));
        assert_eq!(check_each_node("INSERT INTO t VALUES (abs(?), datetime(?))").unwrap(), Some("datetime"));
        assert!(is_now(ValueRef::Text(b" NOW ")) && !is_now(ValueRef::Text(b"nowhere")));
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        for sql in [
            "INSERT INTO t VALUES (datetime(1, 'unixepoch', 'subsec'), date(a), strftime('%s', b))",
            "CREATE TABLE t (a CHECK (date(a) IS NOT NULL), b AS (unixepoch(a)))",
            "INSERT INTO t VALUES ('CURRENT_TIMESTAMP', 'random()', 'now') -- datetime('now')",
            "INSERT INTO date (a) VALUES ('now')",
            "CREATE TABLE random (time, date)",
            "CREATE TABLE t (a REFERENCES random (a), \"current_date\")",
            "INSERT INTO t (time, date) VALUES (1, 'now')",
            "CREATE INDEX by_time ON random (time)",
        ] {
            assert!(!is_refused(sql), "{sql}");
        }
        assert_eq!(check_each_node("INSERT INTO t (a) VALUES (?)").unwrap(), None);
    }
}
