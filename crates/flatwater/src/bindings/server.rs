//! Sessions on a server: what the crate that reaches one needs. Part of the interface that `bindings` is, and with it
//! not for programs.
//!
//! Owns: a session whose calls go to a server, its errors, a caller's right to the rest of a result that comes in parts, and what is
//! wrong with a statement as far as its text and its values tell: the errors that a file gives. Runs on callers' threads and on those
//! of the other crate. Invariants: when nobody wants the rest any more, the crate is told once; no value is in an error. Leaves out:
//! what is asked and answered (`asked`), transactions (`server_transaction`), and the way to the server, with what it refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater_sqlite::{Error as Sqlite, SqliteError};

pub use super::asked::{Answered, One, RowsRead, What, executed};
pub use super::server_transaction::{SavepointStep, ServerTransaction, Turn, begin, run};
pub use crate::api::database::close;
use crate::api::database::session_of;
pub use crate::api::live::forms::group_of as live_group;
pub use crate::api::live::live_of as live;
pub use crate::api::maintenance::migrate;
use crate::api::session::{Session, with_options};
use crate::connection::run::hints::ONE_FOR_A_LIST;
use crate::connection::run::prepare::nul_in_sql;
use crate::engine::handle::Handle;
pub use crate::engine::server::{Asked, Changes, Server};
use crate::migrations::{Applied, Migrations, Step, line, next};
use crate::options::Options;
use crate::queue::reply::Teller;
use crate::workers::Answer;
use crate::workers::kept::{CursorGuard, KeptConnection};
use crate::workers::request::Request;
pub use crate::workers::shared_errors::{
    not_on_a_server as needs_database, returns_no_rows, returns_rows, returns_rows_of_many,
};
pub use flatwater_base::error::after_the_write as result_lost;
use flatwater_base::error::hint::hint;
use flatwater_base::error::hint::with_other_hint;
pub use flatwater_base::error::location::in_row as of_row;
use flatwater_base::error::{Error, ErrorCode, Result, TimeoutEffect, timed_out};
use flatwater_base::thread::background::start;
use flatwater_base::values::Rows;
use flatwater_sql::pragma::{self, Pragma};
use flatwater_sql::tokens::{self, has_in_with_one_parameter};
use flatwater_sql::{change_functions, text};

/// Returns a session whose calls go to this server. `path` is its name in events. While it has live queries, the server is told to look
/// for commits every `live_poll`.
pub fn session(server: Arc<dyn Server>, path: &str, live_poll: Duration) -> Session {
    session_of(Handle::to_server(server, Options { live_poll, ..Options::new(path) }))
}

/// Starts a thread. No thread of the process forks while it starts or ends.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    start(name, body).map(drop)
}

/// Returns another session of the same handle.
pub fn share(session: &Session) -> Session {
    session.share()
}

/// The same, whose calls have this time.
pub fn with_timeout(session: &Session, timeout: Duration) -> Session {
    with_options(session, |options| options.set_timeout(timeout))
}

/// The same, whose calls end by then.
pub fn with_deadline(session: &Session, deadline: Instant) -> Session {
    with_options(session, |options| options.set_deadline(deadline))
}

/// The same, whose calls go this way: a number for the server.
pub fn with_way(session: &Session, way: u16) -> Session {
    with_options(session, |options| options.way = way)
}

/// Returns an error if calls of this session are refused: it was closed, or this process was forked meanwhile.
pub fn usable(session: &Session) -> Result<()> {
    session.0.handle.refuse_inherited()?;
    if session.0.handle.is_closed() { Err(Error::closed()) } else { Ok(()) }
}

/// Returns the error of SQLite with this code, as the server tells it: its message, and the byte of the SQL where it was found.
pub fn sqlite_error(code: i32, message: &str, offset: Option<usize>) -> Error {
    Error::from(SqliteError { message: message.to_owned(), offset, ..SqliteError::from_code(code) })
}

/// Returns an error of the way to a server.
pub fn error(code: ErrorCode, message: String, hint: &'static str) -> Error {
    Error::new(code, message).with_hint(hint)
}

/// Returns the error of a call whose time is over.
pub fn timeout(message: String, applied: TimeoutEffect) -> Error {
    timed_out(message, applied)
}

/// The same error for this statement.
pub fn of_statement(error: Error, sql: &str) -> Error {
    error.with_sql(sql)
}

/// The same error for a statement of a script.
pub fn of_script(error: Error) -> Error {
    if error.sqlite_code().is_none() { with_other_hint(error, "a script has no parameters") } else { error }
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
    pub fn explain(&self, error: Error) -> Error {
        let failed = error.sql().and_then(|sql| self.sql.find(sql).map(|at| (at, sql.len() - sql.trim_start().len())));
        let place = failed.map_or_else(String::new, |(at, blank)| format!(", line {}", line(self.sql, at + blank)));
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

/// What comes for the rest of a result.
pub enum Rest {
    /// The next part is wanted.
    Next(Asked),
    /// Nobody wants the rest.
    Ended,
}

/// Takes what comes, and returns false if the rest is not there any more.
type Tell = Box<dyn Fn(Rest) -> bool + Send + Sync>;

struct Cursor {
    tell: Tell,
    has_ended: AtomicBool,
}

impl KeptConnection for Cursor {
    fn send(&self, request: Request) -> Result<()> {
        if (self.tell)(Rest::Next(Asked { request, changes: None, kept: None })) {
            return Ok(());
        }
        let message = "the rest of the result was given up, because none of it was fetched for too long";
        Err(Error::new(ErrorCode::StreamIdle, message))
    }

    fn end_cursor(&self, _: u64) {
        self.end();
    }

    fn end(&self) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            (self.tell)(Rest::Ended);
        }
    }

    fn touch(&self) {}
}

