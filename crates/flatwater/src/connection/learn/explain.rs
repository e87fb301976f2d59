//! Explaining a write, and what a connection has that is not SQLite's own, which a program may call.
//!
//! Owns: reading the functions and collations of a connection from SQLite; and the places where SQL can call `changes()`, the number of
//! rows that the statement before changed, which EXPLAIN sets to 0: the text, the triggers and views it uses, and the tables it
//! writes. Runs on the thread that has the connection. Invariant: a write that is explained runs as it would if `changes()` were 0. One
//! that does not call it may be taken for one that does, which costs speed only. Leaves out: what follows for a program (`bytecode`).

use std::collections::HashSet;

use flatwater_sqlite::{AuthEvent, Program, Sqlite};
use rusqlite::ffi;

use super::schema::tables_that;
use crate::connection::functions::registration::Length;
use crate::connection::{EngineConnection, Listed, not_built_in, rows};
use flatwater_base::error::Result;
use flatwater_sql::bytecode::graph::{Strange, bare};
use flatwater_sql::tokens::{may_call, may_call_any};

/// Returns the functions and collations of this connection that are not SQLite's own. A replacement of one of
/// SQLite's collations cannot be seen; a closure of the user may have made one.
pub(super) fn strange(connection: &EngineConnection) -> Result<Strange> {
    let sqlite = connection.sqlite.rusqlite();
    let own = ["BINARY", "NOCASE", "RTRIM"];
    let (short, timed) = (connection.functions.of(Length::Short), connection.functions.of(Length::Timed));
    let listed = not_built_in(sqlite)?;
    let is_unknown = |(name, arguments, _): &&Listed| !short.contains(&format!("{name}({arguments})"));
    let unknown = listed.iter().filter(is_unknown).map(|(name, ..)| name.clone()).collect();
    let functions = listed.into_iter().map(|(name, ..)| name).collect();
    let listed: Vec<String> = rows(sqlite, "PRAGMA collation_list", [], |row| row.get("name"))?;
    let is_strange = |name: &&String| !own.contains(&&***name) || (connection.had_closure && **name != own[0]);
    let names = listed.iter().filter(is_strange).flat_map(|name| name.split(','));
    let collations = names.map(|name| bare(name).to_ascii_lowercase()).collect();
    Ok(Strange { functions, short, timed, unknown, collations })
}

const CHANGES: &str = "changes";

/// Returns the programs of a write, as EXPLAIN lists them; `None` if it may call `changes()`. The connection knows the newest
/// schema afterwards.
pub(super) fn explain_write(sqlite: &mut Sqlite, strange: &Strange, sql: &str) -> Result<Option<Vec<Program>>> {
    let calls = ChangesCalls::read(sqlite, strange)?;
    Ok(sqlite.explain_if(sql, |events| !calls.may_have(events))?)
}

/// What calls `changes()` on one connection, under the current schema. Names are in lower case.
struct ChangesCalls<'a> {
    /// Functions that are not SQLite's own, and not short ones, which only compute: they may have access to the connection.
    functions: &'a HashSet<String>,
    tables: HashSet<String>,
}

impl<'a> ChangesCalls<'a> {
    /// Reads the definitions of the main database.
    fn read(sqlite: &Sqlite, strange: &'a Strange) -> Result<Self> {
        let functions = &strange.unknown;
        let tables = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'";
        let tables = tables_that(sqlite, tables, |definition| defines_a_call(definition, functions))?;
        Ok(Self { functions, tables })
    }

    /// Returns true if a write with these events may call `changes()`. SQLite reports no event for what a definition
    /// calls. Nothing is known of tables outside the main database, so a write to one counts as a call.
    fn may_have(&self, events: &[AuthEvent]) -> bool {
        let lower = |text: &Option<Box<str>>| text.as_deref().unwrap_or_default().to_lowercase();
        events.iter().any(|event| match event.action {
            ffi::SQLITE_FUNCTION => {
                let function = lower(&event.second);
                function == CHANGES || self.functions.contains(&function)
            }
            ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE => {
                event.database.as_deref() != Some("main") || self.tables.contains(&lower(&event.first))
            }
            _ => false,
        })
    }
}

/// Returns true if a default or a check of a table may call such a function. A virtual table is foreign code, so it
/// may; SQLite itself writes these first words of its definition.
fn defines_a_call(definition: &str, functions: &HashSet<String>) -> bool {
    definition.starts_with("CREATE VIRTUAL TABLE")
        || may_call(definition, CHANGES, false)
        || may_call_any(definition, functions)
}
