//! The workers, and what they answer. Each owns its threads and connections; none knows another. `context` is what each of
//! them gets from the engine; `work`, `request` and `open_transaction` are what they and their callers share.
//!
//! Owns: the closed list of answers. It stands above the other files, because an answer may be the right to something that
//! takes further requests, and each of these has its answer. Leaves out: what a caller makes of an answer (`answer`).

mod answer;
pub(crate) mod checkpoint;
pub(crate) mod context;
#[cfg_attr(flatwater_kernel, path = "../../tests/kernel/src/absent/exclusive_work.rs")]
pub(crate) mod exclusive;
pub(crate) mod interfaces;
pub(crate) mod kept;
#[cfg(not(flatwater_kernel))]
pub(crate) mod live;
pub(crate) mod open_transaction;
pub(crate) mod outbox;
pub(crate) mod own_connections;
pub(crate) mod perform;
pub(crate) mod readers;
pub(crate) mod request;
pub(crate) mod rounds;
pub(crate) mod savepoint_stack;
pub(crate) mod shared_errors;
pub(crate) mod short;
pub(crate) mod user_closures;
pub(crate) mod work;
pub(crate) mod work_kinds;
pub(crate) mod writer;

use std::any::Any;
use std::sync::Arc;

use flatwater_sqlite::CheckpointInfo;

use kept::{CursorGuard, SnapshotGuard};
use open_transaction::TransactionGuard;

use crate::connection::learn::live_query::LiveRun;
use crate::connection::run::blobs::BlobUsed;
use flatwater_base::error::Error;
use flatwater_base::values::column::Names;
use flatwater_base::values::outcome::{Decoded, Document, ExecuteResult, RunResult};
use flatwater_base::values::row::Rows;
use flatwater_sql::statement_info::StatementInfo;

/// The answer to a request. It moves a few times on its way, so what is larger than `Rows` is boxed.
pub(crate) enum Answer {
    Executed(ExecuteResult),
    Changes(u64),
    Rows(Rows),
    /// The last part of a result, after so many rows.
    LastPart(Box<(Rows, usize)>),
    /// The results of a live query, and what each part reads.
    Live(Vec<LiveRun>),
    /// A part of a result, and the right to the rest.
    Begun(Box<(Rows, CursorGuard)>),
    /// A further part, and whether there may be more.
    Fetched(Box<(Rows, bool)>),
    Snapshot(SnapshotGuard),
    Json(Document),
    /// The statement was done, and its result could not be made.
    Unmade(Error),
    /// The rows as values of the caller's type, made by a `Decode`.
    Decoded(Decoded),
    Batch(Vec<RunResult>),
    /// What one statement did, whatever it is.
    Ran(Box<RunResult>),
    Blob(Box<BlobUsed>),
    Bytes(Vec<u8>),
    Done,
    Flag(bool),
    Transaction(TransactionGuard),
    /// A savepoint was opened, with this number.
    Savepoint(u64),
    Checkpointed(CheckpointInfo),
    /// The text was compiled, and has these columns; a PRAGMA or an EXPLAIN was not, and has none.
    Prepared(Arc<StatementInfo>, Option<Names>),
    /// The result of a closure, or the database that was opened.
    Returned(Box<dyn Any + Send>, Option<Error>),
}
