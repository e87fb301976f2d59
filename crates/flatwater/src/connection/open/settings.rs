//! The settings of a connection: the file's journal mode, attached files, the caller's extensions, closures and SQL.
//!
//! Owns: applying the options to an open connection, running foreign code and making the connection ours again, and the names of the
//! attached files. Runs on a thread that may block. Invariants: the switch to WAL is persistent, and its result is read back; a file
//! whose mode is kept is not written; after foreign code the hooks, the handlers and the settings are ours, no transaction is open,
//! and no statement is in the middle of its rows; a connection with which it failed is not used. Leaves out: the PRAGMAs of each role
//! (`switches`), and the order in which this happens.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flatwater_sqlite::{Discard, Sqlite};
use rusqlite::ffi;

use super::access::{because, check_attached, check_writable};
use super::pragma_answers::{Judged, Stated, judge};
use super::switches::{apply_pragmas, kib, read_schemas_again, synchronous, watch_wal};
use super::{Role, encryption, keep_wal_at_close};
use crate::connection::rows;
use crate::options::{Attached, AutoVacuum, Journal, MEMORY, Options, uri};
use flatwater_base::error::cause::panicked;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_base::thread::current::mark_closure;
use flatwater_sql::policy;
use flatwater_sql::text::terminated;
use flatwater_sql::tokens::quoted;

/// Does the first reads of the file. Unless it is a reader's, the connection switches the file to WAL, which is
/// persistent, if it is not in WAL mode and its mode is not to be kept. Returns the mode that the file is in
/// afterwards.
pub(crate) fn prepare_file(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<String> {
    if role == Role::Creator {
        shape_new_file(sqlite, options)?;
    }
    let mut mode = first_read(sqlite, Sqlite::read_journal_mode)?.to_ascii_lowercase();
    let switches = role != Role::Reader && options.journal == Journal::Wal && !options.is_memory();
    if switches && mode != "wal" {
        switch_to_wal(sqlite)?;
        mode = "wal".into();
    }
    // Reads the schema: an unreadable file fails here and not in the first call.
    sqlite.patiently_with(|sqlite| sqlite.execute_batch("SELECT 1 FROM main.sqlite_schema LIMIT 1"))?;
    Ok(mode)
}

/// Sets what a file has from its first page on, for a file that is still empty. SQLite ignores this for any other file.
fn shape_new_file(sqlite: &Sqlite, options: &Options) -> Result<()> {
    if let Some(bytes) = options.page_size {
        sqlite.execute_batch(&format!("PRAGMA main.page_size = {bytes}"))?;
    }
    let auto_vacuum = match options.auto_vacuum {
        AutoVacuum::None => return Ok(()),
        AutoVacuum::Full => "FULL",
        AutoVacuum::Incremental => "INCREMENTAL",
    };
    // In a file with pages it would switch between FULL and INCREMENTAL.
    if sqlite.rusqlite().query_row("PRAGMA main.page_count", [], |row| row.get::<_, i64>(0))? == 0 {
        sqlite.execute_batch(&format!("PRAGMA main.auto_vacuum = {auto_vacuum}"))?;
    }
    Ok(())
}

/// Runs the first read of a file. It opens the file's WAL and reads it, still with SQLite's own methods, which report a
/// failed read of the disk as corruption. So after SQLITE_CORRUPT the read is repeated with our methods; a failure of
/// the disk is then reported in place of the corruption. Before that the cached pages are dropped: SQLite checks the sizes of
/// a page's cells only when it reads the page (<https://sqlite.org/pragma.html#pragma_cell_size_check>).
fn first_read<T>(
    sqlite: &mut Sqlite,
    read: impl Fn(&mut Sqlite) -> flatwater_sqlite::Result<T>,
) -> flatwater_sqlite::Result<T> {
    let damage = match read(sqlite) {
        Err(error) if error.code() == Some(ffi::SQLITE_CORRUPT) => error,
        read => return read,
    };
    sqlite.files().guard();
    if sqlite.execute_batch("PRAGMA shrink_memory").is_err() {
        return Err(damage);
    }
    let is_the_disk =
        |error: &flatwater_sqlite::Error| error.code().is_some_and(|code| code & 0xff == ffi::SQLITE_IOERR);
    read(sqlite).map_err(|again| if is_the_disk(&again) { again } else { damage })
}

/// Switches the file to WAL. SQLite does not always call the busy handler for this: when several processes open a new
/// file at once, all but one get SQLITE_BUSY at once. So the busy handler is asked here whether to try again.
fn switch_to_wal(sqlite: &mut Sqlite) -> Result<()> {
    let mut tries = 0;
    loop {
        match ask_for_wal(sqlite) {
            Ok(()) => break,
            Err(e)
                if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) && sqlite.hooks().waits(tries) =>
            {
                tries = tries.saturating_add(1);
            }
            Err(e) => return Err(e.into()),
        }
    }
    let mode = sqlite.read_journal_mode()?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::NoWal,
        format!("the database stays in journal mode {mode} and cannot be switched to WAL"),
    )
    .with_hint("WAL needs a local file system with shared memory (https://sqlite.org/wal.html)"))
}

