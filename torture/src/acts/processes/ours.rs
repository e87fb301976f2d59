//! The part that uses Flatwater: it opens the file, runs many tasks that read and write on one or two threads, closes
//! the file, and opens it again.
//!
//! Leaves out: the work of each task (`calls.rs`), and leftovers of a close: while other processes use a file,
//! Flatwater keeps its released descriptors on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::bindings::Internals as _;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability, Fairness, Inline};
use flatwater::{Database, Error, ErrorKind, Options};
use futures_util::future::try_join_all;
use rand::RngExt;
use rand::rngs::StdRng;

use super::calls::{Counted, Task};
use super::witness::Witness;
use crate::finding::Finding;
use crate::gauge::{Gauge, Hold};

const THREADS: usize = 2;
const TASKS: usize = 6;
/// The maximum time that a database stays open: not longer than many processes live before they are killed.
const SESSION_MS: u64 = 1_000;
/// An open may meet a process that switches the journal mode, or is stopped with a lock. It is repeated for this long.
const OPENS: Duration = Duration::from_secs(60);

pub(super) fn part(witness: &Arc<Witness>) -> Result<(), Finding> {
    let mut rng = witness.rng(u64::from(u32::MAX));
    let mut hold = Hold::default();
    while witness.goes_on() {
        let Some(db) = open(witness, &mut rng)? else { break };
        let gauge = Gauge::new();
        works(&db, witness, &gauge, &mut rng)?;
        witness.does(0, Some("close"));
        db.close().wait()?;
        witness.does(0, None);
        drop(db);
        gauge.read(&mut hold)?;
        witness.held(&hold)?;
    }
    Ok(())
}

/// Runs tasks on one or two threads for a while.
fn works(db: &Database, witness: &Witness, gauge: &Gauge, rng: &mut StdRng) -> Result<(), Finding> {
    let until = Instant::now() + Duration::from_millis(rng.random_range(5..SESSION_MS));
    let threads = rng.random_range(1..=THREADS);
    let (tasks, counted) = (rng.random_range(1..=TASKS), &Counted::default());
    let task = |number| Task::new(number, db, witness, gauge, counted);
    std::thread::scope(|scope| {
        let run = |thread: usize| move || polls(until, (0..tasks).map(|at| task(1 + thread * TASKS + at)));
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(run(thread))).collect();
        let own = run(0)();
        others.into_iter().try_for_each(|other| other.join().expect("a thread of tasks panicked")).and(own)
    })
}

/// Returns `None` if the part has to end before the database is open.
fn open(witness: &Witness, rng: &mut StdRng) -> Result<Option<Database>, Finding> {
    let began = Instant::now();
    let options = options(witness, rng);
    while witness.goes_on() {
        witness.does(0, Some("open"));
        let opened = options.clone().open().wait();
        witness.does(0, None);
        match opened {
            Ok(db) => return Ok(Some(db)),
            Err(error) if may_fail(&error) && began.elapsed() < OPENS => {}
            Err(error) => return Err(Finding::new(format!("open fails: {error}"))),
        }
    }
    Ok(None)
}

fn may_fail(error: &Error) -> bool {
    error.kind() == ErrorKind::Busy
}

/// Returns random values for every setting that changes how the file's locks are used.
fn options(witness: &Witness, rng: &mut StdRng) -> Options {
    let options = Options::new(witness.orders.database())
        .tuning(|t| t.fairness(if witness.orders.is_fair { Fairness::Auto } else { Fairness::Off }))
        .tuning(|t| t.leases(rng.random_ratio(4, 5)))
        .readers(rng.random_range(1..=3))
        .durability(if rng.random_ratio(1, 5) { Durability::Full } else { Durability::Normal });
    let options = match rng.random_range(0..10) {
        0 => options.tuning(|t| t.inline(Inline::Never)),
        1 => options.tuning(|t| t.no_group()),
        _ => options,
    };
    match rng.random_range(0..4) {
        0 => options.checkpoint(Checkpoint::External),
        1 => options,
        // The WAL restarts all the time.
        _ => options.checkpoint(Checkpoint::Managed(
            CheckpointLimits::default().limit_bytes(1 << 20).hard_limit_bytes(16 << 20),
        )),
    }
}

/// Polls its tasks on one thread until `until`.
fn polls<'a>(until: Instant, tasks: impl Iterator<Item = Task<'a>>) -> Result<(), Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(try_join_all(tasks.map(|task| task.run(until)))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::calls::outcome;
    use super::*;

    #[test]
    fn what_a_lock_cannot_cause_is_a_finding() {
        let db = Database::open(":memory:");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(async { db.await.unwrap().execute("INSERT INTO nowhere VALUES (1)", ()).await });
        let error = error.unwrap_err();
        assert!(!may_fail(&error));
        assert!(outcome("an insert", &error).is_err());
    }
}
