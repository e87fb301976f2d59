//! What a program is told: errors, records of `tracing`, logged queries.

pub(crate) mod errors;
pub(crate) mod logged_query;
pub(crate) mod records;
