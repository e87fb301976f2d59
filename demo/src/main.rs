//! The demo: the traffic of a chat service, the longest commit and the longest gap of an event loop, each on Flatwater
//! and on the usual setup of today, the loop also without any call; a row that another process changes, in the result of a
//! live query; sixteen processes that write to one file; then three kills of a writing process, and a count of its rows.
//!
//! Owns: the acts, their order, and what is printed. The report goes to standard output, progress and errors go to
//! standard error; the exit code is 0 only if nothing was lost and every check passed. Leaves out: the acts themselves,
//! the two sides and the tables, which have a module each; and other libraries, which the lab measures, each in a program
//! that links the SQLite it needs.

mod clock;
mod commits;
mod crash;
mod flatwater_side;
mod gaps;
mod live;
mod mutex_side;
mod polls;
mod progress;
mod side;
mod table;
mod traffic;
mod turns;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::flatwater_side::FlatwaterSide;
use crate::mutex_side::MutexSide;
use crate::progress::Progress;
use crate::side::{MESSAGES, Result, Side};
use crate::traffic::{Record, SHARES, TASKS};

/// The first argument of the child that the last act kills.
const WRITE_FOREVER: &str = "write-forever";
/// The first argument of the child that changes the row of the live query.
const CHANGE_ROW: &str = "change-row";
/// The first argument of the children that take turns.
const TAKE_TURNS: &str = "take-turns";

/// The time of each side is divided into this many rounds, in which the order of the sides changes.
const ROUNDS: u32 = 4;

/// About how many seconds the seeds, the live query, the turns and the kills take.
const OTHERS_TAKE: f64 = 10.0 + turns::TAKES;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match &arguments[..] {
        [] => demo(),
        [act, path, first] if act == WRITE_FOREVER => crash::write_forever(Path::new(path), &first.to_string_lossy()),
        [act, path] if act == CHANGE_ROW => live::change_when_told(Path::new(path)),
        [act, path, library] if act == TAKE_TURNS => turns::take_turns(Path::new(path), &library.to_string_lossy()),
        _ => Err("it takes no arguments; FLATWATER_DEMO_SECONDS sets the seconds per side".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flatwater-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> Result<()> {
    let time = seconds_per_side(std::env::var("FLATWATER_DEMO_SECONDS").ok().as_deref())?;
    let directory = tempfile::Builder::new().prefix("flatwater-demo-").tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let acts =
        2 * u64::from(ROUNDS) + 5 + commits::ACTS + gaps::ACTS + live::ACTS + turns::ACTS + crash::KILLS.len() as u64;
    let progress = Progress::new(acts);
    say(&progress, &introduction(time))?;
    runtime.block_on(traffic(directory.path(), time, &progress))?;
    tails(&runtime, directory.path(), time, &progress)?;
    say(&progress, &runtime.block_on(live::act(&directory.path().join("live.db"), &progress))?)?;
    say(&progress, &turns::act(directory.path(), &progress)?)?;
    say(&progress, "\nThen a process that writes with Flatwater:\n")?;
    let verdict = crash::act(&runtime, &directory.path().join("crash.db"), &progress)?;
    say(&progress, &verdict.to_string())?;
    drop(progress);
    directory.close()?;
    verdict.check()
}

fn seconds_per_side(text: Option<&str>) -> Result<Duration> {
    let Some(text) = text else { return Ok(Duration::from_secs(10)) };
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("FLATWATER_DEMO_SECONDS must be a number from 0.1 to 3600, not {text:?}").into()),
    }
}

/// Prints one part of the report.
fn say(progress: &Progress, text: &str) -> Result<()> {
    let mut written = Ok(());
    progress.aside(|| written = std::io::stdout().lock().write_all(text.as_bytes()));
    Ok(written?)
}

