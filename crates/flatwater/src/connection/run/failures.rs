//! What is said of a statement that failed when it ran, and what SQLite does not say of it.
//!
//! Owns: the message of a failure, without bound values; the names of a constraint, as the schema has them; telling a table without
//! another rowid from a full disk, naming the directory that cannot be written, or the virtual table that is out of step with its
//! content; whether a failed write may have left a part of a row. Runs on the thread that has the connection, after the statement
//! failed; reads the database. Invariant: the names of a constraint are looked for in errors that reach a caller only. Leaves out:
//! connections that can write nothing (`open::access`), which part of a message is shown (`hidden_values`), and texts that cannot be
//! prepared (`hints`).

use std::collections::HashSet;
use std::path::Path;

use flatwater_sqlite::{Sqlite, SqliteError, why_not_writable};
use rusqlite::ffi;

use super::hidden_values::hide_values;
use super::hints::ONE_FOR_A_LIST;
use super::statement_cache::CachedStatement;
use crate::connection::{EngineConnection, rows};
use flatwater_base::error::constraint::{Schema, with_names_of};
use flatwater_base::error::hint::{hint, with_other_hint};
use flatwater_base::error::{Error, ErrorKind};
use flatwater_base::values::params::ParamRow;
use flatwater_sql::dependencies::change::{TableWrites, Writes};
use flatwater_sql::policy;
use flatwater_sql::text::module_of;
use flatwater_sql::tokens::{has_in_with_one_parameter, names, quoted};

/// How many tables an error names.
const MOST_NAMED: usize = 3;

impl EngineConnection {
    /// Returns true if a write that failed may have left a part of a row: a function of the program failed between its
    /// entries in two indexes, or a comparison gave it a wrong place. What a constraint refuses SQLite undoes, or it keeps
    /// whole rows of it, as the conflict clause says.
    pub(crate) fn may_leave_part(&self, error: &Error) -> bool {
        self.functions.may_call_foreign_code() && error.kind() != ErrorKind::Constraint
    }
}

/// The error of a result, or of a part of one, that has more than so many bytes.
#[cold]
pub(crate) fn too_large(most: usize) -> Error {
    let message = format!("the result has more than {most} bytes, which is the limit");
    Error::from(SqliteError::from_code(ffi::SQLITE_TOOBIG))
        .with_message(message)
        .with_hint(hint!["read fewer rows, or in parts with " Stream ", or raise " ResultLimit])
}

#[cold]
pub(crate) fn explain(
    sqlite: &Sqlite,
    error: flatwater_sqlite::Error,
    statement: &CachedStatement,
    params: ParamRow<'_>,
) -> Error {
    let is_count = matches!(error, flatwater_sqlite::Error::ParameterCount { .. });
    let mut error = Error::from(error).with_sql(&statement.text.sql);
    if is_count && has_in_with_one_parameter(&statement.text.sql) {
        error = error.with_hint(ONE_FOR_A_LIST);
    }
    if error.sqlite_code().is_some_and(may_quote)
        && let Some(hidden) = hide_values(error.message(), &statement.text.sql, params)
        && !is_of_text(sqlite, &error, statement)
    {
        error = error.with_message(hidden);
    }
    if error.sqlite_code() == Some(ffi::SQLITE_CORRUPT_VTAB) {
        error = name_out_of_step(sqlite, error, &statement.text.sql, &statement.class.writes);
    }
    error
}

/// Adds to the error of a constraint what the schema says of it.
#[cold]
pub(crate) fn name_constraint(sqlite: &Sqlite, error: Error, writes: &Writes) -> Error {
    // What SQLite does not write itself names nothing, and a value in it is hidden by now.
    if error.constraint().is_none() || error.sqlite_code().is_some_and(may_quote) {
        return error;
    }
    let tables = if let Writes::Tables(tables) = writes { Some(&**tables) } else { None };
    with_names_of(error, &Written { sqlite, tables })
}

/// The schema, of which a constraint failed in a write.
struct Written<'a> {
    sqlite: &'a Sqlite,
    /// What the statement may write; `None` if that is not known.
    tables: Option<&'a [TableWrites]>,
}

impl Written<'_> {
    /// Asks of each database that the statement may write, until one has an answer; of all at once if it is not known.
    fn find<T>(&self, mut ask: impl FnMut(Option<&str>) -> Option<T>) -> Option<T> {
        match self.tables {
            Some(tables) => tables.iter().find_map(|to| ask(Some(&to.database))),
            None => ask(None),
        }
    }
}

