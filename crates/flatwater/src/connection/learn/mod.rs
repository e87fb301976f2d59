//! What a connection learns.
//!
//! Owns: the schema as the connection sees it, what the programs of its statements may do, and what live queries read. Runs on
//! the thread that has the connection. Leaves out: what follows from it (`bytecode`, `dependencies`).

pub(crate) mod analyse;
mod explain;
#[cfg_attr(flatwater_kernel, path = "../../../tests/kernel/src/absent/live_query.rs")]
pub(crate) mod live_query;
pub(crate) mod schema;
pub(crate) mod schema_tables;
