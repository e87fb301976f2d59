//! Sessions on a server: what the crate that reaches one needs. Part of the interface that `bindings` is, and with it not for programs.
//!
//! Owns: a session whose calls go to a server, reading what is asked, and answering. Runs on callers' threads and on those of
//! the other crate. Invariant: an answer has the form that its caller wants. Leaves out: the way to the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Bindings, ColumnSource, SqliteError};
use rusqlite::types::ValueRef;

use crate::api::call::Call;
use crate::api::database::session_of;
use crate::api::session::Session;
use crate::encode::json::json_of;
use crate::engine::dispatch::{Awaited, Caller, Submitted};
use crate::engine::handle::Handle;
pub use crate::engine::server::{Asked, Server};
use crate::error::location::in_row;
use crate::error::{Error, ErrorKind, Result, TimeoutEffect, after_the_write};
use crate::migrations::plan::{Applied, next};
use crate::migrations::{Migrations, Step};
use crate::options::Options;
use crate::options::json_options::JsonOptions;
use crate::queue::reply::{Teller, reply};
use crate::queue::ticket::CallOptions;
use crate::sql::pragma::{self, Pragma};
use crate::sql::tokens::{self, may_call};
use crate::sql::{change_functions, parameters};
use crate::values::block::Block;
use crate::values::column::{ColumnNames, Names};
use crate::values::executed::{BatchResult, ExecuteResult};
use crate::values::params::ParamRow;
use crate::values::row::Rows;
use crate::workers::Answer;
use crate::workers::request::Request;
use crate::workers::work::{Wanted, Work};

/// Returns a session whose calls go to this server. `path` is its name in events; `timeout` is the time of each call.
#[must_use]
pub fn session(server: Arc<dyn Server>, path: &str, timeout: Option<Duration>) -> Session {
    let options = Options { timeout, ..Options::new(path) };
    session_of(Handle::to_server(server, options))
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
pub fn with_way(session: &Session, way: u64) -> Session {
    let options = CallOptions { way, ..session.0.options };
    Session(Caller { options, ..session.0.clone() })
}

/// The same, which writes JSON as `options` say.
#[must_use]
pub fn with_json(session: &Session, options: JsonOptions) -> Session {
    Session(Caller { json: Some(Arc::new(options)), ..session.0.clone() })
}

/// Closes the handle of a session.
pub fn close(session: &Session) -> Call<()> {
    let handle = session.0.handle.clone();
    let start = move |_| {
        handle.refuse_inherited()?;
        let (promise, ended) = reply();
        handle.close(Some(promise));
        Ok(Submitted::Waits(Awaited::Close, ended))
    };
    Call::starting(Some(&session.0), "close", Box::new(start), |answer, _| answer.done())
}

/// One run of a statement.
#[derive(Clone, Copy)]
pub struct One<'a> {
    pub sql: &'a str,
    row: Option<ParamRow<'a>>,
}

impl<'a> One<'a> {
    #[must_use]
    pub fn without_values(sql: &'a str) -> Self {
        Self { sql, row: None }
    }

    /// The bytes of its texts and blobs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = |value| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 8,
        };
        self.row.into_iter().flat_map(ParamRow::values).map(bytes).sum()
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.row.map_or(0, |row| row.count())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each value, with its name if it has one.
    pub fn values(&self) -> impl Iterator<Item = (Option<&str>, ValueRef<'_>)> {
        self.row.iter().flat_map(|row| (0..row.count()).map(|index| (row.name(index), row.value(index))))
    }
}

