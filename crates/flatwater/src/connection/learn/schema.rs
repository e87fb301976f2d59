//! The schema as a connection reads it: whether it is the newest, and the tables whose conflict clauses a group could not
//! contain.
//!
//! Owns: the answers to three questions. Of the facts under which texts are members of groups: do they still hold (`are_current`)?
//! Of what is prepared: is the schema the one that the connection has seen (`SchemaSeen`), as far as is known without reading the file;
//! and if that does not tell, by its cookie (`knows`, `see`)? Runs on the thread that has the connection. Invariants: the facts belong
//! to the cookie under which they were read; a group compares the cookie inside its transaction, where no other
//! connection can change it; an inline run compares it in the snapshot in which it then runs. If a statement finds another schema than
//! the one its connection has seen, SQLite reads the whole schema again without calling any handler (`OP_Transaction`). So a statement
//! runs on a thread that must not block only if the schema is known to be the seen one. Leaves out: what the writer left behind
//! (`flatwater_sql::catalogue`), and what is prepared under a schema (`connection::run`).

use std::collections::HashSet;

use flatwater_sqlite::{Control, Discard, Flow, Sink, Sqlite, StatementId, WalState};

use crate::connection::EngineConnection;
use flatwater_base::error::kind::is_passing;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::outcome::Fallback;
use flatwater_sql::catalogue::LeftWal;
use flatwater_sql::tokens::has_aborting_conflict_clause;

/// The facts of one schema version.
#[derive(Debug, Default)]
pub(crate) struct SchemaFacts {
    /// `PRAGMA schema_version` (<https://sqlite.org/pragma.html#pragma_schema_version>) when they were read.
    cookie: Option<i64>,
    /// The number of the last change of the user's functions at that time.
    functions: u64,
    /// The names of the tables, in lower case, among them those that may call impure functions of the user.
    aborting_tables: HashSet<String>,
}

impl SchemaFacts {
    /// Returns whether `table` has a constraint or trigger that ends statements without undoing them, or ends transactions.
    pub(crate) fn is_aborting(&self, table: &str) -> bool {
        !self.aborting_tables.is_empty() && self.aborting_tables.contains(&table.to_lowercase())
    }

    /// Returns true if the facts still hold. Reads the cookie.
    pub(crate) fn are_current(&self, connection: &mut EngineConnection) -> Result<bool> {
        Ok(self.know_functions(connection) && self.cookie == Some(connection.schema.cookie(&mut connection.sqlite)?))
    }

    /// Returns true if they were read with the functions that the connection has.
    pub(crate) fn know_functions(&self, connection: &EngineConnection) -> bool {
        self.functions == connection.functions.seen()
    }

    /// Reads the facts, outside any transaction or in one that changed nothing.
    pub(crate) fn read(connection: &mut EngineConnection) -> Result<Self> {
        let cookie = connection.schema.cookie(&mut connection.sqlite)?;
        let (functions, seen) = (&connection.functions, connection.functions.seen());
        let definitions = "SELECT tbl_name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL";
        let aborting_tables = tables_that(&connection.sqlite, definitions, |definition| {
            has_aborting_conflict_clause(definition) || functions.may_be_called_by(definition)
        })?;
        Ok(Self { cookie: Some(cookie), functions: seen, aborting_tables })
    }
}

/// Returns the names, in lower case, of the tables in these rows of a name and a definition for which `is_it` is true. A definition
/// that is not valid UTF-8 is taken for such a one.
pub(super) fn tables_that(sqlite: &Sqlite, rows: &str, is_it: impl Fn(&str) -> bool) -> Result<HashSet<String>> {
    let found = sqlite.patiently_with(|sqlite| {
        let mut statement = sqlite.prepare(rows)?;
        let mut rows = statement.query([])?;
        let mut tables = HashSet::new();
        while let Some(row) = rows.next()? {
            if row.get_ref(1)?.as_str().map_or(true, &is_it) {
                let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default());
                tables.insert(name.to_lowercase());
            }
        }
        Ok(tables)
    });
    Ok(found?)
}

