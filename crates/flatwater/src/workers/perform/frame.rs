//! What stands around the statements of one work on the writer's connection: in the slot, or in a transaction of the user.
//!
//! Owns: which texts are refused there, and noting what statements did. Runs on the thread that has the connection. Invariant:
//! every statement that runs is recorded in `Effects`. Leaves out: what each kind of work does (`statements`), transactions,
//! savepoints, failed commits.

use std::time::Duration;

use flatwater_sqlite::Policy;

use super::scans::note_scan;
use super::statements::{Frame, perform};
use crate::connection::run::prepare::refuse_told_of_earlier;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::hint::hint;
use crate::error::{Error, Result};
use crate::sql::catalogue::Catalogue;
use crate::sql::class::Route;
use crate::sql::policy;
use crate::sql::statement_info::StatementInfo;
use crate::workers::Answer;
use crate::workers::shared_errors::snapshot_writes;
use crate::workers::work::Work;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::writer_connection::WriterConnection;

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
        if self.is_first { refuse_told_of_earlier(ready) } else { Ok(()) }
    }

    fn runs(&mut self, ready: &CachedStatement, is_only: bool) -> Result<()> {
        self.refuse_temp(ready)?;
        self.effects.note(&ready.class, self.writer);
        match self.rules {
            Rules::Snapshot if is_only && ready.class.route == Route::Write && !ready.class.asks => {
                Err(snapshot_writes().with_sql(&ready.text.sql))
            }
            Rules::Reading(_) if is_only && ready.class.route == Route::Write => {
                Err(Error::misuse("the database was opened read-only")
                    .with_hint(hint!["open it without " ReadOnly " to write"])
                    .with_sql(&ready.text.sql))
            }
            _ => Ok(()),
        }
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
