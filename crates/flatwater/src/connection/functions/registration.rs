//! One function or collation of the user.
//!
//! Owns: what it is known by, and registering it on a connection, with rusqlite's traits. Usable on any thread; the
//! user's code is called on each that runs statements. Invariants: a connection has a shared reference to the user's
//! code, which outlives it there; a panic is the error of the statement, and names the function or collation. Leaves
//! out: which are registered.

use std::cmp::Ordering;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use flatwater_sqlite::Failure;
use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, SqlFnOutput, WindowAggregate};

use super::user_code::{OwnError, Place, Shared, SharedCollation};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::mark_closure;

/// SQLite's longest name of a function.
const NAME_BYTES: usize = 255;

/// What SQLite knows a function or a collation by. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// With its number of arguments, -1 for any.
    Function(Box<str>, i32),
    Collation(Box<str>),
}

impl Key {
    pub(crate) fn function(name: &str, arguments: i32) -> Result<Self> {
        Ok(Self::Function(checked(name)?, arguments))
    }

    pub(crate) fn collation(name: &str) -> Result<Self> {
        let name = checked(name)?;
        if ["binary", "nocase", "rtrim"].contains(&&*name) {
            return Err(Error::new(
                ErrorCode::InvalidFunction,
                format!("{name} is a collation of SQLite's, which files rely on"),
            )
            .with_hint("give yours another name"));
        }
        Ok(Self::Collation(name))
    }
}

/// Returns the name in lower case, as SQLite compares names.
fn checked(name: &str) -> Result<Box<str>> {
    match name {
        "" => Err(Error::new(ErrorCode::InvalidFunction, "a function or a collation needs a name")),
        _ if name.contains('\0') => Err(Error::new(ErrorCode::InvalidFunction, "the name has a NUL byte")),
        _ if name.len() > NAME_BYTES => {
            Err(Error::new(ErrorCode::InvalidFunction, format!("the name is longer than {NAME_BYTES} bytes")))
        }
        _ => Ok(name.to_ascii_lowercase().into()),
    }
}

/// Registers it on a connection.
type Register = dyn Fn(&Connection, &Place<'_>) -> rusqlite::Result<()> + Send + Sync;

/// A function or a collation that is registered.
pub(crate) struct Registration {
    pub(crate) key: Key,
    /// It only computes: deterministic and innocuous.
    pub(super) is_pure: bool,
    pub(super) length: Length,
    pub(super) register: Box<Register>,
    /// Two that have the same one do the same.
    pub(super) identity: Option<Identity>,
    /// Its code waits for another thread, and asks meanwhile whether its statement is to end.
    pub(super) waits: bool,
}

/// What is known of how long a function takes, and so where a statement that calls it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Nothing: never on the thread of its caller.
    Unknown,
    /// The program says that it takes microseconds.
    Short,
    /// Nothing, but the times of a read that calls it show whether that is short. It may need a lock of its host, and so it is
    /// called on the thread of its caller only where no lock of the engine is held.
    Timed,
}

/// What a front end knows its code by: an address, while the registration keeps the code there, and how it is called.
pub(crate) type Identity = (usize, u32);

impl Registration {
    pub(crate) fn scalar<F, T>(name: &str, arguments: i32, flags: FunctionFlags, function: F) -> Result<Self>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        let (key, flags, shared) = (Key::function(name, arguments)?, of_utf8(flags), Shared::new(name, function));
        Self::checked(key, is_pure(flags), move |connection, name, place| {
            let shared = shared.on(place);
            connection.create_scalar_function(name, arguments, flags, move |context| shared.call(context))
        })
    }

    /// A pure function that may run on the thread of its caller. There it is foreign code as everywhere else: it cannot call
    /// the database.
    pub(crate) fn short<F, T>(name: &str, arguments: i32, function: F) -> Result<Self>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        let pure = FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let one = Self::scalar(name, arguments, pure, move |context| mark_closure(|| function(context)))?;
        Ok(Self { length: Length::Short, ..one })
    }

    /// A deterministic function, which may run on the thread of its caller in reads that were short so far. It is foreign code
    /// there too.
    pub(crate) fn timed<F, T>(name: &str, arguments: i32, function: F) -> Result<Self>
    where
        F: Fn(&Context<'_>) -> rusqlite::Result<T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        let flags = FunctionFlags::SQLITE_DETERMINISTIC;
        let one = Self::scalar(name, arguments, flags, move |context| mark_closure(|| function(context)))?;
        Ok(Self { length: Length::Timed, ..one })
    }

    pub(crate) fn aggregate<A, D, T>(name: &str, arguments: i32, flags: FunctionFlags, aggregate: D) -> Result<Self>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        D: Aggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        let (key, flags, shared) = (Key::function(name, arguments)?, of_utf8(flags), Shared::new(name, aggregate));
        Self::checked(key, is_pure(flags), move |connection, name, place| {
            connection.create_aggregate_function::<A, _, _, T>(name, arguments, flags, shared.on(place))
        })
    }

    pub(crate) fn window<A, W, T>(name: &str, arguments: i32, flags: FunctionFlags, window: W) -> Result<Self>
    where
        A: RefUnwindSafe + UnwindSafe + Send + 'static,
        W: WindowAggregate<A, T> + Send + Sync + 'static,
        T: SqlFnOutput + 'static,
    {
        let (key, flags, shared) = (Key::function(name, arguments)?, of_utf8(flags), Shared::new(name, window));
        Self::checked(key, is_pure(flags), move |connection, name, place| {
            connection.create_window_function::<A, _, _, T>(name, arguments, flags, shared.on(place))
        })
    }

    pub(crate) fn collation(
        name: &str,
        compare: impl Fn(&str, &str) -> Result<Ordering, OwnError> + Send + Sync + 'static,
    ) -> Result<Self> {
        let (key, shared) = (Key::collation(name)?, SharedCollation::new(name, compare));
        Self::checked(key, true, move |connection, name, place| shared.register(connection, name, place))
    }

    /// Refuses what SQLite refuses, such as a number of arguments: it is registered on a connection of its own, to no file.
    fn checked(
        key: Key,
        is_pure: bool,
        register: impl Fn(&Connection, &str, &Place<'_>) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let (Key::Function(name, _) | Key::Collation(name)) = key.clone();
        let said = name.clone();
        let register = Box::new(move |connection: &Connection, place: &Place<'_>| register(connection, &name, place));
        let nowhere = Place { failure: &Failure::default(), ends: None };
        register(&Connection::open_in_memory()?, &nowhere).map_err(|error| {
            Error::new(ErrorCode::InvalidFunction, format!("SQLite refuses to register {said}: {error}"))
                .with_hint("the number of arguments is -1 for any")
        })?;
        Ok(Self { key, is_pure, length: Length::Unknown, register, identity: None, waits: false })
    }

    /// The same, whose code waits for another thread.
    #[must_use]
    pub(crate) fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The same, as its front end knows it.
    #[must_use]
    pub(crate) fn known_as(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key && self.identity.is_some() && self.identity == other.identity
    }
}

/// SQLite converts texts for functions of other encodings, and rusqlite's read UTF-8.
fn of_utf8(flags: FunctionFlags) -> FunctionFlags {
    let encodings = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_UTF16LE
        | FunctionFlags::SQLITE_UTF16BE
        | FunctionFlags::SQLITE_UTF16;
    flags.difference(encodings) | FunctionFlags::SQLITE_UTF8
}

fn is_pure(flags: FunctionFlags) -> bool {
    flags.contains(FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS)
}

/// A registration, as the list and the connections that have it share it.
pub(super) type Registered = Arc<Registration>;
