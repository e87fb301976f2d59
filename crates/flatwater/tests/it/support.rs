//! What the tests share: a database in a directory of its own that is checked at the end, and the runtimes.

use std::path::PathBuf;

use flatwater::{Database, Options};

/// A database file in a directory of its own. Dropping it checks the file with plain SQLite.
pub(crate) struct TestFile {
    directory: tempfile::TempDir,
}

impl TestFile {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("test.db")
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path())
    }

    pub(crate) async fn open(&self) -> Database {
        self.options().open().await.unwrap()
    }

    /// A plain connection to the same file, as another program would have it.
    pub(crate) fn plain(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if std::thread::panicking() || !self.path().exists() {
            return;
        }
        assert_eq!(integrity(&self.plain()), "ok");
    }
}

/// What `PRAGMA integrity_check` says of the main database, and whether a foreign key is violated.
pub(crate) fn integrity(connection: &rusqlite::Connection) -> String {
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// Runs the future on a runtime of two worker threads.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future)
}
