//! COMMIT, and finding out what became of one that failed.
//!
//! Owns: the step from an open transaction to "it is there" or "it is not", with the fence in between. Runs on the
//! thread that holds the token. Invariant: a failure that is reported as such will not be found after a restart; where
//! that cannot be promised the error is `CommitUnknown` and the connection is replaced. Leaves out: replaying.

use super::outcome::{AfterFailure, Change, after_failed_commit};
use super::seat::Seat;
use crate::stats::Recorder;
use crate::types::error::{Error, Kind, Result};

/// Commits the open transaction. After an error no transaction is open.
pub(super) fn commit(seat: &mut Seat, recorder: &Recorder) -> Result<()> {
    if let Some(refusal) = seat.refusal() {
        seat.rollback();
        return Err(refusal);
    }
    let before = seat.change();
    let connection = seat.connection()?;
    let Err(error) = connection.control.commit(&mut connection.sqlite) else { return Ok(()) };
    let error = Error::from(error);
    recorder.commit_failed(&error);
    seat.rollback();
    Err(settle(seat, recorder, error, before))
}

/// Turns the error of a failed commit, or of a failed autocommit statement, into one that can be told. `before` is the
/// change counter before it.
pub(super) fn settle(seat: &mut Seat, recorder: &Recorder, error: Error, before: Change) -> Error {
    let Some(code) = error.sqlite_code() else { return error };
    seat.refuse_after_failed_sync(&error);
    match after_failed_commit(code, before, seat.change()) {
        AfterFailure::NotCommitted => error,
        AfterFailure::Fence if fence(seat).is_ok() => error,
        AfterFailure::Fence | AfterFailure::Unknown => {
            seat.replace();
            recorder.replaced_connection();
            let message = format!(
                "the commit failed ({}) and it cannot be known whether it will be found after a restart",
                error.message()
            );
            error
                .with_kind(Kind::CommitUnknown)
                .with_message(message)
                .hint("read what it should have written before you try again")
        }
    }
}

/// Overwrites what the failed commit may have left, on the disk too: with durability `normal` no commit is synced, and
/// the system may have written the ghost to the disk already.
fn fence(seat: &mut Seat) -> Result<()> {
    smallest(seat)?;
    let synced = seat.connection()?.sqlite.sync_wal().map_err(Error::from);
    if let Err(error) = &synced {
        seat.refuse_after_failed_sync(error);
    }
    synced
}

/// The smallest commit there is. As a fence it overwrites whatever a failed one may have left at the end of the WAL.
/// Setting the user version writes the first page even if the number stays the same.
pub(super) fn smallest(seat: &mut Seat) -> Result<()> {
    let connection = seat.connection()?;
    connection.control.begin(&mut connection.sqlite)?;
    let written: Result<()> = (|| {
        let sqlite = connection.sqlite.rusqlite();
        let version: i64 = sqlite.query_row("PRAGMA main.user_version", [], |row| row.get(0))?;
        sqlite.execute_batch(&format!("PRAGMA main.user_version = {version}"))?;
        connection.control.commit(&mut connection.sqlite)?;
        Ok(())
    })();
    if let Err(error) = &written {
        // A WAL that was just started over has its header synced here: no later commit may trust it.
        seat.refuse_after_failed_sync(error);
        seat.rollback();
    }
    written
}
