//! The attached files of a connection.
//!
//! Owns: their names, and beginning to use them. Runs on the thread that has the connection. Leaves out: attaching them
//! (`settings`).

use flatwater_sqlite::Sqlite;

use crate::error::Result;
use crate::options::Options;
use crate::sql::tokens::quoted;

pub(crate) struct AttachedFiles {
    pub(crate) names: Vec<Box<str>>,
    /// Those of them that are in WAL mode.
    pub(crate) in_wal_mode: Vec<Box<str>>,
}

impl AttachedFiles {
    pub(crate) fn new(options: &Options, in_wal_mode: Vec<Box<str>>) -> Self {
        Self { names: options.attach.iter().map(|attached| attached.name.as_str().into()).collect(), in_wal_mode }
    }

    /// Called when a statement may have attached a file or detached one.
    pub(crate) fn look_again(&mut self, sqlite: &Sqlite) {
        let list = "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
        let names = sqlite.rusqlite().prepare(list).and_then(|mut list| {
            list.query_map([], |row| Ok(row.get::<_, String>(0)?.into()))?.collect::<rusqlite::Result<_>>()
        });
        self.names = names.unwrap_or_default();
        self.in_wal_mode.retain(|name| self.names.contains(name));
    }

    /// Makes the connection load the newest schema of an attached file, or of all of them. In the transaction that is open, it
    /// begins the snapshot of each.
    pub(crate) fn load_schemas(&self, sqlite: &Sqlite, only: Option<&str>) -> Result<()> {
        let is_wanted = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        self.names.iter().filter(|name| is_wanted(name)).try_for_each(|name| {
            let schema = format!("SELECT 0 FROM {}.sqlite_schema LIMIT 0", quoted(name));
            Ok(sqlite.patiently_with(|sqlite| sqlite.execute_batch(&schema))?)
        })
    }

    /// Begins the snapshots of the files in WAL mode, in the transaction that is open: each begins with the first statement
    /// that uses the file.
    pub(crate) fn begin(&self, sqlite: &Sqlite) -> Result<()> {
        self.in_wal_mode.iter().try_for_each(|name| self.load_schemas(sqlite, Some(name)))
    }
}
