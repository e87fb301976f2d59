//! Code of the program that SQLite or a connection of the database runs: closures, for what rusqlite can do and Flatwater does not offer,
//! the one that asks how SQLite would run a statement, and functions and collations on an open database.
//!
//! Owns: sending a closure to a connection's thread, where it runs, and returning its result to the caller; creating and removing
//! functions, which runs on the caller's thread and waits for nothing. Leaves out: restoring the connection after a closure, and the
//! closures for each connection (`Options::on_connect`), which suit what is known when the database is opened.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::panic::{RefUnwindSafe, UnwindSafe};

use flatwater_sqlite::statement_start;
use rusqlite::ffi;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, SqlFnOutput, WindowAggregate};

use crate::api::call::Call;
use crate::api::connection::Connection;
use crate::api::database::Database;
use crate::connection::functions::registration::{Key, Registration};
use crate::engine::caller::Caller;
use crate::workers::user_closures::Returned;
use crate::workers::work::{self, Exclusive};
use flatwater_base::error::location::offset_by;
use flatwater_base::error::{Error, Result};

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
    /// meanwhile and [`Tuning::close_wait`](crate::options::Tuning::close_wait) has passed; the call then returns `Closed`. A
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

    /// Returns what creates SQL functions and collations, and removes them. What is known when the database is opened can be
    /// registered by [`Options::on_connect`](crate::Options::on_connect) as well.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// use flatwater::rusqlite::functions::FunctionFlags;
    ///
    /// let pure = FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    /// db.functions().create_scalar_function("shout", 1, pure, |context| Ok(context.get::<String>(0)?.to_uppercase()))?;
    /// let shouted: String = db.query_value("SELECT shout(?)", ("hello",)).await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn functions(&self) -> Functions<'_> {
        Functions(&self.session.0)
    }
}

/// Runs a closure as `read_with` does, for this operation.
fn read_closure<F, R, E>(database: &Database, operation: &'static str, closure: F) -> Call<R, E>
where
    F: FnOnce(&rusqlite::Connection) -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let work = work::read_with(Box::new(move |connection| returned(operation, closure(connection))));
    database.session.call(operation, Ok(work), |answer, _| answer.returned())
}

/// Returns the result for the caller. An error of Flatwater's type gets the name of the operation.
fn returned<R: Send + 'static, E: Send + 'static>(operation: &'static str, mut result: Result<R, E>) -> Returned {
    let mut reported = None;
    if let Err(error) = &mut result
        && let Some(error) = (error as &mut dyn Any).downcast_mut::<Error>()
    {
        *error = not_authorized(error.clone(), operation).in_operation(operation);
        reported = Some(error.clone());
    }
    Returned { is_ok: result.is_ok(), error: reported, result: Box::new(result) }
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

/// The functions and collations of an open database, which can be created, replaced and removed at any time: see
/// [`Database::functions`].
///
/// None of its methods blocks. What was created is there for calls that begin later, through any handle of the file in this
/// process, until the file is closed.
#[derive(Clone, Copy)]
pub struct Functions<'a>(&'a Caller);

impl Connection {
    /// The same for this connection alone, which has the functions of the database too. In memory it is the database's only
    /// one: then they are the database's.
    #[must_use]
    pub fn functions(&self) -> Functions<'_> {
        Functions(&self.session.0)
    }
}

