//! What calls give: their results, and the handles that later steps name.
//!
//! Owns: these types. Plain data. Leaves out: making calls (`program`), and comparing what they gave (`check`).

use flatwater::calls::{Blob, RowStream};
use flatwater::values::{ExecuteResult, RunResult};
use flatwater::{Connection, Error, Prepared, Row, Rows, Snapshot, Transaction};
use futures_util::future::LocalBoxFuture;

use crate::opened::Opened;
use crate::step::Step;

/// A call that was made.
pub(crate) type Pending = LocalBoxFuture<'static, Result<Outcome, Error>>;

/// The result of a call.
pub(crate) enum Outcome {
    Done,
    Executed(ExecuteResult),
    Changes(u64),
    Batch(Vec<RunResult>),
    Ran(RunResult),
    Rows(Rows),
    Row(Option<Row<'static>>),
    Value(Option<flatwater::Value>),
    Values(Vec<flatwater::Value>),
    Json(String),
    Names(Vec<String>),
    Bytes(Vec<u8>),
    Made(Handle<'static>),
}

/// What later steps can name.
pub(crate) enum Handle<'s> {
    Database(Opened),
    Transaction(Transaction<'static>),
    Snapshot(Snapshot),
    Connection(Connection),
    Stream(Box<RowStream>),
    Prepared(Prepared),
    Blob(Blob),
    /// What a database is, as bytes.
    Bytes(Vec<u8>),
    /// A call that was started, and the step that says what is expected of it.
    Call(&'s Step, Pending),
}
