//! What is refused before anything is sent: what a server would take for something else, or run for all its clients.
//!
//! Owns: these refusals. Pure. Invariants: each names what is wrong and what to do; no value is in a message. Leaves out: sending.

use std::collections::HashSet;

use flatwater::bindings::server::{One, asks_for_earlier, changing_pragma, error, parameters};
use flatwater::bindings::{parameter_names, statements, tokens};
use flatwater::{Error, ErrorKind, Result, ValueRef};

use crate::dialect::Dialect;

/// Returns true for an INSERT, UPDATE or DELETE, also with common table expressions before it.
pub(crate) fn changes_rows(sql: &str) -> bool {
    let is_verb =
        |token: &str| ["INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|one| token.eq_ignore_ascii_case(one));
    let mut words = tokens(sql).filter(|(kind, ..)| matches!(*kind, "word" | "other")).map(|(_, token, _)| token);
    let first = words.next().unwrap_or_default();
    if !first.eq_ignore_ascii_case("WITH") {
        return is_verb(first);
    }
    // The statement itself begins behind the last parenthesis of an expression; a name may be REPLACE.
    let (mut depth, mut before) = (0_u32, "");
    words.any(|word| {
        match word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_it = depth == 0 && before == ")" && is_verb(word);
        before = word;
        is_it
    })
}

/// What begins or ends a transaction, or belongs to one connection. rqlite runs it on the one connection on which it writes for all
/// its clients, and a libSQL server on one that ends with the request.
const OF_A_CONNECTION: &[&str] = &["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH"];

/// Refuses values that cannot be sent, or do not fit the statement.
pub(crate) fn check(one: &One<'_>, dialect: Dialect) -> Result<()> {
    check_names(one, dialect)?;
    for (number, (_, value)) in (1..).zip(one.values()) {
        match value {
            ValueRef::Real(value) if !value.is_finite() => {
                return Err(wrong(
                    format!("parameter {number} is infinite, which JSON cannot say"),
                    "bind NULL, or a text",
                ));
            }
            ValueRef::Text(text) if dialect == Dialect::Rqlite && is_hex(text) => {
                let hint = "the server reads such a text as a BLOB: bind the bytes themselves";
                return Err(wrong(format!("parameter {number} is a TEXT that looks like x'...'"), hint));
            }
            ValueRef::Text(text) if std::str::from_utf8(text).is_err() => {
                return Err(wrong(format!("parameter {number} is a TEXT that is not UTF-8"), "bind it as a BLOB"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true for what the server takes for a BLOB in hexadecimal.
fn is_hex(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"x'").or_else(|| text.strip_prefix(b"X'")).and_then(|rest| rest.strip_suffix(b"'"));
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Refuses a text that cannot be sent as one statement.
pub(crate) fn check_text(sql: &str, dialect: Dialect) -> Result<()> {
    let mut all = statements(sql);
    let Some((_, verb, _)) = all.next() else {
        return Err(wrong("the SQL has no statement".into(), "a call runs one statement"));
    };
    if all.next().is_some() {
        let hint = "the server would return the result of the last one only: use execute_script, or batch";
        return Err(wrong("the SQL has several statements, and one is expected".into(), hint));
    }
    if OF_A_CONNECTION.iter().any(|one| verb.eq_ignore_ascii_case(one)) {
        let hint = match dialect {
            Dialect::Rqlite => "the server has one connection for all its clients: use batch, which is all or nothing",
            Dialect::Libsql => {
                "each call has a connection of its own: use batch, which is all or nothing, or a transaction of `Libsql` in Rust"
            }
        };
        return Err(wrong(format!("{verb} cannot be run on a server as a statement"), hint));
    }
    if let Some(name) = changing_pragma(sql) {
        let hint = match dialect {
            Dialect::Rqlite => {
                "it would hold for all clients, until the node restarts: set it where the server is started"
            }
            Dialect::Libsql => {
                "each call has a connection of its own, which ends with it: set it where the server is started"
            }
        };
        return Err(wrong(format!("PRAGMA {name} cannot be set through the server"), hint));
    }
    // A PRAGMA that asks makes nothing.
    if !verb.eq_ignore_ascii_case("PRAGMA") && makes_temp(sql) {
        let hint = "it would be of a connection of the server, which is of all its clients or ends with the call";
        return Err(wrong("a TEMP object cannot be made on a server".into(), hint));
    }
    // In a trigger it tells of the trigger's own statements.
    if let Some(function) = asks_for_earlier(sql).filter(|_| !verb.eq_ignore_ascii_case("CREATE")) {
        let hint = "other statements stand before it on the server: use RETURNING, or a subquery that finds the row";
        return Err(wrong(format!("{function}() would tell of another statement"), hint));
    }
    Ok(())
}

/// Returns true for CREATE TEMP, and for a name in the schema `temp`.
fn makes_temp(sql: &str) -> bool {
    let mut before = "";
    let mut tokens = tokens(sql).map(|(_, token, _)| token);
    tokens.any(|token| {
        let is_temp = |text: &str| ["TEMP", "TEMPORARY"].iter().any(|one| text.eq_ignore_ascii_case(one));
        let is_it = before.eq_ignore_ascii_case("CREATE") && is_temp(token) || token == "." && is_temp(before);
        before = token;
        is_it
    })
}

/// rqlite binds NULL to a parameter that has no value, and says nothing.
fn check_names(one: &One<'_>, dialect: Dialect) -> Result<()> {
    let given: Option<HashSet<&str>> =
        one.values().map(|(name, _)| name.map(|name| name.trim_start_matches([':', '@', '$']))).collect();
    let expected = parameters(one.sql);
    match given.filter(|given| !given.is_empty()) {
        Some(given) => {
            let known: HashSet<&str> = parameter_names(one.sql).collect();
            if let Some(missing) = known.iter().find(|name| !given.contains(**name)) {
                return Err(wrong(format!("the parameter {missing} has no value"), "each parameter needs a value"));
            }
            if known.len() != expected {
                return Err(wrong("some parameters have names and others have none".into(), "name all of them"));
            }
            if let Some(unknown) = given.iter().find(|name| !known.contains(**name)) {
                return Err(wrong(format!("the SQL has no parameter {unknown}"), "give each parameter by its name"));
            }
            Ok(())
        }
        None if dialect == Dialect::Libsql && parameter_names(one.sql).next().is_some() => Err(wrong(
            "the SQL has parameters with names, and the values have none".into(),
            "give each parameter by its name, or write ? for it",
        )),
        None if one.len() == expected => Ok(()),
        None => Err(wrong(
            format!("the SQL has {expected} parameter(s), and {} value(s) were given", one.len()),
            "each parameter needs a value",
        )),
    }
}

fn wrong(message: String, hint: &'static str) -> Error {
    error(ErrorKind::Misuse, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_rows_is_found_behind_common_table_expressions() {
        for sql in [
            "insert into t values (1)",
            "/* a */ REPLACE INTO t VALUES (1)",
            "WITH n(x) AS (VALUES (7), (8)), m AS MATERIALIZED (SELECT (1)) INSERT INTO t SELECT x FROM n",
            "WITH RECURSIVE n AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT * FROM n)",
        ] {
            assert!(changes_rows(sql), "{sql}");
        }
        for sql in [
            "",
            "SELECT replace('a', 'b', 'c')",
            "WITH replace AS (SELECT 1) SELECT replace('a', 'b', 'c') FROM replace",
            "WITH n AS (SELECT 1) SELECT (SELECT 1) FROM n",
            "CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END",
            "EXPLAIN INSERT INTO t VALUES (1)",
        ] {
            assert!(!changes_rows(sql), "{sql}");
        }
    }

    #[test]
    fn what_tells_of_another_statement_is_refused_and_what_only_has_its_name_is_not() {
        let refused = |sql| check_text(sql, Dialect::Libsql).is_err();
        assert!(refused("SELECT Changes ( )") && refused("INSERT INTO t VALUES (\"last_insert_rowid\"())"));
        assert!(!refused("INSERT INTO t VALUES ('SELECT changes(), 1') -- changes()"));
        assert!(!refused("SELECT changes FROM t") && !refused("SELECT a AS \"changes()\" FROM t"));
        assert!(!refused("CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO u VALUES (changes()); END"));
        assert!(!refused("PRAGMA temp.table_info(t)") && refused("INSERT INTO temp.t VALUES (1)"));
    }
}
