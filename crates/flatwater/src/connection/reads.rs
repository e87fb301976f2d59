//! Running a live query: its result, and what it reads, in one snapshot.
//!
//! Owns: asking SQLite for what the rules of `changes::reads` need. Runs on the thread that has the connection.
//! Invariant: reads belong to the schema cookie of the snapshot in which the result was computed. Leaves out: the rules,
//! and when a query runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flatwater_sqlite::{AuthEvent, Policy};
use rusqlite::Connection as Sqlite;

use super::execute::{Bounds, Collected, Output, Run};
use super::open::Connection;
use super::schema::SchemaFacts;
use crate::changes::primary_keys::PrimaryKeys;
use crate::changes::reads::{Reads, ReadsTemp, RowReads, TableReads};
use crate::changes::tables::{Index, Kind, Table, Tables};
use crate::error::{Error, Result};
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Route;
use crate::sql::policy;
use crate::sql::silent::{kind_of_virtual, may_replace};
use crate::values::params::Params;
use crate::values::row::Rows;

/// What a text reads, under one schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Derived {
    cookie: i64,
    pub(crate) reads: Arc<Reads>,
    /// The keys of the tables that it reads.
    pub(crate) keys: Arc<PrimaryKeys>,
}

/// One run of one statement of a live query.
#[derive(Debug)]
pub(crate) struct LiveRun {
    pub(crate) rows: Rows,
    pub(crate) derived: Derived,
    /// For each table that it reads: the rowid of the row that it looked up by a unique key, if it found one.
    pub(crate) found: Found,
}

/// The rowids of the rows that were looked up, by the position of their table in the reads.
pub(crate) type Found = Vec<Option<i64>>;

/// SQLITE_DETERMINISTIC (<https://sqlite.org/c3ref/c_deterministic.html>).
const DETERMINISTIC: i64 = 0x800;
/// Functions that SQLite calls deterministic, and that read the clock for some arguments
/// (<https://sqlite.org/lang_datefunc.html>).
const READ_THE_CLOCK: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];
/// The number that an index has in the place of a column for an expression (<https://sqlite.org/pragma.html#pragma_index_xinfo>).
const EXPRESSION: i64 = -2;

impl Connection {
    /// Runs the statements of a live query in one snapshot. `known` is what their texts read the last time. The
    /// connection has no open transaction. May be interrupted by what is armed.
    pub(crate) fn run_live<'a>(
        &mut self,
        parts: impl Iterator<Item = (&'a Arc<StatementInfo>, &'a Params, Option<&'a Derived>)> + Clone,
    ) -> Result<Vec<LiveRun>> {
        // Some act while they are prepared.
        if let Some((text, ..)) = parts.clone().find(|(text, ..)| text.tells_of_its_prepare) {
            return Err(not_a_query().with_sql(&text.sql));
        }
        let cookie = self.control.hold(&mut self.sqlite)?;
        let is_known = |known: &&Derived| known.cookie == cookie;
        let runs = parts.map(|(text, params, known)| self.run_held(text, params, known.filter(is_known), cookie));
        let runs = runs.collect();
        self.control.let_go(&mut self.sqlite);
        runs
    }

    fn run_held(
        &mut self,
        text: &Arc<StatementInfo>,
        bound: &Params,
        known: Option<&Derived>,
        cookie: i64,
    ) -> Result<LiveRun> {
        let ready = self.ready(text, policy::statement, &SchemaFacts::default())?;
        let run = if ready.class.route == Route::Write || ready.class.columns == 0 {
            Err(not_a_query().with_sql(&text.sql))
        } else {
            let derived = known.cloned().map_or_else(|| self.derive(text, cookie), Ok);
            derived.and_then(|derived| {
                let (params, output) = (bound.row(), Output::Rows(usize::MAX));
                let outcome = self.execute(Run { statement: &ready, params, output, bounds: Bounds::Armed })?;
                let Collected::Rows(rows) = outcome.result else { return Err(not_a_query()) };
                let found = self.find_rows(&derived.reads, bound)?;
                Ok(LiveRun { rows, derived, found })
            })
        };
        self.done_with(&ready);
        run
    }

