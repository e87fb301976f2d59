//! What stands around the statements of one work on the writer's connection: in the slot, or in a transaction of the user.
//!
//! Owns: which texts are refused there, noting what statements did, and which scan of a table in a transaction counts as short. Runs
//! on the thread that has the connection. Invariant: every statement that runs is recorded in `Effects`. Leaves out: what each kind
//! of work does (`statements`), what is noted of scans (`statement_cache`), transactions, savepoints, failed commits.

use std::time::Duration;

use flatwater_sqlite::Policy;

use super::statements::{Frame, perform};
use crate::connection::run::prepare::refuse_change_function;
use crate::connection::run::statement_cache::{CachedStatement, RowChanges};
use crate::workers::Answer;
use crate::workers::shared_errors::snapshot_writes;
use crate::workers::work::Work;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::catalogue::Catalogue;
use flatwater_sql::class::Route;
use flatwater_sql::policy;
use flatwater_sql::statement_info::StatementInfo;

/// The rules under which a text is prepared, and whether what is learnt from it is shared.
#[derive(Clone, Copy)]
pub(crate) enum Rules<'a> {
    /// Outside a transaction of the user.
    Statement(&'a Catalogue),
    /// The same, for a handle that may only read.
    Reading(&'a Catalogue),
    /// Inside a transaction of the user. A text may see a schema there that is never committed, so what is learnt stays
    /// private.
    Transaction,
    /// The same, in a transaction that stands for a snapshot.
    Snapshot,
}

/// Returns true if a write that failed may have left a part of a row.
pub(crate) fn may_leave_part(writer: &WriterConnection, error: &Error) -> bool {
    writer.connection.as_ref().is_some_and(|connection| connection.may_leave_part(error))
}

/// Returns the answer of the work, if it consists of statements. The connection is armed, and what the statements did is
/// recorded in `effects`.
pub(crate) fn perform_in(
    writer: &mut WriterConnection,
    effects: &mut Effects,
    rules: Rules<'_>,
    work: &Work,
) -> Result<Answer> {
    if matches!(rules, Rules::Snapshot) && !may_read(work) {
        return Err(snapshot_writes());
    }
    // Of the statements before it in the transaction, one statement can ask.
    let is_first = !matches!((rules, work), (Rules::Transaction, _) | (_, Work::Batch(_) | Work::Script(_)));
    perform(&mut WriterFrame { writer, effects, rules, is_first }, work)
}

/// Returns false for work that writes, or may write before all its texts are known.
fn may_read(work: &Work) -> bool {
    match work {
        Work::Many { .. } | Work::Batch(_) | Work::Script(_) => false,
        Work::Blob(blob) => blob.only_reads(),
        _ => true,
    }
}

struct WriterFrame<'a> {
    writer: &'a mut WriterConnection,
    effects: &'a mut Effects,
    rules: Rules<'a>,
    /// No statement of the caller can have run before.
    is_first: bool,
}

impl WriterFrame<'_> {
    fn refuse_temp(&self, ready: &CachedStatement) -> Result<()> {
        match self.rules {
            Rules::Statement(_) | Rules::Reading(_) if ready.class.makes_temp => {
                Err(policy::temp_refusal().with_sql(&ready.text.sql))
            }
            _ => Ok(()),
        }
    }
}

