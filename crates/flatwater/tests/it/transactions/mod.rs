//! Transactions of callers: how they end, and what they keep.

mod bodies;
mod calls;
mod failed_statements;
mod interactive;
mod named_savepoints;
mod savepoints;
