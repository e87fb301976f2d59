//! Closures on a connection of the database: the program's, for what rusqlite can do and Flatwater does not offer, and
//! the one that asks how SQLite would run a statement.
//!
//! Owns: sending a closure to a connection's thread, where it runs, and returning its result to the caller. Leaves out:
//! restoring the connection after the closure.

use std::any::Any;
use std::fmt::Write as _;

use flatwater_sqlite::statement_start;
use rusqlite::ffi;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::error::location::offset_by;
use crate::error::{Error, Result};
use crate::workers::work::{Exclusive, Returned, Work};

const EXPLAIN: &str = "EXPLAIN QUERY PLAN ";

impl Database {
    /// Runs a closure on one of the readers, inside a read transaction: everything it reads is from one snapshot.
    ///
    /// The closure runs on a thread that may block. Changes it makes to the connection's handlers are undone.
    /// Transaction control, ATTACH, and PRAGMAs that change the connection are refused.
    ///
    /// # Errors
    /// The closure's own error; `Misuse` if it panics; `Closed`, `Io`.
    pub fn read_with<F, R, E>(&self, closure: F) -> Call<R, E>
    where
        F: FnOnce(&rusqlite::Connection) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        read_closure(self, "read_with", closure)
    }

    /// Runs a closure on the writer, inside its own transaction. Commits if the closure returns `Ok`; rolls back if it
    /// returns an error or panics. The closure may use everything rusqlite offers on the transaction it is given.
    ///
    /// The closure runs on the writer's thread; other writes wait for it. If the call is dropped while the closure
    /// runs, Flatwater interrupts its statements and commits nothing. It does the same when the database is closed
    /// meanwhile and [`Options::close_wait`](crate::Options::close_wait) has passed; the call then returns `Closed`. A
    /// closure that waits for anything but SQLite still runs to its end.
    ///
    /// # Errors
    /// The closure's own error; `Misuse` if it panics; `Busy`, `Closed`, `Io`, and any error of COMMIT.
    pub fn write_with<F, R, E>(&self, closure: F) -> Call<R, E>
    where
        F: FnOnce(&rusqlite::Transaction<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let work =
            Exclusive::WriteWith(Box::new(move |transaction| returned("write_with", closure(transaction)))).into();
        self.session.call("write_with", Ok(work), |answer, _| answer.returned())
    }
}

impl Database {
    /// Runs a closure with exclusive use of the writer's connection, for code that manages its own transactions, such
    /// as a migration library.
    ///
    /// The closure runs on the writer's thread, and other writes wait for it. Unlike in
    /// [`write_with`](Self::write_with), no transaction is open when it begins: it may begin and commit its own, attach
    /// files, and set PRAGMAs. Two are refused, as SQLITE_AUTH: a journal mode other than WAL, and an exclusive locking
    /// mode. After the closure Flatwater closes the connection, and the next write opens another, so nothing that the
    /// closure set or registered stays. A database in memory keeps its connection; Flatwater sets its options again and
    /// leaves all other settings as they are.
    ///
    /// Dropping the call, the deadline of [`with_timeout`](Self::with_timeout), and a close whose wait has passed end
    /// waits for locks, and interrupt statements until the closure's first commit. The closure itself still runs to its
    /// end.
    ///
    /// # Errors
    /// The closure's own error; `Misuse` if it panics, leaves a transaction open, or moves the connection away (an open
    /// transaction is rolled back, earlier commits stay); `Timeout` if it fails after its deadline; `CommitUnknown` if
    /// one of its commits failed and the outcome cannot be known; `Closed`, `Io`.
    pub fn with_connection<F, R, E>(&self, closure: F) -> Call<R, E>
    where
        F: FnOnce(&mut rusqlite::Connection) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let work =
            Exclusive::WithConnection(Box::new(move |connection| returned("with_connection", closure(connection))))
                .into();
        self.session.call("with_connection", Ok(work), |answer, _| answer.returned())
    }
}

impl Database {
    /// Returns how SQLite would run a statement, without running it: the rows of EXPLAIN QUERY PLAN as lines, indented
    /// as a tree (<https://sqlite.org/eqp.html>). Parameters need no values.
    ///
    /// The call runs on a reader, and does not see the changes of an open transaction. Dropping the call ends it.
    ///
    /// # Errors
    /// Errors of preparing the SQL; `Misuse` for several statements.
    pub fn query_plan(&self, sql: &str) -> Call<String> {
        let sql = sql.to_owned();
        read_closure(self, "query_plan", move |connection| {
            let start = statement_start(&sql);
            let prepared = connection.prepare(&format!("{EXPLAIN}{}", &sql[start..]));
            let before = start.cast_signed() - EXPLAIN.len().cast_signed();
            let mut statement = prepared.map_err(|error| offset_by(error.into(), before).with_sql(&sql))?;
            let mut steps = statement.raw_query();
            let (mut plan, mut parents) = (String::new(), Vec::new());
            while let Some(step) = steps.next()? {
                let (id, parent, detail): (i64, i64, String) = (step.get(0)?, step.get(1)?, step.get(3)?);
                while parents.last().is_some_and(|open| *open != parent) {
                    parents.pop();
                }
                let _ = writeln!(plan, "{:indent$}{detail}", "", indent = 2 * parents.len());
                parents.push(id);
            }
            Ok::<_, Error>(plan)
        })
    }
}

/// Runs a closure as `read_with` does, for this operation.
fn read_closure<F, R, E>(database: &Database, operation: &'static str, closure: F) -> Call<R, E>
where
    F: FnOnce(&rusqlite::Connection) -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let work = Work::ReadWith(Box::new(move |connection| returned(operation, closure(connection))));
    database.session.call(operation, Ok(work), |answer, _| answer.returned())
}

/// Returns the result for the caller. An error of Flatwater's type gets the name of the operation.
fn returned<R: Send + 'static, E: Send + 'static>(operation: &'static str, mut result: Result<R, E>) -> Returned {
    let mut told = None;
    if let Err(error) = &mut result
        && let Some(error) = (error as &mut dyn Any).downcast_mut::<Error>()
    {
        *error = not_authorized(error.clone(), operation).in_operation(operation);
        told = Some(error.clone());
    }
    Returned { is_ok: result.is_ok(), error: told, result: Box::new(result) }
}

/// SQLite says of what a closure may not do that it is not authorized, and not why.
fn not_authorized(error: Error, operation: &str) -> Error {
    match error.sqlite_code() {
        Some(ffi::SQLITE_AUTH) if operation == "with_connection" => {
            error.with_hint("a closure may not change the journal mode or the locking mode")
        }
        Some(ffi::SQLITE_AUTH) => error.with_hint(
            "for transaction control, ATTACH, TEMP objects and PRAGMAs that change the connection use \
             `with_connection`, which gives the closure exclusive use of one",
        ),
        _ => error,
    }
}
