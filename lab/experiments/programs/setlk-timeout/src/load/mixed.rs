//! A process that reads, writes and checkpoints at once. Owns: the loops of the threads and their counts. Leaves out:
//! how a connection waits (`connection`).

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rusqlite::{Connection, ErrorCode};
use setlk_timeout::{Counted, Job, Mixed};

use crate::connection::{busy_calls, open};
use crate::{ROWS, wait_for_the_others};

const BETWEEN_READS: Duration = Duration::from_micros(250);
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(10);
/// Every so many checkpoints one starts the WAL over, for which it takes the writers' lock and waits for readers.
const RESTART_EVERY: u64 = 10;
const ROWS_READ: i64 = 50;

type Loop = fn(&Connection, Mixed, Instant) -> Result<Counted>;

/// Opens all connections, waits for the other processes, and runs until the time is over.
pub(crate) fn run(job: &Job, how: Mixed) -> Result<Counted> {
    let mut loops: Vec<Loop> = vec![writes];
    loops.extend((0..how.readers).map(|_| reads as Loop));
    loops.extend(how.checkpoints.then_some(checkpoints as Loop));
    let connections = loops.iter().map(|_| open(job)).collect::<Result<Vec<_>>>()?;
    wait_for_the_others()?;

    let began = Instant::now();
    let end = began + Duration::from_secs_f64(how.seconds);
    let threads: Vec<_> = loops
        .into_iter()
        .zip(connections)
        .map(|(work, connection)| {
            thread::spawn(move || {
                let counted = work(&connection, how, end)?;
                Ok(Counted { busy_calls: busy_calls(), ..counted })
            })
        })
        .collect();
    let mut all = Counted::default();
    for thread in threads {
        let counted: Result<Counted> = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
        all.add(counted?);
    }
    Ok(Counted { seconds: began.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds(), ..all })
}

/// Writes once, and returns how long the lock was waited for.
pub(crate) fn write(connection: &Connection, item: i64, hold: Duration) -> rusqlite::Result<Duration> {
    let began = Instant::now();
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let waited = began.elapsed();
    connection.prepare_cached("UPDATE item SET n = n + 1 WHERE id = ?1")?.execute([item])?;
    connection.prepare_cached("INSERT INTO log(item) VALUES (?1)")?.execute([item])?;
    let held = Instant::now();
    while held.elapsed() < hold {
        std::hint::spin_loop();
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(waited)
}

fn writes(connection: &Connection, how: Mixed, end: Instant) -> Result<Counted> {
    let (mut counted, mut random) = (Counted::default(), Random::new());
    while Instant::now() < end {
        match write(connection, random.below(ROWS) + 1, Duration::from_micros(how.hold_us)) {
            Ok(waited) => counted.writes.push(nanos(waited)),
            Err(error) => counted.failed += lost(error)?,
        }
        thread::sleep(Duration::from_micros(how.think_us));
    }
    Ok(counted)
}

fn reads(connection: &Connection, _: Mixed, end: Instant) -> Result<Counted> {
    let (mut counted, mut random) = (Counted::default(), Random::new());
    let mut statement = connection.prepare("SELECT sum(n) FROM item WHERE id BETWEEN ?1 AND ?2")?;
    while Instant::now() < end {
        let first = random.below(ROWS - ROWS_READ) + 1;
        let began = Instant::now();
        match statement.query_row([first, first + ROWS_READ - 1], |row| row.get::<_, i64>(0)) {
            Ok(_) => counted.reads.push(nanos(began.elapsed())),
            Err(error) => counted.failed += lost(error)?,
        }
        thread::sleep(BETWEEN_READS);
    }
    Ok(counted)
}

fn checkpoints(connection: &Connection, _: Mixed, end: Instant) -> Result<Counted> {
    let mut counted = Counted::default();
    for number in 1.. {
        thread::sleep(BETWEEN_CHECKPOINTS);
        if Instant::now() >= end {
            break;
        }
        let mode = if number % RESTART_EVERY == 0 { "RESTART" } else { "PASSIVE" };
        let began = Instant::now();
        match connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get::<_, bool>(0)) {
            Ok(busy) => counted.busy_checkpoints += u64::from(busy),
            Err(error) => counted.failed += lost(error)?,
        }
        counted.checkpoints.push(nanos(began.elapsed()));
    }
    Ok(counted)
}

/// A call that was refused is counted; everything else ends the load.
fn lost(error: rusqlite::Error) -> Result<u64> {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed) => Ok(1),
        _ => Err(error.into()),
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// User and system time of this process, in the kernel's ticks of 10 ms; 0 where it does not tell.
pub(crate) fn cpu_seconds() -> f64 {
    let ticks = || -> Result<f64> {
        let text = fs::read_to_string("/proc/self/stat")?;
        let (_, after) = text.rsplit_once(") ").context("no name")?;
        let fields: Vec<&str> = after.split(' ').collect();
        Ok(fields[11].parse::<f64>()? + fields[12].parse::<f64>()?)
    };
    ticks().map_or(0.0, |ticks| ticks / 100.0)
}

/// A generator of rows: it need not be good, and another seed for each thread is enough.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let here = std::ptr::from_ref(&ROWS).addr() as u64;
        let thread = format!("{:?}", thread::current().id()).bytes().map(u64::from).sum::<u64>();
        Self((here ^ (u64::from(std::process::id()) << 20) ^ (thread << 40)) | 1)
    }

    fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as i64 % end
    }
}
