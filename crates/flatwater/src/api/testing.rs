//! A fresh database for each test of a program.
//!
//! Owns: the temporary folder of a database on a file. Runs on the caller's threads. Invariant: no two of them share a
//! file, in this process or another. Leaves out: filling the database, which its migrations and the test do.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::api::database::Database;
use crate::options::Options;
use flatwater_base::error::cause::caused_by;
use flatwater_base::error::{Error, ErrorCode, Result};

/// A database for one test, empty but for the migrations of its options. Use it like a [`Database`], and pass a clone
/// of that to the code under test.
///
/// ```
/// use flatwater::testing::TestDatabase;
///
/// # async fn example() -> flatwater::Result<()> {
/// let db = TestDatabase::in_memory(|options| {
///     options.migrations([("001_init", "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")])
/// })
/// .await?;
/// db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TestDatabase {
    db: Database,
    /// `None` in memory. Dropped after the handle.
    folder: Option<tempfile::TempDir>,
}

impl TestDatabase {
    /// Opens a database in memory. It has one connection, so its reads wait for an open transaction. Does not block.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub async fn in_memory(configure: impl FnOnce(Options) -> Options) -> Result<Self> {
        Ok(Self { db: configure(Options::new(":memory:")).open().await?, folder: None })
    }

    /// Opens a database on a file in a temporary folder of its own, as a program would: in WAL mode, with readers. The
    /// folder is removed with this value. Does not block, except to make the folder.
    ///
    /// # Errors
    /// As [`Options::open`]; `Io` if the folder cannot be made.
    pub async fn on_file(configure: impl FnOnce(Options) -> Options) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|error| {
            caused_by(Error::new(ErrorCode::System, format!("a temporary folder cannot be made: {error}")), error)
        })?;
        let db = configure(Options::new(path_in(folder.path()))).open().await?;
        Ok(Self { db, folder: Some(folder) })
    }

    /// The path of the file, for other connections to it. `None` in memory.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| path_in(folder.path()))
    }

    /// Closes the database and opens it again with other options, as after a restart of the program.
    ///
    /// # Errors
    /// As [`Database::close`] and [`Options::open`]; `Misuse` in memory, because the data would be lost.
    pub async fn reopen(self, configure: impl FnOnce(Options) -> Options) -> Result<Self> {
        let Some(folder) = self.folder else {
            return Err(Error::new(ErrorCode::Unsupported, "a database in memory cannot be opened again")
                .with_hint("use `on_file`"));
        };
        self.db.close().await?;
        let db = configure(Options::new(path_in(folder.path()))).open().await?;
        Ok(Self { db, folder: Some(folder) })
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("test.db")
}

impl Deref for TestDatabase {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.db
    }
}
