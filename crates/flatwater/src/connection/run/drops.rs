//! DROP TABLE of a table to which rows of other tables refer.
//!
//! Owns: finding out whether it would change these rows. Runs on the thread that has the connection, before the
//! statement. Invariant: a DROP TABLE that would change no row of another table is never refused. Leaves out: a foreign
//! key without an action, for which SQLite refuses the drop itself.

use rusqlite::config::DbConfig;

use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::tokens::quoted;

/// A foreign key of another table: its number there, the action, and the two lists of columns. The columns of the parent
/// are `None` for its primary key.
struct ForeignKey {
    child: String,
    number: i64,
    action: String,
    columns: Vec<(String, Option<String>)>,
}

impl Connection {
    /// Returns an error if DROP TABLE of `table` would delete or change rows of other tables. Reads these tables.
    pub(crate) fn refuse_cascading_drop(&self, table: &str) -> Result<()> {
        if !self.sqlite.rusqlite().db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY)? {
            return Ok(());
        }
        for key in self.acting_keys(table)? {
            if self.has_children(table, &key)? {
                let ForeignKey { child, action, .. } = key;
                let message =
                    format!("DROP TABLE {table} would change rows of {child}, whose foreign key says {action}");
                return Err(Error::misuse(message).with_hint(
                    "rebuild a table in a migration, where foreign keys are off; to drop it with this effect set \
                     `Tuning::cascading_drop`",
                ));
            }
        }
        Ok(())
    }

    /// Returns the foreign keys of other tables that refer to `table` and change rows when their parent is deleted.
    fn acting_keys(&self, table: &str) -> Result<Vec<ForeignKey>> {
        self.sqlite
            .patiently_with(|sqlite| {
                let mut listed = sqlite.prepare(
                    "SELECT tables.name, keys.id, 'ON DELETE ' || keys.on_delete, keys.\"from\", keys.\"to\"
                     FROM main.sqlite_schema AS tables, pragma_foreign_key_list(tables.name, 'main') AS keys
                     WHERE tables.type = 'table' AND keys.\"table\" = ?1 COLLATE NOCASE
                     AND tables.name <> ?1 COLLATE NOCASE AND keys.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
                     ORDER BY tables.name, keys.id, keys.seq",
                )?;
                let mut rows = listed.query([table])?;
                let mut keys: Vec<ForeignKey> = Vec::new();
                while let Some(row) = rows.next()? {
                    let (child, number): (String, i64) = (row.get(0)?, row.get(1)?);
                    let column = (row.get(3)?, row.get(4)?);
                    match keys.last_mut().filter(|key| key.child == child && key.number == number) {
                        Some(key) => key.columns.push(column),
                        None => keys.push(ForeignKey { child, number, action: row.get(2)?, columns: vec![column] }),
                    }
                }
                Ok(keys)
            })
            .map_err(Error::from)
    }

    fn has_children(&self, table: &str, key: &ForeignKey) -> Result<bool> {
        let found = self.sqlite.patiently_with(|sqlite| {
            let sql = "SELECT name FROM pragma_table_info(?1, 'main') WHERE pk > 0 ORDER BY pk";
            let primary: Vec<String> =
                sqlite.prepare(sql)?.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let conditions = key.columns.iter().enumerate().map(|(at, (from, to))| {
                let to = to.as_ref().or(primary.get(at)).map_or("rowid", String::as_str);
                // The collation of the left side counts, as in a foreign key.
                format!("parent.{} = child.{}", quoted(to), quoted(from))
            });
            let conditions = conditions.collect::<Vec<_>>().join(" AND ");
            let (parent, child) = (quoted(table), quoted(&key.child));
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM main.{child} AS child, main.{parent} AS parent WHERE {conditions})"
            );
            sqlite.query_row(&sql, [], |row| row.get(0))
        });
        match found.map_err(Error::from) {
            // A foreign key that does not fit its parent: SQLite itself refuses the drop.
            Err(error) if error.kind() == ErrorKind::Sql => Ok(false),
            found => found,
        }
    }
}
