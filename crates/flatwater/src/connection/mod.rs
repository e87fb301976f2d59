//! One connection of the engine, over that of `flatwater-sqlite`.
//!
//! Owns: what a connection consists of. Used by the thread that has the connection. Invariant: each part has the data of
//! one subject, and is given the connection of `flatwater-sqlite` for what it does. Leaves out: what is done with a connection, which is
//! in the folders: `open` (opening it, and its settings), `run` (preparing and running statements), `learn` (schemas,
//! programs, and what live queries read), `exclusive` (what needs the connection for itself), `functions` (the user's functions).

#[cfg_attr(flatwater_kernel, path = "../../tests/kernel/src/absent/exclusive_connection.rs")]
pub(crate) mod exclusive;
#[cfg_attr(flatwater_kernel, path = "../../tests/kernel/src/absent/functions.rs")]
pub(crate) mod functions;
pub(crate) mod learn;
pub(crate) mod open;
pub(crate) mod repair;
pub(crate) mod run;

use flatwater_sqlite::{Cipher, Control, Sqlite};

use self::functions::applied::Applied;
use self::learn::schema::SchemaReader;
use self::open::pragma_answers::Stated;
use self::run::execute::Recording;
use self::run::inline_run::LengthLimit;
use self::run::statement_cache::Statements;
use crate::connection::open::settings::AttachedFiles;

pub(crate) struct EngineConnection {
    pub(crate) sqlite: Sqlite,
    pub(crate) control: Control,
    pub(crate) statements: Statements,
    pub(crate) schema: SchemaReader,
    pub(crate) attached: AttachedFiles,
    pub(crate) recording: Recording,
    pub(crate) lengths: LengthLimit,
    /// How many bytes a result may have, or a part of one that is fetched.
    pub(crate) result_limit: usize,
    pub(crate) functions: Applied,
    /// The journal mode, in lower case.
    pub(crate) journal: String,
    foreign_keys: bool,
    double_quoted_strings: bool,
    pub(crate) stated: Stated,
    /// True after a closure of the user ran on it, which may have replaced anything.
    had_closure: bool,
}

/// Returns the rows of a query, each as `read` reads it.
fn rows<T, C: FromIterator<T>>(
    sqlite: &rusqlite::Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    sqlite.prepare(sql)?.query_map(params, read)?.collect()
}

impl EngineConnection {
    /// Returns true if a page could not be decrypted, or read before that: then SQLCipher decrypts nothing on the
    /// connection any more. Asks only if there is a key.
    pub(crate) fn is_spoilt(&self) -> bool {
        let (cipher, names) = (Cipher::of(&self.sqlite), self.attached.names.iter().map(|name| &**name));
        cipher.is_on()
            && std::iter::once("main").chain(names).any(|name| cipher.is_spoilt(self.sqlite.rusqlite(), name))
    }

    /// Closes it. If it is the last connection to the file, SQLite copies the rest of the WAL into the database and
    /// removes the WAL.
    pub(crate) fn close_in_order(self) {
        // If this fails, the WAL stays, and the next open uses it.
        let _ = open::keep_wal_at_close(&self.sqlite, false);
    }
}

/// A function as a connection lists it: its name in lower case, its number of arguments, its flags.
pub(crate) type Listed = (String, i64, i64);

/// Returns the functions of a connection that are not built into SQLite, by their names in lower case. A query would begin to read, and
/// might call a function of the program.
pub(crate) fn not_built_in(connection: &rusqlite::Connection) -> rusqlite::Result<Vec<Listed>> {
    let listed: Vec<(bool, Listed)> = rows(connection, "PRAGMA function_list", [], |row| {
        let name = row.get::<_, String>("name")?.to_ascii_lowercase();
        Ok((row.get("builtin")?, (name, row.get("narg")?, row.get("flags")?)))
    })?;
    Ok(listed.into_iter().filter(|(is_built_in, _)| !is_built_in).map(|(_, one)| one).collect())
}
