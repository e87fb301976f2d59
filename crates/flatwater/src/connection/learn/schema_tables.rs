//! What the schema says about the tables that a live query reads.
//!
//! Owns: asking SQLite for kinds, columns, indexes, views and functions. Runs on the thread that has the connection, inside
//! the snapshot that the caller holds. Invariant: what cannot be told is stated as the weaker fact. Leaves out: what follows
//! from it (`dependencies::reads`).

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection as Sqlite, Row};

use crate::connection::rows;
use flatwater_sql::dependencies::Columns;
use flatwater_sql::dependencies::tables::{Index, Kind, Table, Tables};
use flatwater_sql::text::{joins_by_name, kind_of_virtual, may_replace};
use flatwater_sql::tokens::names;

/// SQLITE_DETERMINISTIC (<https://sqlite.org/c3ref/c_deterministic.html>).
const DETERMINISTIC: i64 = 0x800;
/// Functions that SQLite calls deterministic, and that read the clock for some arguments
/// (<https://sqlite.org/lang_datefunc.html>).
const READ_THE_CLOCK: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];
/// The number that an index has in the place of a column for an expression (<https://sqlite.org/pragma.html#pragma_index_xinfo>).
const EXPRESSION: i64 = -2;

/// Reads the facts of the schema for the tables with these names, which this text reads.
pub(crate) fn tables(sqlite: &Sqlite, read: &HashSet<&str>, sql: &str) -> rusqlite::Result<Tables> {
    let mut found = Tables { pure_functions: pure_functions(sqlite)?, ..Tables::default() };
    let kind = |row: &Row<'_>| {
        let kind = match (row.get_ref(1)?.as_str()?, row.get(2)?) {
            ("table", false) => Kind::Rowid,
            ("table", true) => Kind::WithoutRowid,
            ("view", _) => Kind::View,
            _ => Kind::Virtual,
        };
        Ok((row.get(0)?, kind))
    };
    let listed = "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main'";
    let kinds: HashMap<String, Kind> = rows(sqlite, listed, [], kind)?;
    let mut listed = sqlite.prepare("SELECT type, name, tbl_name, rootpage, sql FROM main.sqlite_schema")?;
    let mut rows = listed.query([])?;
    let mut views: Vec<(String, String)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, root) = (row.get::<_, String>(1)?, row.get::<_, Option<i32>>(3)?.unwrap_or(0));
        // A definition that is not valid UTF-8 may say anything.
        let definition = row.get_ref(4)?.as_str_or_null().unwrap_or(Some("REPLACE NATURAL")).unwrap_or_default();
        found.replaces |= may_replace(definition);
        found.has_statistics |= name.starts_with("sqlite_stat");
        match row.get_ref(0)?.as_str()? {
            "index" => {
                let mut index = Index { table: row.get(2)?, columns: Columns::All, unique: Vec::new() };
                if read.contains(&*index.table) {
                    add_indexed_columns(sqlite, &name, &mut index)?;
                }
                found.indexes.insert(root, index);
            }
            "table" | "view" => {
                let kind = match kinds.get(&name) {
                    Some(Kind::Virtual) if root == 0 => kind_of_virtual(definition),
                    Some(kind) => kind.clone(),
                    None => Kind::Virtual,
                };
                let mut table = Table::of(kind, root);
                if table.kind == Kind::View {
                    views.push((name.clone(), definition.to_owned()));
                }
                if read.contains(&*name) {
                    add_columns(sqlite, &name, &mut table)?;
                }
                found.tables.insert(name.into(), table);
            }
            _ => {}
        }
    }
    found.joins_by_name = joins_by_name(sql) || reads_view_that_joins_by_name(sql, views);
    Ok(found)
}

/// Returns true if the text may read a view that joins by name, maybe through other views. SQLite does not report that a view
/// is read if it makes one query of both.
pub(crate) fn reads_view_that_joins_by_name(sql: &str, views: Vec<(String, String)>) -> bool {
    let mut texts = vec![sql.to_owned()];
    let mut by_name: HashMap<String, String> = HashMap::new();
    for (name, definition) in views {
        // A quote in a name is written in more than one way.
        if !name.contains(['"', '`', ']', '\'']) {
            by_name.insert(name.to_ascii_lowercase(), definition);
        } else {
            texts.push(definition);
        }
    }
    // The first text itself does not count, and each other one is read once.
    let mut is_view = false;
    let mut next = 0;
    while let Some(text) = texts.get(next) {
        if is_view && joins_by_name(text) {
            return true;
        }
        let named: Vec<String> = names(text).filter_map(|name| by_name.remove(&name.to_ascii_lowercase())).collect();
        texts.extend(named);
        (is_view, next) = (true, next + 1);
    }
    false
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

/// Adds what the columns of an index say about it, unless it has an expression, such as the condition of a partial one.
fn add_indexed_columns(sqlite: &Sqlite, name: &str, index: &mut Index) -> rusqlite::Result<()> {
    let kind = "SELECT \"unique\", partial FROM pragma_index_list(?1, 'main') WHERE name = ?2";
    let (mut is_unique, is_partial): (bool, bool) =
        sqlite.query_row(kind, [&index.table, name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if is_partial {
        return Ok(());
    }
    let mut listed = sqlite.prepare("SELECT cid, name, coll, key FROM pragma_index_xinfo(?1, 'main')")?;
    let mut rows = listed.query([name])?;
    let (mut columns, mut unique) = (Columns::NONE, Vec::new());
    while let Some(row) = rows.next()? {
        let name = match (row.get(0)?, row.get::<_, Option<String>>(1)?) {
            (EXPRESSION, _) => return Ok(()),
            (_, Some(name)) => Box::<str>::from(name),
            _ => continue,
        };
        columns.add(&name);
        if row.get(3)? {
            is_unique &= row.get_ref(2)?.as_str()?.eq_ignore_ascii_case("BINARY");
            unique.push(name);
        }
    }
    index.columns = columns;
    if is_unique {
        index.unique = unique;
    }
    Ok(())
}

/// Returns the functions whose result depends on their arguments alone, in all their forms.
fn pure_functions(sqlite: &Sqlite) -> rusqlite::Result<HashSet<Box<str>>> {
    let is_pure = |row: &Row<'_>| {
        let is_own_aggregate = row.get(1)? && row.get_ref(2)?.as_str()? != "s";
        Ok((row.get::<_, String>(0)?.into(), is_own_aggregate || row.get::<_, i64>(3)? & DETERMINISTIC != 0))
    };
    let listed = "SELECT lower(name), builtin, type, flags FROM pragma_function_list";
    let listed: Vec<(Box<str>, bool)> = rows(sqlite, listed, [], is_pure)?;
    let (pure, impure): (Vec<_>, Vec<_>) = listed.into_iter().partition(|(_, is_pure)| *is_pure);
    let impure: HashSet<Box<str>> = impure.into_iter().map(|(name, _)| name).collect();
    let is_pure = |name: &str| !impure.contains(name) && !READ_THE_CLOCK.contains(&name);
    Ok(pure.into_iter().map(|(name, _)| name).filter(|name| is_pure(name)).collect())
}