/// Runs the PRAGMA to its end: SQLite returns the new mode before it is committed. A connection whose commit failed
/// reports that it is in WAL mode, and is not.
fn ask_for_wal(sqlite: &Sqlite) -> rusqlite::Result<()> {
    let mut switch = sqlite.rusqlite().prepare("PRAGMA main.journal_mode = wal")?;
    let mut modes = switch.query([])?;
    while modes.next()?.is_some() {}
    Ok(())
}

/// Applies the settings. Returns the attached files that are in WAL mode.
pub(crate) fn apply_settings(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<Vec<Box<str>>> {
    apply_pragmas(sqlite, options, role)?;
    if role == Role::Checkpointer {
        return Ok(Vec::new());
    }
    watch_wal(sqlite, options);
    let mut in_wal_mode = Vec::new();
    for attached in &options.attach {
        if attach_one(sqlite, attached, options, role)?.eq_ignore_ascii_case("wal") {
            in_wal_mode.push(attached.name.as_str().into());
        }
    }
    run_foreign_code(sqlite, options, role)?;
    options.on_open.iter().try_for_each(|sql| run_on_open(sqlite, sql, options))?;
    Ok(in_wal_mode)
}

/// Attaches a file, and says which one if that fails. Returns its journal mode.
pub(crate) fn attach_one(sqlite: &mut Sqlite, attached: &Attached, options: &Options, role: Role) -> Result<String> {
    attach(sqlite, attached, options, role).map_err(|error| {
        let error = because(error, sqlite);
        let message =
            format!("{} cannot be attached as {:?}: {}", attached.path.display(), attached.name, error.message());
        let may_be_the_key = options.key.is_some() && encryption::is_no_database(&error);
        let kind = if may_be_the_key { ErrorKind::Key } else { ErrorKind::Open };
        error.with_kind(kind).with_message(message).in_operation("open")
    })
}

/// Attaches a file, with the durability of the main one, and reads it, so that a file that is no database fails now,
/// and so does a file for which each write would be refused. Returns its journal mode.
fn attach(sqlite: &mut Sqlite, attached: &Attached, options: &Options, role: Role) -> Result<String> {
    let (synchronous, spill) = (synchronous(options), kib(options.spill_bytes));
    let Attached { name, path, mode, immutable } = attached;
    let place = if path.as_os_str() == MEMORY { MEMORY.to_owned() } else { uri::write(path, *mode, *immutable) };
    encryption::attach(sqlite, attached, &place, options)?;
    if role.writes() {
        check_attached(sqlite, attached)?;
    }
    let name = quoted(name);
    sqlite.files().guard();
    let schema = format!(
        "PRAGMA {name}.synchronous = {synchronous}; PRAGMA {name}.cache_spill = -{spill}; SELECT 1 FROM {name}.sqlite_schema LIMIT 1"
    );
    first_read(sqlite, |sqlite| sqlite.patiently_with(|sqlite| sqlite.execute_batch(&schema)))?;
    let mode = format!("PRAGMA {name}.journal_mode");
    let mode: String = sqlite.patiently_with(|sqlite| sqlite.query_row(&mode, [], |row| row.get(0)))?;
    if mode.eq_ignore_ascii_case("wal") && role.writes() {
        check_writable(sqlite, path)?;
    }
    Ok(mode)
}

/// Runs the caller's own SQL, on a connection that has all its settings.
pub(crate) fn run_on_open(sqlite: &mut Sqlite, sql: &str, options: &Options) -> Result<()> {
    let before = sqlite.hooks().authorizer.set_policy(policy::on_open);
    let ran = run_statements(sqlite, &terminated(sql), &Stated::of(options));
    sqlite.hooks().authorizer.set_policy(before);
    ran.map_err(|error| {
        let error = sqlite.hooks().authorizer.take_denied().map_or(error, |event| policy::refusal(&event, None));
        let message = format!("`on_open` failed: {}", error.message());
        error.with_message(message).with_sql(sql).in_operation("open")
    })
}

/// Runs the statements of the script one by one, under the policy that is set.
fn run_statements(sqlite: &mut Sqlite, script: &str, stated: &Stated) -> Result<()> {
    let mut at = 0;
    while let Some(prepared) = sqlite.prepare(&script[at..])? {
        at += prepared.length;
        let Judged { prepared, .. } = judge(sqlite, stated, prepared, policy::on_open)?;
        let ran = sqlite.statement(prepared.id).run(&(), &mut Discard);
        sqlite.statement(prepared.id).finalize();
        ran?;
    }
    Ok(())
}

pub(crate) struct AttachedFiles {
    pub(crate) names: Vec<Box<str>>,
    /// Those of them that are in WAL mode.
    pub(crate) in_wal_mode: Vec<Box<str>>,
}

impl AttachedFiles {
    pub(crate) fn new(options: &Options, in_wal_mode: Vec<Box<str>>) -> Self {
        Self { names: options.attach.iter().map(|attached| attached.name.as_str().into()).collect(), in_wal_mode }
    }

    /// Called when a statement may have attached a file or detached one.
    pub(crate) fn look_again(&mut self, sqlite: &Sqlite) {
        self.names = attached_names(sqlite).unwrap_or_default().into_iter().map(Into::into).collect();
        self.in_wal_mode.retain(|name| self.names.contains(name));
    }

    /// Makes the connection load the newest schema of an attached file, or of all of them. In the transaction that is open, it
    /// begins the snapshot of each.
    pub(crate) fn load_schemas(&self, sqlite: &Sqlite, only: Option<&str>) -> Result<()> {
        let is_wanted = |name: &str| only.is_none_or(|only| only.eq_ignore_ascii_case(name));
        self.names.iter().filter(|name| is_wanted(name)).try_for_each(|name| {
            let schema = format!("SELECT 0 FROM {}.sqlite_schema LIMIT 0", quoted(name));
            Ok(sqlite.patiently_with(|sqlite| sqlite.execute_batch(&schema))?)
        })
    }

    /// Begins the snapshots of the files in WAL mode, in the transaction that is open: each begins with the first statement
    /// that uses the file.
    pub(crate) fn begin(&self, sqlite: &Sqlite) -> Result<()> {
        self.in_wal_mode.iter().try_for_each(|name| self.load_schemas(sqlite, Some(name)))
    }
}

/// Returns the names of the files that are attached now.
pub(crate) fn attached_names(sqlite: &Sqlite) -> Result<Vec<String>> {
    let listed = "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
    Ok(rows(sqlite.rusqlite(), listed, [], |row| row.get(0))?)
}

/// Runs the extensions and the closures of the user on a connection that has its settings, and applies these again.
pub(crate) fn run_foreign_code(sqlite: &mut Sqlite, options: &Options, role: Role) -> Result<()> {
    if !options.has_foreign_code() {
        return Ok(());
    }
    for extension in &options.load_extension {
        let load = |sqlite: &Sqlite| Ok(sqlite.load_extension(&extension.path, extension.entry.as_deref())?);
        run_checked(sqlite, load).map_err(|error| {
            let message = format!("the extension {} cannot be loaded: {}", extension.path.display(), error.message());
            error.with_kind(ErrorKind::Open).with_message(message).in_operation("open")
        })?;
    }
    for closure in &options.on_connect {
        run_checked(sqlite, |sqlite| Ok(closure.run(sqlite.rusqlite())?)).map_err(|error| {
            let message = format!("`on_connect` failed: {}", error.message());
            error.with_message(message).in_operation("open")
        })?;
    }
    keep_wal_at_close(sqlite, true)?;
    apply_pragmas(sqlite, options, role)?;
    watch_wal(sqlite, options);
    Ok(())
}

/// Runs foreign code, and checks what it leaves.
fn run_checked(sqlite: &mut Sqlite, code: impl FnOnce(&Sqlite) -> Result<()>) -> Result<()> {
    let before = sqlite.hooks().authorizer.set_policy(policy::on_connect);
    let _earlier = sqlite.hooks().authorizer.take_denied();
    let ran = catch_unwind(AssertUnwindSafe(|| mark_closure(|| code(sqlite))));
    let denied = sqlite.hooks().authorizer.take_denied();
    let is_ours = sqlite.restore_handlers();
    sqlite.hooks().authorizer.set_policy(before);
    match ran.unwrap_or_else(|panic| Err(panicked(&*panic))) {
        Ok(()) => refuse_remains(sqlite, is_ours).and_then(|()| read_schemas_again(sqlite)),
        // The initialisation of an extension has no code, but passes SQLite's message on.
        Err(error) => Err(match denied {
            Some(event) if error.message().contains("not authorized") => policy::refusal(&event, None),
            _ => error,
        }),
    }
}

/// Refuses what may not be left behind.
fn refuse_remains(sqlite: &Sqlite, is_ours: bool) -> Result<()> {
    if !is_ours {
        return Err(Error::new(
            ErrorCode::ChangedConnection,
            "it replaced the commit hook, the rollback hook, the update hook or the authorizer, which Flatwater needs",
        ));
    }
    if !sqlite.handle().is_autocommit() || sqlite.handle().has_busy_statement() {
        return Err(Error::new(
            ErrorCode::LeftTransaction,
            "it left a transaction open, or a statement in the middle of its rows",
        ));
    }
    Ok(())
}
