//! What is short enough for the thread of its caller, on a connection that writes: the one place that decides it.
//!
//! Owns: the rules for a statement, for the end of a transaction, and for a commit. Runs on the thread that has the connection.
//! Waits for nothing, and prepares nothing. Invariants: what passes takes no longer than an inline run may, as far as its program
//! and the history of its text tell; a commit that passes neither syncs the WAL nor starts it over. Leaves out: reads on the
//! pool's connections (`readers::inline_read`), steps with savepoints (`savepoint_stack`), what is expected of many rows (`rows`).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{WalHeader, WalState};

use crate::connection::run::statement_cache::CachedStatement;
use crate::options::Durability;
use crate::workers::perform::frame::is_short_scan;
use crate::workers::writer::WriterShared;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::inline::eligibility::{InlineLimits, Permit};
use flatwater_sql::bytecode::analysis::Ending;
use flatwater_sql::statement_info::StatementInfo;

/// Where a statement would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It commits by itself.
    Alone,
    /// In a transaction, of which it is one statement of several.
    Inside,
    /// The same, on the connection on which its text has run before: one that scans a table is known to be as short as then.
    InsideAgain,
}

/// Returns true if writes may run on their callers' threads now.
pub(crate) fn may_write(shared: &WriterShared, permit: &Permit<'_>) -> bool {
    shared.context.options.durability == Durability::Normal && !shared.pauses_writes(permit.began)
}

/// Returns the statement of `text`, if it is prepared here, only reads, and is short.
pub(crate) fn read(
    writer: &mut WriterConnection,
    text: &StatementInfo,
    limits: &InlineLimits,
) -> Option<Arc<CachedStatement>> {
    // A timed function may need a lock whose holder waits for this transaction.
    writer.known(text).filter(|ready| ready.reads_shortly(limits) && !ready.calls_timed())
}

/// Returns the statement of `text`, if it is prepared here and known to be a short write. An existing row may be
/// long and take time to free, and a loop may change many rows between two checks of the time; only the text's history shows
/// whether it does. And one that only inserts may read many pages that are not in the cache, as those of its indexes: it is not
/// short while its history shows that.
pub(crate) fn write(
    writer: &mut WriterConnection,
    text: &StatementInfo,
    place: Place,
    limits: &InlineLimits,
) -> Option<Arc<CachedStatement>> {
    let ready = writer.known(text)?;
    let write = ready.inline_write()?;
    let needs_history = write.changes_existing_rows || write.ending == Ending::Bounded;
    let is_short =
        if needs_history { text.has_short_history(limits.time) } else { !text.has_long_history(limits.time) };
    // SQLite would end a transaction with a write in it that is interrupted.
    let fits = match place {
        // Inside of a transaction the statement may have been accepted.
        Place::Alone => ready.class.change_function.is_none(),
        Place::Inside => !ready.is_bounded(),
        Place::InsideAgain => !ready.is_bounded() || is_short_scan(writer, &ready),
    };
    (is_short && fits).then_some(ready)
}

/// Returns the state of the WAL, if a commit would only append to it. The first commit into a WAL that starts over writes the
/// WAL's header and syncs it.
pub(crate) fn commit(writer: &WriterConnection) -> Option<(WalState, WalHeader)> {
    writer.wal_now().filter(|(_, wal)| writer.refusal().is_none() && wal.copied < wal.max_frame)
}

/// Returns the state of the WAL, if a transaction whose writes took so long and did this is ended in a short time. A commit is
/// slow if it syncs the WAL or copies it.
pub(crate) fn end(
    writer: &WriterConnection,
    (worked, effects): (Duration, &Effects),
    (commits, is_slow): (bool, bool),
    limits: &InlineLimits,
) -> Option<WalState> {
    if worked > limits.together() || effects.go_beyond_tables() || !is_one(writer) {
        return None;
    }
    let wal = if commits { commit(writer).filter(|_| !is_slow) } else { writer.wal_now() };
    wal.map(|(state, _)| state)
}

/// Returns true if a transaction consists of the main database alone.
pub(crate) fn is_one(writer: &WriterConnection) -> bool {
    writer.connection.as_ref().is_some_and(|connection| connection.attached.names.is_empty())
}
