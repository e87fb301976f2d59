//! The content of an image, read with plain SQLite or with Flatwater: the same statements on both.

use std::path::Path;

use flatwater::{FromSql, Options};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::plan::{MAIN, Plan, SIDE};
use crate::checks;
use crate::finding::Finding;
use crate::plain;

/// Every row of every table of the two files.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) main: Tables,
    pub(crate) side: Tables,
}

/// The names of the tables in order, with their rows in order.
pub(crate) type Tables = Vec<(String, Vec<Vec<Value>>)>;

const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";

fn all_of(schema: &str, table: &str) -> String {
    format!("SELECT * FROM {schema}.\"{table}\" ORDER BY 1")
}

impl Content {
    /// Reads each file separately with plain SQLite, after a check for damage.
    pub(crate) fn with_plain(directory: &Path, plan: &Plan) -> Result<Self, Finding> {
        let read = |name: &str| plain_tables(&plain::open(&directory.join(name), plan.is_encrypted)?);
        let main = read(MAIN)?;
        let side = if plan.has_side { read(SIDE)? } else { Tables::new() };
        Ok(Self { main, side })
    }

    /// Reads the files with Flatwater, and closes them.
    pub(crate) fn with_ours(options: Options) -> Result<Self, Finding> {
        let db = options.open().wait()?;
        let read = |schema: &str| -> Result<Tables, flatwater::Error> {
            let names = NAMES.replace("sqlite_schema", &format!("{schema}.sqlite_schema"));
            let names: Vec<(String,)> = db.query_as(&names, ()).wait()?;
            names
                .into_iter()
                .map(|(name,)| {
                    let rows = db.query(all_of(schema, &name), ()).wait()?;
                    let values = |row: flatwater::Row<'_>| {
                        (0..row.len())
                            .map(|column| Ok(Value::column_result(row.value(column)?).expect("any value will do")))
                            .collect::<Result<Vec<_>, flatwater::Error>>()
                    };
                    Ok((name, rows.iter().map(values).collect::<Result<_, _>>()?))
                })
                .collect()
        };
        let has_side = db
            .query_optional_value::<i64>("SELECT count(*) FROM pragma_database_list WHERE name = 'side'", ())
            .wait()?;
        let main = read("main")?;
        let side = if has_side == Some(1) { read("side")? } else { Tables::new() };
        db.close().wait()?;
        Ok(Self { main, side })
    }
}

fn plain_tables(plain: &Connection) -> Result<Tables, Finding> {
    checks::says_sound(plain)?;
    let mut names = plain.prepare(NAMES)?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let tables = names.into_iter().map(|name| {
        let mut rows = plain.prepare(&all_of("main", &name))?;
        let columns = rows.column_count();
        let rows = rows.query_map([], |row| (0..columns).map(|column| row.get(column)).collect())?;
        let rows = rows.collect::<rusqlite::Result<Vec<Vec<Value>>>>()?;
        Ok((name, rows))
    });
    tables.collect()
}
