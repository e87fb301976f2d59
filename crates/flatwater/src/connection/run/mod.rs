//! Preparing statements and running them.
//!
//! Owns: the way from a text to its rows, for workers, transactions and inline runs, and what is said of a statement that
//! fails. Runs on the thread that has the connection. Leaves out: transactions, and which text runs (`workers`).

pub(crate) mod batches;
#[cfg_attr(flatwater_kernel, path = "../../../tests/kernel/src/absent/blobs.rs")]
pub(crate) mod blobs;
pub(crate) mod execute;
pub(crate) mod execute_rows;
pub(crate) mod failures;
pub(crate) mod hidden_values;
pub(crate) mod hints;
pub(crate) mod inline_run;
pub(crate) mod prepare;
pub(crate) mod statement_cache;
