//! The part that uses plain SQLite, like any other program that shares the file: the same reads and writes, with a busy
//! timeout.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};

use super::books::{self, ACCOUNTS};
use super::ledger::Line;
use super::witness::Witness;
use crate::finding::Finding;

pub(super) fn part(witness: &Arc<Witness>) -> Result<(), Finding> {
    let mut rng = witness.rng(0);
    while witness.goes_on() {
        let Some(mut plain) = open(witness, &mut rng)? else { continue };
        for _ in 0..rng.random_range(10..1_000) {
            if !witness.goes_on() {
                break;
            }
            witness.does(0, Some("a step of plain SQLite"));
            step(&mut plain, witness, &mut rng)?;
            witness.does(0, None);
            // Without a pause this program would leave the others no time on two cores.
            if rng.random_ratio(1, 8) {
                std::thread::sleep(Duration::from_micros(rng.random_range(0..2_000)));
            }
        }
    }
    Ok(())
}

/// Returns `None` if a lock of another process prevents the open.
pub(super) fn open(witness: &Witness, rng: &mut StdRng) -> Result<Option<Connection>, Finding> {
    let plain = Connection::open(witness.orders.database())?;
    plain.busy_timeout(Duration::from_millis(rng.random_range(10..2_000)))?;
    // Read a row before the schema, so that SQLite reads the file.
    Ok(unless_busy(plain.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))?.map(|()| plain))
}

/// Returns `None` for an error that means that another process has a lock and nothing was done.
pub(super) fn unless_busy<T>(answer: rusqlite::Result<T>) -> Result<Option<T>, Finding> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_busy(&error) => Ok(None),
        Err(error) => Err(Finding::new(format!("plain SQLite fails: {error}")).with_history(format!("{error:?}"))),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed))
}

fn step(plain: &mut Connection, witness: &Witness, rng: &mut StdRng) -> Result<(), Finding> {
    match rng.random_range(0..100) {
        0..20 => enter(plain, witness),
        20..40 => count(plain, witness),
        40..60 => read(plain, witness),
        60..75 => find_entry(plain, witness, rng),
        75..85 => look_twice(plain, witness),
        85..95 => give(plain, witness, rng),
        _ => mark(plain, witness),
    }
}

fn enter(plain: &Connection, witness: &Witness) -> Result<(), Finding> {
    let id = witness.new_row();
    let written = plain.prepare_cached(books::ENTER).and_then(|mut enter| enter.execute([id]));
    let is_done = unless_busy(written)?.is_some();
    witness.note(if is_done { Line::Acknowledged(id) } else { Line::Denied(id) })?;
    if is_done {
        witness.shows(id)?;
    }
    Ok(())
}

fn count(plain: &Connection, witness: &Witness) -> Result<(), Finding> {
    let floor = witness.floor()?;
    // Read all rows: the statement commits only at its end.
    let raised = plain
        .prepare_cached(books::COUNT)
        .and_then(|mut raise| raise.query_map([], |row| row.get::<_, i64>(0))?.last().transpose());
    let Some(Some(value)) = unless_busy(raised)? else { return Ok(()) };
    books::check_raised(value, floor)?;
    witness.note(Line::Counted(value))?;
    Ok(witness.saw(value)?)
}

fn read(plain: &Connection, witness: &Witness) -> Result<(), Finding> {
    let floor = witness.floor()?;
    let value = plain.prepare_cached(books::VALUE).and_then(|mut value| value.query_row([], |row| row.get(0)));
    let Some(value) = unless_busy(value)? else { return Ok(()) };
    books::check_value(value, floor)?;
    witness.saw(value)?;
    Ok(witness.was_read()?)
}

fn find_entry(plain: &Connection, witness: &Witness, rng: &mut StdRng) -> Result<(), Finding> {
    let id = witness.some_entry(rng)?;
    if id == 0 {
        return Ok(());
    }
    let found =
        plain.prepare_cached(books::ENTRY).and_then(|mut find| find.query_row([id], |row| row.get(0)).optional());
    let Some(found) = unless_busy(found)? else { return Ok(()) };
    books::check_entry(id, found.unwrap_or(0))?;
    Ok(witness.was_read()?)
}

/// Two reads in one transaction must see the same snapshot.
fn look_twice(plain: &mut Connection, witness: &Witness) -> Result<(), Finding> {
    let floor = witness.floor()?;
    let twice = plain.transaction().and_then(|tx| {
        let first = books::seen(&tx)?;
        std::thread::yield_now();
        Ok((first, books::seen(&tx)?))
    });
    let Some((first, second)) = unless_busy(twice)? else { return Ok(()) };
    books::check(first, floor)?;
    if first != second {
        return Err(Finding::new(format!("a transaction of plain SQLite sees {first:?} and then {second:?}")));
    }
    witness.saw(first.3)?;
    Ok(witness.was_read()?)
}

fn give(plain: &mut Connection, witness: &Witness, rng: &mut StdRng) -> Result<(), Finding> {
    let id = witness.new_row();
    let (giver, taker) = (rng.random_range(1..=ACCOUNTS), rng.random_range(1..=ACCOUNTS));
    let (amount, stays) = (rng.random_range(1..100_i64), rng.random_ratio(4, 5));
    let given = plain.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|tx| {
        tx.prepare_cached(books::GIVE)?.execute((amount, giver))?;
        tx.prepare_cached(books::TAKE)?.execute((amount, taker))?;
        tx.prepare_cached(books::MOVED)?.execute((id, amount, giver, taker))?;
        if stays { tx.commit() } else { tx.rollback() }
    });
    let is_there = unless_busy(given)?.is_some() && stays;
    Ok(witness.note(if is_there { Line::Acknowledged(id) } else { Line::Denied(id) })?)
}

fn mark(plain: &mut Connection, witness: &Witness) -> Result<(), Finding> {
    let id = witness.new_row();
    let marked = plain.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|tx| {
        tx.prepare_cached(books::MARK)?.execute([id])?;
        tx.prepare_cached(books::RAISE_MARKED)?.execute([1])?;
        tx.commit()
    });
    let is_there = unless_busy(marked)?.is_some();
    Ok(witness.note(if is_there { Line::Acknowledged(id) } else { Line::Denied(id) })?)
}
