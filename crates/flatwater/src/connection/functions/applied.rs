//! The user's functions on one connection, and catching up with those of the database.
//!
//! Owns: what the connection has, and which of the functions that are not SQLite's may do more than to compute. Runs on the
//! thread that has the connection. Invariants: a connection that is not behind has what is registered and nothing that was
//! removed; what was prepared before is prepared anew afterwards. SQLite refuses to replace or remove what exists while a
//! statement is in the middle of its rows (`sqlite3CreateFunc`, `createCollation`): then the connection stays behind, and
//! tries again at its next use. Leaves out: who lets it catch up when.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use flatwater_sqlite::{AuthEvent, Sqlite};
use rusqlite::ffi;

use super::Functions;
use super::provided::register_regexp;
use super::registration::{Key, Length, Registered};
use super::user_code::Place;
use crate::connection::open::switches::{may_read_again, read_schemas_again, trusts_schemas};
use crate::connection::{EngineConnection, Listed, not_built_in};
use flatwater_base::error::Result;
use flatwater_sql::tokens::may_call_any;

/// SQLITE_DETERMINISTIC and SQLITE_INNOCUOUS.
const PURE: i64 = 0x0800 | 0x0020_0000;

/// What a connection has of the user's functions.
pub(crate) struct Applied {
    registered: Arc<Functions>,
    /// The number of the last change that the connection has seen.
    seen: u64,
    list: Vec<Registered>,
    /// A function was removed here. If one of SQLite's has its name, SQLite does not find that any more.
    has_removed: bool,
    has_foreign_code: bool,
    /// The names of the impure functions of extensions and closures, in lower case.
    foreign: HashSet<String>,
    /// Those, and the registered ones.
    pub(crate) impure: HashSet<String>,
}

impl Applied {
    /// Of a connection that was just opened, on which foreign code ran or did not.
    pub(crate) fn new(registered: &Arc<Functions>, sqlite: &Sqlite, has_foreign_code: bool) -> Result<Self> {
        let foreign = if has_foreign_code { foreign(sqlite.rusqlite())? } else { HashSet::new() };
        let (registered, impure) = (registered.clone(), foreign.clone());
        Ok(Self { registered, seen: 0, list: Vec::new(), has_removed: false, has_foreign_code, foreign, impure })
    }

    /// Returns true if the statement with these events calls a function that may do more than to compute.
    pub(crate) fn are_called(&self, events: &[AuthEvent]) -> bool {
        let is_impure = |event: &AuthEvent| {
            let name = event.second.as_deref().filter(|_| event.action == ffi::SQLITE_FUNCTION);
            name.is_some_and(|name| self.impure.contains(&name.to_ascii_lowercase()))
        };
        !self.impure.is_empty() && events.iter().any(is_impure)
    }

    /// Returns true if a definition of the schema may call such a function.
    pub(crate) fn may_be_called_by(&self, definition: &str) -> bool {
        !self.impure.is_empty() && may_call_any(definition, &self.impure)
    }

    /// Returns true if a statement may call code of the program: a function, a collation, or what a closure or an extension
    /// has registered.
    pub(crate) fn may_call_foreign_code(&self) -> bool {
        self.has_foreign_code || !self.list.is_empty()
    }

    /// The number of the last change of the functions that the connection has seen.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The functions of this length, as SQLite's bytecode names them: with their number of arguments.
    pub(crate) fn of(&self, length: Length) -> HashSet<String> {
        let name = |one: &Registered| match &one.key {
            Key::Function(name, arguments) if one.length == length => Some(format!("{name}({arguments})")),
            _ => None,
        };
        self.list.iter().filter_map(name).collect()
    }

    /// Forgets what the connection has, because a closure of the user may have replaced any of it.
    pub(crate) fn forget(&mut self) {
        self.seen = 0;
        self.list.clear();
    }
}

