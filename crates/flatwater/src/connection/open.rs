//! Opening one connection, in the one order that works, and checking it after a closure of the user.
//!
//! Owns: the order. Runs on a thread that may block. Invariants: nothing of the user runs before the settings hold; a
//! connection that a closure left unlike it was is never used again. Leaves out: the settings themselves, who the
//! connection is for, threads.

use std::path::Path;

use flatwater_sqlite::{Busy, Connection as Sqlite, Control, StatementId, why_not_writable};
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use super::cannot_open::{cannot_open, check_path};
use super::settings::{apply_settings, prepare_file};
use super::statements::Statements;
use super::writable;
use crate::error::kind::is_passing;
use crate::error::{Error, Kind, Result};
use crate::options::Options;
use crate::options::uri::{self, Mode};
use crate::sql::policy;
use crate::sql::seen::Seen;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The first connection of all, which may create the file.
    Creator,
    Writer,
    Reader,
    /// Only checkpoints; nothing of the user runs on it.
    Checkpointer,
}

impl Role {
    /// Whether writes of the user run on it.
    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Creator | Self::Writer)
    }
}

/// A connection with its statements, its transaction control and the settings it was opened with.
pub(crate) struct Connection {
    pub(crate) sqlite: Sqlite,
    pub(crate) statements: Statements,
    pub(crate) control: Control,
    cookie: StatementId,
    /// Reads the schema; stepping it loads a newer one.
    schema: StatementId,
    pub(crate) seen: Seen,
    foreign_keys: bool,
    /// Whether a closure of the user ran on it, which may have replaced anything.
    pub(super) had_closure: bool,
    /// The longest value outside of stays, in bytes, while the limit of a stay holds.
    pub(super) unlimited: Option<usize>,
    /// The attached files that are in WAL mode.
    pub(crate) attached_wals: Vec<Box<str>>,
    /// The journal mode, in lower case.
    pub(crate) journal: String,
}

impl Connection {
    /// Opens one. Blocks on the file system and, as `busy` says, on locks.
    pub(crate) fn open(options: &Options, role: Role, busy: Busy) -> Result<Self> {
        check_path(options, role == Role::Creator && options.create)?;
        let mut sqlite = open_sqlite(options, role).map_err(|e| cannot_open(e.into(), options))?;
        sqlite.set_busy(Some(busy));
        let (journal, attached_wals) =
            set_up(&mut sqlite, options, role).map_err(|e| cannot_open(because(e, &sqlite), options))?;
        Self::from_sqlite(sqlite, journal, attached_wals, options).map_err(|e| cannot_open(e, options))
    }

    fn from_sqlite(
        mut sqlite: Sqlite,
        journal: String,
        attached_wals: Vec<Box<str>>,
        options: &Options,
    ) -> Result<Self> {
        let control = Control::prepare(&mut sqlite)?;
        let mut prepare = |sql| -> Result<StatementId> {
            let prepared = sqlite.prepare(sql)?.map(|prepared| prepared.id);
            prepared.ok_or_else(|| Error::new(Kind::Open, "a statement of our own cannot be prepared"))
        };
        let cookie = prepare("PRAGMA main.schema_version")?;
        let schema = prepare("SELECT 0 FROM main.sqlite_schema LIMIT 0")?;
        sqlite.set_policy(policy::trusted);
        sqlite.guard_files();
        Ok(Self {
            sqlite,
            statements: Statements::new(options.statement_cache),
            control,
            cookie,
            schema,
            seen: Seen::default(),
            foreign_keys: options.foreign_keys,
            had_closure: false,
            unlimited: None,
            attached_wals,
            journal,
        })
    }

    /// Whether a file of it is open for reading only, so that no write can succeed here.
    pub(crate) fn is_half_open(&self) -> bool {
        writable::is_half_open(&self.sqlite).unwrap_or(false)
    }

    /// Closes it, and lets SQLite tidy up if it is the last connection to the file: copy what is left of the WAL into the
    /// database and remove it.
    pub(crate) fn close_in_order(self) {
        // If it cannot be set the WAL stays, which the next open makes use of.
        let _ = keep_wal_at_close(&self.sqlite, false);
    }

    /// Whether Litestream works on the file. It keeps the WAL short by itself, and copies what others checkpoint again
    /// (<https://litestream.io/tips/#disable-autocheckpoints-for-high-write-load-servers>).
    pub(crate) fn has_litestream(&self) -> Result<bool> {
        let tables = "SELECT count(*) FROM main.sqlite_schema WHERE name IN ('_litestream_seq', '_litestream_lock')";
        let count = |sqlite: &rusqlite::Connection| sqlite.query_row(tables, [], |row| row.get::<_, i64>(0));
        Ok(self.sqlite.patiently_with(count)? > 0)
    }

    /// Makes the connection know the newest schema. A text that names what it does not know is prepared without a look.
    pub(crate) fn load_schema(&mut self) -> Result<()> {
        let nothing = flatwater_sqlite::Bindings::Positional(&[]);
        Ok(self.sqlite.run(self.schema, nothing, &mut flatwater_sqlite::Discard)?)
    }