    /// Finds the rows that the query looks up by a unique key, in the snapshot that is held.
    fn find_rows(&mut self, reads: &Reads, params: &Params) -> Result<Found> {
        let Reads::Tables(tables) = reads else { return Ok(Found::new()) };
        tables.iter().map(|table| self.find_row(table, params)).collect()
    }

    fn find_row(&mut self, table: &TableReads, params: &Params) -> Result<Option<i64>> {
        let RowReads::Unique { rowid, columns } = &table.rows else { return Ok(None) };
        let Some(key) = params.pick(columns.iter().map(|(_, number)| *number)) else { return Ok(None) };
        let text = Arc::new(StatementInfo::new(&finds(&table.table, rowid, columns)));
        let ready = self.ready(&text, policy::statement, &SchemaFacts::default())?;
        let (params, output) = (key.row(), Output::Rows(1));
        let outcome = self.execute(Run { statement: &ready, params, output, bounds: Bounds::Armed });
        self.done_with(&ready);
        let Collected::Rows(rows) = outcome?.result else { return Ok(None) };
        rows.read_value()
    }

    /// Finds out what the text reads, in the snapshot that is held.
    fn derive(&mut self, text: &StatementInfo, cookie: i64) -> Result<Derived> {
        let mut events: Vec<AuthEvent> = Vec::new();
        let before = self.sqlite.set_policy(policy::statement as Policy);
        let programs = self.sqlite.explain_if(&text.sql, |seen| {
            events.extend_from_slice(seen);
            true
        });
        self.sqlite.set_policy(before);
        let programs = programs?.unwrap_or_default();
        let read: HashSet<&str> = events.iter().filter_map(|event| event.first.as_deref()).collect();
        let tables = self.sqlite.patiently_with(|sqlite| tables(sqlite, &read))?;
        match Reads::of(&events, &programs, &tables) {
            Ok(reads) => Ok(Derived { cookie, reads: Arc::new(reads), keys: Arc::new(PrimaryKeys::of(&tables)) }),
            Err(ReadsTemp) => Err(Error::misuse("a live query cannot read a TEMP table")
                .with_hint("other connections do not have it: use a table of the database")
                .with_sql(&text.sql)),
        }
    }
}

/// Returns the text that finds the row with these values in these columns.
fn finds(table: &str, rowid: &str, columns: &[(Box<str>, i32)]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let is = |(column, _): &(Box<str>, i32)| format!("{} = ? COLLATE BINARY", quoted(column));
    let conditions = columns.iter().map(is).collect::<Vec<_>>().join(" AND ");
    format!("SELECT {rowid} FROM main.{} WHERE {conditions}", quoted(table))
}

fn not_a_query() -> Error {
    Error::misuse("a live query is a statement that only reads and returns rows")
        .with_hint("use `query` for RETURNING, PRAGMA and EXPLAIN")
}

