//! What needs the writer's connection for itself: closures of the program, migrations, dumps, VACUUM, another key.

pub(crate) mod closures;
pub(crate) mod connection;
pub(crate) mod import_script;
pub(crate) mod maintenance;
pub(crate) mod migration;

use std::sync::Arc;

use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::work::Exclusive;
use crate::workers::writer::WriterShared;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::Result;

/// Runs the work in the slot, and returns its answer.
pub(crate) fn run_exclusive(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    work: Exclusive,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    match work {
        Exclusive::WriteWith(closure) => closures::write_with(writer, shared, closure, ticket),
        Exclusive::WithConnection(closure) => connection::with_connection(writer, shared, closure, ticket),
        Exclusive::Migrate(migrations) => migration::migrate(writer, shared, &migrations, ticket),
        Exclusive::Vacuum(text) => maintenance::vacuum(writer, shared, text, ticket),
        Exclusive::Rekey(key) => maintenance::rekey(writer, &key, ticket),
        Exclusive::HasKey(key) => Ok(Answer::Flag(shared.context.options.key.as_ref() == Some(&key))),
    }
}
