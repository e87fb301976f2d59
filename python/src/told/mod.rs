//! What a program is told: errors, records of `tracing`, logged queries.

pub(crate) mod errors;
pub(crate) mod records;
pub(crate) mod statement_event;