fn introduction(time: Duration) -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let shares: Vec<_> = SHARES.iter().map(|(operation, share)| format!("{share} % {}", operation.name())).collect();
    format!(
        "A chat service in one process: {} users, {} conversations, {} messages.\n\
         {TASKS} tokio tasks, each asking again as soon as it is answered:\n\
         {}.\n\n\
         Flatwater   opened with its defaults, every call simply awaited\n\
         one Mutex   the usual way: one rusqlite connection, Mutex, spawn_blocking\n\n\
         Both        the same statements and requests, SQLite {}, WAL,\n            \
         synchronous=NORMAL, {cores} cores, {:.1} s each in {ROUNDS} rounds, in turn\n\n\
         It takes about {:.0} s. FLATWATER_DEMO_SECONDS=2 makes it shorter.\n\n",
        side::USERS,
        side::CONVERSATIONS,
        table::thousands(MESSAGES as u64),
        shares.join(", "),
        flatwater::rusqlite::version(),
        time.as_secs_f64(),
        4.0 * time.as_secs_f64() + OTHERS_TAKE,
    )
}

/// Seeds both sides, lets them serve in turns, prints the table, and checks the contents of the files.
async fn traffic(directory: &Path, time: Duration, progress: &Progress) -> Result<()> {
    let (ours, theirs) = sides(directory, "traffic", progress).await?;
    let (mut our_record, mut their_record) = (Record::new(), Record::new());
    for round in 0..ROUNDS {
        for half in 0..2 {
            if (round + half) % 2 == 0 {
                progress.act(&format!("Flatwater serves, round {} of {ROUNDS}.", round + 1));
                our_record.add(&traffic::round(&ours, round, time / ROUNDS).await?);
            } else {
                progress.act(&format!("The Mutex serves, round {} of {ROUNDS}.", round + 1));
                their_record.add(&traffic::round(&theirs, round, time / ROUNDS).await?);
            }
        }
    }

    say(progress, &table::report(&our_record, &their_record))?;

    progress.act("Looking for every acknowledged write.");
    let (our_writes, their_writes) = (check(&*ours, &our_record).await?, check(&*theirs, &their_record).await?);
    say(progress, &all_found(our_writes, their_writes))?;
    ours.close().await
}

/// Creates a database with the seed for each side.
async fn sides(directory: &Path, name: &str, progress: &Progress) -> Result<(Arc<FlatwaterSide>, Arc<MutexSide>)> {
    progress.act("Seeding Flatwater's database.");
    let ours = FlatwaterSide::open(&directory.join(format!("flatwater-{name}.db"))).await?;
    progress.act("Seeding the Mutex's database.");
    let theirs = MutexSide::open(&directory.join(format!("mutex-{name}.db"))).await?;
    Ok((Arc::new(ours), Arc::new(theirs)))
}

/// Runs the acts of the longest commit and the longest gap, on new databases, so that both sides hold the same amount
/// of data.
fn tails(runtime: &Runtime, directory: &Path, time: Duration, progress: &Progress) -> Result<()> {
    let (ours, theirs) = runtime.block_on(sides(directory, "tails", progress))?;
    say(progress, &runtime.block_on(commits::act(&ours, &theirs, time / 2, progress))?)?;
    say(progress, &gaps::act(runtime, &ours, &theirs, time / 4, progress)?)?;
    runtime.block_on(ours.close())
}

fn all_found(ours: u64, theirs: u64) -> String {
    let [ours, theirs] = [ours, theirs].map(table::thousands);
    format!("\nEvery acknowledged write is in the files: {ours} and {theirs}.\n")
}

/// Returns the number of acknowledged writes if all of them are in the file.
async fn check<S: Side>(side: &S, record: &Record) -> Result<u64> {
    let acknowledged = record.writes();
    let found = side.contents().await?;
    found.check(S::NAME, acknowledged)?;
    Ok(acknowledged.messages + acknowledged.updates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_are_ten_unless_the_environment_says_otherwise() {
        assert_eq!(seconds_per_side(None).unwrap(), Duration::from_secs(10));
        assert_eq!(seconds_per_side(Some("0.5")).unwrap(), Duration::from_millis(500));
        for wrong in ["", "ten", "0", "-1", "NaN", "inf"] {
            assert!(
                seconds_per_side(Some(wrong)).unwrap_err().to_string().contains("FLATWATER_DEMO_SECONDS"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_stands_around_the_table_fits_into_80_columns() {
        let text = introduction(Duration::from_secs(3600)) + &all_found(9_999_999_999, 9_999_999_999);
        for line in text.lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