/// What a server is asked.
pub enum What<'a> {
    Execute(One<'a>),
    Query(One<'a>),
    /// The rows of one statement.
    Many(Vec<One<'a>>),
    Batch(Vec<One<'a>>),
    Script(&'a str),
    /// What only an engine can do.
    Other,
}

/// What a server answers.
pub enum Answered {
    Executed(ExecuteResult),
    Changes(u64),
    Rows(Rows),
    Batch(Vec<(ExecuteResult, Option<Rows>)>),
    Done,
}

impl Asked {
    #[must_use]
    pub fn what(&self) -> What<'_> {
        match &self.request.work {
            Work::Execute { text, params } => What::Execute(One { sql: &text.sql, row: Some(params.row()) }),
            Work::Query { text, params, .. } => What::Query(One { sql: &text.sql, row: Some(params.row()) }),
            Work::Many { text, rows } => {
                What::Many(rows.rows().map(|row| One { sql: &text.sql, row: Some(row) }).collect())
            }
            Work::Batch(statements) => {
                let texts = statements.texts().iter();
                let all = texts.flat_map(|(text, rows)| rows.rows().map(|row| One { sql: &text.sql, row: Some(row) }));
                What::Batch(all.collect())
            }
            Work::Script(text) => What::Script(&text.sql),
            _ => What::Other,
        }
    }

    /// Keeps this until it is answered or dropped.
    pub fn keep(&mut self, kept: Box<dyn Send + Sync>) {
        self.kept = Some(kept);
    }

    /// Called before anything of it is sent. Returns false if its caller has left: then it must not be sent.
    #[must_use]
    pub fn starts(&self) -> bool {
        self.request.ticket.start()
    }

    /// Called before what may change something is sent: from then on it is finished whatever its caller does. Returns false if its
    /// caller has left.
    #[must_use]
    pub fn finishes(&self) -> bool {
        self.request.ticket.finishes()
    }

    /// Puts it back into a queue, before it is sent again. Returns false if its caller has left, or its time is over.
    #[must_use]
    pub fn waits_again(&self) -> bool {
        self.request.ticket.hand_over()
    }

    /// Returns true if its caller has left, and needs no answer.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.request.ticket.is_interrupted() || self.request.ticket.is_given_up()
    }

    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.request.ticket.deadline
    }

    /// When the call began.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.request.ticket.began
    }

    /// The way of its session, as [`with_way`] has it.
    #[must_use]
    pub fn way(&self) -> u64 {
        self.request.ticket.options.way
    }

    /// Returns true for what is known to read only, as far as its text tells.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        self.request.work.describe().only_reads()
    }

    /// Answers it, and wakes its caller.
    pub fn answer(self, answered: Result<Answered>) {
        let Request { work, reply_to, .. } = self.request;
        let answer = answered.and_then(|answered| wanted(&work, answered)).map_err(|error| work.explain(error));
        reply_to.fill(answer, &mut Teller::default());
    }
}

fn wanted(work: &Work, answered: Answered) -> Result<Answer> {
    Ok(match answered {
        Answered::Executed(executed) => Answer::Executed(executed),
        Answered::Changes(changes) => Answer::Changes(changes),
        Answered::Batch(results) => {
            Answer::Batch(results.into_iter().map(|(executed, rows)| BatchResult { executed, rows }).collect())
        }
        Answered::Done => Answer::Done,
        Answered::Rows(rows) => match work {
            Work::Query { wanted: Wanted::Json(options), .. } => match json_of(&rows, options) {
                Ok(document) => Answer::Json(document),
                Err(error) if rows.names.is_of_write => Answer::Unmade(after_the_write(error)),
                Err(error) => return Err(error),
            },
            _ => Answer::Rows(rows),
        },
    })
}

/// How many values a run of a statement needs.
#[must_use]
pub fn parameters(sql: &str) -> usize {
    parameters::count(sql)
}

/// The function by which a text may ask for an earlier statement of its connection.
#[must_use]
pub fn asks_for_earlier(sql: &str) -> Option<&'static str> {
    change_functions::FUNCTIONS.into_iter().find(|function| may_call(sql, function, false))
}

/// The name of a PRAGMA that does more than answer a question.
#[must_use]
pub fn changing_pragma(sql: &str) -> Option<&str> {
    let (name, value) = tokens::pragma(sql)?;
    (pragma::class(name, value.is_some()) != Pragma::Answer).then_some(name)
}

/// The result of a write.
#[must_use]
pub fn executed(changes: u64, last_insert_rowid: Option<i64>) -> ExecuteResult {
    ExecuteResult { changes, last_insert_rowid }
}

/// A result while it is read.
pub struct RowsRead {
    names: Names,
    block: Block,
}

impl RowsRead {
    /// `columns` have the name and the declared type of each.
    #[must_use]
    pub fn new(sql: &str, columns: Vec<(Box<str>, Option<Box<str>>)>, is_of_write: bool) -> Self {
        let source = |declared_type| ColumnSource { declared_type, origin: None };
        let (names, sources) = columns.into_iter().map(|(name, declared)| (name, source(declared))).unzip();
        Self { names: ColumnNames::of(names, sources, sql.into(), is_of_write), block: Block::default() }
    }

    /// Adds the next value.
    pub fn push(&mut self, value: ValueRef<'_>) {
        self.block.push(value);
    }

    /// `None` if a row is not whole.
    #[must_use]
    pub fn finish(self) -> Option<Rows> {
        let is_whole = self.block.cells().checked_rem(self.names.len()).unwrap_or(0) == 0;
        is_whole.then_some(Rows { names: self.names, block: self.block })
    }
}

/// Returns the error of SQLite with this code, as the server tells it.
#[must_use]
pub fn sqlite_error(code: i32, message: &str) -> Error {
    Error::from(SqliteError { message: message.to_owned(), ..SqliteError::from_code(code) })
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
    /// The same error for this migration.
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        let message = format!("migration {}: {}", self.name, error.message());
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
