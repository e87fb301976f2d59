//! The schema as a connection reads it: whether it is the newest, and the tables whose conflict clauses a group could not
//! contain.
//!
//! Owns: reading it, and comparing its cookie. Runs on the thread that has the connection. Invariants: the facts belong
//! to the cookie under which they were read; a group compares the cookie inside its transaction, where no other
//! connection can change it; an inline run compares it in the snapshot in which it then runs. Leaves out: what is known
//! without reading the cookie (`sql::schema_seen`).

use std::collections::HashSet;

use flatwater_sqlite::WalState;

use crate::connection::open::Connection;
use crate::error::Result;
use crate::inline::outcome::Fallback;
use crate::sql::class::Schema;
use crate::sql::schema_seen::LeftWal;
use crate::sql::tokens::{has_aborting_conflict_clause, quoted};

/// The facts of one schema version.
#[derive(Debug, Default)]
pub(crate) struct SchemaFacts {
    /// `PRAGMA schema_version` (<https://sqlite.org/pragma.html#pragma_schema_version>) when they were read.
    cookie: Option<i64>,
    /// The names of the tables, in lower case.
    aborting_tables: HashSet<String>,
}

impl Schema for SchemaFacts {
    fn is_aborting(&self, table: &str) -> bool {
        !self.aborting_tables.is_empty() && self.aborting_tables.contains(&table.to_lowercase())
    }
}

impl SchemaFacts {
    /// Returns true if the facts still hold. Reads the cookie.
    pub(crate) fn are_current(&self, connection: &mut Connection) -> Result<bool> {
        Ok(self.cookie == Some(connection.schema_cookie()?))
    }

    /// Reads the facts, outside any transaction or in one that changed nothing.
    pub(crate) fn read(connection: &mut Connection) -> Result<Self> {
        let cookie = connection.schema_cookie()?;
        let aborting_tables = connection.sqlite.patiently_with(|sqlite| {
            let mut statement = sqlite.prepare("SELECT tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL")?;
            let mut rows = statement.query([])?;
            let mut aborting_tables = HashSet::new();
            while let Some(row) = rows.next()? {
                // A definition that is not valid UTF-8 is taken for an aborting one.
                let aborting = row.get_ref(1)?.as_str().map_or(true, has_aborting_conflict_clause);
                if aborting {
                    aborting_tables.insert(row.get::<_, String>(0)?.to_lowercase());
                }
            }
            Ok(aborting_tables)
        })?;
        Ok(Self { cookie: Some(cookie), aborting_tables })
    }
}

/// How a connection came to know that its schema is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Without reading the cookie.
    Before,
    /// By the cookie of a snapshot that is still open beside autocommit, for the statement that runs next.
    Held,
}

impl Connection {
    /// Returns the names of all triggers, in lower case.
    pub(crate) fn triggers(&self) -> Result<HashSet<String>> {
        let own = ["main", "temp"].into_iter().chain(self.attached.iter().map(|name| &**name));
        let of_one = |name| format!("SELECT name FROM {}.sqlite_schema WHERE type = 'trigger'", quoted(name));
        let all = own.map(of_one).collect::<Vec<_>>().join(" UNION ALL ");
        let triggers = self.sqlite.patiently_with(|sqlite| {
            sqlite.prepare(&all)?.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        Ok(triggers.iter().map(|name| name.to_lowercase()).collect())
    }

    /// For an inline run: checks that the schema is the one that this connection has seen. Compares the cookie if that
    /// is not known without, and never reads the schema. After [`Known::Held`] the caller must let go of the snapshot.
    pub(crate) fn knows_schema(&mut self, left: &LeftWal) -> Result<Known, Fallback> {
        let state = self.sqlite.wal_state().ok_or(Fallback::Failed)?;
        if self.seen.holds(&state, left) {
            return Ok(Known::Before);
        }
        self.hold_known_schema(&state, left).map(|()| Known::Held)
    }

    /// Begins a snapshot beside autocommit, if the schema in it is the one that this connection has seen. `state` is
    /// from before the snapshot. The caller must let go of the snapshot.
    pub(crate) fn hold_known_schema(&mut self, state: &WalState, left: &LeftWal) -> Result<(), Fallback> {
        let cookie = self.control.hold(&mut self.sqlite).map_err(|error| Fallback::after(error.code()))?;
        if self.seen.is(cookie) {
            self.seen.saw(cookie, state, left);
            return Ok(());
        }
        self.control.let_go(&mut self.sqlite);
        self.seen.forget();
        Err(Fallback::SchemaChanged)
    }

    /// For a worker: reads the schema if it may differ from the one that this connection has seen, so that an inline
    /// run need not read it. Blocks on the file, and waits for locks. If it fails, inline runs fall back to a worker.
    pub(crate) fn see_schema(&mut self, left: &LeftWal) {
        let Some(state) = self.sqlite.wal_state() else { return };
        if self.seen.holds(&state, left) {
            return;
        }
        self.seen.forget();
        let Ok(cookie) = self.control.hold(&mut self.sqlite) else { return };
        if self.load_schema().is_ok() {
            self.seen.saw(cookie, &state, left);
        }
        self.control.let_go(&mut self.sqlite);
    }
}
