//! The tables and indexes of a schema by their b-trees, as the instructions of a program name them.
//!
//! Owns: what each column of a b-tree holds. Invariant: the columns are those of a record as it is stored: of a table without its
//! virtual generated columns, of an index those it was made of and the key of the row behind them. Leaves out: programs (`infer`).

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use crate::fault::Fault;
use crate::infer::value::Value;
use crate::kind::{self, Kind};
use crate::table_column::TableColumn;

/// What a b-tree stores.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stored {
    pub(crate) table: String,
    pub(crate) columns: Vec<Value>,
    /// The column that is the rowid, of a table that has one by name.
    pub(crate) rowid: Option<Arc<TableColumn>>,
    /// Whether it is a table with rowids, whose key is a number.
    pub(crate) has_rowid: bool,
}

/// Each b-tree of a schema by the number of its database and its root page.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(HashMap<(i32, i32), Arc<Stored>>);

/// A column as `pragma_table_xinfo` has it.
struct Listed {
    column: Arc<TableColumn>,
    /// 2 for a virtual generated column.
    hidden: i64,
}

const COLUMNS: &str = "SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1, ?2) ORDER BY cid";
const BTREES: &str = "SELECT type, name, tbl_name, rootpage FROM main.sqlite_schema WHERE rootpage > 0";
const TABLE: &str = "SELECT wr, strict FROM pragma_table_list WHERE schema = ?2 AND name = ?1";
const INDEX: &str = "SELECT cid FROM pragma_index_xinfo(?1, ?2) ORDER BY seqno";
const KEY: &str = "SELECT name FROM pragma_index_list(?1, ?2) WHERE origin = 'pk'";

impl Catalogue {
    pub(crate) fn of(connection: &Connection) -> Result<Self, Fault> {
        let mut databases = connection.prepare("SELECT seq, name FROM pragma_database_list")?;
        let databases = databases.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut all = HashMap::new();
        for database in databases.collect::<Result<Vec<(i32, String)>, _>>()? {
            of_database(connection, &database, &mut all)?;
        }
        Ok(Self(all))
    }

    pub(crate) fn at(&self, database: i32, root: i32) -> Option<&Arc<Stored>> {
        self.0.get(&(database, root))
    }
}

type Trees = HashMap<(i32, i32), Arc<Stored>>;

fn of_database(connection: &Connection, (number, name): &(i32, String), all: &mut Trees) -> Result<(), Fault> {
    let sql = BTREES.replace("main.", &format!("{}.", flatwater_sql::tokens::quoted(name)));
    let mut trees = connection.prepare(&sql)?;
    let trees = trees.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    for (kind, own, table, root) in trees.collect::<Result<Vec<(String, String, String, i32)>, _>>()? {
        let Ok((without_rowid, strict)) =
            connection.query_row(TABLE, [&table, name], |row| Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?)))
        else {
            continue;
        };
        let listed = listed(connection, name, &table, without_rowid, strict)?;
        let rowid = listed.iter().find(|listed| !without_rowid && is_rowid(&listed.column)).map(|it| it.column.clone());
        let stored = if kind == "table" && !without_rowid {
            let stored = listed.iter().filter(|listed| listed.hidden != 2);
            Stored {
                table,
                columns: stored.map(|listed| Value::of_column(&listed.column)).collect(),
                rowid,
                has_rowid: true,
            }
        } else {
            let index =
                if kind == "table" { connection.query_row(KEY, [&table, name], |row| row.get(0))? } else { own };
            Stored {
                table,
                columns: of_index(connection, name, &index, &listed, rowid)?,
                rowid: None,
                has_rowid: false,
            }
        };
        all.insert((*number, root), Arc::new(stored));
    }
    Ok(())
}

/// Whether a column is the rowid of its table, by the mark that `listed` has left.
fn is_rowid(column: &TableColumn) -> bool {
    column.not_null && column.certain && column.kind == Kind::Integer && column.declared == ROWID
}

/// How the declared type of a column that is the rowid is kept: it has no other spelling.
pub(crate) const ROWID: &str = "INTEGER PRIMARY KEY";

fn listed(
    connection: &Connection,
    database: &str,
    table: &str,
    without_rowid: bool,
    strict: bool,
) -> Result<Vec<Listed>, Fault> {
    let mut statement = connection.prepare(COLUMNS)?;
    let rows = statement.query_map([table, database], |row| {
        let declared: String = row.get(1)?;
        let kind = if strict { kind::strict(&declared) } else { kind::declared(&declared) };
        let column =
            (row.get(0)?, declared, kind, row.get::<_, bool>(2)?, row.get::<_, i64>(3)?, row.get::<_, i64>(4)?);
        Ok(column)
    })?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let keys = rows.iter().filter(|row| row.4 > 0).count();
    // A key of one INTEGER is the rowid, unless it was declared as DESC, which only the index that it then has shows.
    let has_index = connection.query_row(KEY, [table, database], |row| row.get::<_, String>(0)).is_ok();
    let column = |(name, declared, kind, not_null, key, hidden): (String, String, Kind, bool, i64, i64)| {
        let is_rowid =
            !without_rowid && keys == 1 && key == 1 && !has_index && declared.eq_ignore_ascii_case("INTEGER");
        let (database, table) = (database.to_owned(), table.to_owned());
        let column = TableColumn {
            database,
            table,
            name,
            not_null: not_null || is_rowid || without_rowid && key > 0,
            certain: strict || is_rowid,
            kind: if is_rowid { Kind::Integer } else { kind },
            declared: if is_rowid { ROWID.to_owned() } else { declared },
        };
        Listed { column: Arc::new(column), hidden }
    };
    Ok(rows.into_iter().map(column).collect())
}

fn of_index(
    connection: &Connection,
    database: &str,
    index: &str,
    listed: &[Listed],
    rowid: Option<Arc<TableColumn>>,
) -> Result<Vec<Value>, Fault> {
    let mut statement = connection.prepare(INDEX)?;
    let cids = statement.query_map([index, database], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    let value = |cid: i64| match cid {
        // The rowid.
        -1 => rowid.as_ref().map_or(Value::INTEGER, Value::of_column),
        // An expression.
        cid => usize::try_from(cid)
            .ok()
            .and_then(|cid| listed.get(cid))
            .map_or(Value::ANY, |it| Value::of_column(&it.column)),
    };
    Ok(cids.into_iter().map(value).collect())
}
