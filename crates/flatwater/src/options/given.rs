//! What a program gives besides settings: code that runs on each connection when it is opened, and the bytes of a database that is
//! opened in memory.
//!
//! Owns: their setters, and the closure, the extension and the bytes as values, usable on any thread. Invariant: options that are
//! cloned have the bytes, and those of an open database have them no longer than until its connection is open. Leaves out: running
//! the code, and loading the bytes (`connection::open`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::{Options, Tuning};
use flatwater_base::thread::lock;

type Closure = dyn Fn(&rusqlite::Connection) -> rusqlite::Result<()> + Send + Sync;

/// A closure of the user for each connection. Two are equal if they are clones of one.
#[derive(Clone)]
pub(crate) struct OnConnect(Arc<Closure>);

impl OnConnect {
    pub(crate) fn run(&self, connection: &rusqlite::Connection) -> rusqlite::Result<()> {
        (self.0)(connection)
    }
}

impl PartialEq for OnConnect {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for OnConnect {}

impl std::fmt::Debug for OnConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnConnect")
    }
}

/// A loadable extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extension {
    pub(crate) path: PathBuf,
    pub(crate) entry: Option<String>,
}

impl Options {
    /// Returns true if code of the user runs on each connection.
    pub(crate) fn has_foreign_code(&self) -> bool {
        !(self.load_extension.is_empty() && self.on_connect.is_empty())
    }

    /// Loads an [extension of SQLite](https://sqlite.org/loadext.html) on every connection that runs statements, before the
    /// closures of [`on_connect`](Self::on_connect): a shared library that registers functions, collations, or modules of
    /// virtual tables. Calling this again loads another one after it. Default: none.
    ///
    /// SQLite adds the suffix of the system's shared libraries to `path` if it is missing. A path without a directory is
    /// searched for by the system. `entry` is the name of the function that initialises the extension; most extensions need
    /// none. SQL can load no extensions, neither `load_extension()` nor any other.
    ///
    /// An extension is machine code that runs in this process: load those that you would link. What it may leave on a
    /// connection is what a closure of `on_connect` may. If it cannot be loaded, what opens the connection fails with kind
    /// [`Open`](crate::ErrorKind::Open).
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    ///
    /// let db = Options::new("app.db").load_extension("extensions/vec0", None).open().await?;
    /// let version: String = db.query_value("SELECT vec_version()", ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn load_extension(mut self, path: impl AsRef<Path>, entry: Option<&str>) -> Self {
        self.load_extension.push(Extension { path: path.as_ref().to_owned(), entry: entry.map(str::to_owned) });
        self
    }

    /// Calls `closure` with every connection that runs statements, right after it is opened: to register SQL functions,
    /// collations and modules of virtual tables. Calling this again adds another closure, which runs after it.
    ///
    /// The database opens connections when it needs them, on a thread of its own, on the thread of a blocking caller, or
    /// on the one that opens the database. Each has its settings and its attached files by then; the SQL of
    /// [`on_open`](Self::on_open) comes after. The closure may run SQL. Transaction control, ATTACH, TEMP objects, and
    /// PRAGMAs for which there is an option are refused, and reader connections are read-only. What the closure sets by other
    /// means is set back: the busy timeout, the progress handler, foreign keys. The closure must not set a commit, rollback
    /// or update hook or an authorizer, nor leave a statement in the middle of its rows, and cannot call the database.
    ///
    /// If it fails or panics, what opens the connection fails: [`open`](Self::open), or later the call that needs the
    /// connection, whose error names `on_connect`. To open the file again in this process, pass a clone of these options.
    /// Default: none.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    /// use flatwater::rusqlite::functions::FunctionFlags;
    ///
    /// let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    /// let options = Options::new("app.db").on_connect(move |connection| {
    ///     connection.create_scalar_function("reversed", 1, flags, |context| {
    ///         Ok(context.get::<String>(0)?.chars().rev().collect::<String>())
    ///     })
    /// });
    /// let db = options.open().await?;
    /// let reversed: String = db.query_value("SELECT reversed('abc')", ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn on_connect(
        mut self,
        closure: impl Fn(&rusqlite::Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_connect.push(OnConnect(Arc::new(closure)));
        self
    }
}

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

impl Tuning {
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
    /// let bytes = template.serialize().await?;
    /// let copy = Options::new(":memory:").tuning(|t| t.deserialize(bytes)).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn deserialize(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.0.image = Image(Mutex::new(Some(bytes.into())));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_show_how_many_bytes_there_are_and_not_which() {
        let options = Options::new(":memory:").tuning(|t| t.deserialize(*b"secret"));
        let shown = format!("{options:?}");
        assert!(shown.contains("Image(Some(6))") && !shown.contains("secret"), "{shown}");
        assert_ne!(options, Options::new(":memory:"));
    }

    #[test]
    fn a_clone_keeps_the_bytes_that_another_took() {
        let options = Options::new(":memory:").tuning(|t| t.deserialize(vec![1, 2]));
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
