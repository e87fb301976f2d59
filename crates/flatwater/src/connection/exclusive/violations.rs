//! Rows whose foreign key has no parent, before and after a migration.
//!
//! Owns: finding them with `PRAGMA foreign_key_check`, and comparing two findings. Runs on the thread that has the
//! connection. Reads every row of each table that is checked. Leaves out: what follows from them.

use std::collections::{HashMap, HashSet};

use flatwater_sqlite::Sqlite;

use crate::error::{Error, ErrorKind, Result};
use crate::sql::tokens::quoted;

/// The violations of a database: how many there are of each table, rowid and parent table. A table that cannot be
/// checked, because a foreign key does not fit its parent, has one with the reason in the place of the parent.
#[derive(Debug, Default)]
pub(crate) struct Violations(HashMap<(String, Option<i64>, String), u64>);

impl Violations {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an error if there is a violation that `before` has not.
    pub(crate) fn refuse_new_since(&self, before: &Self) -> Result<()> {
        let is_new = |key: &&(String, Option<i64>, String)| self.0[*key] > before.0.get(*key).copied().unwrap_or(0);
        let mut new: Vec<_> = self.0.keys().filter(is_new).collect();
        new.sort();
        let Some((table, rowid, parent)) = new.first() else { return Ok(()) };
        let row = rowid.map_or_else(String::new, |rowid| format!(", rowid {rowid}"));
        let message =
            format!("it adds {} foreign key violations; the first: table {table}{row}, parent {parent}", new.len());
        Err(Error::new(ErrorKind::Constraint, message)
            .with_hint("foreign keys, CASCADE included, are off while a migration or a dump runs"))
    }
}

/// Switches the enforcement of foreign keys. Does nothing inside of a transaction.
pub(crate) fn enforce_foreign_keys(sqlite: &Sqlite, on: bool) -> Result<()> {
    let fkey = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY;
    sqlite.rusqlite().set_db_config(fkey, on)?;
    Ok(())
}

/// Returns the names of the tables, in lower case.
pub(crate) fn tables(sqlite: &Sqlite) -> Result<HashSet<String>> {
    let mut names = sqlite.rusqlite().prepare("SELECT lower(name) FROM main.sqlite_schema WHERE type = 'table'")?;
    Ok(names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Returns the violations in the tables with a foreign key for which `is_checked` is true, or that refer to such a
/// table. The names are in lower case.
pub(crate) fn violations(sqlite: &Sqlite, is_checked: impl Fn(&str) -> bool) -> Result<Violations> {
    let sqlite = sqlite.rusqlite();
    let mut keys = sqlite.prepare(
        "SELECT tables.name, keys.\"table\" FROM main.sqlite_schema AS tables,
         pragma_foreign_key_list(tables.name, 'main') AS keys WHERE tables.type = 'table'",
    )?;
    let keys = keys.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut tables = HashSet::new();
    for key in keys {
        let (table, parent) = key?;
        if is_checked(&table.to_lowercase()) || is_checked(&parent.to_lowercase()) {
            tables.insert(table);
        }
    }
    let mut found = Violations::default();
    for table in tables {
        let check =
            sqlite.prepare(&format!("PRAGMA main.foreign_key_check({})", quoted(&table))).and_then(|mut check| {
                let rows = check.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
        match check.map_err(Error::from) {
            Ok(rows) => rows.into_iter().for_each(|row| *found.0.entry(row).or_default() += 1),
            Err(error) if error.kind() == ErrorKind::Sql => {
                found.0.insert((table, None, error.message().to_owned()), 1);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_violations_are_refused_and_each_counts() {
        let of = |list: &[(&str, Option<i64>, u64)]| {
            Violations(list.iter().map(|(table, row, count)| (((*table).into(), *row, "p".into()), *count)).collect())
        };
        let before = of(&[("a", Some(1), 1), ("b", None, 2)]);
        assert!(of(&[("a", Some(1), 1)]).refuse_new_since(&before).is_ok());
        assert!(before.refuse_new_since(&before).is_ok());
        for worse in [&[("a", Some(2), 1)][..], &[("b", None, 3)], &[("a", Some(1), 1), ("c", None, 1)]] {
            let error = of(worse).refuse_new_since(&before).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{worse:?}");
            assert!(error.message().contains("adds 1 "), "{error}");
        }
    }
}
