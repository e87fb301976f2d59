//! The bytes of a database that is opened in memory.
//!
//! Owns: the bytes until they are loaded, and their header. A plain value, usable on any thread. Invariant: options
//! that are cloned have the bytes, and those of an open database have them no longer than until its connection is open.
//! Leaves out: loading them (`connection::open`).

use std::sync::{Arc, Mutex};

use super::Options;
use crate::thread::lock;

/// Where the header says which version of the file format a writer and a reader need: 1 for a rollback journal, 2 for a
/// WAL (<https://sqlite.org/fileformat.html#file_format_version_numbers>).
const VERSIONS: std::ops::Range<usize> = 18..20;

/// Makes the bytes those of a database without a WAL, as one in memory is.
pub(crate) fn in_rollback_mode(bytes: &mut [u8]) {
    if let Some(versions) = bytes.get_mut(VERSIONS) {
        versions.fill(1);
    }
}

/// The bytes, until they are taken.
#[derive(Default)]
pub(crate) struct Image(Mutex<Option<Arc<[u8]>>>);

impl Image {
    fn bytes(&self) -> Option<Arc<[u8]>> {
        lock(&self.0).clone()
    }

    pub(crate) fn is_some(&self) -> bool {
        self.bytes().is_some()
    }

    /// Returns the bytes, and lets go of them.
    pub(crate) fn take(&self) -> Option<Arc<[u8]>> {
        lock(&self.0).take()
    }
}

impl Clone for Image {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.bytes()))
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Image {}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Image").field(&self.bytes().map(|bytes| bytes.len())).finish()
    }
}

impl Options {
    /// Opens the database in memory with this content: the bytes of a database file, or what
    /// [`Database::serialize`](crate::Database::serialize) returned. For `":memory:"` only.
    ///
    /// They are copied when the database is opened. The open fails with kind [`Corrupt`](crate::ErrorKind::Corrupt) if
    /// they are no database. Of a file that is in WAL mode, the bytes without those of its `-wal` are an older commit,
    /// or no consistent one.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    /// let template = Options::new(":memory:").open().await?;
    /// template.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)", ()).await?;
    /// let copy = Options::new(":memory:").deserialize(template.serialize().await?).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn deserialize(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.image = Image(Mutex::new(Some(bytes.into())));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_show_how_many_bytes_there_are_and_not_which() {
        let options = Options::new(":memory:").deserialize(*b"secret");
        let shown = format!("{options:?}");
        assert!(shown.contains("Image(Some(6))") && !shown.contains("secret"), "{shown}");
        assert_ne!(options, Options::new(":memory:"));
    }

    #[test]
    fn a_clone_keeps_the_bytes_that_another_took() {
        let options = Options::new(":memory:").deserialize(vec![1, 2]);
        let other = options.clone();
        assert_eq!(options.image.take().as_deref(), Some(&[1, 2][..]));
        assert!(!options.image.is_some() && other.image.is_some());
    }

    #[test]
    fn too_few_bytes_have_no_versions() {
        let mut bytes = [2; 19];
        in_rollback_mode(&mut bytes);
        assert_eq!(bytes, [2; 19]);
    }
}
