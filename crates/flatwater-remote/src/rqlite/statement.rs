//! The statements of a request, as JSON.
//!
//! Owns: writing them, and refusing what would be something else on the server. Pure. Invariants: integers have all their 64 bits, and
//! REALs a point, so that none becomes the other; a text that the server would take apart, or that would begin a
//! transaction of all its clients, is refused. Leaves out: which statements (`guard`).

use std::collections::HashSet;
use std::io::Write as _;

use flatwater::bindings::server::{One, asks_for_earlier, changing_pragma, error, parameters};
use flatwater::bindings::{parameter_names, statements, tokens};
use flatwater::{Error, ErrorKind, Result, ValueRef};

/// The statements of one request.
pub(crate) struct Statements {
    json: Vec<u8>,
    number: usize,
}

impl Default for Statements {
    fn default() -> Self {
        Self { json: vec![b'['], number: 0 }
    }
}

impl Statements {
    /// Adds a statement of ours, whose values are integers.
    pub(crate) fn own(&mut self, sql: &str, values: &[i64]) {
        self.begin(sql);
        for value in values {
            let _ = write!(self.json, ",{value}");
        }
        self.json.push(b']');
    }

    /// Adds a caller's statement, which was checked.
    pub(crate) fn add(&mut self, one: &One<'_>) {
        self.begin(one.sql);
        let mut has_names = false;
        for (name, value) in one.values() {
            self.json.push(b',');
            if let Some(name) = name {
                self.json.push(if has_names { b' ' } else { b'{' });
                has_names = true;
                self.text(name.trim_start_matches([':', '@', '$']));
                self.json.push(b':');
            }
            self.value(value);
        }
        self.json.extend_from_slice(if has_names { b"}]" } else { b"]" });
    }

    fn begin(&mut self, sql: &str) {
        if self.number > 0 {
            self.json.push(b',');
        }
        self.number += 1;
        self.json.push(b'[');
        self.text(sql);
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.json.extend_from_slice(b"null"),
            ValueRef::Integer(value) => {
                let _ = write!(self.json, "{value}");
            }
            // Its shortest form always has a point or an exponent.
            ValueRef::Real(value) => {
                let _ = serde_json::to_writer(&mut self.json, &value);
            }
            ValueRef::Text(text) => self.text(&String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => {
                let _ = serde_json::to_writer(&mut self.json, bytes);
            }
        }
    }

    fn text(&mut self, text: &str) {
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.json, text);
    }

    /// Returns the body of the request.
    pub(crate) fn finish(mut self) -> bytes::Bytes {
        self.json.push(b']');
        self.json.into()
    }
}

/// Returns true for an INSERT, UPDATE or DELETE.
pub(crate) fn changes_rows(sql: &str) -> bool {
    let verb = statements(sql).next().map_or("", |(_, verb, _)| verb);
    ["INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|one| verb.eq_ignore_ascii_case(one))
}

/// What begins or ends a transaction, or belongs to one connection. rqlite accepts it and runs it on the one connection on which it
/// writes for all its clients.
const OF_A_CONNECTION: &[&str] = &["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH"];

/// Refuses values that cannot be sent, or do not fit the statement.
pub(crate) fn check(one: &One<'_>) -> Result<()> {
    check_names(one)?;
    for (number, (_, value)) in (1..).zip(one.values()) {
        match value {
            ValueRef::Real(value) if !value.is_finite() => {
                return Err(wrong(
                    format!("parameter {number} is infinite, which JSON cannot say"),
                    "bind NULL, or a text",
                ));
            }
            ValueRef::Text(text) if is_hex(text) => {
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
pub(crate) fn check_text(sql: &str) -> Result<()> {
    let mut all = statements(sql);
    let Some((_, verb, _)) = all.next() else {
        return Err(wrong("the SQL has no statement".into(), "a call runs one statement"));
    };
    if all.next().is_some() {
        let hint = "the server would return the result of the last one only: use execute_script, or batch";
        return Err(wrong("the SQL has several statements, and one is expected".into(), hint));
    }
    if OF_A_CONNECTION.iter().any(|one| verb.eq_ignore_ascii_case(one)) {
        let hint = "a server has no transaction of one caller: use batch, which is all or nothing";
        return Err(wrong(format!("{verb} cannot be run on a server that has one connection for all callers"), hint));
    }
    if let Some(name) = changing_pragma(sql) {
        let hint = "it would hold for all callers, until the node restarts: set it where the server is started";
        return Err(wrong(format!("PRAGMA {name} cannot be set through the server"), hint));
    }
    if makes_temp(sql) {
        let hint = "the server would make it for all its clients, until it restarts";
        return Err(wrong("a TEMP object cannot be made on a server".into(), hint));
    }
    if let Some(function) = asks_for_earlier(sql) {
        let hint = "the server has one connection for all clients: use RETURNING, or a subquery that finds the row";
        return Err(wrong(format!("{function}() would tell of a statement of somebody else"), hint));
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

/// The server binds NULL to a parameter that has no value, and says nothing.
fn check_names(one: &One<'_>) -> Result<()> {
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
