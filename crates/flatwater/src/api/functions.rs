//! Functions and collations on an open database.
//!
//! Owns: the operations. Runs on the caller's thread, and waits for nothing. Leaves out: the closures for each connection
//! (`Options::on_connect`), which suit what is known when the database is opened.

use std::cmp::Ordering;
use std::panic::{RefUnwindSafe, UnwindSafe};

use rusqlite::functions::{Aggregate, Context, FunctionFlags, SqlFnOutput, WindowAggregate};

use crate::api::connection::Connection;
use crate::api::database::Database;
use crate::connection::functions::registration::{Key, Registration};
use crate::engine::dispatch::Caller;
use crate::error::Result;

/// The functions and collations of an open database, which can be created, replaced and removed at any time: see
/// [`Database::functions`].
///
/// None of its methods blocks. What was created is there for calls that begin later, through any handle of the file in this
/// process, until the file is closed.
#[derive(Clone, Copy)]
pub struct Functions<'a>(&'a Caller);

impl Database {
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

impl Connection {
    /// The same for this connection alone, which has the functions of the database too. In memory it is the database's only
    /// one: then they are the database's.
    #[must_use]
    pub fn functions(&self) -> Functions<'_> {
        Functions(&self.session.0)
    }
}

impl Functions<'_> {
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
        let registration = || Registration::scalar(name, arguments, flags, function);
        self.0.register(registration).map_err(|error| error.in_operation("create_scalar_function"))
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
        let registration = || Registration::short(name, arguments, function);
        self.0.register(registration).map_err(|error| error.in_operation("create_short_function"))
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
        let registration = || Registration::aggregate(name, arguments, flags, aggregate);
        self.0.register(registration).map_err(|error| error.in_operation("create_aggregate_function"))
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
        let registration = || Registration::window(name, arguments, flags, window);
        self.0.register(registration).map_err(|error| error.in_operation("create_window_function"))
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
        let registration = || Registration::collation(name, move |one, other| Ok(compare(one, other)));
        self.0.register(registration).map_err(|error| error.in_operation("create_collation"))
    }

    /// Removes a function that one of the methods here created. Calls that begin later do not have it. On a file a function
    /// of SQLite's that it replaced is there again; a database in memory, which has one connection, has none of that name.
    ///
    /// # Errors
    /// `Misuse` if there is none with this name and number of arguments, and inside of a closure or a function; `Closed`.
    pub fn remove_function(&self, name: &str, arguments: i32) -> Result<()> {
        let key = || Key::function(name, arguments);
        self.0.unregister(key).map_err(|error| error.in_operation("remove_function"))
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
