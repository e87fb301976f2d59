//! One process of the experiment. Owns: the jobs that are not a load of several threads. Its argument is a job as JSON,
//! and its answer is one line of JSON.

mod connection;
mod mixed;

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use setlk_timeout::{Build, Call, Counted, Held, Job, MARKS, Probed, Task};

use crate::connection::{SETTINGS, open, open_impatient};
use crate::mixed::{nanos, write};

/// Rows of the table that is read and written.
const ROWS: i64 = 10_000;
const UPDATE: &str = "UPDATE item SET n = n + 1 WHERE id = 1";
/// `SELECT 1` is too short for a clock around each.
const NOOPS_AT_ONCE: u32 = 100;

fn main() -> Result<()> {
    let job = std::env::args().nth(1).context("the argument is a job, as JSON; `run.sh` starts this program")?;
    let job: Job = serde_json::from_str(&job)?;
    let answer = match &job.task {
        Task::Prepare => serde_json::to_string(&prepare(&job)?)?,
        Task::Mixed(how) => serde_json::to_string(&mixed::run(&job, *how)?)?,
        Task::Alone { seconds } => serde_json::to_string(&alone(&job, *seconds)?)?,
        Task::Noop { seconds } => serde_json::to_string(&noop(&job, *seconds)?)?,
        Task::Hold(held) => return hold(&job, *held),
        Task::Probe(call) => serde_json::to_string(&probe(&job, *call)?)?,
    };
    println!("{answer}");
    Ok(())
}

/// Says that this process is ready, and waits until all others are.
fn wait_for_the_others() -> Result<()> {
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

fn prepare(job: &Job) -> Result<Build> {
    let connection = open(job)?;
    connection.execute_batch(&format!(
        "CREATE TABLE item(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, text TEXT NOT NULL);
         CREATE TABLE log(id INTEGER PRIMARY KEY, item INTEGER NOT NULL);
         WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {ROWS})
         INSERT INTO item SELECT n, 0, printf('%0100d', n) FROM number;"
    ))?;
    let mut statement = connection.prepare("PRAGMA compile_options")?;
    let options = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Build { sqlite: rusqlite::version().to_owned(), options })
}

fn alone(job: &Job, seconds: f64) -> Result<Counted> {
    let connection = open(job)?;
    let (mut counted, began) = (Counted::default(), Instant::now());
    let mut item = 0;
    while began.elapsed().as_secs_f64() < seconds {
        item = item % ROWS + 1;
        let write_began = Instant::now();
        write(&connection, item, Duration::ZERO)?;
        counted.writes.push(nanos(write_began.elapsed()));
    }
    Ok(finished(counted, began))
}

fn noop(job: &Job, seconds: f64) -> Result<Counted> {
    let connection = open(job)?;
    let mut statement = connection.prepare("SELECT 1")?;
    let (mut counted, began) = (Counted::default(), Instant::now());
    while began.elapsed().as_secs_f64() < seconds {
        let batch_began = Instant::now();
        for _ in 0..NOOPS_AT_ONCE {
            statement.query_row([], |row| row.get::<_, i64>(0))?;
        }
        counted.reads.push(nanos(batch_began.elapsed() / NOOPS_AT_ONCE));
    }
    Ok(finished(counted, began))
}

fn finished(counted: Counted, began: Instant) -> Counted {
    let seconds = began.elapsed().as_secs_f64();
    Counted { busy_calls: connection::busy_calls(), seconds, cpu_seconds: mixed::cpu_seconds(), ..counted }
}

fn hold(job: &Job, held: Held) -> Result<()> {
    let connection = open(job)?;
    // Something to checkpoint.
    connection.execute(UPDATE, [])?;
    match held {
        Held::Nothing => {}
        Held::Write => connection.execute_batch("BEGIN IMMEDIATE")?,
        Held::Read => {
            connection.execute_batch("BEGIN")?;
            connection.query_row("SELECT count(*) FROM item", [], |_| Ok(()))?;
        }
    }
    wait_for_the_others()
}

fn probe(job: &Job, call: Call) -> Result<Probed> {
    let connection = open_impatient(job)?;
    if call != Call::First {
        // What the first call does besides is no part of the probe.
        connection.execute_batch(SETTINGS)?;
        connection.query_row("SELECT n FROM item WHERE id = 1", [], |_| Ok(()))?;
    }
    if call == Call::Checkpoint {
        // A frame that a reader beside this process does not see yet. Beside a writer the one from before is enough.
        let _ = connection.execute(UPDATE, []);
    }
    eprintln!("{}", MARKS[0]);
    let began = Instant::now();
    let outcome = attempt(&connection, call);
    let took_us = began.elapsed().as_secs_f64() * 1e6;
    eprintln!("{}", MARKS[1]);
    let answer = match outcome {
        Ok(()) => "ok".to_owned(),
        Err(rusqlite::Error::SqliteFailure(error, _)) if error.code == rusqlite::ErrorCode::DatabaseBusy => {
            "busy".to_owned()
        }
        Err(other) => bail!(other),
    };
    Ok(Probed { answer, took_us })
}

fn attempt(connection: &Connection, call: Call) -> rusqlite::Result<()> {
    match call {
        Call::First | Call::Read => connection.query_row("SELECT n FROM item WHERE id = 1", [], |_| Ok(())),
        Call::Write => connection.execute_batch("BEGIN IMMEDIATE; COMMIT;"),
        Call::Checkpoint => {
            let busy = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, bool>(0))?;
            let code = if busy { rusqlite::ffi::SQLITE_BUSY } else { return Ok(()) };
            Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None))
        }
    }
}
