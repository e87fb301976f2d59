//! What the writer knows of the schema: its cookie, and the tables whose conflict clauses a group could not contain.
//!
//! Owns: reading both. Runs on the writer's thread, holding the token. Invariant: the facts belong to the cookie they
//! were read under; the cookie is compared inside the group's transaction, where nobody else can change it.

use std::collections::HashSet;

use super::class::Schema;
use super::open::Connection;
use super::words::has_hostile_conflict_clause;
use crate::types::error::Result;

/// The facts of one schema version.
#[derive(Debug, Default)]
pub(crate) struct SchemaFacts {
    /// `PRAGMA schema_version` (<https://sqlite.org/pragma.html#pragma_schema_version>) when they were read.
    cookie: Option<i64>,
    /// In lower case.
    hostile_tables: HashSet<String>,
}

impl Schema for SchemaFacts {
    fn is_hostile(&self, table: &str) -> bool {
        !self.hostile_tables.is_empty() && self.hostile_tables.contains(&table.to_lowercase())
    }
}

impl SchemaFacts {
    /// Whether the facts still hold. Reads the cookie.
    pub(crate) fn are_current(&self, connection: &mut Connection) -> Result<bool> {
        Ok(self.cookie == Some(connection.schema_cookie()?))
    }

    /// Reads them anew, outside any transaction or in one that changed nothing.
    pub(crate) fn read(connection: &mut Connection) -> Result<Self> {
        let cookie = connection.schema_cookie()?;
        let hostile_tables = connection.sqlite.patiently_with(|sqlite| {
            let mut statement = sqlite.prepare("SELECT tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL")?;
            let mut rows = statement.query([])?;
            let mut hostile_tables = HashSet::new();
            while let Some(row) = rows.next()? {
                // A definition that is not valid UTF-8 is taken for the worst.
                let hostile = row.get_ref(1)?.as_str().map_or(true, has_hostile_conflict_clause);
                if hostile {
                    hostile_tables.insert(row.get::<_, String>(0)?.to_lowercase());
                }
            }
            Ok(hostile_tables)
        })?;
        Ok(Self { cookie: Some(cookie), hostile_tables })
    }
}