impl Schema for Written<'_> {
    fn has(&self, table: &str, column: &str) -> bool {
        let may_write = self.tables.is_none_or(|tables| tables.iter().any(|to| *to.table == *table));
        // https://sqlite.org/c3ref/table_column_metadata.html
        let has = |database: Option<&str>| self.sqlite.rusqlite().column_exists(database, table, column).ok();
        may_write && self.find(|database| has(database).filter(|has| *has)).is_some()
    }

    fn table_of(&self, index: &str) -> Option<String> {
        let before = self.sqlite.hooks().authorizer.set_policy(policy::trusted);
        let found = self.find(|database| {
            let sql = format!(
                "SELECT tbl_name FROM {}.sqlite_schema WHERE type = 'index' AND name = ?1",
                quoted(database.unwrap_or("main"))
            );
            self.sqlite.patiently_with(|sqlite| sqlite.query_row(&sql, [index], |row| row.get(0))).ok()
        });
        self.sqlite.hooks().authorizer.set_policy(before);
        found
    }

    fn only_table(&self) -> Option<String> {
        if let [only] = self.tables? { Some(only.table.clone().into()) } else { None }
    }
}

/// Returns true if the message is one of the text, which SQLite prepared again in a run and which does not compile any more: that
/// has no bound value in it.
fn is_of_text(sqlite: &Sqlite, error: &Error, statement: &CachedStatement) -> bool {
    error.sqlite_code() == Some(ffi::SQLITE_ERROR)
        && !statement.class.reads_setting
        && sqlite
            .rusqlite()
            .prepare(&statement.text.sql)
            .is_err_and(|of_text| Error::from(flatwater_sqlite::from_rusqlite(of_text)).message() == error.message())
}

/// Returns true if a message with this code may have a bound value in it: functions, virtual tables, RAISE, ATTACH and VACUUM INTO
/// write what they like, with any code. Of a constraint of a table, of a machine that fails, and of a value that is too long,
/// SQLite itself writes the message: of names, or always the same.
pub(crate) fn may_quote(code: i32) -> bool {
    let is_of_a_table = matches!(
        code,
        ffi::SQLITE_CONSTRAINT_CHECK
            | ffi::SQLITE_CONSTRAINT_DATATYPE
            | ffi::SQLITE_CONSTRAINT_FOREIGNKEY
            | ffi::SQLITE_CONSTRAINT_NOTNULL
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID
            | ffi::SQLITE_CONSTRAINT_UNIQUE
    );
    let is_of_the_machine = matches!(
        code & 0xff,
        ffi::SQLITE_BUSY
            | ffi::SQLITE_FULL
            | ffi::SQLITE_INTERRUPT
            | ffi::SQLITE_IOERR
            | ffi::SQLITE_NOMEM
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_READONLY
            | ffi::SQLITE_TOOBIG
    );
    !(is_of_a_table || is_of_the_machine)
}

/// Adds to the error of a write what SQLite does not say. The kind of an error is `Full` only if there is no space.
#[cold]
pub(crate) fn explain_write(sqlite: &Sqlite, error: Error, writes: &Writes) -> Error {
    let before = sqlite.hooks().authorizer.set_policy(policy::trusted);
    let explained = match (error.sqlite_code(), writes) {
        (Some(ffi::SQLITE_FULL), Writes::Tables(tables)) => {
            match tables.iter().find(|table| has_last_rowid(sqlite, table)) {
                Some(table) => no_rowid(error, &table.table),
                None => error,
            }
        }
        (Some(ffi::SQLITE_READONLY_DIRECTORY), _) => no_journal(sqlite, error),
        _ => error,
    };
    sqlite.hooks().authorizer.set_policy(before);
    explained
}

/// Returns true for a table with AUTOINCREMENT that has given its highest rowid. Any other table gets an unused one
/// (<https://sqlite.org/autoinc.html>).
fn has_last_rowid(sqlite: &Sqlite, TableWrites { database, table, .. }: &TableWrites) -> bool {
    let last = i64::MAX;
    let (database, name) = (quoted(database), quoted(table));
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {database}.sqlite_sequence WHERE name = ?1
         AND (seq = {last} OR EXISTS (SELECT 1 FROM {database}.{name} WHERE rowid = {last})))"
    );
    // A table that cannot be asked has no such number.
    sqlite.patiently_with(|sqlite| sqlite.query_row(&sql, [table], |row| row.get(0))).unwrap_or(false)
}

