//! Foreign keys without an index.
//!
//! Owns: finding them. Invariant: a key has an index if one begins with its columns, in any order. Leaves out: whether the index is used.

use std::collections::BTreeMap;

use super::Schema;
use crate::fault::Fault;

const KEYS: &str = "SELECT t.name, f.id, f.\"from\" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
    WHERE t.schema = 'main' ORDER BY t.name, f.id, f.seq";
const INDEXES: &str =
    "SELECT i.name, c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c WHERE c.name NOTNULL
    UNION ALL SELECT '', name FROM pragma_table_info(?1) WHERE pk = 1 AND upper(type) = 'INTEGER'";

impl Schema {
    /// The foreign keys of which no index begins with their columns: the table, and the columns. Deleting a parent reads every row of
    /// such a table (<https://sqlite.org/foreignkeys.html#fk_indexes>).
    ///
    /// # Errors
    /// SQLite's, for lack of memory.
    pub fn unindexed_foreign_keys(&self) -> Result<Vec<(String, Vec<String>)>, Fault> {
        let connection = self.sqlite.rusqlite();
        let mut keys: BTreeMap<(String, i64), Vec<String>> = BTreeMap::new();
        let mut statement = connection.prepare(KEYS)?;
        let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        for row in rows {
            let (key, column) = row?;
            keys.entry(key).or_default().push(column);
        }
        let mut statement = connection.prepare(INDEXES)?;
        let mut unindexed = Vec::new();
        for ((table, _), columns) in keys {
            let mut indexes: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for row in statement.query_map([&table], |row| Ok((row.get(0)?, row.get(1)?)))? {
                let (index, column) = row?;
                indexes.entry(index).or_default().push(column);
            }
            let begins =
                |index: &Vec<String>| index.iter().take(columns.len()).filter(|it| columns.contains(it)).count();
            if !indexes.values().any(|index| begins(index) == columns.len()) {
                unindexed.push((table, columns));
            }
        }
        Ok(unindexed)
    }
}
