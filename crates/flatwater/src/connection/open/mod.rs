//! Opening one connection, in the one order that works, and checking it after a closure of the user.
//!
//! Owns: the order. Runs on a thread that may block. Invariants: no statement of the user runs before the settings
//! hold; a connection that a closure left changed is never used again. Leaves out: the settings themselves, what the
//! connection is used for, threads.

mod cannot_open;
pub(crate) mod pragma_answers;
pub(crate) mod pragmas;
pub(crate) mod role;
pub(crate) mod settings;
pub(crate) mod writable;

use std::path::Path;

use flatwater_sqlite::{Busy, Connection as Sqlite, Control, StatementId, why_not_writable};
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use self::cannot_open::{because, cannot_open, check_path};
use self::pragma_answers::Stated;
use self::role::Role;
use self::settings::{apply_settings, prepare_file};
use crate::connection::run::statement_cache::Statements;
use crate::dependencies::change::Written;
use crate::error::kind::is_passing;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::options::uri::{self, Mode};
use crate::sql::policy;
use crate::sql::schema_seen::SchemaSeen;
use crate::sql::tokens::quoted;

/// A connection with its statements, its transaction control and the settings it was opened with.
pub(crate) struct Connection {
    pub(crate) sqlite: Sqlite,
    pub(crate) statements: Statements,
    pub(crate) control: Control,
    cookie: StatementId,
    /// Reads the schema; stepping it loads a newer one.
    schema: StatementId,
    pub(crate) seen: SchemaSeen,
    foreign_keys: bool,
    /// True after a closure of the user ran on it, which may have replaced anything.
    pub(super) had_closure: bool,
    /// The limit of lengths outside of inline runs, in bytes, while the limit of inline runs holds.
    pub(super) unlimited: Option<usize>,
    /// The attached files.
    pub(super) attached: Vec<Box<str>>,
    /// Those of them that are in WAL mode.
    pub(crate) attached_wals: Vec<Box<str>>,
    pub(super) stated: Stated,
    /// The journal mode, in lower case.
    pub(crate) journal: String,
    /// What its statements change, while that is recorded.
    pub(super) written: Option<Written>,
    /// The file's data version when it was last compared, if it has no WAL.
    pub(super) data_version: Option<i64>,
}

