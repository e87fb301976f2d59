//! Encrypted databases, with the feature `sqlcipher`: an encrypted file of a test, and plain SQLCipher beside it.

mod care;
mod changed_keys;
mod damage;
mod exits;
mod exports;
mod features;
#[cfg(unix)]
mod kills;
#[cfg(target_os = "linux")]
mod memory;
mod opening;
mod refusals;

use std::path::{Path, PathBuf};

use flatwater::options::Key;
use flatwater::{Database, Options};

use crate::support::{files, foreign_keys_violated, integrity};

/// The passphrase of the tests.
pub(crate) const PASSPHRASE: &str = "open sesame, it's me";

/// The first bytes of a plain file.
const PLAIN: &[u8] = b"SQLite format 3";

/// An encrypted database file in its own directory. Dropping it checks the file with SQLCipher alone.
pub(crate) struct EncryptedFile {
    directory: tempfile::TempDir,
    checks: bool,
}

impl EncryptedFile {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), checks: true }
    }

    /// One that the test damages, or encrypts with another key.
    pub(crate) fn unchecked() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), checks: false }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("test.db")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path()).key(Key::text(PASSPHRASE))
    }

    pub(crate) async fn open(&self) -> Database {
        self.options().open().await.unwrap()
    }

    /// Returns true if a file of the directory has these bytes in it.
    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        let has = |content: &[u8]| content.windows(bytes.len()).any(|window| window == bytes);
        files(self.directory.path()).iter().any(|(_, content)| has(content))
    }
}

impl Drop for EncryptedFile {
    fn drop(&mut self) {
        if self.checks && !std::thread::panicking() && self.path().exists() {
            let plain = with_sqlcipher(&self.path(), PASSPHRASE);
            assert_eq!(integrity(&plain), "ok");
            assert!(foreign_keys_violated(&plain).is_empty());
        }
    }
}

/// Opens a file as another program with SQLCipher does. A wrong key fails at the first statement.
pub(crate) fn with_sqlcipher(path: &Path, passphrase: &str) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_update(None, "key", passphrase).unwrap();
    connection
}
