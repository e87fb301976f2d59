//! One statement in plain autocommit.
//!
//! Owns: the steps around it, and the time of its execution. Runs on the thread that holds the slot. Invariants: SQLite begins and ends its
//! transaction; a failure that may have come from the commit is settled. Leaves out: transactions of several statements
//! (`rounds::alone`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::frame::{Rules, perform_in};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::work::Work;
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::settle;
use crate::workers::writer::commits_seen::changes;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::interrupts::{arm, disarm};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::Result;

/// Runs one statement in a transaction of its own, which SQLite begins and ends.
pub(crate) fn autocommit(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    work: &Work,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let before = changes(writer);
    arm(writer, ticket);
    let execution = Execution::begin(writer)?;
    let catalogue = &shared.context.catalogue;
    let rules = if ticket.options.read_only { Rules::Reading(catalogue) } else { Rules::Statement(catalogue) };
    let mut effects = Effects::default();
    let result = perform_in(writer, &mut effects, rules, work);
    if let Some((text, _)) = work.statement() {
        text.took(execution.end(writer)?);
    }
    effects.clean_up(writer, catalogue);
    // The text was prepared, so it is known what it does: a read commits nothing.
    if work.describe().only_reads() {
        return result;
    }
    result.map_err(|error| {
        disarm(writer);
        settle(writer, shared, error, &before)
    })
}

/// How long a statement is executed: without waits for locks, and without its commit.
pub(crate) struct Execution {
    began: Instant,
    waited: Duration,
}

impl Execution {
    pub(crate) fn begin(writer: &mut WriterConnection) -> Result<Self> {
        writer.connection()?.sqlite.hooks().commits.watch();
        Ok(Self { began: Instant::now(), waited: writer.busy_timeout.waited() })
    }

    pub(crate) fn end(self, writer: &mut WriterConnection) -> Result<Duration> {
        let end = writer.connection()?.sqlite.hooks().commits.began().unwrap_or_else(Instant::now);
        let lock = writer.busy_timeout.waited().saturating_sub(self.waited);
        Ok(end.saturating_duration_since(self.began).saturating_sub(lock))
    }
}