impl EngineConnection {
    /// Returns true if functions were registered or removed that the connection has not seen.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.functions.seen != self.functions.registered.changes()
    }

    /// Returns true if the connection had a function that was removed. If it can be replaced, it is to be: a function of
    /// SQLite's with that name would be hidden on it.
    pub(crate) fn has_lost_function(&self) -> bool {
        if self.functions.has_removed {
            return true;
        }
        if !self.is_behind() {
            return false;
        }
        let (now, _) = self.functions.registered.now();
        let is_function = |had: &&Registered| matches!(had.key, Key::Function(..));
        self.functions.list.iter().filter(is_function).any(|had| now.iter().all(|one| one.key != had.key))
    }

    /// Gives the connection what is registered now. While a statement is in the middle of its rows, what would replace or
    /// remove something waits for the next use. So does all of it if the schema is a stranger's, and cannot be read again
    /// now.
    pub(crate) fn catch_up(&mut self) -> Result<()> {
        let reads_again = may_read_again(&self.sqlite);
        if !reads_again && !trusts_schemas(&self.sqlite) {
            return Ok(());
        }
        let (now, changes) = self.functions.registered.now();
        let mut is_complete = true;
        let mut has_new = false;
        let (sqlite, hooks) = (self.sqlite.rusqlite(), self.sqlite.hooks());
        let had = &mut self.functions.list;
        let mut at = 0;
        while at < had.len() {
            if now.iter().any(|one| one.key == had[at].key) {
                at += 1;
            } else if done(remove(sqlite, &had[at].key))? {
                self.functions.has_removed |= matches!(had[at].key, Key::Function(..));
                had.swap_remove(at);
            } else {
                (is_complete, at) = (false, at + 1);
            }
        }
        for one in now {
            if had.iter().any(|other| Arc::ptr_eq(other, &one)) {
                continue;
            }
            let place = Place { failure: &hooks.failure, ends: one.waits.then_some(&hooks.interrupts) };
            if done((one.register)(sqlite, &place))? {
                // SQLite has dropped what it had of the one before.
                had.retain(|other| other.key != one.key);
                has_new |= matches!(one.key, Key::Function(..));
                had.push(one);
            } else {
                is_complete = false;
            }
        }
        let impure = had.iter().filter(|one| !one.is_pure).filter_map(|one| match &one.key {
            Key::Function(name, _) => Some(name.to_string()),
            Key::Collation(_) => None,
        });
        self.functions.impure = self.functions.foreign.iter().cloned().chain(impure).collect();
        self.statements.clear(&mut self.sqlite);
        if has_new && reads_again {
            read_schemas_again(&self.sqlite)?;
        }
        if is_complete {
            self.functions.seen = changes;
        }
        Ok(())
    }
}

/// Removes what has this key, and registers again what the key was taken from.
fn remove(sqlite: &rusqlite::Connection, key: &Key) -> rusqlite::Result<()> {
    match key {
        Key::Function(name, arguments) => sqlite.remove_function(&**name, *arguments)?,
        Key::Collation(name) => sqlite.remove_collation(&**name)?,
    }
    let is_regexp = matches!(key, Key::Function(name, 2) if &**name == "regexp");
    if is_regexp { register_regexp(sqlite) } else { Ok(()) }
}

/// Returns false if it has to wait, because a statement is in the middle of its rows.
fn done(registered: rusqlite::Result<()>) -> Result<bool> {
    match registered {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
        registered => Ok(registered.map(|()| true)?),
    }
}

/// The functions of a connection on which only SQLite and automatic extensions registered some.
static PLAIN: LazyLock<HashSet<Listed>> = LazyLock::new(|| {
    let plain = rusqlite::Connection::open_in_memory().and_then(|plain| not_built_in(&plain));
    plain.map(|plain| plain.into_iter().collect()).unwrap_or_default()
});

/// Returns the names of the impure functions of a connection that are neither SQLite's nor an automatic extension's.
fn foreign(connection: &rusqlite::Connection) -> Result<HashSet<String>> {
    let is_foreign = |one: &Listed| one.2 & PURE != PURE && !PLAIN.contains(one);
    Ok(not_built_in(connection)?.into_iter().filter(is_foreign).map(|(name, ..)| name).collect())
}