impl Functions<'_> {
    fn create(&self, operation: &'static str, registration: impl FnOnce() -> Result<Registration>) -> Result<()> {
        self.0.register(registration).map_err(|error| error.in_operation(operation))
    }

    /// Creates an SQL function: `function` computes its result from its arguments, which `context` has. `arguments` is
    /// their number, -1 for any. It takes the place of a function with the same name and number of arguments.
    ///
    /// Statements in the middle of their rows, such as [`batches`](crate::Session::batches), keep the one before.
    ///
    /// The function runs on the threads that run statements, several at a time, and must not call the database. If it
    /// returns an error, its statement fails with the text of that, and one that is a `UserFunctionError` is the
    /// [source](std::error::Error::source) of the statement's; if it panics, with an error that names it. A statement that
    /// calls a function never runs on the thread that polls its call, unless it is a
    /// [short one](Self::create_short_function). Unless `flags` has `SQLITE_DETERMINISTIC` and
    /// `SQLITE_INNOCUOUS`, a write that calls it shares no commit with others, and unless it has the first, a live
    /// query that calls it runs again after every commit. Indexes and generated columns need deterministic functions.
    ///
    /// # Errors
    /// `Misuse` for a name or a number of arguments that SQLite refuses, and inside of a closure or a function; `Closed`.
    pub fn create_scalar_function<F, T>(
        &self,
        name: &str,
        arguments: i32,
        flags: FunctionFlags,
        function: F,
    ) -> Result<()>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        self.create("create_scalar_function", || Registration::scalar(name, arguments, flags, function))
    }

    /// Creates an SQL function of which the program says that it is short: as
    /// [`create_scalar_function`](Self::create_scalar_function) with `SQLITE_DETERMINISTIC` and `SQLITE_INNOCUOUS`, and a
    /// statement that calls it may run on the thread that polls its call, as if it called one of SQLite's own.
    ///
    /// It must return within some microseconds, whatever its arguments are (of up to 64 KiB, there), wait for nothing, and do
    /// nothing but compute. While it runs, the task that called it holds its thread, and nothing ends it.
    ///
    /// # Errors
    /// As [`create_scalar_function`](Self::create_scalar_function).
    pub fn create_short_function<F, T>(&self, name: &str, arguments: i32, function: F) -> Result<()>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        self.create("create_short_function", || Registration::short(name, arguments, function))
    }

    /// Creates an aggregate function, as [`create_scalar_function`](Self::create_scalar_function) creates a scalar one.
    ///
    /// # Errors
    /// The same.
    pub fn create_aggregate_function<A, D, T>(
        &self,
        name: &str,
        arguments: i32,
        flags: FunctionFlags,
        aggregate: D,
    ) -> Result<()>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        D: Aggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        self.create("create_aggregate_function", || Registration::aggregate(name, arguments, flags, aggregate))
    }

    /// Creates an aggregate function that can also be used as a [window function](https://sqlite.org/windowfunctions.html),
    /// as [`create_scalar_function`](Self::create_scalar_function) creates a scalar one.
    ///
    /// # Errors
    /// The same.
    pub fn create_window_function<A, W, T>(
        &self,
        name: &str,
        arguments: i32,
        flags: FunctionFlags,
        window: W,
    ) -> Result<()>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        W: WindowAggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        self.create("create_window_function", || Registration::window(name, arguments, flags, window))
    }

    /// Creates a collation, which orders texts as `compare` says. It takes the place of one with the same name. Like a
    /// [function](Self::create_scalar_function), it is there for calls that begin later.
    ///
    /// `compare` must always order the same way: indexes are written in its order, and with another one SQLite does not find
    /// what is in them. If it panics, its statement fails with an error that names it.
    ///
    /// # Errors
    /// `Misuse` for a name that SQLite refuses or that is SQLite's own, and inside of a closure or a function; `Closed`.
    pub fn create_collation<C>(&self, name: &str, compare: C) -> Result<()>
    where
        C: Fn(&str, &str) -> Ordering + Send + Sync + 'static,
    {
        self.create("create_collation", || Registration::collation(name, move |one, other| Ok(compare(one, other))))
    }

    /// Removes a function that one of the methods here created. Calls that begin later do not have it. On a file a function
    /// of SQLite's that it replaced is there again; a database in memory, which has one connection, has none of that name.
    ///
    /// # Errors
    /// `Misuse` if there is none with this name and number of arguments, and inside of a closure or a function; `Closed`.
    pub fn remove_function(&self, name: &str, arguments: i32) -> Result<()> {
        self.0.unregister(|| Key::function(name, arguments)).map_err(|error| error.in_operation("remove_function"))
    }

    /// Removes a collation that [`create_collation`](Self::create_collation) created. Calls that begin later do not have it.
    ///
    /// # Errors
    /// `Misuse` if there is none with this name, and inside of a closure or a function; `Closed`.
    pub fn remove_collation(&self, name: &str) -> Result<()> {
        self.0.unregister(|| Key::collation(name)).map_err(|error| error.in_operation("remove_collation"))
    }
}

impl std::fmt::Debug for Functions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}
