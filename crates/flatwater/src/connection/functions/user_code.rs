//! The user's function or collation, as all connections of a database share it.
//!
//! Owns: calling it, and what is made of its error and of its panic. Runs on the thread that runs the statement, inside of
//! SQLite. Invariants: no panic is passed on: it is the error of the statement, which names the function or the collation; an
//! error of the user's own is noted as the cause of that of the statement. Leaves out: registering it (`registration`).

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

use flatwater_sqlite::{Cause, Failure};
use rusqlite::functions::{Aggregate, Context, SqlFnOutput, WindowAggregate};
use rusqlite::{Connection, Error, Result};

use flatwater_base::error::cause::said;

/// An error of the user's own.
pub(super) type OwnError = Box<dyn std::error::Error + Send + Sync>;

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

    /// Returns the function for the connection that has these failures.
    pub(super) fn on(&self, failure: &Failure) -> OnConnection<F> {
        OnConnection { shared: self.clone(), failure: failure.clone() }
    }
}

/// A function on one connection.
pub(super) struct OnConnection<F> {
    shared: Shared<F>,
    failure: Failure,
}

impl<F> OnConnection<F> {
    fn guarded<T>(&self, call: impl FnOnce(&F) -> Result<T>) -> Result<T> {
        let (name, function) = &*self.shared.0;
        match catch_unwind(AssertUnwindSafe(|| call(function))) {
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

    pub(super) fn register(&self, connection: &Connection, name: &str, failure: &Failure) -> Result<()> {
        let (shared, failure) = (self.0.clone(), failure.clone());
        connection.create_collation(name, move |one, other| compare(&shared, &failure, one, other))
    }
}

fn compare<F>(shared: &Shared<F>, failure: &Failure, one: &str, other: &str) -> Ordering
where
    F: Fn(&str, &str) -> Result<Ordering, OwnError>,
{
    let (name, compare) = &*shared.0;
    if failure.is_noted() {
        return one.cmp(other);
    }
    match catch_unwind(AssertUnwindSafe(|| compare(one, other))) {
        Ok(Ok(order)) => return order,
        Ok(Err(own)) => failure.note(own.to_string(), Cause(Some(own.into()))),
        Err(panic) => {
            let message = format!("the collation {name} panicked: {}", said(&*panic));
            failure.note(message, Cause::default());
        }
    }
    one.cmp(other)
}
