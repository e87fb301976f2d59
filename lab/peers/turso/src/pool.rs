//! The connections of a database, lent to calls.
//!
//! Owns: those that are idle, their settings, and whose turn it is to write. Leaves out: what runs on them.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use lab_kit::peer::{BUSY_TIMEOUT, CACHE_KIB};
use lab_kit::{Result, Setup, anyhow};
use tokio::sync::{self, MutexGuard};
use turso::{Builder, Connection, Database};

#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    database: Database,
    journal_mode: &'static str,
    settings: String,
    idle: Mutex<Vec<Connection>>,
    writes: sync::Mutex<()>,
}

impl Pool {
    pub(crate) async fn new(setup: &Setup, journal_mode: &'static str) -> Result<Self> {
        let path = setup.path.to_str().ok_or_else(|| anyhow!("the path is no UTF-8"))?;
        let database = Builder::new_local(path).build().await?;
        let settings = format!(
            "PRAGMA synchronous = {}; PRAGMA foreign_keys = on; PRAGMA cache_size = -{CACHE_KIB};",
            setup.durability.synchronous()
        );
        let (idle, writes) = (Mutex::default(), sync::Mutex::default());
        let pool = Self(Arc::new(Shared { database, journal_mode, settings, idle, writes }));
        pool.lend().await?.pragma_update("journal_mode", format!("'{journal_mode}'")).await?;
        Ok(pool)
    }

    /// Its calls write at once.
    pub(crate) fn is_concurrent(&self) -> bool {
        self.0.journal_mode == "mvcc"
    }

    /// Awaits the caller's turn to write, where calls take turns.
    pub(crate) async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is_concurrent() { None } else { Some(self.0.writes.lock().await) }
    }

    /// A connection that nobody else has.
    pub(crate) async fn lend(&self) -> Result<Lent<'_>> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = self.0.database.connect()?;
                connection.busy_timeout(BUSY_TIMEOUT)?;
                connection.execute_batch(&self.0.settings).await?;
                connection
            }
        };
        Ok(Lent { shared: &self.0, connection: Some(connection) })
    }
}

/// A connection that goes back when it is dropped.
pub(crate) struct Lent<'a> {
    shared: &'a Shared,
    connection: Option<Connection>,
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
