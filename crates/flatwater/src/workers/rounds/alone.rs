//! A write that runs by itself: in plain autocommit, or in a transaction of its own if it has several steps.
//!
//! Owns: the steps around the statements of such a write. Runs on the thread that holds the slot: the writer's thread,
//! or the thread of a blocking caller. Invariants: SQLite's own semantics apply, FAIL included; its caller, its deadline
//! and a close may interrupt the write, and not after the commit's point of no return. Leaves out: groups, interactive
//! transactions, single statements (`autocommit`), what has the connection for itself (`exclusive`).

use std::sync::Arc;
use std::time::Instant;

use crate::connection::learn::live_query::run_live;
use crate::connection::run::blobs::use_blob;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::exclusive::closures::read_with;
use crate::workers::exclusive::import_script::load;
use crate::workers::exclusive::maintenance::backup;
use crate::workers::exclusive::run_exclusive;
use crate::workers::perform::autocommit::autocommit;
use crate::workers::perform::frame::{Rules, perform_in};
use crate::workers::work::{Ours, Work};
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::commit;
use crate::workers::writer::demanded_checkpoint::checkpoint;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::interrupts::{arm, disarm};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::Result;
use flatwater_sql::text::dump;

/// Runs the work and returns its answer.
pub(crate) fn run_alone(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    work: Work,
    ticket: &Arc<Ticket>,
    since: Instant,
) -> Result<Answer> {
    writer.wait_for_locks(since, ticket);
    let result = match work {
        Work::Exclusive(work) => run_exclusive(writer, shared, work, ticket),
        Work::ReadWith(closure) => read_with(writer, shared, closure, ticket),
        Work::Copy(form) => backup(writer, shared, &form, ticket),
        Work::Live(query, known) => {
            arm(writer, ticket);
            run_live(writer.connection()?, query.parts(&known)).map(Answer::Live)
        }
        // It needs no lock of writers.
        Work::Blob(blob) if blob.only_reads() => {
            arm(writer, ticket);
            use_blob(writer.connection()?, &blob).map(|used| Answer::Blob(Box::new(used)))
        }
        Work::Ours(Ours::Unpark) => writer.connection().map(|_| Answer::Done),
        Work::Checkpoint(mode) => {
            shared.twice(writer, |writer| checkpoint(writer, shared, mode)).map(Answer::Checkpointed)
        }
        Work::Script(text) => match dump(&text.sql) {
            Some(found) => load(writer, shared, &text, found, ticket),
            None => transact(writer, shared, &Work::Script(text), ticket),
        },
        work @ (Work::Execute { .. } | Work::Query { .. } | Work::Prepare(_)) => {
            shared.twice(writer, |writer| autocommit(writer, shared, &work, ticket))
        }
        work => transact(writer, shared, &work, ticket),
    };
    disarm(writer);
    result.map_err(|error| ticket.timed(error))
}

/// Runs the work in a transaction of its own, and once more if that may help.
fn transact(writer: &mut WriterConnection, shared: &WriterShared, work: &Work, ticket: &Arc<Ticket>) -> Result<Answer> {
    let answer = shared.twice(writer, |writer| in_transaction(writer, shared, work, ticket));
    answer.map_err(|error| work.explain(error))
}

/// Runs the statements of the work in a transaction of their own, and commits all of it or nothing.
fn in_transaction(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    work: &Work,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    writer.begin()?;
    arm(writer, ticket);
    let mut effects = Effects::default();
    let performed = perform_in(writer, &mut effects, Rules::Statement(&shared.context.catalogue), work);
    let result = match performed {
        Ok(answer) => commit(writer, shared, Some(ticket)).map(|()| answer),
        Err(error) => {
            writer.rollback();
            Err(error)
        }
    };
    effects.clean_up(writer, &shared.context.catalogue);
    result
}
