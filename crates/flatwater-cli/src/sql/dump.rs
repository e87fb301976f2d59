//! A database as SQL: statements that make it anew, as the `.dump` of the `sqlite3` shell.
//!
//! Owns: their order. Invariants: the tables come before their rows, and indexes, views and triggers behind all rows, so that no
//! trigger fires; values are written as literals that are read back unchanged. Leaves out: rowids of tables that have no INTEGER PRIMARY
//! KEY, and settings of the file, such as its page size.

use flatwater::{Rows, Session};

use super::runner::batches_of;
use crate::failure::{Failure, Outcome};
use crate::output::Out;
use crate::output::text::{self, quoted};

/// Returns the schema: what is a table first, in the order in which it was made.
const SCHEMA: &str = "SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL
    ORDER BY type <> 'table', name = 'sqlite_sequence', rowid";

/// Writes a database, or some of its tables with what belongs to them.
pub(crate) fn write(of: &Session, tables: &[String], out: &mut Out) -> Outcome {
    let schema: Vec<(String, String, String)> = of.query(SCHEMA, ()).wait()?.read()?;
    let owners: Vec<(String, String)> = of.query("SELECT name, tbl_name FROM sqlite_schema", ()).wait()?.read()?;
    if let Some(missing) = tables.iter().find(|table| !schema.iter().any(|(_, name, _)| name == *table)) {
        return Err(Failure::Usage(format!("there is no table {missing}")));
    }
    let owner = |name: &str| owners.iter().find(|(owned, _)| owned == name).map_or("", |(_, owner)| owner);
    let is_wanted = |name: &str| tables.is_empty() || tables.iter().any(|table| table == owner(name));
    out.text("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n");
    let mut writes_schema = false;
    for (kind, name, sql) in schema.iter().filter(|(_, name, _)| is_wanted(name)) {
        if kind != "table" {
            out.text(sql);
            out.text(";\n");
            continue;
        }
        if is_virtual(of, name)? {
            if !std::mem::replace(&mut writes_schema, true) {
                out.text("PRAGMA writable_schema=ON;\n");
            }
            virtual_table(name, sql, out);
            continue;
        }
        table_head(name, sql, out);
        rows(of, name, out)?;
    }
    if writes_schema {
        out.text("PRAGMA writable_schema=OFF;\n");
    }
    out.text("COMMIT;\n");
    out.flush()
}

/// Returns whether a table has its rows elsewhere: in tables of their own, which are dumped too.
fn is_virtual(of: &Session, name: &str) -> Outcome<bool> {
    let kind = "SELECT type FROM pragma_table_list WHERE schema = 'main' AND name = ?";
    let kind: Option<String> = of.query_optional_value(kind, (name,)).wait()?;
    Ok(kind.is_some_and(|kind| kind == "virtual"))
}

/// Its module would make the tables that it keeps its rows in, which are made as tables already.
fn virtual_table(name: &str, sql: &str, out: &mut Out) {
    out.text("INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql) VALUES('table',");
    for text in [name, name] {
        literal(text, out);
        out.text(",");
    }
    out.text("0,");
    literal(sql, out);
    out.text(");\n");
}

fn literal(value: &str, out: &mut Out) {
    text::literal(flatwater::ValueRef::Text(value.as_bytes()), &mut out.buffer);
}

fn table_head(name: &str, sql: &str, out: &mut Out) {
    match name {
        // They are made by the tables before, and by the first statistics.
        "sqlite_sequence" => out.text("DELETE FROM sqlite_sequence;\n"),
        "sqlite_stat1" => out.text("ANALYZE sqlite_schema;\n"),
        name if name.starts_with("sqlite_stat") => {}
        _ => {
            out.text(sql);
            out.text(";\n");
        }
    }
}

fn rows(of: &Session, table: &str, out: &mut Out) -> Outcome {
    let columns = "SELECT name, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1";
    let columns: Vec<(String, i64)> = of.query(columns, (table,)).wait()?.read()?;
    let stored: Vec<String> = columns.iter().filter(|(_, hidden)| *hidden == 0).map(|(name, _)| quoted(name)).collect();
    let names = if stored.len() == columns.len() { String::new() } else { format!("({})", stored.join(",")) };
    let sql = format!("SELECT {} FROM {}", stored.join(","), quoted(table));
    let head = format!("INSERT INTO {}{names} VALUES(", quoted(table));
    batches_of(of, &sql, |rows| inserts(&head, &rows, out))
}

/// Writes each row as a statement, after its head.
fn inserts(head: &str, rows: &Rows, out: &mut Out) -> Outcome {
    for row in rows {
        out.text(head);
        for (at, value) in row.values().enumerate() {
            if at > 0 {
                out.text(",");
            }
            text::literal(value, &mut out.buffer);
        }
        out.text(");\n");
        out.spill()?;
    }
    Ok(())
}