impl Connection {
    /// Opens a connection. Blocks on the file system and, as `busy` decides, on locks.
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
            prepared.ok_or_else(|| Error::new(ErrorKind::Open, "a statement of our own cannot be prepared"))
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
            seen: SchemaSeen::default(),
            foreign_keys: options.foreign_keys,
            had_closure: false,
            unlimited: None,
            attached: options.attach.iter().map(|attached| attached.name.as_str().into()).collect(),
            attached_wals,
            stated: Stated::of(options),
            journal,
            written: None,
            data_version: None,
        })
    }

    /// Returns true if one of its files is open for reading only, so that no write can succeed here.
    pub(crate) fn is_half_open(&self) -> bool {
        writable::is_half_open(&self.sqlite).unwrap_or(false)
    }

    /// Closes it. If it is the last connection to the file, SQLite copies the rest of the WAL into the database and
    /// removes the WAL.
    pub(crate) fn close_in_order(self) {
        // If this fails, the WAL stays, and the next open uses it.
        let _ = keep_wal_at_close(&self.sqlite, false);
    }

    /// Returns true if Litestream works on the file. Litestream keeps the WAL short by itself, and copies again what
    /// other programs checkpoint (<https://litestream.io/tips/#disable-autocheckpoints-for-high-write-load-servers>).
    pub(crate) fn has_litestream(&self) -> Result<bool> {
        let tables = "SELECT count(*) FROM main.sqlite_schema WHERE name IN ('_litestream_seq', '_litestream_lock')";
        let count = |sqlite: &rusqlite::Connection| sqlite.query_row(tables, [], |row| row.get::<_, i64>(0));
        Ok(self.sqlite.patiently_with(count)? > 0)
    }

    /// Makes the connection load the newest schema of the main database. Without this, a text that names something unknown
    /// may be prepared under an older schema.
    pub(crate) fn load_schema(&mut self) -> Result<()> {
        Ok(self.sqlite.run(self.schema, &(), &mut flatwater_sqlite::Discard)?)
    }

    /// The same before a text that takes effect while it is prepared. A schema that cannot be loaded is no error of
    /// that text, which may not need one: SQLite then has none in memory, and reads it again for a text that needs it.
    pub(crate) fn load_newest_schema(&mut self) -> Result<()> {
        match self.load_schema() {
            Err(error) if error.sqlite_code().is_some_and(is_passing) => Err(error),
            _ => Ok(()),
        }
    }

    /// The same for an attached file, or for all of them. In the transaction that is open, it begins the snapshot of each.
    pub(crate) fn load_attached_schemas(&self, only: Option<&str>) -> Result<()> {
        let is_wanted = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        self.attached.iter().filter(|name| is_wanted(name)).try_for_each(|name| {
            let schema = format!("SELECT 0 FROM {}.sqlite_schema LIMIT 0", quoted(name));
            Ok(self.sqlite.patiently_with(|sqlite| sqlite.execute_batch(&schema))?)
        })
    }

    /// Returns the schema cookie, in the transaction that is open or in one of its own.
    pub(crate) fn schema_cookie(&mut self) -> Result<i64> {
        let mut cookie = OneInteger(0);
        self.sqlite.run(self.cookie, &(), &mut cookie)?;
        Ok(cookie.0)
    }

    /// Begins the snapshots of the attached files in WAL mode, in the transaction that is open: each begins with the first
    /// statement that uses the file.
    pub(crate) fn begin_attached(&mut self) -> Result<()> {
        self.attached_wals.iter().try_for_each(|name| self.load_attached_schemas(Some(name)))
    }

    /// Called right after a closure of the user, before anything else runs: restores our handlers, and returns true if
    /// everything that can be checked is as it was.
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

    /// Returns true if no transaction is open and no statement is in the middle of its rows.
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

    /// Drops the TEMP objects that a transaction made. Foreign keys are off meanwhile, because these tables may refer
    /// to each other.
    pub(crate) fn drop_temp_objects(&mut self) -> Result<()> {
        let sqlite = self.sqlite.rusqlite();
        let names: Vec<(String, String)> = sqlite
            .prepare_cached(
                "SELECT type, name FROM temp.sqlite_schema WHERE type <> 'index' AND name NOT GLOB 'sqlite_*'",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if names.is_empty() {
            return Ok(());
        }
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        // A trigger is dropped with its table, if that is a TEMP table too.
        let dropped = names
            .iter()
            .try_for_each(|(kind, name)| sqlite.execute_batch(&format!("DROP {kind} IF EXISTS temp.{}", quoted(name))));
        sqlite.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, self.foreign_keys)?;
        Ok(dropped?)
    }
}

/// Does everything from the open file to the settings. Returns the journal mode, and the attached files that are in WAL
/// mode.
fn set_up(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<(String, Vec<Box<str>>)> {
    // Only an orderly close may detect that it is the last user of the file, and remove the WAL.
    keep_wal_at_close(sqlite, true)?;
    if role != Role::Reader && sqlite.is_read_only() {
        return Err(writable::refused(&options.path, why_not_writable(&options.path)));
    }
    sqlite.guard_files();
    let journal = prepare_file(sqlite, options, role)?;
    // By now the WAL exists.
    sqlite.guard_files();
    if journal == "wal" && role.writes() {
        writable::check(sqlite, &options.path)?;
    }
    let attached_wals = apply_settings(sqlite, options, role)?;
    Ok((journal, attached_wals))
}

fn autocheckpoint(sqlite: &Sqlite) -> Result<i64> {
    Ok(sqlite.rusqlite().prepare_cached("PRAGMA wal_autocheckpoint")?.query_row([], |row| row.get(0))?)
}

fn keep_wal_at_close(sqlite: &Sqlite, keep: bool) -> Result<()> {
    sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// Opens the file. URIs are on for attached files that need one; our own path is absolute, and so never looks like one.
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

/// Takes the integer of a result with one row and one column.
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
