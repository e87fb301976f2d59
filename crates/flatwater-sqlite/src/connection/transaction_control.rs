//! Transaction control as statements that are prepared once.
//!
//! Owns: BEGIN, BEGIN IMMEDIATE, COMMIT, ROLLBACK and the savepoint of one connection. Runs on the thread that uses the
//! connection. Invariant: transaction control never runs armed, because an interrupted COMMIT could be committed.
//! Leaves out: when to begin, and the reaction to a failure.

use std::sync::Arc;

use rusqlite::ffi;

use super::Sqlite;
use super::snapshot_wait::patiently;
use crate::error::{Error, Result, SqliteError};
use crate::hooks::interrupts::Interrupt;
use crate::statements::StatementId;
use crate::statements::sink::Discard;

/// The prepared transaction control of one connection.
#[derive(Debug)]
pub struct Control {
    begin: StatementId,
    begin_read: StatementId,
    commit: StatementId,
    rollback: StatementId,
    savepoint: StatementId,
    rollback_to: StatementId,
    release: StatementId,
    hold: StatementId,
}

impl Control {
    /// Prepares all statements. The policy must allow transaction control meanwhile.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn prepare(connection: &mut Sqlite) -> Result<Self> {
        let mut prepare = |sql| {
            let prepared = connection.prepare(sql)?;
            prepared.map(|p| p.id).ok_or_else(|| Error::from(SqliteError::from_code(1)))
        };
        Ok(Self {
            begin: prepare("BEGIN IMMEDIATE")?,
            begin_read: prepare("BEGIN")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            savepoint: prepare("SAVEPOINT flatwater_savepoint")?,
            rollback_to: prepare("ROLLBACK TO flatwater_savepoint")?,
            release: prepare("RELEASE flatwater_savepoint")?,
            hold: prepare("PRAGMA main.schema_version")?,
        })
    }

    /// BEGIN IMMEDIATE: takes the write lock. The busy handler decides how long to wait for it.
    ///
    /// # Errors
    /// SQLITE_BUSY when the busy handler gave up, or the error of the file system.
    pub fn begin(&self, connection: &mut Sqlite) -> Result<()> {
        run(connection, self.begin)
    }

    /// BEGIN: takes no lock. The first statement that reads takes the snapshot.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn begin_read(&self, connection: &mut Sqlite) -> Result<()> {
        run(connection, self.begin_read)
    }

    /// Begins a read transaction beside autocommit, by leaving a statement half run. A write commits when it ends, as
    /// usual (`sqlite3VdbeHalt`: when the last statement that writes ends), and the transaction then sees what that
    /// write wrote. If another connection committed meanwhile, the next write is SQLITE_BUSY_SNAPSHOT
    /// (<https://sqlite.org/rescode.html#busy_snapshot>). An interrupt of the connection stays in effect until
    /// [`let_go`](Self::let_go) (<https://sqlite.org/c3ref/interrupt.html>). Returns the schema cookie of the snapshot
    /// (<https://sqlite.org/pragma.html#pragma_schema_version>).
    ///
    /// # Errors
    /// SQLITE_BUSY when the busy handler gave up, or the error of the file system.
    pub fn hold(&self, connection: &mut Sqlite) -> Result<i64> {
        run_to_integer(connection, self.hold)
    }

    /// Ends the transaction that `hold` began.
    pub fn let_go(&self, connection: &mut Sqlite) {
        connection.statement(self.hold).reset();
    }

    /// Runs COMMIT.
    ///
    /// # Errors
    /// After any error, `is_autocommit` and the wal-index header show the outcome of the transaction.
    pub fn commit(&self, connection: &mut Sqlite) -> Result<()> {
        run(connection, self.commit)
    }

    /// Runs COMMIT, which `asked` may prevent up to its point of no return. It is not interrupted.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); SQLITE_CONSTRAINT_COMMITHOOK if it was prevented.
    pub fn commit_unless(&self, connection: &mut Sqlite, asked: Arc<dyn Interrupt>) -> Result<()> {
        connection.hooks().interrupts.disarm();
        connection.hooks().interrupts.ask_before_commit(asked);
        let committed = connection.statement(self.commit).run(&(), &mut Discard);
        connection.hooks().interrupts.disarm();
        committed
    }

    /// Runs ROLLBACK, if a transaction is open.
    ///
    /// # Errors
    /// The error of the file system; the transaction is over even then.
    pub fn rollback(&self, connection: &mut Sqlite) -> Result<()> {
        if connection.handle.is_autocommit() { Ok(()) } else { run(connection, self.rollback) }
    }

    /// Opens a savepoint. They nest.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn savepoint(&self, connection: &mut Sqlite) -> Result<()> {
        run(connection, self.savepoint)
    }

    /// Closes the innermost savepoint and keeps its changes.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn release(&self, connection: &mut Sqlite) -> Result<()> {
        run(connection, self.release)
    }

    /// Undoes the changes since the innermost savepoint and closes it.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn undo(&self, connection: &mut Sqlite) -> Result<()> {
        self.rollback_to(connection)?;
        run(connection, self.release)
    }

    /// Undoes the changes since the innermost savepoint, which stays open.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn rollback_to(&self, connection: &mut Sqlite) -> Result<()> {
        connection.hooks().commits.undoes();
        run(connection, self.rollback_to)
    }
}

/// Runs a statement without parameters to its first row, leaves it there until it is reset, and returns the integer in
/// its first column.
fn run_to_integer(connection: &mut Sqlite, id: StatementId) -> Result<i64> {
    let result = patiently(connection, |connection| {
        connection.statement(id).stepping(|connection, compiled| {
            // SAFETY: the statement is alive and used here alone.
            match unsafe { ffi::sqlite3_step(compiled.raw) } {
                // SAFETY: the statement is on a row.
                ffi::SQLITE_ROW => Ok(unsafe { ffi::sqlite3_column_int64(compiled.raw, 0) }),
                code => Err(connection.handle.error(code)),
            }
        })
    });
    if result.is_err() {
        connection.statement(id).reset();
    }
    result
}

fn run(connection: &mut Sqlite, id: StatementId) -> Result<()> {
    connection.hooks().interrupts.disarm();
    connection.statement(id).run(&(), &mut Discard)
}
