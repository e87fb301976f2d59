//! The database of a scenario: of this process, or on a server.
//!
//! Owns: which calls it has. Runs on the scenario's thread. Invariant: a call that a server has not is not made, and says which it is.
//! Leaves out: making calls (`program::calls`).

use std::time::Duration;

use flatwater::{Call, Database, Migrations, Session, Transaction};
use flatwater_remote::{Libsql, Remote};

/// A database that is open.
#[derive(Clone)]
pub(crate) enum Opened {
    Here(Database),
    Cluster(Remote),
    Libsql(Libsql),
}

impl Opened {
    /// Connects to a server.
    pub(crate) fn on_server(address: &str) -> flatwater::Result<Self> {
        match address.starts_with("libsql:") {
            true => Libsql::connect(address).map(Self::Libsql),
            false => Remote::connect(address).map(Self::Cluster),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        match self {
            Self::Here(db) => db,
            Self::Cluster(db) => db,
            Self::Libsql(db) => db,
        }
    }

    /// Returns the database of this process, for a call that only it has.
    pub(crate) fn here(&self, call: &str) -> Result<&Database, String> {
        match self {
            Self::Here(db) => Ok(db),
            Self::Cluster(_) | Self::Libsql(_) => Err(format!("a server has no {call}")),
        }
    }

    pub(crate) fn within(&self, time: Duration) -> Self {
        match self {
            Self::Here(db) => Self::Here(db.with_timeout(time)),
            Self::Cluster(db) => Self::Cluster(db.with_timeout(time)),
            Self::Libsql(db) => Self::Libsql(db.with_timeout(time)),
        }
    }

    pub(crate) fn begin(&self) -> Result<Call<Transaction<'static>>, String> {
        match self {
            Self::Here(db) => Ok(db.begin()),
            Self::Cluster(_) => Err("a cluster has no transactions".to_owned()),
            Self::Libsql(db) => Ok(db.begin()),
        }
    }

    pub(crate) fn migrate(&self, migrations: Migrations) -> Call<Vec<String>> {
        match self {
            Self::Here(db) => db.migrate(migrations),
            Self::Cluster(db) => db.migrate(migrations),
            Self::Libsql(db) => db.migrate(migrations),
        }
    }

    pub(crate) fn close(&self) -> Call<()> {
        match self {
            Self::Here(db) => db.close(),
            Self::Cluster(db) => db.close(),
            Self::Libsql(db) => db.close(),
        }
    }
}
