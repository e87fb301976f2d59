//! Opening one connection, in the one order that works.
//!
//! Owns: the order. Runs on a thread that may block. Invariant: no statement and no
//! closure of the user runs before the settings hold.
//! Leaves out: the settings themselves (`settings`, `switches`), what the connection is used for, threads.

pub(crate) mod access;
pub(crate) mod encryption;
pub(crate) mod pragma_answers;
pub(crate) mod settings;
pub(crate) mod switches;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use flatwater_sqlite::{Busy, Control, Sqlite, why_not_writable};
use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;

use self::pragma_answers::Stated;
use self::settings::{apply_settings, prepare_file};
use crate::connection::EngineConnection;
use crate::connection::functions::Functions;
use crate::connection::functions::applied::Applied;
use crate::connection::functions::provided::provide;
use crate::connection::learn::schema::SchemaReader;
use crate::connection::open::access::{because, cannot_open, check_path, check_writable, not_writable};
use crate::connection::open::settings::AttachedFiles;
use crate::connection::open::switches::protect;
use crate::connection::run::execute::Recording;
use crate::connection::run::inline_run::LengthLimit;
use crate::connection::run::statement_cache::Statements;
use crate::options::Options;
use crate::options::given::in_rollback_mode;
use crate::options::uri::{self, Mode};
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_sql::policy;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The engine's first connection, which may create the file.
    Creator,
    Writer,
    /// A connection of a caller's own that may write. What it attaches may be created, and its own file not.
    Own,
    Reader,
    /// Only checkpoints; no statement of the user runs on it.
    Checkpointer,
}

impl Role {
    /// Returns true if writes of the user run on it.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Creator | Self::Writer | Self::Own)
    }
}

impl EngineConnection {
    /// Opens a connection. Blocks on the file system and, as `busy` decides, on locks.
    pub(crate) fn open(options: &Options, functions: &Arc<Functions>, role: Role, busy: Busy) -> Result<Self> {
        check_path(options, role == Role::Creator && options.create)?;
        let mut sqlite = open_sqlite(options, role).map_err(|e| cannot_open(e.into(), options))?;
        if let Some(bytes) = options.image.take() {
            sqlite = load_image(sqlite, &bytes)?;
        }
        sqlite.hooks().set_busy(Some(busy));
        let (journal, attached_wals) = encryption::unlock(&sqlite, options)
            .and_then(|()| set_up(&mut sqlite, options, role))
            .map_err(|e| cannot_open(because(encryption::explain(e, &sqlite, options), &sqlite), options))?;
        encryption::remember(&sqlite, options);
        let has_foreign_code = role != Role::Checkpointer && options.has_foreign_code();
        let functions = Applied::new(functions, &sqlite, has_foreign_code)?;
        with_parts(sqlite, journal, attached_wals, functions, options).map_err(|e| cannot_open(e, options))
    }
}

fn with_parts(
    mut sqlite: Sqlite,
    journal: String,
    attached_wals: Vec<Box<str>>,
    functions: Applied,
    options: &Options,
) -> Result<EngineConnection> {
    let control = Control::prepare(&mut sqlite)?;
    let schema = SchemaReader::prepare(&mut sqlite)?;
    sqlite.hooks().authorizer.set_policy(policy::trusted);
    sqlite.files().guard();
    let mut connection = EngineConnection {
        sqlite,
        control,
        statements: Statements::new(options.statement_cache),
        schema,
        attached: AttachedFiles::new(options, attached_wals),
        recording: Recording::default(),
        lengths: LengthLimit::default(),
        result_limit: options.result_limit.unwrap_or(usize::MAX),
        journal,
        foreign_keys: options.foreign_keys,
        double_quoted_strings: options.double_quoted_strings,
        stated: Stated::of(options),
        functions,
        had_closure: options.has_foreign_code(),
    };
    if connection.is_behind() {
        connection.catch_up()?;
    }
    Ok(connection)
}

/// Returns true if the file has a table of Litestream's, which checkpoints the WAL by itself
/// (<https://litestream.io/tips/#disable-autocheckpoints-for-high-write-load-servers>).
pub(crate) fn has_litestream(sqlite: &Sqlite) -> Result<bool> {
    let tables = "SELECT count(*) FROM main.sqlite_schema WHERE name IN ('_litestream_seq', '_litestream_lock')";
    Ok(sqlite.patiently_with(|sqlite| sqlite.query_row(tables, [], |row| row.get::<_, i64>(0)))? > 0)
}

/// Does everything from the open file to the settings. Returns the journal mode, and the attached files that are in WAL
/// mode.
fn set_up(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<(String, Vec<Box<str>>)> {
    protect(sqlite, options)?;
    if role != Role::Checkpointer {
        provide(sqlite.rusqlite())?;
    }
    // Only an orderly close may detect that it is the last user of the file, and remove the WAL.
    keep_wal_at_close(sqlite, true)?;
    if role != Role::Reader && sqlite.handle().is_read_only() {
        return Err(not_writable(&options.path, why_not_writable(&options.path)));
    }
    sqlite.files().guard();
    let journal = prepare_file(sqlite, options, role)?;
    // By now the WAL exists.
    sqlite.files().guard();
    if journal == "wal" && role.writes() {
        check_writable(sqlite, &options.path)?;
    }
    let attached_wals = apply_settings(sqlite, options, role)?;
    Ok((journal, attached_wals))
}

/// Gives a database in memory, of which nothing was read yet, its content. SQLite would use the bytes themselves as a file of
/// another kind, of limited size; so their pages are copied.
fn load_image(sqlite: Sqlite, bytes: &[u8]) -> Result<Sqlite> {
    if bytes.is_empty() {
        return Ok(sqlite);
    }
    let (mut header, rest) = (bytes[..bytes.len().min(100)].to_vec(), bytes.get(100..).unwrap_or_default());
    in_rollback_mode(&mut header);
    let (loaded, sqlite) = sqlite.lend(|memory| {
        let mut source = rusqlite::Connection::open_in_memory()?;
        source.deserialize_read_exact("main", header.as_slice().chain(rest), bytes.len(), true)?;
        Backup::new(&source, memory)?.step(-1)
    })?;
    match loaded {
        Ok(StepResult::Done) => sqlite.ok_or_else(Error::closed),
        Ok(_) => Err(Error::new(ErrorCode::Internal, "the database in memory is in use; please report it")),
        Err(error) => {
            let error = Error::from(error);
            let message = format!("the bytes of `deserialize` are no database: {}", error.message());
            Err(error.with_message(message).with_kind(ErrorKind::Corrupt).in_operation("open"))
        }
    }
}

pub(super) fn keep_wal_at_close(sqlite: &Sqlite, keep: bool) -> Result<()> {
    sqlite.rusqlite().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// Opens the file. URIs are on for attached files that need one; our own path is absolute, and so never looks like one.
fn open_sqlite(options: &Options, role: Role) -> flatwater_sqlite::Result<Sqlite> {
    let rights = match role {
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Role::Creator if options.create => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        // An ATTACH has these rights, the file itself those of its mode below.
        Role::Own => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Role::Creator | Role::Writer | Role::Checkpointer => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let flags = rights | OpenFlags::SQLITE_OPEN_URI;
    let vfs = options.vfs.as_deref();
    let place = match role {
        _ if options.assume_immutable => uri::write(&options.path, Some(Mode::ReadOnly), true),
        Role::Own => uri::write(&options.path, Some(Mode::ReadWrite), false),
        _ => return Sqlite::open(&options.path, flags, vfs),
    };
    Sqlite::open(Path::new(&place), flags, vfs)
}
