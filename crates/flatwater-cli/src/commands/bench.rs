//! `flatwater bench`: this machine's figures, beside plain SQLite.
//!
//! Owns: the lanes, and what is measured: how often a lane's work is done in a while, on each side in turn. Runs on the main thread, and
//! on eight threads where a lane has callers at the same time. Invariant: both sides have the same SQLite, the same statements, WAL mode
//! and `synchronous` NORMAL. Leaves out: other languages and libraries, which the lab measures.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flatwater::{Database, rusqlite};

use crate::failure::{Failure, Outcome};
use crate::output::style::{self, Paint};

/// Measure this machine, beside plain SQLite, in about a minute
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the databases are made and removed; the folder of temporary files if it is not given
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,

    /// How long each side of a lane is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
}

/// Each side is measured in so many parts, in turn; the median counts.
const PARTS: usize = 5;
const ROWS: i64 = 20_000;
const CALLERS: usize = 8;

const SCHEMA: &str = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL);
    CREATE TABLE log (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
const READ: &str = "SELECT name, price FROM items WHERE id = ?";
const SCAN: &str = "SELECT id, name, price FROM items";
const INSERT: &str = "INSERT INTO log (text) VALUES (?)";
const TEXT: &str = "a line of forty characters, more or less";

/// What is measured: the work of one side, once, for a caller with this number; its result is how much was done.
struct Lane {
    name: &'static str,
    unit: &'static str,
    callers: usize,
    plain: fn(&Mutex<rusqlite::Connection>, u64) -> Result<u64, Failure>,
    ours: fn(&Database, u64) -> Result<u64, Failure>,
}

const LANES: [Lane; 5] = [
    Lane { name: "read a row by its key", unit: "reads", callers: 1, plain: plain_read, ours: our_read },
    Lane { name: "the same by 8 threads", unit: "reads", callers: CALLERS, plain: plain_read, ours: our_read },
    Lane { name: "read 20,000 rows", unit: "rows", callers: 1, plain: plain_scan, ours: our_scan },
    Lane { name: "insert a row, committed", unit: "commits", callers: 1, plain: plain_insert, ours: our_insert },
    Lane { name: "the same by 8 threads", unit: "commits", callers: CALLERS, plain: plain_insert, ours: our_insert },
];

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let failed = Failure::system("making a folder");
    let folder = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let folder = folder.map_err(failed)?;
    let plain = plain(&folder.path().join("plain.db"))?;
    let ours = ours(&folder.path().join("flatwater.db"))?;
    let part = Duration::from_secs_f64(arguments.seconds.clamp(0.001, 600.0) / PARTS as f64);
    let paint = style::output();
    say!("SQLite {}; medians of {PARTS} parts a side, in turn; more is better", rusqlite::version());
    for lane in &LANES {
        let (mut of_plain, mut of_ours) = (Vec::new(), Vec::new());
        for _ in 0..PARTS {
            of_plain.push(measured(part, lane.callers, |number| (lane.plain)(&plain, number))?);
            of_ours.push(measured(part, lane.callers, |number| (lane.ours)(&ours, number))?);
        }
        say!("{}", chart(lane, median(of_plain), median(of_ours), paint).trim_end());
    }
    Ok(ours.close().wait()?)
}