impl Frame for WriterFrame<'_> {
    const PLACE: &'static str = "inside a transaction";
    const LEARNS_FROM_ROWS: bool = true;

    fn writer(&mut self) -> Result<&mut WriterConnection> {
        Ok(self.writer)
    }

    fn before(&mut self) -> Result<Policy> {
        Ok(match self.rules {
            Rules::Statement(_) | Rules::Reading(_) => policy::statement,
            Rules::Transaction | Rules::Snapshot => policy::transaction,
        })
    }

    fn prepared(&mut self, text: &StatementInfo, ready: &CachedStatement) -> Result<()> {
        self.refuse_temp(ready)?;
        if let Rules::Statement(catalogue) | Rules::Reading(catalogue) = self.rules {
            text.learn(&ready.class, catalogue.epoch());
        }
        if self.is_first { refuse_change_function(ready) } else { Ok(()) }
    }

    fn may_run(&mut self, ready: &CachedStatement, is_only: bool) -> Result<()> {
        self.refuse_temp(ready)?;
        match self.rules {
            Rules::Snapshot if is_only && ready.class.route == Route::Write && !ready.class.reads_setting => {
                Err(snapshot_writes().with_sql(&ready.text.sql))
            }
            Rules::Reading(_) if is_only && ready.class.route == Route::Write => {
                Err(Error::new(ErrorCode::ReadOnly, "the database was opened read-only")
                    .with_hint(hint!["open it without " ReadOnly " to write"])
                    .with_sql(&ready.text.sql))
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, ready: &CachedStatement) {
        self.effects.note(&ready.class, self.writer);
    }

    fn ran(&mut self, text: &StatementInfo, ready: &CachedStatement, took: Duration) -> Result<()> {
        // Outside of a transaction the time includes the commit, and those who commit record it.
        if matches!(self.rules, Rules::Transaction) && ready.class.route == Route::Write {
            text.took(took);
            note_scan(self.writer, ready, took);
        }
        Ok(())
    }
}

/// A scan counts as short if it took no more than this part of the limit in time. With other values the same statement may
/// change each row that it passes, which takes several times as long as to pass it.
const PART_OF_THE_LIMIT: u32 = 4;
/// One of no more steps is short whatever it took: the machine stopped the thread, or nothing was in the processor's caches.
/// How long its text takes on average is asked anyway (`write`).
const FEW_STEPS: u32 = 1_000;
/// A scan that took so many times the limit counts against its text.
const FAR_TOO_LONG: u32 = 4;

/// Returns true for a write whose last scan of the table was short, if the table cannot have got many rows since.
pub(crate) fn is_short_scan(writer: &WriterConnection, ready: &CachedStatement) -> bool {
    let changes = ready.short_scan().zip(changes_so_far(writer));
    changes.is_some_and(|(before, now)| now.are_few_since(before))
}

/// Called after a write in a transaction that succeeded and took so long, on any thread: if it scans a table, notes whether it
/// was short.
pub(crate) fn note_scan(writer: &mut WriterConnection, ready: &CachedStatement, took: Duration) {
    let is_scan = ready.inline_write().is_some_and(|write| write.scans);
    let Some(limits) = writer.context.policy.limits().filter(|_| is_scan) else { return };
    let Some(connection) = &mut writer.connection else { return };
    let scan = Scan { took, steps: connection.sqlite.statement(ready.id).take_steps() };
    ready.note_scan(changes_so_far(writer).filter(|_| scan.is_short(limits.time)));
    if scan.is_far_too_long(limits.time) {
        // With these values it changed many rows, which it may do again after some short scans.
        ready.text.backoff.was_long();
    }
}

/// A scan that has ended.
#[derive(Debug, Clone, Copy)]
struct Scan {
    took: Duration,
    steps: u32,
}

impl Scan {
    fn is_short(self, limit: Duration) -> bool {
        self.steps <= FEW_STEPS || self.took <= limit / PART_OF_THE_LIMIT
    }

    fn is_far_too_long(self, limit: Duration) -> bool {
        self.steps > FEW_STEPS && self.took > limit.saturating_mul(FAR_TOO_LONG)
    }
}

fn changes_so_far(writer: &WriterConnection) -> Option<RowChanges> {
    RowChanges::so_far(&writer.connection.as_ref()?.sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_stopped_makes_no_scan_of_few_rows_long() {
        let limit = Duration::from_micros(50);
        let is = |steps, us| {
            let scan = Scan { took: Duration::from_micros(us), steps };
            (scan.is_short(limit), scan.is_far_too_long(limit))
        };
        assert_eq!(is(500, 12), (true, false));
        assert_eq!(is(500, 5_000), (true, false), "it was stopped");
        assert_eq!(is(2_000, 12), (true, false), "a fast machine");
        assert_eq!(is(2_000, 13), (false, false));
        assert_eq!(is(2_000, 201), (false, true));
    }
}