/// Reads the facts of the schema for the tables with these names.
fn tables(sqlite: &Sqlite, read: &HashSet<&str>) -> rusqlite::Result<Tables> {
    let mut found = Tables { pure_functions: pure_functions(sqlite)?, ..Tables::default() };
    let mut kinds: HashMap<String, Kind> = HashMap::new();
    let mut listed = sqlite.prepare("SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'")?;
    let mut rows = listed.query([])?;
    while let Some(row) = rows.next()? {
        let kind = match (row.get_ref(1)?.as_str()?, row.get(2)?) {
            ("table", false) => Kind::Rowid,
            ("table", true) => Kind::WithoutRowid,
            ("view", _) => Kind::View,
            _ => Kind::Virtual,
        };
        kinds.insert(row.get(0)?, kind);
    }
    let mut listed = sqlite.prepare("SELECT type, name, tbl_name, rootpage, sql FROM main.sqlite_schema")?;
    let mut rows = listed.query([])?;
    while let Some(row) = rows.next()? {
        let (name, root) = (row.get::<_, String>(1)?, row.get::<_, Option<i32>>(3)?.unwrap_or(0));
        // A definition that is not valid UTF-8 may say anything.
        let definition = row.get_ref(4)?.as_str_or_null().unwrap_or(Some("REPLACE")).unwrap_or_default();
        found.replaces |= may_replace(definition);
        match row.get_ref(0)?.as_str()? {
            "index" => {
                let table: String = row.get(2)?;
                if read.contains(&*table) {
                    let (columns, unique) = indexed_columns(sqlite, &table, &name)?;
                    found.indexes.insert(root, Index { table: table.into(), columns, unique });
                }
            }
            "table" | "view" => {
                let kind = match kinds.get(&name) {
                    Some(Kind::Virtual) if root == 0 => kind_of_virtual(definition),
                    Some(kind) => kind.clone(),
                    None => Kind::Virtual,
                };
                let mut table = Table::of(kind, root);
                if read.contains(&*name) {
                    add_columns(sqlite, &name, &mut table)?;
                }
                found.tables.insert(name.into(), table);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Adds what the columns of a table say about it.
fn add_columns(sqlite: &Sqlite, name: &str, table: &mut Table) -> rusqlite::Result<()> {
    let mut listed = sqlite.prepare("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1, 'main')")?;
    let mut rows = listed.query([name])?;
    let mut rowid_names = vec!["rowid", "_rowid_", "oid"];
    while let Some(row) = rows.next()? {
        let column: String = row.get(0)?;
        rowid_names.retain(|name| !name.eq_ignore_ascii_case(&column));
        table.has_generated |= matches!(row.get(3)?, 2 | 3);
        if row.get::<_, i64>(2)? > 0 {
            if row.get_ref(1)?.as_str()?.eq_ignore_ascii_case("INTEGER") {
                table.rowid_aliases.push(column.clone().into());
            }
            table.primary_key.push(column.into());
        }
    }
    table.rowid_name = rowid_names.first().copied();
    Ok(())
}

/// Returns the columns of an index, or `None` if it has an expression, such as the condition of a partial index; and the
/// columns of its key, if it is unique and compares bytes.
#[allow(clippy::type_complexity)]
fn indexed_columns(
    sqlite: &Sqlite,
    table: &str,
    index: &str,
) -> rusqlite::Result<(Option<Vec<Box<str>>>, Vec<Box<str>>)> {
    let kind = "SELECT \"unique\", partial FROM pragma_index_list(?1, 'main') WHERE name = ?2";
    let (mut is_unique, is_partial): (bool, bool) =
        sqlite.query_row(kind, [table, index], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if is_partial {
        return Ok((None, Vec::new()));
    }
    let mut listed = sqlite.prepare("SELECT cid, name, coll, key FROM pragma_index_xinfo(?1, 'main')")?;
    let mut rows = listed.query([index])?;
    let (mut columns, mut unique) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let name = match (row.get(0)?, row.get::<_, Option<String>>(1)?) {
            (EXPRESSION, _) => return Ok((None, Vec::new())),
            (_, Some(name)) => Box::<str>::from(name),
            _ => continue,
        };
        if row.get(3)? {
            is_unique &= row.get_ref(2)?.as_str()?.eq_ignore_ascii_case("BINARY");
            unique.push(name.clone());
        }
        columns.push(name);
    }
    Ok((Some(columns), if is_unique { unique } else { Vec::new() }))
}

/// Returns the functions whose result depends on their arguments alone, in all their forms.
fn pure_functions(sqlite: &Sqlite) -> rusqlite::Result<HashSet<Box<str>>> {
    let mut listed = sqlite.prepare("SELECT lower(name), builtin, type, flags FROM pragma_function_list")?;
    let mut rows = listed.query([])?;
    let (mut pure, mut impure) = (HashSet::new(), HashSet::new());
    while let Some(row) = rows.next()? {
        let name: Box<str> = row.get::<_, String>(0)?.into();
        let is_own_aggregate = row.get(1)? && row.get_ref(2)?.as_str()? != "s";
        let is_pure = is_own_aggregate || row.get::<_, i64>(3)? & DETERMINISTIC != 0;
        if is_pure {
            pure.insert(name)
        } else {
            impure.insert(name)
        };
    }
    pure.retain(|name| !impure.contains(name) && !READ_THE_CLOCK.contains(&&**name));
    Ok(pure)
}
