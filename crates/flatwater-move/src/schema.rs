//! The schema of the source, as it was copied.
//!
//! Owns: the table of the source that has it, and making on the target what it has not. Invariant: what has changed since is seen before
//! the switch is over, also if its name and its columns are the same. Leaves out: the rows.

use std::fmt::Write as _;

use flatwater::{Error, Result};

use crate::bound::has_table;
use crate::log::SCHEMA;
use crate::rows::refused;
use crate::sides::Sides;
use crate::table::{Table, literal, quoted, tables};

/// What of the schema is the program's. The history of migrations moves with it.
const OURS: &str = "sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    AND (tbl_name NOT LIKE '\\_flatwater\\_%' ESCAPE '\\' OR tbl_name = '_flatwater_migrations')
    AND name NOT LIKE '\\_flatwater\\_mov%' ESCAPE '\\'";

impl Sides<'_> {
    /// Makes the tables that the target has not.
    ///
    /// # Errors
    /// `Misuse` for a table that has changed since it was made there.
    pub(crate) async fn make_tables(&self, all: &[Table]) -> Result<()> {
        self.follow_schema().await?;
        let there = tables(self.to).await?;
        for table in all {
            match there.iter().find(|other| other.name == table.name) {
                Some(other) if other.is_like(table) => {}
                Some(_) => return Err(changed(&table.name)),
                None => {
                    self.check().await?;
                    self.to.execute(&*table.sql, ()).await?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a source that has got other tables since the copy.
    pub(crate) async fn check_schema(&self, refusing: &[Table]) -> Result<()> {
        let new = format!(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND {OURS} AND name NOT IN (SELECT name FROM {SCHEMA})"
        );
        if let Some(name) = self.from.query_values::<String>(new, ()).await?.first() {
            return Err(changed(name));
        }
        self.follow_schema().await?;
        let (now, there) = (tables(self.from).await?, tables(self.to).await?);
        let has = |all: &[Table], table: &Table| all.iter().any(|other| other.is_like(table));
        match now.iter().find(|table| !has(refusing, table) || !has(&there, table)) {
            Some(table) => Err(changed(&table.name)),
            None => Ok(()),
        }
    }

    /// Removes from the target the indexes and views that the source has changed or removed since they were copied, and takes the schema down anew.
    async fn follow_schema(&self) -> Result<()> {
        let stale = format!(
            "SELECT type, name FROM (SELECT type, name, sql FROM {SCHEMA} EXCEPT SELECT type, name, sql FROM sqlite_schema)"
        );
        let stale: Vec<(String, String)> = self.from.query_as(stale, ()).await?;
        if let Some((_, name)) = stale.iter().find(|(kind, _)| kind == "table") {
            return Err(changed(name));
        }
        self.check().await?;
        let mut script = String::new();
        for (kind, name) in stale {
            self.to.execute(format!("DROP {kind} IF EXISTS {}", quoted(&name)), ()).await?;
            let _ =
                write!(script, "DELETE FROM {SCHEMA} WHERE type = {} AND name = {};", literal(&kind), literal(&name));
        }
        // What has changed a moment ago stays as it was, and is seen next time.
        let _ = write!(
            script,
            "INSERT INTO {SCHEMA} SELECT type, name, sql FROM sqlite_schema WHERE {OURS}
                AND (type, name) NOT IN (SELECT type, name FROM {SCHEMA});"
        );
        self.from.execute_script(script).await
    }

    /// Makes what the target has not of a kind.
    pub(crate) async fn make_others(&self, kind: &str) -> Result<()> {
        let all = format!("SELECT name, sql FROM sqlite_schema WHERE type = ? AND {OURS} ORDER BY rowid");
        let there: Vec<(String, String)> = self.to.query_as(&*all, (kind,)).await?;
        let of_source: Vec<(String, String)> = self.from.query_as(all, (kind,)).await?;
        for (_, sql) in of_source.into_iter().filter(|(name, _)| !there.iter().any(|(other, _)| other == name)) {
            self.check().await?;
            self.to.execute(sql, ()).await?;
        }
        Ok(())
    }

    /// Takes the highest numbers of AUTOINCREMENT over.
    pub(crate) async fn take_sequences(&self) -> Result<()> {
        let table = "sqlite_sequence";
        if !has_table(self.from, table).await? || !has_table(self.to, table).await? {
            return Ok(());
        }
        let all = "SELECT name, seq FROM sqlite_sequence WHERE substr(name, 1, 11) <> '_flatwater_'";
        for (name, number) in self.from.query_as::<(String, i64)>(all, ()).await? {
            let set = self.to.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (number, &*name)).await?;
            if set.changes == 0 {
                self.to.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (&*name, number)).await?;
            }
        }
        Ok(())
    }
}

/// The error of a table that has changed since it was copied.
fn changed(table: &str) -> Error {
    let hint =
        "copy again; if the target has it in an older form, give the move up and begin anew with an empty database";
    refused(format!("the table {table} is not as it was copied"), hint)
}
