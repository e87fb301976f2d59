//! Code of the user that runs on each connection when it is opened.
//!
//! Owns: the setters, and the closure and the extension as values. Usable on any thread. Leaves out: running it
//! (`connection::open`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Options;

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
