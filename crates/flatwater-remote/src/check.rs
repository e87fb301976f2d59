//! What is refused before anything is sent: what a server would take for something else, or run for all its clients.
//!
//! Owns: these refusals. Pure. Invariants: each names what is wrong and what to do; no value is in a message. Leaves out: sending.

use std::collections::HashSet;

use flatwater::bindings::server::{One, asks_for_earlier, changing_pragma, error, parameters};
use flatwater::bindings::{parameter_names, statements, tokens};
use flatwater::{Error, ErrorKind, Result, ValueRef};

use crate::dialect::Dialect;

/// Returns true for an INSERT, UPDATE or DELETE.
pub(crate) fn changes_rows(sql: &str) -> bool {
    let verb = statements(sql).next().map_or("", |(_, verb, _)| verb);
    ["INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|one| verb.eq_ignore_ascii_case(one))
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
    if makes_temp(sql) {
        let hint = "it would be of a connection of the server, which is of all its clients or ends with the call";
        return Err(wrong("a TEMP object cannot be made on a server".into(), hint));
    }
    if let Some(function) = asks_for_earlier(sql) {
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
