//! What a program has open: databases, transactions, connections, results in parts.

pub(crate) mod batches;
pub(crate) mod blob;
pub(crate) mod block;
pub(crate) mod connection;
pub(crate) mod database;
pub(crate) mod executor;
pub(crate) mod guards;
pub(crate) mod live;
pub(crate) mod process;
pub(crate) mod transaction;
