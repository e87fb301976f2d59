//! What a SQL text does, derived from one prepare. Pure.
//!
//! Owns: routing by the authorizer's events, and the rule for membership in a group. SQLite's `readonly` is never the
//! only criterion, because COMMIT, SAVEPOINT and ATTACH count as read-only. Invariant: a group touches one file, and
//! contains no statement that ends or outlives its transaction, nor one whose failure must leave part of its work in
//! place. Leaves out: running the text.

use flatwater_sqlite::{AuthEvent, Prepared};
use rusqlite::ffi;

use super::policy::pragma_of;
use super::pragma::{self, Pragma};
use super::text::unreported;
use super::tokens::{has_aborting_conflict_clause, names_temp};
use crate::dependencies::change::Writes;

/// The kind of connection that runs a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// By a reader.
    Read,
    /// By the writer.
    Write,
}

/// The properties of a text that one prepare revealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Who runs it.
    pub route: Route,
    /// Whether the text may share a transaction with others.
    pub groupable: bool,
    /// The number of columns of the rows that the text returns; 0 for a text that returns none.
    pub columns: usize,
    /// Whether the text is an INSERT, UPDATE or DELETE, so that `changes()` applies to it.
    pub changes_rows: bool,
    /// The table that the text itself inserts into, not through a trigger.
    pub inserts_into: Option<Box<str>>,
    /// Whether the text changes the schema.
    pub defines: bool,
    /// Whether the text needs the lock of writers of a file: it writes more than TEMP objects.
    pub locks: bool,
    /// Whether the text creates TEMP objects.
    pub makes_temp: bool,
    /// What the text may change.
    pub writes: Writes,
    /// Whether the text lists objects of attached files.
    pub lists_attached: bool,
    /// Whether the text is a PRAGMA that asks for what is in force, which any call may run, whether it has rows or not.
    pub reads_setting: bool,
    /// The function by which the text asks for an earlier statement of its connection.
    pub change_function: Option<&'static str>,
}

/// Returns the class of a text. `is_aborting` says whether a table has a constraint or trigger that ends statements without undoing
/// them, or ends transactions.
pub fn classify(sql: &str, prepared: &Prepared, is_aborting: impl Fn(&str) -> bool) -> Class {
    let events = &prepared.events;
    let own_write = |event: &&AuthEvent| event.accessor.is_none() && is_row_write(event) && !is_schema_table(event);
    let changes_rows = !prepared.explain && events.iter().any(|e| own_write(&e)) && !events.iter().any(is_definition);
    let route = route(prepared);
    let alters = events.iter().any(|e| e.action == ffi::SQLITE_ALTER_TABLE);
    let inserts_into: Option<Box<str>> = events
        .iter()
        .filter(|_| changes_rows)
        .find(|e| own_write(e) && e.action == ffi::SQLITE_INSERT)
        .and_then(|e| e.first.clone());
    Class {
        route,
        groupable: route == Route::Write && is_groupable(sql, events, is_aborting),
        // SQLite counts the columns of the SELECT with which some ALTER TABLE looks at the rows.
        columns: if alters && !prepared.explain { 0 } else { prepared.columns },
        changes_rows,
        inserts_into,
        defines: events.iter().any(is_definition),
        locks: locks(prepared),
        makes_temp: events.iter().any(makes_temp) || (events.iter().any(is_trigger) && names_temp(sql)),
        writes: match route {
            Route::Read => Writes::Tables(Vec::new()),
            Route::Write if changes_rows => Writes::of_rows(events, unreported(sql)),
            Route::Write => Writes::Everything,
        },
        lists_attached: false,
        reads_setting: false,
        change_function: None,
    }
}

/// Returns whether the events contradict the kind of the statement: a read-only statement must not write, and a write
/// must not write more than one table itself. (Upserts, triggers and foreign keys do not count: their events concern the
/// same table or have an accessor.)
pub fn names_other_tables(prepared: &Prepared) -> bool {
    let mut written = prepared.events.iter().filter(|e| is_row_write(e) && e.accessor.is_none());
    let Some(first) = written.next() else { return false };
    let is_definition = prepared.events.iter().any(is_definition);
    !prepared.explain && !is_definition && (prepared.readonly || written.any(|e| e.first != first.first))
}

fn route(prepared: &Prepared) -> Route {
    if prepared.explain {
        return Route::Read;
    }
    let pragma = prepared.events.iter().find(|e| e.action == ffi::SQLITE_PRAGMA);
    if let Some(event) = pragma {
        return if pragma_of(event) == Pragma::Answer { Route::Read } else { Route::Write };
    }
    let writes = prepared.events.iter().any(|e| is_row_write(e) || is_definition(e) || is_writing_pragma(e));
    // VACUUM causes no authorizer event, and is not readonly.
    if writes || !prepared.readonly { Route::Write } else { Route::Read }
}

