//! What a connection learns: of the schema, of the programs of its statements, and what live queries read.

pub(crate) mod analyse;
mod calls_changes;
pub(crate) mod live_query;
pub(crate) mod schema;
pub(crate) mod schema_tables;
