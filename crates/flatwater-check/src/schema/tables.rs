//! The tables and views of a schema, for types of their rows.
//!
//! Owns: listing them. Invariant: they come in the order of their names. Leaves out: what statements return.

use super::Schema;
use crate::fault::Fault;
use crate::kind::{self, Kind};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<TableField>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableField {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether a value may be NULL.
    pub nullable: bool,
    /// Whether a new row need not give it: it has a default, or is the rowid.
    pub has_default: bool,
    /// Whether a row cannot give it.
    pub is_computed: bool,
}

const TABLES: &str = "SELECT name, strict, wr FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
const COLUMNS: &str = "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk, hidden,
        (SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0)
            + (SELECT count(*) FROM pragma_index_list(?1) WHERE origin = 'pk')
    FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid";

impl Schema {
    /// The tables of the database, without virtual ones.
    ///
    /// # Errors
    /// SQLite's, for lack of memory.
    pub fn tables(&self) -> Result<Vec<Table>, Fault> {
        let connection = self.sqlite.rusqlite();
        let mut statement = connection.prepare(TABLES)?;
        let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut columns = connection.prepare(COLUMNS)?;
        let mut all = Vec::new();
        for table in tables {
            let (name, strict, without_rowid): (String, bool, bool) = table?;
            let fields = columns.query_map([&name], |row| {
                let declared: String = row.get(1)?;
                let is_key = row.get::<_, i64>(4)? > 0;
                let is_rowid =
                    !without_rowid && is_key && row.get::<_, i64>(6)? == 1 && declared.eq_ignore_ascii_case("INTEGER");
                Ok(TableField {
                    name: row.get(0)?,
                    kind: if strict { kind::strict(&declared) } else { kind::declared(&declared) },
                    nullable: !(row.get::<_, bool>(2)? || is_rowid || without_rowid && is_key),
                    has_default: row.get::<_, bool>(3)? || is_rowid,
                    is_computed: row.get::<_, i64>(5)? > 1,
                })
            })?;
            let fields = fields.collect::<Result<_, _>>()?;
            all.push(Table { name, columns: fields });
        }
        Ok(all)
    }
}