/// BEGIN IMMEDIATE and VACUUM are not readonly, and cause no event that writes.
fn locks(prepared: &Prepared) -> bool {
    let writes = |e: &&AuthEvent| is_row_write(e) || is_definition(e) || is_writing_pragma(e);
    let is_temp = |e: &AuthEvent| e.database.as_deref() == Some("temp");
    let mut written = prepared.events.iter().filter(writes).peekable();
    let only_temp = written.peek().is_some() && written.all(is_temp);
    let state_of_database =
        |e: &AuthEvent| e.action == ffi::SQLITE_PRAGMA && matches!(pragma_of(e), Pragma::DatabaseState);
    !prepared.explain
        && !only_temp
        && (!prepared.readonly || prepared.events.iter().any(|e| is_writing_pragma(e) || state_of_database(e)))
}

fn is_groupable(sql: &str, events: &[AuthEvent], is_aborting: impl Fn(&str) -> bool) -> bool {
    let mut writes = events.iter().filter(|e| is_row_write(e)).peekable();
    writes.peek().is_some()
        && events.iter().all(|e| is_plain(e) && !is_writing_pragma(e))
        && writes.all(|e| {
            e.database.as_deref() == Some("main")
                && !is_schema_table(e)
                && !is_aborting(e.first.as_deref().unwrap_or_default())
        })
        && !has_aborting_conflict_clause(sql)
}

fn is_row_write(event: &AuthEvent) -> bool {
    matches!(event.action, ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE)
}

/// Returns whether the event reads the table of a PRAGMA that may write (<https://sqlite.org/pragma.html#pragfunc>), or
/// a table with such a name. Such a table runs the PRAGMA at execution time, when no policy applies. PRAGMAs that set a
/// value have no such table.
fn is_writing_pragma(event: &AuthEvent) -> bool {
    let table = event.first.as_deref().filter(|_| event.action == ffi::SQLITE_READ).unwrap_or_default();
    let (prefix, name) = table.split_at_checked("pragma_".len()).unwrap_or_default();
    prefix.eq_ignore_ascii_case("pragma_") && pragma::class(name, false) == Pragma::DatabaseState
}

/// Returns whether the event is a PRAGMA that lists objects of the schema, or reads one as a table.
pub fn lists_schema(event: &AuthEvent) -> bool {
    let name = event.first.as_deref().unwrap_or_default();
    match event.action {
        ffi::SQLITE_PRAGMA => pragma::lists_schema(name),
        ffi::SQLITE_READ => name.get(.."pragma_".len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case("pragma_")),
        _ => false,
    }
}

fn is_plain(event: &AuthEvent) -> bool {
    is_row_write(event)
        || matches!(event.action, ffi::SQLITE_READ | ffi::SQLITE_SELECT | ffi::SQLITE_FUNCTION | ffi::SQLITE_RECURSIVE)
}

/// Returns true for CREATE, DROP, ALTER, REINDEX, ANALYZE, and the same for virtual tables.
fn is_definition(event: &AuthEvent) -> bool {
    matches!(
        event.action,
        ffi::SQLITE_CREATE_INDEX..=ffi::SQLITE_CREATE_VIEW
            | ffi::SQLITE_DROP_INDEX..=ffi::SQLITE_DROP_VIEW
            | ffi::SQLITE_ALTER_TABLE..=ffi::SQLITE_DROP_VTABLE
    )
}

/// Returns true for any CREATE TRIGGER. A TEMP trigger on a table of another schema is TEMP only by its own name, which
/// no event contains.
fn is_trigger(event: &AuthEvent) -> bool {
    event.action == ffi::SQLITE_CREATE_TRIGGER
}

/// Returns whether the event creates a TEMP object. The event of a TEMP trigger names the schema of its table.
fn makes_temp(event: &AuthEvent) -> bool {
    (ffi::SQLITE_CREATE_TEMP_INDEX..=ffi::SQLITE_CREATE_TEMP_VIEW).contains(&event.action)
        || (is_definition(event) && event.database.as_deref() == Some("temp"))
}

