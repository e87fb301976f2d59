//! Inserts chunks of rows.
//!
//! Owns: the transactions. Runs on a thread of its own, beside the one that reads the file. Invariants: a transaction is short, so that a
//! service that writes to the file has its turn (`pace` says how short); a row that fails undoes its transaction only, and the rows
//! before that stay, unless all are one transaction. Leaves out: reading the rows.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use flatwater::rusqlite::types::ToSqlOutput;
use flatwater::{Database, Error, rusqlite};

use super::chunk::Chunk;
use super::pace::Pace;
use crate::failure::Failure;

pub(super) struct Insert {
    db: Database,
    sql: Arc<str>,
    pace: Pace,
    atomic: bool,
}

/// Why rows are not in the table.
pub(super) struct Failed {
    error: Error,
    /// The line of the row that was refused.
    line: Option<u64>,
    /// How many rows before it are in the table.
    inserted: u64,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, line: None, inserted: 0 }
    }
}

impl Failed {
    pub(super) fn in_file(self, name: &str) -> Failure {
        let Some(line) = self.line else {
            if self.inserted > 0 {
                eprintln!("{} rows are in the table", self.inserted);
            }
            return self.error.into();
        };
        let message = format!("{name}, line {line}: {}; {} rows are in the table", self.error.message(), self.inserted);
        Failure::Refused(message)
    }
}

impl Insert {
    pub(super) fn new(db: &Database, sql: String, atomic: bool) -> Self {
        Self { db: db.clone(), sql: sql.into(), pace: Pace::new(db.stats().journal == "wal"), atomic }
    }

    /// Inserts all chunks, and returns how many rows they had.
    pub(super) fn all(self, chunks: &Receiver<Chunk>) -> Result<u64, Failed> {
        if self.atomic { self.at_once(chunks) } else { self.in_parts(chunks) }
    }

    fn in_parts(mut self, chunks: &Receiver<Chunk>) -> Result<u64, Failed> {
        let mut inserted = 0;
        for chunk in chunks {
            let chunk = Arc::new(chunk);
            let mut from = 0;
            while from < chunk.rows() {
                let (sql, rows, time) = (self.sql.clone(), chunk.clone(), self.pace.time());
                let part = self.db.write_with(move |transaction| {
                    let began = Instant::now();
                    let to = insert(transaction, &sql, &rows, from, Some(time))?;
                    Ok((to, began, began.elapsed()))
                });
                let (to, began, inserting) = part.wait().map_err(|failed: Failed| Failed { inserted, ..failed })?;
                // The lock was taken just before it began, and given back when it was committed.
                self.pace.took(inserting, began.elapsed());
                inserted += (to - from) as u64;
                from = to;
            }
        }
        Ok(inserted)
    }

    /// The chunks are passed on to the thread of the transaction.
    fn at_once(self, chunks: &Receiver<Chunk>) -> Result<u64, Failed> {
        let (send, passed) = std::sync::mpsc::sync_channel::<Chunk>(2);
        let sql = self.sql.clone();
        let call = self.db.write_with(move |transaction| {
            let mut inserted = 0;
            for chunk in passed {
                if chunk.is_broken() {
                    // What cannot be read is reported by who reads.
                    return Err(rusqlite::Error::InvalidQuery.into()).map_err(|error: Error| Failed::from(error));
                }
                inserted += insert(transaction, &sql, &chunk, 0, None)? as u64;
            }
            Ok(inserted)
        });
        std::thread::scope(|scope| {
            let waits = scope.spawn(move || call.wait());
            for chunk in chunks {
                if send.send(chunk).is_err() {
                    break;
                }
            }
            drop(send);
            waits.join().expect("a call does not panic")
        })
    }
}

/// The clock is looked at after so many bytes of rows.
const LOOK_BYTES: usize = 8 << 10;

/// Inserts rows from one on, until the time has passed, and returns the row after the last one.
fn insert(
    transaction: &rusqlite::Transaction<'_>,
    sql: &str,
    chunk: &Chunk,
    from: usize,
    time: Option<Duration>,
) -> Result<usize, Failed> {
    let (began, look) = (Instant::now(), chunk.rows_of(LOOK_BYTES));
    let mut statement = transaction.prepare_cached(sql).map_err(Error::from)?;
    for row in from..chunk.rows() {
        for (at, value) in chunk.row(row).enumerate() {
            statement.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(value)).map_err(Error::from)?;
        }
        let refused = |error: rusqlite::Error| Failed { line: Some(chunk.line(row)), ..Error::from(error).into() };
        statement.raw_execute().map_err(refused)?;
        if row % look == 0 && time.is_some_and(|time| began.elapsed() >= time) {
            return Ok(row + 1);
        }
    }
    Ok(chunk.rows())
}