/// SQLite makes the journal of a file that is not in WAL mode when it first writes.
fn no_journal(sqlite: &Sqlite, error: Error) -> Error {
    let listed = "SELECT file FROM pragma_database_list";
    let files = sqlite.patiently_with(|sqlite| rows(sqlite, listed, [], |row| row.get(0)));
    let files: Vec<String> = files.unwrap_or_default();
    let directories = files.iter().filter_map(|file| Path::new(file).parent());
    let forbidden = directories.filter(|directory| !directory.as_os_str().is_empty());
    let forbidden = forbidden.map(|directory| (directory, why_not_writable(directory)));
    let message = match forbidden.into_iter().find(|(_, why)| why.is_some()) {
        Some((directory, _)) => format!("the directory {} cannot be written", directory.display()),
        None => "the directory of the database cannot be written".to_owned(),
    };
    error.with_kind(ErrorKind::Io).with_message(message).with_hint(
        "SQLite creates a journal beside the database for each write: check the permissions of the directory",
    )
}

fn no_rowid(error: Error, table: &str) -> Error {
    let message = format!("the table {table} has used the highest rowid, {}, so no new row can get one", i64::MAX);
    with_other_hint(
        error.with_kind(ErrorKind::Sql).with_message(message),
        "AUTOINCREMENT never reuses a rowid: choose the rowid in the INSERT, or delete the row with the highest \
             one and lower `seq` in sqlite_sequence",
    )
}

/// Adds to the error of a virtual table that is out of step with its content which table that is. Several are named if the
/// statement uses several.
#[cold]
pub(super) fn name_out_of_step(sqlite: &Sqlite, error: Error, sql: &str, writes: &Writes) -> Error {
    let before = sqlite.hooks().authorizer.set_policy(policy::trusted);
    let tables = used_full_text(sqlite, sql, writes);
    sqlite.hooks().authorizer.set_policy(before);
    let (shown, commands): (Vec<_>, Vec<_>) = tables.iter().map(|(shown, command)| (&**shown, &**command)).unzip();
    let message = match &*shown {
        [] => return error,
        [one] => format!("the index of the full-text table {one} is out of step with its content"),
        several => format!("an index of the full-text tables {} is out of step with its content", several.join(", ")),
    };
    // What the table says of it begins so.
    let said = Some(error.message()).filter(|said| said.starts_with("fts5: "));
    let message = said.map_or_else(|| message.clone(), |said| format!("{message}: {said}"));
    with_other_hint(
        error.with_message(message),
        format!(
            "the file is not damaged: {} makes it anew; one without content is emptied by 'delete-all' and filled again",
            commands.join("; ")
        ),
    )
}

/// Returns the full-text tables that a statement names, or writes by a trigger: how each is shown, and what makes its index anew.
fn used_full_text(sqlite: &Sqlite, sql: &str, writes: &Writes) -> Vec<(String, String)> {
    let named: HashSet<String> = names(sql).map(str::to_lowercase).collect();
    let is_written = |database: &str, name: &str| match writes {
        Writes::Everything => false,
        Writes::Tables(tables) => tables.iter().any(|to| *to.database == *database && *to.table == *name),
    };
    let listed = "SELECT schema, name FROM pragma_table_list WHERE type = 'virtual'";
    let listed = sqlite.patiently_with(|sqlite| rows(sqlite, listed, [], |row| Ok((row.get(0)?, row.get(1)?))));
    let listed: Vec<(String, String)> = listed.unwrap_or_default();
    let is_used =
        |(database, name): &(String, String)| named.contains(&name.to_lowercase()) || is_written(database, name);
    let used = listed.into_iter().filter(is_used);
    let is_full_text = |(database, name): &(String, String)| {
        let definition = format!("SELECT sql FROM {}.sqlite_schema WHERE name = ?1", quoted(database));
        let definition = sqlite.patiently_with(|sqlite| sqlite.query_row(&definition, [name], |row| row.get(0)));
        let definition: String = definition.unwrap_or_default();
        ["fts3", "fts4", "fts5"].iter().any(|module| module_of(&definition).eq_ignore_ascii_case(module))
    };
    let shown = |(database, name): (String, String)| {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let column = if is_plain { name } else { quoted(&name) };
        let table = if database == "main" { column.clone() } else { format!("{}.{column}", quoted(&database)) };
        let command = format!("INSERT INTO {table}({column}) VALUES ('rebuild')");
        (table, command)
    };
    used.filter(is_full_text).take(MOST_NAMED).map(shown).collect()
}
