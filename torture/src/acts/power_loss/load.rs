//! The part of a round that runs under the recorder: tasks that write, and record the results.
//!
//! Owns: executing the plan, and the marks in the log: `made` when the schema exists, `ack TASK STEP` when a step was
//! acknowledged, `not TASK STEP` when the result was that the step was not done. The file is opened and closed several
//! times.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flatwater::calls::CheckpointMode;
use flatwater::{Database, Error, ErrorKind, params};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::plan::{MAIN_SCHEMA, Plan, Step};

const ROW: &str = "INSERT INTO ledger (task, step, part, parts, filler) VALUES (?, ?, ?, ?, ?)";
const HAS_TABLE: &str = "SELECT count(*) FROM sqlite_schema WHERE name = ?";
const TAKE: &str = "UPDATE accounts SET cents = cents - ? WHERE id = ?";
const GIVE: &str = "UPDATE accounts SET cents = cents + ? WHERE id = ?";

/// Runs the part. Its arguments: the directory, the seed, the duration in milliseconds.
pub(crate) fn part(args: &[String]) -> ExitCode {
    let [directory, seed, length_ms] = args else { return ExitCode::from(2) };
    let (Ok(seed), Ok(length_ms)) = (seed.parse(), length_ms.parse()) else { return ExitCode::from(2) };
    let workers = 2;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = runtime.expect("threads can be started");
    match runtime.block_on(load(Path::new(directory), seed, Duration::from_millis(length_ms))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the load failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a line into the recorder's log. No file is opened: the recorder intercepts the path.
fn mark(text: &str) {
    assert!(std::fs::File::open(format!("/flatwater-torture/mark/{text}")).is_err());
}

async fn load(directory: &Path, seed: u64, length: Duration) -> Result<(), Error> {
    let plan = Plan::of(seed);
    let mut next = Vec::new();
    for phase in 0..plan.phases {
        let db = plan.options(directory).open().await?;
        if db.query_optional_value::<i64>(HAS_TABLE, ("ledger",)).await? == Some(0) {
            db.execute_script(MAIN_SCHEMA).await?;
        }
        mark("made");
        if phase == 0 {
            next = first_steps(&plan, &db).await?;
        }
        let until = Instant::now() + length / plan.phases as u32;
        let tasks: Vec<_> = (0..plan.tasks)
            .map(|task| {
                let (plan, db) = (plan.clone(), db.clone());
                let first = next[task as usize];
                tokio::spawn(async move { steps(&plan, &db, task, first, until).await })
            })
            .collect();
        let upkeep = upkeep(&plan, &db, seed ^ phase, until).await;
        for (task, ended) in tasks.into_iter().enumerate() {
            next[task] = ended.await.expect("a task does not panic")?;
        }
        upkeep?;
        // Cancels a planned failure before the file is opened again. The checkpoint at the close may still meet a
        // failing sync.
        fail("nothing");
        match db.close().await {
            Err(error) if plan.fails() && is_failure(&error) => {}
            closed => closed?,
        }
    }
    Ok(())
}

/// Returns, for each task, the step after its last one in either file.
async fn first_steps(plan: &Plan, db: &Database) -> Result<Vec<u64>, Error> {
    let mut first = vec![1; plan.tasks as usize];
    for ledger in ["ledger", "side_ledger"].iter().take(1 + usize::from(plan.has_side)) {
        let last = format!("SELECT task, max(step) FROM {ledger} GROUP BY task");
        for (task, step) in db.query_as::<(u64, u64)>(&last, ()).await? {
            first[task as usize] = first[task as usize].max(step + 1);
        }
    }
    Ok(first)
}

/// Runs one step after the other until the time is over. Returns the next step.
async fn steps(plan: &Plan, db: &Database, task: u64, first: u64, until: Instant) -> Result<u64, Error> {
    let mut step = first;
    let mut has_table = db.query_optional_value::<i64>(HAS_TABLE, (format!("own_{task}"),)).await? == Some(1);
    while Instant::now() < until {
        match write(plan, db, task, step, has_table).await {
            Ok(()) => {
                mark(&format!("ack {task} {step}"));
                has_table ^= plan.step(task, step) == Step::Schema;
            }
            Err(error) if plan.fails() && is_failure(&error) => {
                if error.kind() == ErrorKind::Io {
                    mark(&format!("not {task} {step}"));
                }
                has_table = db.query_optional_value::<i64>(HAS_TABLE, (format!("own_{task}"),)).await? == Some(1);
                // After a failed sync, writes are refused until the database is opened again.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error),
        }
        step += 1;
    }
    Ok(step)
}

/// Returns whether the error is one that a failure of the disk causes: not done, or unknown.
fn is_failure(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::CommitUnknown)
}

/// Asks the recorder to make a call fail. As with a mark, no file is opened.
fn fail(what: &str) {
    assert!(std::fs::File::open(format!("/flatwater-torture/fail-{what}/")).is_err());
}

async fn write(plan: &Plan, db: &Database, task: u64, step: u64, has_table: bool) -> Result<(), Error> {
    let filler = plan.filler(task, step, 0);
    let (id, number) = (task as i64, step as i64);
    match plan.step(task, step) {
        Step::Row => db.execute(ROW, params![id, number, 0, 1, filler]).await.map(drop),
        Step::Move => {
            let (from, to, cents) = plan.moves(task, step);
            let take = (TAKE, params![cents, from as i64]);
            let give = (GIVE, params![cents, to as i64]);
            db.batch([(ROW, params![id, number, 0, 1, filler]), take, give]).await.map(drop)
        }
        Step::Transaction => {
            let (from, to, cents) = plan.moves(task, step);
            let mut tx = db.begin().await?;
            tx.execute(TAKE, (cents, from as i64)).await?;
            let nested = tx.begin().await?;
            nested.execute(ROW, params![id, -1, 0, 1, filler.clone()]).await?;
            nested.rollback().await?;
            tx.execute(GIVE, (cents, to as i64)).await?;
            tx.execute(ROW, params![id, number, 0, 1, filler]).await?;
            tx.commit().await
        }
        Step::Many(parts) => {
            let rows = (0..parts).map(|part| (id, number, part as i64, parts as i64, plan.filler(task, step, part)));
            db.execute_many(ROW, rows).await.map(drop)
        }
        Step::Body => {
            let body = ("REPLACE INTO bodies VALUES (?, ?)", params![id, plan.body(task, step)]);
            db.batch([(ROW, params![id, number, 0, 1, filler]), body]).await.map(drop)
        }
        Step::Schema => {
            let sql = if has_table { format!("DROP TABLE own_{task}") } else { format!("CREATE TABLE own_{task} (x)") };
            db.batch([(ROW, params![id, number, 0, 1, filler]), (sql.as_str(), params![])]).await.map(drop)
        }
        Step::Side => {
            let side = "INSERT INTO side.side_ledger (task, step, filler) VALUES (?, ?, ?)";
            let both = [(side, params![id, number, filler.clone()]), (ROW, params![id, number, 0, 1, filler])];
            db.batch(both).await.map(drop)
        }
    }
}

/// Runs checkpoints of each mode, a read of all rows, VACUUM, and calls that fail, concurrently with the tasks.
async fn upkeep(plan: &Plan, db: &Database, seed: u64, until: Instant) -> Result<(), Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let modes = [CheckpointMode::Passive, CheckpointMode::Full, CheckpointMode::Restart, CheckpointMode::Truncate];
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(rng.random_range(1..15))).await;
        let done = match rng.random_range(0..10) {
            0 => db.execute("VACUUM", ()).await.map(drop),
            1 if plan.syncs_fail => {
                fail("wal-sync");
                Ok(())
            }
            3 | 4 if plan.writes_fail => {
                fail("wal-write");
                Ok(())
            }
            2 => db.query("SELECT sum(length(filler)) FROM ledger", ()).await.map(drop),
            _ => db.checkpoint(modes[rng.random_range(0..modes.len())]).await.map(drop),
        };
        match done {
            Err(error) if plan.fails() && is_failure(&error) => {}
            done => done?,
        }
    }
    Ok(())
}
