//! Code of another language that SQLite calls: functions, collations, and what the caller of a connection is asked and
//! told.
//!
//! Owns: what a front end makes of a function before a database has it, and giving it to a database. Usable on any
//! thread; its code is called on each that runs statements. Invariant: the thread that polls a call, which may have the
//! lock of the host's interpreter, calls one only if it is timed, and then while it holds no lock of the engine. Leaves
//! out: calling the host.

use std::cmp::Ordering;
use std::panic::{RefUnwindSafe, UnwindSafe};

pub use flatwater_sqlite::{AuthEvent, Authorize, Callbacks, Changed, Profile, Progress, Trace, Verdict};
use rusqlite::functions::{Aggregate, Context, FunctionFlags, SqlFnOutput, WindowAggregate};

use crate::api::connection::Connection;
use crate::api::database::Database;
use crate::connection::functions::registration::Registration;
pub use crate::connection::functions::user_code::statement_ends;
use flatwater_base::error::Result;
pub use flatwater_base::thread::current::waited as waited_for_host;

/// An error of the host's code: the source of the error of the statement.
pub type OwnError = Box<dyn std::error::Error + Send + Sync>;

/// A function or a collation that a database can be given.
pub struct Function(pub(super) Registration);

impl Function {
    fn named(operation: &'static str, registration: Result<Registration>) -> Result<Self> {
        registration.map(Self).map_err(|error| error.in_operation(operation))
    }

    /// See [`create_scalar_function`](crate::calls::Functions::create_scalar_function).
    ///
    /// # Errors
    /// `Misuse` for a name or a number of arguments that SQLite refuses; this is so for each kind.
    pub fn scalar<F, T>(name: &str, arguments: i32, flags: FunctionFlags, function: F) -> Result<Self>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        Self::named("create_function", Registration::scalar(name, arguments, flags, function))
    }

    /// A timed function: it is deterministic. A read that calls it, and no other function of the user but timed and short ones,
    /// may run on the thread that polls its call, once its history shows that it is short.
    ///
    /// # Errors
    /// The same.
    pub fn timed<F, T>(name: &str, arguments: i32, function: F) -> Result<Self>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        Self::named("create_function", Registration::timed(name, arguments, function))
    }

    /// See [`create_aggregate_function`](crate::calls::Functions::create_aggregate_function).
    ///
    /// # Errors
    /// The same.
    pub fn aggregate<A, D, T>(name: &str, arguments: i32, flags: FunctionFlags, aggregate: D) -> Result<Self>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        D: Aggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        Self::named("create_aggregate", Registration::aggregate(name, arguments, flags, aggregate))
    }

    /// See [`create_window_function`](crate::calls::Functions::create_window_function).
    ///
    /// # Errors
    /// The same.
    pub fn window<A, W, T>(name: &str, arguments: i32, flags: FunctionFlags, window: W) -> Result<Self>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        W: WindowAggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        Self::named("create_window_function", Registration::window(name, arguments, flags, window))
    }

    /// See [`create_collation`](crate::calls::Functions::create_collation). A comparison may fail: then its statement does.
    ///
    /// # Errors
    /// The same.
    pub fn collation(
        name: &str,
        compare: impl Fn(&str, &str) -> Result<Ordering, OwnError> + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::named("create_collation", Registration::collation(name, compare))
    }

    /// The same, whose code waits for another thread, and asks meanwhile whether its [statement ends](statement_ends). A
    /// statement that ends has it fail with SQLITE_INTERRUPT, or, a comparison, with any error.
    pub fn waiting(self) -> Self {
        Self(self.0.waiting())
    }

    /// The same, whose code has this address and is called in this way. A database that has one of the same name, address and
    /// way keeps it, and nothing that was prepared or learnt with it is lost. The function must keep its code there.
    pub fn known_as(self, address: usize, way: u32) -> Self {
        Self(self.0.known_as((address, way)))
    }
}

/// Gives it to a connection of the caller's own, in the place of what has its name there. Waits for nothing.
///
/// # Errors
/// `Misuse` inside of a closure or a function; `Closed`.
pub fn create_on(connection: &Connection, function: Function) -> Result<()> {
    connection.session.0.register(|| Ok(function.0))
}

/// Gives it to an open database, in the place of what has its name. Waits for nothing.
///
/// # Errors
/// `Misuse` inside of a closure or a function; `Closed`.
pub fn create(database: &Database, function: Function) -> Result<()> {
    database.session.0.register(|| Ok(function.0))
}

/// Changes what the caller of a connection is asked and told, from its next statement on. A callback runs on a thread
/// of the database, and must not call it.
pub fn set_callbacks(connection: &Connection, set: impl FnOnce(&mut Callbacks)) {
    connection.guard.0.set_callbacks(set);
}
