//! The part that maintains the file with plain SQLite while others use it, and the part that switches its journal mode.
//!
//! An operation that another process's lock prevents is left for the next time.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rusqlite::Connection;

use super::books;
use super::ledger::Line;
use super::plain::{open, unless_busy};
use super::witness::{Cell, Witness};
use crate::finding::Finding;

const WORKS: &[&str] = &[
    "VACUUM",
    "PRAGMA wal_checkpoint(PASSIVE)",
    "PRAGMA wal_checkpoint(FULL)",
    "PRAGMA wal_checkpoint(RESTART)",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "CREATE INDEX IF NOT EXISTS moved_by_giver ON moved (giver, amount)",
    "DROP INDEX IF EXISTS moved_by_giver",
    "CREATE INDEX IF NOT EXISTS entry_backwards ON entry (id DESC, place)",
    "DROP INDEX IF EXISTS entry_backwards",
    "CREATE TABLE IF NOT EXISTS scratch AS SELECT * FROM entry LIMIT 200",
    "DROP TABLE IF EXISTS scratch",
    "ALTER TABLE mark ADD COLUMN more",
    "ALTER TABLE mark DROP COLUMN more",
    "ANALYZE",
    "REINDEX",
    "PRAGMA incremental_vacuum",
    "PRAGMA optimize",
];

pub(super) fn part(witness: &Arc<Witness>) -> Result<(), Finding> {
    let mut rng = witness.rng(0);
    while witness.goes_on() {
        let Some(plain) = open(witness, &mut rng)? else { continue };
        for _ in 0..rng.random_range(1..40) {
            if !witness.goes_on() {
                break;
            }
            let work = WORKS[rng.random_range(0..WORKS.len())];
            witness.does(0, Some(work));
            if does(&plain, work)? {
                witness.count(Cell::Works, 1)?;
            }
            witness.does(0, None);
            std::thread::sleep(Duration::from_millis(rng.random_range(0..40)));
        }
    }
    Ok(())
}

/// Returns false if a lock prevented the operation, or there was nothing to do.
fn does(plain: &Connection, work: &str) -> Result<bool, Finding> {
    let done = || {
        let mut work = plain.prepare(work)?;
        let mut rows = work.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    };
    match done() {
        // The column exists already, or does not exist.
        Err(rusqlite::Error::SqlInputError { .. }) if work.starts_with("ALTER") => Ok(false),
        Err(rusqlite::Error::SqliteFailure(_, Some(text))) if text.contains("column") => Ok(false),
        answer => Ok(unless_busy(answer)?.is_some()),
    }
}

/// Repeatedly leaves WAL mode, writes, and returns to WAL mode, when no other process has the file open.
pub(super) fn switcher(witness: &Arc<Witness>) -> Result<(), Finding> {
    let mut rng = witness.rng(0);
    while witness.goes_on() {
        let Some(plain) = open(witness, &mut rng)? else { continue };
        let mode = ["delete", "truncate", "persist"][rng.random_range(0..3)];
        if switches(&plain, mode)? {
            witness.count(Cell::Switches, 1)?;
            for _ in 0..rng.random_range(0..20) {
                enter(&plain, witness)?;
            }
            pause(&mut rng);
        }
        switches(&plain, "wal")?;
        drop(plain);
        pause(&mut rng);
    }
    Ok(())
}

fn switches(plain: &Connection, mode: &str) -> Result<bool, Finding> {
    let said = plain.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| row.get::<_, String>(0));
    Ok(unless_busy(said)?.is_some_and(|said| said == mode))
}

fn enter(plain: &Connection, witness: &Witness) -> Result<(), Finding> {
    let id = witness.new_row();
    let is_done = unless_busy(plain.execute(books::ENTER, [id]))?.is_some();
    Ok(witness.note(if is_done { Line::Acknowledged(id) } else { Line::Denied(id) })?)
}

fn pause(rng: &mut StdRng) {
    std::thread::sleep(Duration::from_millis(rng.random_range(0..30)));
}