    /// The same before a text that acts while it is prepared. A schema that makes no sense is no error of that text, which
    /// may do without one: SQLite then has none in memory, and reads it again for a text that does not.
    pub(crate) fn load_newest_schema(&mut self) -> Result<()> {
        match self.load_schema() {
            Err(error) if error.sqlite_code().is_some_and(is_passing) => Err(error),
            _ => Ok(()),
        }
    }

    /// The schema cookie, in the transaction that is open or in one of its own.
    pub(crate) fn schema_cookie(&mut self) -> Result<i64> {
        let mut cookie = OneInteger(0);
        self.sqlite.run(self.cookie, flatwater_sqlite::Bindings::Positional(&[]), &mut cookie)?;
        Ok(cookie.0)
    }

    /// Right after a closure of the user, before anything else runs: puts our handlers back, and tells whether what can
    /// be asked is as it was.
    pub(crate) fn restore_handlers(&mut self, busy: Busy) -> bool {
        self.had_closure = true;
        self.sqlite.set_policy(policy::trusted);
        self.sqlite.set_busy(Some(busy));
        let ours = self.sqlite.restore_handlers();
        let foreign_keys = self
            .sqlite
            .rusqlite()
            .db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY)
            .is_ok_and(|on| on == self.foreign_keys);
        ours && foreign_keys && autocheckpoint(&self.sqlite).is_ok_and(|pages| pages == 0)
    }

    /// No transaction is open and no statement stands in the middle of its rows.
    pub(crate) fn is_idle(&self) -> bool {
        self.sqlite.is_autocommit() && !self.sqlite.has_busy_statement()
    }

    /// Makes a connection usable again that cannot be replaced.
    pub(crate) fn repair(&mut self) -> Result<()> {
        self.sqlite.repair()?;
        self.sqlite.execute_batch("PRAGMA query_only = OFF")?;
        self.statements.clear(&mut self.sqlite);
        let fkey = DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY;
        self.sqlite.rusqlite().set_db_config(fkey, self.foreign_keys)?;
        Ok(())
    }

    /// Ends the TEMP objects that a transaction made. Foreign keys are off meanwhile: among themselves the tables may
    /// refer to each other.
    pub(crate) fn drop_temp_objects(&mut self) -> Result<()> {
        let sqlite = self.sqlite.rusqlite();
        let names: Vec<(String, String)> = sqlite
            .prepare("SELECT type, name FROM temp.sqlite_schema WHERE type <> 'index' AND name NOT GLOB 'sqlite_*'")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if names.is_empty() {
            return Ok(());
        }
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        // A trigger goes with its table, if that is a TEMP one too.
        let dropped = names.iter().try_for_each(|(kind, name)| {
            let name = name.replace('"', "\"\"");
            sqlite.execute_batch(&format!("DROP {kind} IF EXISTS temp.\"{name}\""))
        });
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, self.foreign_keys)?;
        Ok(dropped?)
    }
}

/// Everything from the open file to the settings. Answers the journal mode.
fn set_up(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<(String, Vec<Box<str>>)> {
    // Only an orderly close may find that it is the last user of the file, and take the WAL away.
    keep_wal_at_close(sqlite, true)?;
    if role != Role::Reader && sqlite.is_read_only() {
        return Err(writable::refused(&options.path, why_not_writable(&options.path)));
    }
    sqlite.guard_files();
    let journal = prepare_file(sqlite, options, role)?;
    // By now there is a WAL.
    sqlite.guard_files();
    if journal == "wal" && role.writes() {
        writable::check(sqlite, &options.path)?;
    }
    let attached_wals = apply_settings(sqlite, options, role)?;
    Ok((journal, attached_wals))
}

/// Adds what the system said, which rusqlite does not tell.
pub(super) fn because(error: Error, sqlite: &Sqlite) -> Error {
    match error.sqlite_code().and_then(|code| sqlite.system_failure(code)) {
        Some(failure) if error.operation().is_none() => error.because(failure),
        _ => error,
    }
}

fn autocheckpoint(sqlite: &Sqlite) -> Result<i64> {
    Ok(sqlite.rusqlite().query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0))?)
}

fn keep_wal_at_close(sqlite: &Sqlite, keep: bool) -> Result<()> {
    sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// URIs are on for attached files that need one; a path of ours is absolute and so never looks like one.
fn open_sqlite(options: &Options, role: Role) -> flatwater_sqlite::Result<Sqlite> {
    let rights = match role {
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Role::Creator if options.create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Role::Creator | Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = rights | OpenFlags::SQLITE_OPEN_URI;
    let vfs = options.vfs.as_deref();
    if options.immutable {
        return Sqlite::open(Path::new(&uri::write(&options.path, Some(Mode::ReadOnly), true)), flags, vfs);
    }
    Sqlite::open(&options.path, flags, vfs)
}

/// Takes the one integer of a one-row, one-column answer.
struct OneInteger(i64);

impl flatwater_sqlite::Sink for OneInteger {
    fn null(&mut self) {}
    fn integer(&mut self, value: i64) {
        self.0 = value;
    }
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> flatwater_sqlite::Flow {
        flatwater_sqlite::Flow::Continue
    }
}
