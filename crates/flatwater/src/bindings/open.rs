//! Opening databases, for front ends.
//!
//! Owns: the calls. Runs on the caller's thread. Leaves out: what opening does (`api::open`).

use super::functions::Function;
use super::{FrontCall, Output};
use crate::api::database::Database;
use crate::api::open::opened;
use crate::options::Options;

/// Opens a database.
#[must_use]
pub fn open(options: Options) -> FrontCall {
    open_with(options, Vec::new())
}

/// Opens a database, which has these functions when its migrations are applied.
#[must_use]
pub fn open_with(options: Options, functions: Vec<Function>) -> FrontCall {
    let functions = functions.into_iter().map(|function| function.0).collect();
    FrontCall::new(options.open_as(functions, |answer, _| opened(answer).map(Output::Database)))
}

/// Options that do not hold if this process has the file open already: those of who opened it first do.
pub fn joining(options: Options) -> Options {
    Options { joins: true, ..options }
}

/// True if the database enforces foreign keys.
#[must_use]
pub fn enforces_foreign_keys(database: &Database) -> bool {
    database.session.0.handle.context().options.foreign_keys
}
