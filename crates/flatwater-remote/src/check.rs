//! What is refused before anything is sent: what a server would take for something else, or run for all its clients.
//!
//! Owns: these refusals. Pure. Invariants: each names what is wrong and what to do; no value is in a message. Leaves out: sending.

use flatwater::bindings::server::{
    One, asks_for_earlier, changing_pragma, check_nul, check_parameters, control_as_text, error,
};
use flatwater::bindings::{looks_like_rows, parameter_names, statements, tokens};
use flatwater::{ErrorCode, Result, ValueRef};

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

/// What begins or ends a transaction. rqlite runs it on the one connection on which it writes for all its clients, and a libSQL server
/// on one that ends with the request.
const CONTROLS: &[&str] = &["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"];

/// What defines something, and returns no rows.
const DEFINES: &[&str] = &["CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE", "VACUUM"];

/// Returns true for a statement that is known to return no rows. What is no statement of SQLite is for the server to say.
pub(crate) fn has_no_rows(sql: &str) -> bool {
    let verb = statements(sql).next().map_or("", |(_, verb, _)| verb);
    !looks_like_rows(sql) && (changes_rows(sql) || DEFINES.iter().any(|one| verb.eq_ignore_ascii_case(one)))
}

/// Refuses values that cannot be sent, or do not fit the statement.
pub(crate) fn check(one: &One<'_>, dialect: Dialect) -> Result<()> {
    check_names(one, dialect)?;
    for (number, (_, value)) in (1..).zip(one.values()) {
        match value {
            ValueRef::Real(value) if !value.is_finite() => {
                return Err(error(
                    ErrorCode::InvalidValue,
                    format!("parameter {number} is infinite, which JSON cannot say"),
                    "bind NULL, or a text",
                ));
            }
            ValueRef::Text(text) if dialect == Dialect::Rqlite && is_hex(text) => {
                let hint = "the server reads such a text as a BLOB: bind the bytes themselves";
                return Err(error(
                    ErrorCode::InvalidValue,
                    format!("parameter {number} is a TEXT that looks like x'...'"),
                    hint,
                ));
            }
            ValueRef::Text(text) if std::str::from_utf8(text).is_err() => {
                return Err(error(
                    ErrorCode::InvalidValue,
                    format!("parameter {number} is a TEXT that is not UTF-8"),
                    "bind it as a BLOB",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true for what the server takes for a BLOB in hexadecimal.
fn is_hex(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default().trim();
    let digits = text.strip_prefix("x'").or_else(|| text.strip_prefix("X'")).and_then(|rest| rest.strip_suffix('\''));
    digits.is_some_and(|digits| digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Refuses a text that cannot be sent as one statement.
pub(crate) fn check_text(sql: &str, dialect: Dialect) -> Result<()> {
    check_nul(sql)?;
    let mut all = statements(sql);
    let Some((_, verb, _)) = all.next() else {
        return Err(error(ErrorCode::NoStatement, "the SQL has no statement".into(), "a call runs one statement"));
    };
    if all.next().is_some() {
        let hint = "the server would return the result of the last one only: use execute_script, or batch";
        return Err(error(
            ErrorCode::SeveralStatements,
            "the SQL has several statements, and one is expected".into(),
            hint,
        ));
    }
    let is = |words: &[&str]| words.iter().any(|one| verb.eq_ignore_ascii_case(one));
    if dialect == Dialect::Libsql && is(CONTROLS) {
        return Err(control_as_text(verb));
    }
    if is(CONTROLS) || is(&["ATTACH", "DETACH"]) {
        let hint = match dialect {
            Dialect::Rqlite => "the server has one connection for all its clients: use batch, which is all or nothing",
            Dialect::Libsql => "each call has a connection of its own, and a server no other databases",
        };
        let code = if is(CONTROLS) { ErrorCode::TransactionAsText } else { ErrorCode::ConnectionState };
        return Err(error(code, format!("{verb} cannot be run on a server as a statement"), hint));
    }
    if let Some(name) = changing_pragma(sql)? {
        let hint = match dialect {
            Dialect::Rqlite => {
                "it would hold for all clients, until the node restarts: set it where the server is started"
            }
            Dialect::Libsql => {
                "each call has a connection of its own, which ends with it: set it where the server is started"
            }
        };
        return Err(error(ErrorCode::ConnectionState, format!("PRAGMA {name} cannot be set through the server"), hint));
    }
    // A PRAGMA that asks makes nothing.
    if !verb.eq_ignore_ascii_case("PRAGMA") && makes_temp(sql) {
        let hint = "it would be of a connection of the server, which is of all its clients or ends with the call";
        return Err(error(ErrorCode::ConnectionState, "a TEMP object cannot be made on a server".into(), hint));
    }
    // In a trigger it tells of the trigger's own statements.
    if let Some(function) = asks_for_earlier(sql).filter(|_| !verb.eq_ignore_ascii_case("CREATE")) {
        let hint = "other statements stand before it on the server: use RETURNING, or a subquery that finds the row";
        return Err(error(ErrorCode::LastStatement, format!("{function}() would tell of another statement"), hint));
    }
    Ok(())
}

/// What stands before the name of a table, and not before an alias.
const BEFORE_TABLES: &[&str] = &["INTO", "FROM", "JOIN", "UPDATE", "TABLE", "EXISTS", "INDEX", "VIEW", "TRIGGER"];

/// Returns true for CREATE TEMP, and for the name of a table in the schema `temp`.
fn makes_temp(sql: &str) -> bool {
    let (mut second, mut before) = ("", "");
    let mut tokens = tokens(sql).map(|(_, token, _)| token);
    tokens.any(|token| {
        let is = |text: &str, all: &[&str]| all.iter().any(|one| text.eq_ignore_ascii_case(one));
        let is_temp = |text: &str| is(text, &["TEMP", "TEMPORARY"]);
        let is_made = before.eq_ignore_ascii_case("CREATE") && is_temp(token);
        let is_table = token == "." && is_temp(before) && is(second, BEFORE_TABLES);
        (second, before) = (before, token);
        is_made || is_table
    })
}

/// rqlite binds NULL for a name that is none of the statement's, and ignores values that are too many.
fn check_names(one: &One<'_>, dialect: Dialect) -> Result<()> {
    check_parameters(one)?;
    let has_names = one.values().next().is_some_and(|(name, _)| name.is_some());
    if dialect == Dialect::Libsql && !has_names && parameter_names(one.sql).next().is_some() {
        let hint = "give each parameter by its name, or write ? for it";
        return Err(error(
            ErrorCode::ParameterName,
            "the SQL has parameters with names, and the values have none".into(),
            hint,
        ));
    }
    Ok(())
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
    fn a_text_that_the_server_would_make_a_blob_is_known() {
        assert!(["x'41'", " X'' ", "\u{a0}x'4a4B'\u{b}"].iter().all(|text| is_hex(text.as_bytes())));
        assert!(!["x'4'", "x'4g'", "x41", "'x'41''"].iter().any(|text| is_hex(text.as_bytes())));
    }

    #[test]
    fn what_tells_of_another_statement_is_refused_and_what_only_has_its_name_is_not() {
        let refused = |sql| check_text(sql, Dialect::Libsql).is_err();
        assert!(refused("SELECT Changes ( )") && refused("INSERT INTO t VALUES (\"last_insert_rowid\"())"));
        assert!(!refused("INSERT INTO t VALUES ('SELECT changes(), 1') -- changes()"));
        assert!(!refused("SELECT changes FROM t") && !refused("SELECT a AS \"changes()\" FROM t"));
        assert!(!refused("CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO u VALUES (changes()); END"));
        assert!(!refused("PRAGMA temp.table_info(t)") && refused("INSERT INTO temp.t VALUES (1)"));
        assert!(!refused("SELECT temp.a, b FROM readings AS temp WHERE temp.a > 1 ORDER BY temp.b"));
    }
}