/// What one connection has seen of the schema. Only the thread that has the connection uses it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SchemaSeen {
    cookie: Option<i64>,
    /// The state at which the cookie was last compared.
    stamp: u32,
    /// The number of possible schema changes up to then.
    changes: Option<u32>,
}

impl SchemaSeen {
    /// Returns whether the schema of the state with this stamp is the one that was seen. This holds if there was no commit since, or only commits of
    /// this engine, which records possible schema changes.
    pub(crate) fn holds(&self, stamp: u32, left: &LeftWal) -> bool {
        self.cookie.is_some() && (self.stamp == stamp || self.changes.is_some() && self.changes == left.changes(stamp))
    }

    /// Records that the connection has this schema, seen in a snapshot of the state with this stamp or of a later one.
    pub(crate) fn saw(&mut self, cookie: i64, stamp: u32, left: &LeftWal) {
        *self = Self { cookie: Some(cookie), stamp, changes: left.changes(stamp) };
    }

    /// Returns whether a cookie equals that of the schema that was seen.
    pub(crate) fn is(&self, cookie: i64) -> bool {
        self.cookie == Some(cookie)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.cookie.is_some()
    }

    /// Forgets the schema, because something may have changed it, or what the connection knows of it.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// How a connection came to know that its schema is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Without reading the cookie.
    Before,
    /// By the cookie of a snapshot that is still open beside autocommit, for the statement that runs next.
    Held,
}

/// The schema of the main database, as one connection sees it.
pub(crate) struct SchemaReader {
    cookie: StatementId,
    /// Reads the schema; stepping it loads a newer one.
    newest: StatementId,
    pub(crate) seen: SchemaSeen,
    /// Whether the schema with this cookie has virtual tables.
    virtual_tables: Option<(i64, bool)>,
}

impl SchemaReader {
    pub(crate) fn prepare(sqlite: &mut Sqlite) -> Result<Self> {
        let mut prepare = |sql| -> Result<StatementId> {
            let prepared = sqlite.prepare(sql)?.map(|prepared| prepared.id);
            prepared.ok_or_else(|| Error::new(ErrorCode::Internal, "a statement of our own cannot be prepared"))
        };
        let cookie = prepare("PRAGMA main.schema_version")?;
        let newest = prepare("SELECT 0 FROM main.sqlite_schema LIMIT 0")?;
        Ok(Self { cookie, newest, seen: SchemaSeen::default(), virtual_tables: None })
    }

    /// Makes the connection load the newest schema of the main database. Without this, a text that names something unknown
    /// may be prepared under an older schema.
    pub(crate) fn load(&self, sqlite: &mut Sqlite) -> Result<()> {
        Ok(sqlite.statement(self.newest).run(&(), &mut Discard)?)
    }

