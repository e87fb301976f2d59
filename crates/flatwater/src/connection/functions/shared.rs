//! The user's function or collation, as all connections of a database share it.
//!
//! Owns: calling it, and what is made of its panic. Runs on the thread that runs the statement, inside of SQLite.
//! Invariant: no panic is passed on: it is the error of the statement, which names the function or the collation.
//! Leaves out: registering it (`registration`).

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;

use flatwater_sqlite::Failure;
use rusqlite::functions::{Aggregate, Context, SqlFnOutput, WindowAggregate};
use rusqlite::{Connection, Error, Result};

use crate::error::panics::said;

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

    fn guarded<T>(&self, call: impl FnOnce(&F) -> Result<T>) -> Result<T> {
        let (name, function) = &*self.0;
        catch_unwind(AssertUnwindSafe(|| call(function))).unwrap_or_else(|panic| {
            let message = format!("the function {name} panicked: {}", said(&*panic));
            Err(Error::UserFunctionError(message.into()))
        })
    }

    pub(super) fn call<T>(&self, context: &Context<'_>) -> Result<T>
    where
        F: Fn(&Context<'_>) -> Result<T>,
    {
        self.guarded(|function| function(context))
    }
}

impl<A, T, F> Aggregate<A, T> for Shared<F>
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

impl<A, T, F> WindowAggregate<A, T> for Shared<F>
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

/// A collation. SQLite lets no comparison fail, so a panic is noted for the end of the run.
pub(super) struct SharedCollation<F>(Shared<F>);

impl<F: Fn(&str, &str) -> Ordering + Send + Sync + 'static> SharedCollation<F> {
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
    F: Fn(&str, &str) -> Ordering,
{
    let (name, compare) = &*shared.0;
    if failure.is_noted() {
        return one.cmp(other);
    }
    catch_unwind(AssertUnwindSafe(|| compare(one, other))).unwrap_or_else(|panic| {
        failure.note(format!("the collation {name} panicked: {}", said(&*panic)));
        one.cmp(other)
    })
}
