//! Functions that tell of an earlier statement of a connection: `last_insert_rowid()`, `changes()`, `total_changes()`.
//!
//! Owns: whether a statement calls one whose meaning is not its own. Outside of a transaction the earlier statement may be
//! anybody's. A trigger runs after its own statement wrote a row, so there the functions tell of that statement. Pure.
//! Leaves out: where such a statement is allowed.

use flatwater_sqlite::{AuthEvent, Program};
use rusqlite::ffi;

use super::tokens::may_call;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode};

/// Their names.
pub const FUNCTIONS: [&str; 3] = ["last_insert_rowid", "changes", "total_changes"];

/// Returns true if the statement of the events may call such a function. SQLite also reports one that the default of a
/// column calls, whenever the column is read (`sqlite3ColumnExprAuth`).
pub fn may_ask(events: &[AuthEvent]) -> bool {
    events.iter().any(|event| asked(event).is_some())
}

fn asked(event: &AuthEvent) -> Option<&'static str> {
    let name = event.second.as_deref().filter(|_| event.action == ffi::SQLITE_FUNCTION)?;
    FUNCTIONS.into_iter().find(|function| name.eq_ignore_ascii_case(function))
}

/// Returns such a function that the program of a read calls.
pub fn called_by(program: &Program) -> Option<&'static str> {
    let calls = |function: &&str| {
        let call = format!("{function}(0)");
        program.iter().any(|op| op.p4.as_deref() == Some(&*call))
    };
    FUNCTIONS.into_iter().find(calls)
}

/// Returns such a function that a write calls outside of its triggers: in its text, in a view, in a common table expression,
/// or if it `inserts`, in a default. `is_trigger` is asked for names.
pub fn called_by_write(
    events: &[AuthEvent],
    sql: &str,
    inserts: bool,
    is_trigger: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    events.iter().find_map(|event| {
        let function = asked(event)?;
        let calls = match &event.accessor {
            Some(_) => !is_in_trigger(event, events, &is_trigger),
            None => inserts || may_call(sql, function, false),
        };
        calls.then_some(function)
    })
}

/// Returns true if a trigger causes the event, or a view that only triggers read.
fn is_in_trigger(event: &AuthEvent, events: &[AuthEvent], is_trigger: &impl Fn(&str) -> bool) -> bool {
    let Some(accessor) = event.accessor.as_deref() else { return false };
    let is_read = |event: &&AuthEvent| {
        let table = event.first.as_deref().filter(|_| event.action == ffi::SQLITE_READ);
        table.is_some_and(|table| table.eq_ignore_ascii_case(accessor))
    };
    // A read inside of the view of the same name would be a circle, which SQLite refuses.
    let reads = || events.iter().filter(is_read).filter(|read| read.accessor.as_deref() != Some(accessor));
    is_trigger(accessor) || (reads().next().is_some() && reads().all(|read| is_in_trigger(read, events, is_trigger)))
}

/// Returns the error for such a call outside of a transaction.
#[cold]
pub fn refusal(function: &str) -> Error {
    Error::new(
        ErrorCode::LastStatement,
        format!("{function}() is about the last statement of a connection, which may be that of another call"),
    )
    .with_hint(match function {
        "last_insert_rowid" => {
            hint!["use " LastInsertRowid " of the result of " Execute ", RETURNING, or one transaction for both"]
        }
        _ => hint!["use " Changes " of the result of " Execute ", RETURNING, or one transaction for both"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_sqlite::{Sqlite, rusqlite::OpenFlags};

    fn asked_for(sql: &str) -> Option<&'static str> {
        let mut connection = Sqlite::open(std::path::Path::new(":memory:"), OpenFlags::default(), None).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (a); CREATE TABLE log (a); CREATE TABLE noisy (a); CREATE TABLE quiet (a);
                 CREATE TABLE d (a DEFAULT (changes()), b);
                 CREATE VIEW v AS SELECT last_insert_rowid() AS id; CREATE VIEW outer_v AS SELECT id FROM v;
                 CREATE VIEW silent AS SELECT a FROM d;
                 CREATE TRIGGER noise AFTER INSERT ON noisy BEGIN
                   INSERT INTO log SELECT id + changes() FROM outer_v WHERE last_insert_rowid() > 0; END;",
            )
            .unwrap();
        let prepared = connection.prepare(sql).unwrap().unwrap();
        if prepared.readonly {
            return called_by(&connection.explain(sql).unwrap()[0]);
        }
        called_by_write(&prepared.events, sql, sql.contains("INSERT INTO"), |name| name == "noise")
    }

    #[test]
    fn a_call_is_found_in_the_text_in_views_and_in_common_table_expressions() {
        for (sql, function) in [
            ("SELECT last_insert_rowid()", "last_insert_rowid"),
            ("SELECT a FROM t WHERE Changes () > 0", "changes"),
            ("INSERT INTO t VALUES (\"total_changes\"())", "total_changes"),
            ("SELECT id FROM v", "last_insert_rowid"),
            ("SELECT count(id) FROM outer_v", "last_insert_rowid"),
            ("INSERT INTO d (b) VALUES (1)", "changes"),
            ("INSERT INTO t SELECT id FROM outer_v", "last_insert_rowid"),
            ("INSERT INTO noisy SELECT id FROM v", "last_insert_rowid"),
            ("WITH x AS (SELECT last_insert_rowid() AS id) INSERT INTO t SELECT id FROM x", "last_insert_rowid"),
            ("INSERT INTO t SELECT id FROM (SELECT last_insert_rowid() AS id)", "last_insert_rowid"),
        ] {
            // Before 3.54 SQLite, and so SQLCipher, does not tell of the functions of a default: then there is no hint.
            let is_reported = !sql.starts_with("INSERT INTO d") || rusqlite::version_number() >= 3_054_000;
            assert_eq!(asked_for(sql), Some(function).filter(|_| is_reported), "{sql}");
        }
    }

    #[test]
    fn a_trigger_tells_of_its_own_statement() {
        for sql in
            ["INSERT INTO noisy VALUES (1)", "INSERT INTO quiet VALUES (1)", "SELECT 'changes()'", "SELECT a FROM t"]
        {
            assert_eq!(asked_for(sql), None, "{sql}");
        }
    }

    #[test]
    fn a_default_that_is_not_used_asks_for_nothing() {
        for sql in [
            "SELECT a FROM d",
            "SELECT a FROM silent",
            "UPDATE d SET b = a",
            "DELETE FROM d",
            "INSERT INTO d VALUES (1, 2)",
        ] {
            assert_eq!(asked_for(sql), None, "{sql}");
        }
    }
}