impl Asked {
    /// Returns true for a query whose rows are wanted in parts.
    pub fn wants_parts(&self) -> bool {
        self.request.work.wants_parts()
    }

    /// Answers it with the first part of its rows, after which there are more.
    pub fn answer_first(self, rows: Rows, tell: impl Fn(Rest) -> bool + Send + Sync + 'static) {
        let cursor = Arc::new(Cursor { tell: Box::new(tell), has_ended: AtomicBool::new(false) });
        let first = Answer::Begun(Box::new((rows, CursorGuard::new(cursor, 0))));
        self.request.reply_to.fill(Ok(first), &mut Teller::default());
    }

    /// Answers a further part, and whether there are more.
    pub fn answer_next(self, part: Result<(Rows, bool)>) {
        let answer = part.map(|part| Answer::Fetched(Box::new(part)));
        self.request.reply_to.fill(answer, &mut Teller::default());
    }
}

/// Refuses values that are not those of the parameters.
///
/// # Errors
/// `Misuse`, with the names that there are, or the number.
pub fn check_parameters(one: &One<'_>) -> Result<()> {
    let given: Vec<&str> = one.values().filter_map(|(name, _)| name).collect();
    if given.is_empty() {
        return check_count(one);
    }
    let mut known: Vec<String> = Vec::new();
    for name in text::signed_parameters(one.sql) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let mut bound = vec![false; known.len()];
    for name in given {
        let Some(at) = known.iter().position(|known| *known == name || known[1..] == *name) else {
            return Err(Sqlite::UnknownParameter { name: name.to_owned(), known }.into());
        };
        if std::mem::replace(&mut bound[at], true) {
            return Err(Sqlite::RepeatedParameter { name: known[at].clone() }.into());
        }
    }
    match bound.iter().position(|bound| !bound) {
        Some(at) => Err(Sqlite::MissingParameter { name: known[at].clone() }.into()),
        None if known.len() < text::parameter_count(one.sql) => {
            Err(Error::new(ErrorCode::ParameterName, "some parameters have names and others have none")
                .with_hint("name all of them"))
        }
        None => Ok(()),
    }
}

fn check_count(one: &One<'_>) -> Result<()> {
    let (expected, given) = (text::parameter_count(one.sql), one.len());
    if expected == given {
        return Ok(());
    }
    let error = Error::from(Sqlite::ParameterCount { expected, given });
    Err(if has_in_with_one_parameter(one.sql) { error.with_hint(ONE_FOR_A_LIST) } else { error })
}

/// Refuses a text that SQLite would read up to a NUL only.
///
/// # Errors
/// `Misuse`.
pub fn check_nul(sql: &str) -> Result<()> {
    if sql.contains('\0') { Err(nul_in_sql()) } else { Ok(()) }
}

/// The function by which a text may ask for an earlier statement of its connection.
pub fn asks_for_earlier(sql: &str) -> Option<&'static str> {
    let tokens: Vec<(&str, &str)> = tokens::with_gaps(sql).map(|(kind, token, _)| (kind, token)).collect();
    tokens.windows(3).find_map(|three| {
        let [(kind, name), (_, "("), (_, ")")] = three else { return None };
        let name = name.trim_matches(['"', '`', '[', ']']);
        let is_it = |function: &&str| matches!(*kind, "word" | "name") && name.eq_ignore_ascii_case(function);
        change_functions::FUNCTIONS.into_iter().find(is_it)
    })
}

/// The name of a PRAGMA that does more than answer a question.
///
/// # Errors
/// `Misuse` for one that there is not.
pub fn changing_pragma(sql: &str) -> Result<Option<&str>> {
    let Some((name, value)) = tokens::pragma(sql) else { return Ok(None) };
    match pragma::class(name, value.is_some()) {
        Pragma::Answer => Ok(None),
        Pragma::Unknown => {
            let error = Error::new(ErrorCode::NoSuchPragma, format!("there is no PRAGMA {name}"));
            Err(error.with_hint("SQLite ignores unknown PRAGMAs silently"))
        }
        _ => Ok(Some(name)),
    }
}

/// The error for the control of a transaction as text, where the server has transactions.
pub fn control_as_text(verb: &str) -> Error {
    let is = |words: &[&str]| words.iter().any(|word| verb.eq_ignore_ascii_case(word));
    let error = Error::new(
        ErrorCode::TransactionAsText,
        format!("{verb} as text would have no effect on the next call, which has another connection"),
    );
    if is(&["BEGIN"]) {
        error.with_hint(hint![BeginTransaction])
    } else if is(&["SAVEPOINT", "RELEASE"]) {
        error.with_hint(hint![NestTransaction])
    } else {
        error.with_hint(hint!["a single write is committed when its call returns; a transaction " EndsTransaction])
    }
}