    /// The same before a text that takes effect while it is prepared. A schema that cannot be loaded is no error of
    /// that text, which may not need one: SQLite then has none in memory, and reads it again for a text that needs it.
    pub(crate) fn load_newest(&self, sqlite: &mut Sqlite) -> Result<()> {
        match self.load(sqlite) {
            Err(error) if error.sqlite_code().is_some_and(is_passing) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the schema cookie, in the transaction that is open or in one of its own.
    pub(crate) fn cookie(&self, sqlite: &mut Sqlite) -> Result<i64> {
        let mut cookie = OneInteger(0);
        sqlite.statement(self.cookie).run(&(), &mut cookie)?;
        Ok(cookie.0)
    }

    /// Returns true if the main database has virtual tables. Reads the schema if it is another one than the last time. Not to be
    /// called in a transaction that changed the schema: another schema may get its cookie.
    pub(crate) fn has_virtual_tables(&mut self, sqlite: &mut Sqlite) -> Result<bool> {
        let cookie = self.cookie(sqlite)?;
        if let Some((of, has_some)) = self.virtual_tables
            && of == cookie
        {
            return Ok(has_some);
        }
        // SQLite writes the beginning of a definition like this itself.
        let has_some = "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE substr(sql, 1, 15) = 'CREATE VIRTUAL ')";
        let has_some = sqlite.patiently_with(|sqlite| sqlite.query_row(has_some, [], |row| row.get(0)))?;
        self.virtual_tables = Some((cookie, has_some));
        Ok(has_some)
    }

    /// For an inline run: checks that the schema is the one that this connection has seen. Compares the cookie if that
    /// is not known without, and never reads the schema. After [`Known::Held`] the caller must let go of the snapshot.
    pub(crate) fn knows(&mut self, sqlite: &mut Sqlite, control: &Control, left: &LeftWal) -> Result<Known, Fallback> {
        let state = sqlite.wal().state().ok_or(Fallback::Failed)?;
        if self.seen.holds(state.stamp(), left) {
            return Ok(Known::Before);
        }
        self.hold_known(sqlite, control, &state, left).map(|()| Known::Held)
    }

    /// Begins a snapshot beside autocommit, if the schema in it is the one that this connection has seen. `state` is
    /// from before the snapshot. The caller must let go of the snapshot.
    pub(crate) fn hold_known(
        &mut self,
        sqlite: &mut Sqlite,
        control: &Control,
        state: &WalState,
        left: &LeftWal,
    ) -> Result<(), Fallback> {
        let cookie = control.hold(sqlite).map_err(|error| Fallback::after(error.code()))?;
        if self.seen.is(cookie) {
            self.seen.saw(cookie, state.stamp(), left);
            return Ok(());
        }
        control.let_go(sqlite);
        self.seen.forget();
        Err(Fallback::SchemaChanged)
    }

    /// For a worker: reads the schema if it may differ from the one that this connection has seen, so that an inline
    /// run need not read it. Blocks on the file, and waits for locks. If it fails, inline runs fall back to a worker.
    pub(crate) fn see(&mut self, sqlite: &mut Sqlite, control: &Control, left: &LeftWal) {
        let Some(state) = sqlite.wal().state() else { return };
        if self.seen.holds(state.stamp(), left) {
            return;
        }
        self.seen.forget();
        let Ok(cookie) = control.hold(sqlite) else { return };
        if self.load(sqlite).is_ok() {
            self.seen.saw(cookie, state.stamp(), left);
        }
        control.let_go(sqlite);
    }
}

/// Takes the integer of a result with one row and one column.
struct OneInteger(i64);

impl Sink for OneInteger {
    fn null(&mut self) {}
    fn integer(&mut self, value: i64) {
        self.0 = value;
    }
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_commits_changes_nothing_and_what_others_commit_takes_a_look() {
        let (left, mut seen) = (LeftWal::default(), SchemaSeen::default());
        left.leave(10, false);
        assert!(!seen.holds(10, &left), "nothing was seen yet");
        seen.saw(7, 10, &left);
        assert!(seen.holds(10, &left) && seen.is(7) && !seen.is(8));
        left.leave(11, false);
        assert!(seen.holds(11, &left), "a commit of our own");
        assert!(!seen.holds(12, &left), "a commit of somebody else");
        left.leave(13, true);
        assert!(!seen.holds(13, &left), "ours, on top of it");
        seen.saw(7, 13, &left);
        left.leave(14, false);
        assert!(seen.holds(14, &left));
        seen.forget();
        assert!(!seen.holds(14, &left) && !seen.is(7));
    }

    #[test]
    fn a_look_at_a_state_that_the_writer_did_not_leave_holds_for_that_state_alone() {
        let (left, mut seen) = (LeftWal::default(), SchemaSeen::default());
        left.leave(10, false);
        seen.saw(7, 20, &left);
        assert!(seen.holds(20, &left));
        left.leave(21, true);
        assert!(!seen.holds(21, &left) && !seen.holds(10, &left));
    }
}
