//! Sessions on a server: what the crate that reaches one needs. Part of the interface that `bindings` is, and with it not for programs.
//!
//! Owns: a session whose calls go to a server, and its errors. Runs on callers' threads and on those of the other crate. Leaves out:
//! what is asked and answered (`asked`), what is told of a text without a connection (`server_checks`), transactions
//! (`server_transaction`), and the way to the server.

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::SqliteError;

pub use super::asked::{Answered, One, RowsRead, What, executed};
pub use super::server_checks::{
    asks_for_earlier, changing_pragma, check_nul, check_parameters, control_as_text, returns_no_rows, returns_rows,
};
pub use super::server_cursor::Rest;
pub use super::server_transaction::{SavepointStep, ServerTransaction, Turn, begin, run};
use crate::api::call::Call;
use crate::api::database::{close_as, session_of};
use crate::api::live::forms::{LiveQueries, group_of};
use crate::api::live::{Live, live_of};
use crate::api::session::Session;
use crate::api::statement::Statement;
use crate::engine::dispatch::Caller;
use crate::engine::handle::Handle;
pub use crate::engine::server::{Asked, Changes, Server};
use crate::error::location::in_row;
use crate::error::{Error, ErrorKind, Result, TimeoutEffect, after_the_write};
use crate::migrations::plan::{Applied, next};
use crate::migrations::{Migrations, Step};
use crate::options::Options;
use crate::options::json_options::JsonOptions;
use crate::queue::ticket::CallOptions;
use crate::thread::start::start;
use crate::values::into_params::IntoParams;
use crate::workers::shared_errors::not_on_a_server;
use crate::workers::work::Work;

/// Returns a session whose calls go to this server. `path` is its name in events. While it has live queries, the server is told to look
/// for commits every `live_poll`.
#[must_use]
pub fn session(server: Arc<dyn Server>, path: &str, live_poll: Duration) -> Session {
    session_of(Handle::to_server(server, Options::new(path).tuning(|tuning| tuning.live_poll(live_poll))))
}

/// Starts a thread. No thread of the process forks while it starts or ends.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    start(name, body).map(drop)
}

/// Returns another session of the same handle.
#[must_use]
pub fn share(session: &Session) -> Session {
    session.share()
}

/// The same, whose calls have this time.
#[must_use]
pub fn with_timeout(session: &Session, timeout: Duration) -> Session {
    let options = CallOptions { timeout: Some(timeout), ..session.0.options };
    Session(Caller { options, ..session.0.clone() })
}

/// The same, whose calls go this way: a number for the server.
#[must_use]
pub fn with_way(session: &Session, way: u16) -> Session {
    let options = CallOptions { way, ..session.0.options };
    Session(Caller { options, ..session.0.clone() })
}

/// The same, which writes JSON as `options` say.
#[must_use]
pub fn with_json(session: &Session, options: JsonOptions) -> Session {
    Session(Caller { json: Some(Arc::new(options)), ..session.0.clone() })
}

/// As `Database::live`.
pub fn live(session: &Session, sql: impl Statement, params: impl IntoParams) -> Live {
    live_of(session, &sql, params)
}

/// As `Database::live_group`.
pub fn live_group<Q: LiveQueries>(session: &Session, queries: Q) -> Live<Q::Results> {
    group_of(session, queries)
}

/// Returns an error if calls of this session are refused: it was closed, or this process was forked meanwhile.
pub fn usable(session: &Session) -> Result<()> {
    session.0.handle.refuse_inherited()?;
    if session.0.handle.is_closed() { Err(Error::closed()) } else { Ok(()) }
}

/// Applies the migrations that the database does not have yet.
pub fn migrate(session: &Session, migrations: Migrations) -> Call<Vec<String>> {
    session.call("migrate", Ok(Work::Migrate(migrations)), |answer, _| answer.returned())
}

/// Closes the handle of a session.
pub fn close(session: &Session) -> Call<()> {
    close_as(session, |answer, _| answer.done())
}

/// Returns the error of SQLite with this code, as the server tells it: its message, and the byte of the SQL where it was found.
#[must_use]
pub fn sqlite_error(code: i32, message: &str, offset: Option<usize>) -> Error {
    Error::from(SqliteError { message: message.to_owned(), offset, ..SqliteError::from_code(code) })
}

/// Returns the error for what a server has not.
#[must_use]
pub fn needs_database(what: &str) -> Error {
    not_on_a_server(what)
}

/// Returns an error of the way to a server.
#[must_use]
pub fn error(kind: ErrorKind, message: String, hint: &'static str) -> Error {
    Error::new(kind, message).with_hint(hint)
}

/// Returns the error of a call whose time is over.
#[must_use]
pub fn timeout(message: String, applied: TimeoutEffect) -> Error {
    Error::timeout(message, applied)
}

/// Returns the error of a result that cannot be made any more, after the statement was committed.
#[must_use]
pub fn result_lost(error: Error) -> Error {
    after_the_write(error)
}

/// The same error for this statement.
#[must_use]
pub fn of_statement(error: Error, sql: &str) -> Error {
    error.with_sql(sql)
}

/// The same error for a statement of a script.
#[must_use]
pub fn of_script(error: Error) -> Error {
    if error.sqlite_code().is_none() { error.with_other_hint("a script has no parameters") } else { error }
}

/// The same error for a row of an `execute_many`, which are counted from 0.
#[must_use]
pub fn of_row(error: Error, row: usize) -> Error {
    in_row(error, row)
}

/// A row of the history of migrations: version, name, checksum.
pub type AppliedMigration = (i64, String, Vec<u8>);

/// A migration that is to be applied.
pub struct NextMigration<'a> {
    pub version: i64,
    pub name: &'a str,
    pub sql: &'a str,
    pub checksum: &'a [u8],
    pub in_transaction: bool,
}

impl NextMigration<'_> {
    /// The same error for this migration, with the line of the statement that failed.
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        let failed = error.sql().and_then(|sql| self.sql.find(sql).map(|at| (at, sql.len() - sql.trim_start().len())));
        let place = failed.map_or_else(String::new, |(at, blank)| {
            format!(", line {}", self.sql[..at + blank].matches('\n').count() + 1)
        });
        let message = format!("migration {}{place}: {}", self.name, error.message());
        error.with_message(message)
    }
}

/// Returns the migration that comes after those that are applied.
pub fn next_migration(migrations: &Migrations, applied: Vec<AppliedMigration>) -> Result<Option<NextMigration<'_>>> {
    let row = |(version, name, checksum)| Applied { version, name, checksum };
    let applied: Vec<Applied> = applied.into_iter().map(row).collect();
    let step = next(migrations.steps()?, &applied, migrations.ignore_missing)?;
    Ok(step.map(|Step { version, name, sql, checksum, in_transaction }| NextMigration {
        version: *version,
        name,
        sql,
        checksum,
        in_transaction: *in_transaction,
    }))
}
