//! The load while calls fail: steps of several operations at once, until enough calls have failed or the time is over.

use std::time::{Duration, Instant};

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability};
use flatwater::{Database, Options};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::answers::Outcome;
use super::case::{Case, LOADS, Load};
use super::writes::Work;
use crate::finding::Finding;
use crate::gauge::Gauge;

/// The time after which a call counts as hung.
pub(super) const HANGS: Duration = Duration::from_secs(60);
/// The planned duration of the load of a case.
const LENGTH: Duration = Duration::from_millis(700);
/// The number of attempts to open a database while calls fail.
const TRIES: u32 = 5;

/// Small limits, so that the WAL restarts often; short waits, so that no call waits long for a failed one.
pub(super) fn options(case: &Case, directory: &std::path::Path) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20);
    let options = Options::new(directory.join("main.db"))
        .durability(if case.full { Durability::Full } else { Durability::Normal })
        .readers(2)
        .tuning(|t| {
            t.writer_cache_bytes(64 << 10).reader_cache_bytes(64 << 10).mmap_bytes(if case.mapped {
                1 << 20
            } else {
                0
            })
        })
        .busy_timeout(Duration::from_secs(2))
        .tuning(|t| t.close_wait(Duration::from_secs(2)))
        .checkpoint(Checkpoint::Managed(managed));
    if case.attached { options.tuning(|t| t.attach("other", directory.join("other.db"))) } else { options }
}

/// Returns the result of the future, or a finding if it takes longer than `time`.
pub(super) async fn within<F: Future>(time: Duration, what: &str, future: F) -> Result<F::Output, Finding> {
    let ended = tokio::time::timeout(time, future).await;
    ended.map_err(|_| Finding::new(format!("{what} did not end within {} s", time.as_secs())))
}

/// Runs the load. Returns the database if it is open at the end.
pub(super) async fn run(
    case: &Case,
    work: &Work,
    options: &Options,
    gauge: &Gauge,
    mut db: Option<Database>,
) -> Result<Option<Database>, Finding> {
    let mut rng = StdRng::seed_from_u64(case.seed);
    let until = Instant::now() + LENGTH;
    for _ in 0..case.steps {
        if Instant::now() >= until {
            break;
        }
        let Some(open) = open(work, options, &mut db).await? else { break };
        // Always draw the same number of random numbers, so that a case with fewer loads only omits loads and changes
        // nothing else.
        let together: [(Load, u64); 3] =
            std::array::from_fn(|_| (*LOADS.choose(&mut rng).expect("there are loads"), rng.random()));
        let number = rng.random_range(1..=together.len());
        let mut together = together.into_iter().take(number).filter(|(load, _)| case.loads.contains(load)).peekable();
        if together.peek().is_some_and(|(load, _)| *load == Load::Reopen) {
            close(work, open).await?;
            db = None;
            continue;
        }
        let steps: Vec<_> = together.map(|(load, seed)| gauge.watch(step(work, &open, load, seed))).collect();
        within(HANGS, "a step of the load", join_all(steps)).await?.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(db)
}

/// Runs one operation of a step.
pub(super) async fn step(work: &Work, db: &Database, load: Load, seed: u64) -> Result<(), Finding> {
    match load {
        Load::Read => read(work, db, seed).await,
        Load::Checkpoint => checkpoint(work, db, seed).await,
        Load::Backup => super::backups::run(work, db, seed).await,
        _ => work.write(db, load, seed).await,
    }
}

async fn open(work: &Work, options: &Options, db: &mut Option<Database>) -> Result<Option<Database>, Finding> {
    for _ in 0..TRIES {
        if db.is_some() {
            break;
        }
        match within(HANGS, "open", options.clone().open()).await? {
            Ok(opened) => {
                work.count("opens");
                *db = Some(opened);
            }
            Err(error) => work.may_fail(&error, Load::Reopen)?,
        }
    }
    Ok(db.clone())
}

async fn close(work: &Work, db: Database) -> Result<(), Finding> {
    match within(HANGS, "close", db.close()).await? {
        Ok(()) => Ok(()),
        Err(error) => work.may_fail(&error, Load::Reopen),
    }
}

/// Checks that reads see acknowledged writes, and no failed ones.
async fn read(work: &Work, db: &Database, seed: u64) -> Result<(), Finding> {
    let known: Vec<_> = {
        let answers = work.answers.borrow();
        let rng = &mut StdRng::seed_from_u64(seed);
        let some = answers.iter().filter(|answer| answer.outcome != Outcome::Unknown).collect::<Vec<_>>();
        some.sample(rng, 4).map(|answer| (*answer).clone()).collect()
    };
    for answer in known {
        let expected = if answer.outcome == Outcome::There { answer.main } else { 0 };
        match db.query_optional_value::<u64>("SELECT count(*) FROM t WHERE op = ?", (answer.number,)).await {
            Ok(seen) if seen == Some(expected) => work.count("reads"),
            Ok(seen) => return Err(Finding::new(format!("a read sees {seen:?} rows of {answer:?}"))),
            Err(error) => work.may_fail(&error, Load::Read)?,
        }
    }
    Ok(())
}

async fn checkpoint(work: &Work, db: &Database, seed: u64) -> Result<(), Finding> {
    use CheckpointMode::{Full, Passive, Restart, Truncate};
    let mode = [Passive, Full, Restart, Truncate][usize::try_from(seed % 4).unwrap_or(0)];
    match db.checkpoint(mode).await {
        Ok(_) => work.count("checkpoints"),
        Err(error) => work.may_fail(&error, Load::Checkpoint)?,
    }
    Ok(())
}