/// Returns how much is done in a second.
fn measured(time: Duration, callers: usize, work: impl Fn(u64) -> Outcome<u64> + Sync) -> Outcome<f64> {
    let (done, is_over, failure) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(None));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..callers as u64 {
            let (done, is_over, failure, work) = (&done, &is_over, &failure, &work);
            scope.spawn(move || {
                let mut number = caller;
                while !is_over.load(Ordering::Relaxed) {
                    match work(number) {
                        Ok(count) => drop(done.fetch_add(count, Ordering::Relaxed)),
                        Err(error) => {
                            *failure.lock().expect("no thread panics") = Some(error);
                            return;
                        }
                    }
                    number += callers as u64;
                    if began.elapsed() >= time {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    match failure.into_inner().expect("no thread panics") {
        Some(failure) => Err(failure),
        None => Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()),
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Two bars, the longer one as long as they may be, and how much one side is of the other.
fn chart(lane: &Lane, plain: f64, ours: f64, paint: Paint) -> String {
    const WIDTH: f64 = 30.0;
    let bar = |of: f64| "█".repeat(((of / plain.max(ours) * WIDTH).round() as usize).max(1));
    let line = |name: &str, of: f64, bar: &str, ratio: &str| {
        let room = " ".repeat(WIDTH as usize - bar.chars().count());
        let bar = if name == "flatwater" { paint.good(bar) } else { paint.dim(bar) };
        format!("  {name:<10} {bar}{room} {:>11} {}/s{ratio}\n", grouped(of), lane.unit)
    };
    let ratio = format!("  {:.2}x", ours / plain);
    let sides = [line("SQLite", plain, &bar(plain), ""), line("flatwater", ours, &bar(ours), &ratio)];
    format!("\n{}\n{}", paint.bold(lane.name), sides.concat())
}

/// A number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn plain(path: &Path) -> Outcome<Mutex<rusqlite::Connection>> {
    let open = || -> rusqlite::Result<rusqlite::Connection> {
        let connection = rusqlite::Connection::open(path)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384")?;
        connection.execute_batch(SCHEMA)?;
        Ok(connection)
    };
    let connection = open().map_err(flatwater::Error::from)?;
    fill(|sql| connection.execute_batch(sql).map_err(|error| flatwater::Error::from(error).into()))?;
    Ok(Mutex::new(connection))
}

fn ours(path: &Path) -> Outcome<Database> {
    let db = Database::open(path).wait()?;
    db.execute_script(SCHEMA).wait()?;
    fill(|sql| Ok(db.execute_script(sql).wait()?))?;
    Ok(db)
}

fn fill(run: impl Fn(&str) -> Outcome) -> Outcome {
    run(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {ROWS})
         INSERT INTO items SELECT i, 'item number ' || i, i * 0.5 FROM n"
    ))
}

fn key(number: u64) -> i64 {
    (number.wrapping_mul(7919) % ROWS as u64) as i64 + 1
}

fn plain_read(plain: &Mutex<rusqlite::Connection>, number: u64) -> Outcome<u64> {
    with(plain, |connection| {
        let mut statement = connection.prepare_cached(READ)?;
        let (_, _): (String, f64) = statement.query_row([key(number)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(1)
    })
}

fn our_read(ours: &Database, number: u64) -> Outcome<u64> {
    let (_, _): (String, f64) = ours.query_one_as(READ, (key(number),)).wait()?;
    Ok(1)
}

fn plain_scan(plain: &Mutex<rusqlite::Connection>, _: u64) -> Outcome<u64> {
    with(plain, |connection| {
        let mut statement = connection.prepare_cached(SCAN)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let rows: Vec<(i64, String, f64)> = rows.collect::<rusqlite::Result<_>>()?;
        Ok(rows.len() as u64)
    })
}

fn our_scan(ours: &Database, _: u64) -> Outcome<u64> {
    let rows: Vec<(i64, String, f64)> = ours.query_as(SCAN, ()).wait()?;
    Ok(rows.len() as u64)
}

fn plain_insert(plain: &Mutex<rusqlite::Connection>, _: u64) -> Outcome<u64> {
    with(plain, |connection| Ok(connection.prepare_cached(INSERT)?.execute([TEXT])? as u64))
}

fn our_insert(ours: &Database, _: u64) -> Outcome<u64> {
    Ok(ours.execute(INSERT, (TEXT,)).wait()?.changes)
}

fn with<R>(
    plain: &Mutex<rusqlite::Connection>,
    run: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<R>,
) -> Outcome<R> {
    Ok(run(&plain.lock().expect("no thread panics")).map_err(flatwater::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_bar_is_as_long_as_it_may_be() {
        let text = chart(&LANES[0], 50.0, 1_234_567.0, Paint::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "read a row by its key");
        assert!(lines[2].starts_with("  SQLite     █  ") && lines[2].ends_with("         50 reads/s"), "{text}");
        assert!(lines[3].contains(&"█".repeat(30)) && lines[3].ends_with("1,234,567 reads/s  24691.34x"), "{text}");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0, 9.0, 0.0]), 2.0);
        assert_eq!([999.6, 0.0].map(grouped), ["1,000", "0"]);
    }
}