fn is_schema_table(event: &AuthEvent) -> bool {
    let table = event.first.as_deref().unwrap_or_default();
    ["sqlite_master", "sqlite_temp_master", "sqlite_schema", "sqlite_temp_schema"]
        .iter()
        .any(|name| table.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatwater_sqlite::{Sqlite, rusqlite::OpenFlags};

    fn classes(sql: &[&str]) -> Vec<Class> {
        let mut connection = Sqlite::open(std::path::Path::new(":memory:"), OpenFlags::default(), None).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE TABLE aborting (a); CREATE TABLE log (a);
                 CREATE TABLE noisy (a);
                 CREATE TRIGGER noise AFTER INSERT ON noisy BEGIN INSERT INTO aborting VALUES (new.a); END;
                 CREATE VIEW v AS SELECT a FROM t; ATTACH ':memory:' AS other; CREATE TABLE other.o (a);
                 CREATE TEMP TABLE tmp (a); CREATE VIRTUAL TABLE f USING fts5(x)",
            )
            .unwrap();
        sql.iter()
            .map(|sql| {
                let prepared = connection.prepare(sql).unwrap().unwrap();
                classify(sql, &prepared, |table| table.eq_ignore_ascii_case("aborting"))
            })
            .collect()
    }

    #[test]
    fn reads_are_what_only_answers() {
        for (class, sql) in classes(READS).iter().zip(READS) {
            assert_eq!(class.route, Route::Read, "{sql}");
        }
    }
    const READS: &[&str] = &[
        "SELECT a FROM t",
        "SELECT * FROM v",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 3) SELECT x FROM n",
        "EXPLAIN INSERT INTO t VALUES (1, 2)",
        "EXPLAIN QUERY PLAN DELETE FROM t",
        "PRAGMA table_info(t)",
        "PRAGMA user_version",
        "SELECT * FROM pragma_user_version, pragma_table_info('t')",
        "VALUES (1)",
    ];

    #[test]
    fn what_may_write_a_file_needs_the_lock_of_writers() {
        let locks =
            ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "INSERT INTO other.o SELECT 1", "SELECT 1 FROM pragma_optimize"];
        for (class, sql) in classes(MEMBERS).iter().chain(&classes(&locks)).zip(MEMBERS.iter().chain(&locks)) {
            assert!(class.locks, "{sql}");
        }
        let free = [
            "BEGIN",
            "COMMIT",
            "SAVEPOINT a",
            "ATTACH ':memory:' AS x",
            "PRAGMA foreign_keys = ON",
            "CREATE TEMP TABLE n (a)",
            "INSERT INTO tmp VALUES (1)",
            "EXPLAIN DELETE FROM t",
        ];
        for (class, sql) in classes(READS).iter().chain(&classes(&free)).zip(READS.iter().chain(&free)) {
            assert!(!class.locks, "{sql}");
        }
    }

    #[test]
    fn plain_writes_to_main_are_groupable() {
        for (class, sql) in classes(MEMBERS).iter().zip(MEMBERS) {
            assert!(class.route == Route::Write && class.groupable && class.changes_rows, "{sql}: {class:?}");
        }
    }
    const MEMBERS: &[&str] = &[
        "INSERT INTO t VALUES (1, 2)",
        "INSERT INTO t VALUES (1, 2) RETURNING a",
        "INSERT INTO t VALUES (1, 2) ON CONFLICT DO UPDATE SET b = 3",
        "UPDATE t SET b = (SELECT count(*) FROM v)",
        "DELETE FROM t",
        "REPLACE INTO t VALUES (1, 2)",
        "INSERT INTO f VALUES ('text')",
    ];

    #[test]
    fn what_a_group_could_not_undo_or_must_not_hold_runs_alone() {
        for (class, sql) in classes(ALONE).iter().zip(ALONE) {
            assert!(class.route == Route::Write && !class.groupable, "{sql}: {class:?}");
        }
    }
    const ALONE: &[&str] = &[
        "INSERT OR FAIL INTO t VALUES (1, 2)",
        "INSERT OR ROLLBACK INTO t VALUES (1, 2)",
        "INSERT INTO aborting VALUES (1)",
        "INSERT INTO noisy VALUES (1)",
        "INSERT INTO other.o VALUES (1)",
        "INSERT INTO tmp VALUES (1)",
        "CREATE TABLE x (a)",
        "CREATE TABLE x AS SELECT * FROM t",
        "CREATE INDEX i ON t (b)",
        "DROP TABLE log",
        "ALTER TABLE t ADD COLUMN c",
        "VACUUM",
        "ANALYZE",
        "REINDEX",
        "PRAGMA user_version = 3",
        "PRAGMA wal_checkpoint",
        "PRAGMA optimize",
        "SELECT 1 FROM Pragma_Optimize",
        "INSERT INTO t SELECT 1, optimize FROM pragma_optimize(-1)",
    ];

    #[test]
    fn what_alters_a_table_has_no_columns_however_sqlite_looks_at_the_rows() {
        let alters = ["NOT NULL", "CHECK (c > 0)", "NOT NULL DEFAULT 1", "DEFAULT 2 REFERENCES t"];
        for sql in alters.map(|column| format!("ALTER TABLE t ADD COLUMN c {column}")) {
            let explain = format!("EXPLAIN {sql}");
            let classes = classes(&[&sql, &explain]);
            assert!(classes[0].columns == 0 && classes[0].defines && classes[1].columns > 0, "{sql}: {classes:?}");
        }
    }

    #[test]
    fn the_table_of_an_insert_is_its_own_and_not_a_triggers() {
        let classes = classes(&["INSERT INTO noisy VALUES (1)", "UPDATE t SET b = 1", "CREATE TABLE x AS SELECT 1"]);
        assert_eq!(classes[0].inserts_into.as_deref(), Some("noisy"));
        assert_eq!(classes[1].inserts_into, None);
        assert!(!classes[2].changes_rows && classes[2].inserts_into.is_none());
    }
}
