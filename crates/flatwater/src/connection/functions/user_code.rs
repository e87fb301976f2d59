//! The user's function or collation, as all connections of a database share it.
//!
//! Owns: calling it, and what is made of its error and of its panic. Runs on the thread that runs the statement, inside of
//! SQLite. Invariants: no panic is passed on: it is the error of the statement, which names the function or the collation; an
//! error of the user's own is noted as the cause of that of the statement. Leaves out: registering it (`registration`).

use std::cell::RefCell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

use flatwater_sqlite::{Cause, Ends, Failure, Interrupts};
use rusqlite::functions::{Aggregate, Context, SqlFnOutput, WindowAggregate};
use rusqlite::{Connection, Error, Result};

use flatwater_base::error::cause::said;

/// Runs code of the user's, which may ask whether its statement is to end.
fn caught<T>(ends: Option<&Ends>, code: impl FnOnce() -> T) -> std::thread::Result<T> {
    let Some(ends) = ends else { return catch_unwind(AssertUnwindSafe(code)) };
    let before = ENDS.replace(Some(ends.clone()));
    let result = catch_unwind(AssertUnwindSafe(code));
    ENDS.set(before);
    result
}

/// An error of the user's own.
pub(super) type OwnError = Box<dyn std::error::Error + Send + Sync>;

thread_local! {
    /// What the function asks that this thread is in, if that waits.
    static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) };
}

/// Returns true if the statement must end that has called the waiting function which runs on this thread.
pub fn statement_ends() -> bool {
    ENDS.with_borrow(|ends| ends.as_ref().is_some_and(Ends::is_over))
}

/// A function, and its name.
pub(super) struct Shared<F>(Arc<(Box<str>, F)>);

impl<F> Clone for Shared<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F> Shared<F> {
    pub(super) fn new(name: &str, function: F) -> Self {
        Self(Arc::new((name.into(), function)))
    }

    /// Returns the function for this connection.
    pub(super) fn on(&self, place: &Place<'_>) -> OnConnection<F> {
        OnConnection { shared: self.clone(), failure: place.failure.clone(), ends: place.ends.map(Interrupts::ends) }
    }
}

/// The connection on which a function is registered.
pub(super) struct Place<'a> {
    pub(super) failure: &'a Failure,
    /// What ends its statements, for a function that waits.
    pub(super) ends: Option<&'a Interrupts>,
}

/// A function on one connection.
pub(super) struct OnConnection<F> {
    shared: Shared<F>,
    failure: Failure,
    ends: Option<Ends>,
}

impl<F> OnConnection<F> {
    fn guarded<T>(&self, call: impl FnOnce(&F) -> Result<T>) -> Result<T> {
        let (name, function) = &*self.shared.0;
        match caught(self.ends.as_ref(), || call(function)) {
            Ok(Err(Error::UserFunctionError(own))) => Err(self.explained(own)),
            Ok(result) => result,
            Err(panic) => {
                let message = format!("the function {name} panicked: {}", said(&*panic));
                Err(Error::UserFunctionError(message.into()))
            }
        }
    }

    /// SQLite passes on the text of an error alone.
    #[cold]
    fn explained(&self, own: OwnError) -> Error {
        let message = own.to_string();
        self.failure.explain(message.clone(), own.into());
        Error::UserFunctionError(message.into())
    }

    pub(super) fn call<T>(&self, context: &Context<'_>) -> Result<T>
    where
        F: Fn(&Context<'_>) -> Result<T>,
    {
        self.guarded(|function| function(context))
    }
}

impl<A, T, F> Aggregate<A, T> for OnConnection<F>
where
    A: RefUnwindSafe + UnwindSafe,
    T: SqlFnOutput,
    F: Aggregate<A, T>,
{
    fn init(&self, context: &mut Context<'_>) -> Result<A> {
        self.guarded(|function| function.init(context))
    }

    fn step(&self, context: &mut Context<'_>, state: &mut A) -> Result<()> {
        self.guarded(|function| function.step(context, state))
    }

    fn finalize(&self, context: &mut Context<'_>, state: Option<A>) -> Result<T> {
        self.guarded(|function| function.finalize(context, state))
    }
}

impl<A, T, F> WindowAggregate<A, T> for OnConnection<F>
where
    A: RefUnwindSafe + UnwindSafe,
    T: SqlFnOutput,
    F: WindowAggregate<A, T>,
{
    fn value(&self, state: Option<&mut A>) -> Result<T> {
        self.guarded(|function| function.value(state))
    }

    fn inverse(&self, context: &mut Context<'_>, state: &mut A) -> Result<()> {
        self.guarded(|function| function.inverse(context, state))
    }
}

/// A collation. SQLite lets no comparison fail, so an error and a panic are noted for the end of the run.
pub(super) struct SharedCollation<F>(Shared<F>);

impl<F: Fn(&str, &str) -> Result<Ordering, OwnError> + Send + Sync + 'static> SharedCollation<F> {
    pub(super) fn new(name: &str, compare: F) -> Self {
        Self(Shared::new(name, compare))
    }

    pub(super) fn register(&self, connection: &Connection, name: &str, place: &Place<'_>) -> Result<()> {
        let own = self.0.on(place);
        connection.create_collation(name, move |one, other| own.compare(one, other))
    }
}

impl<F: Fn(&str, &str) -> Result<Ordering, OwnError>> OnConnection<F> {
    fn compare(&self, one: &str, other: &str) -> Ordering {
        let (name, compare) = &*self.shared.0;
        let failure = &self.failure;
        if failure.is_noted() {
            return one.cmp(other);
        }
        match caught(self.ends.as_ref(), || compare(one, other)) {
            Ok(Ok(order)) => return order,
            Ok(Err(_)) if self.ends.as_ref().is_some_and(Ends::is_over) => failure.note_end(),
            Ok(Err(own)) => failure.note(own.to_string(), Cause(Some(own.into()))),
            Err(panic) => {
                let message = format!("the collation {name} panicked: {}", said(&*panic));
                failure.note(message, Cause::default());
            }
        }
        one.cmp(other)
    }
}
