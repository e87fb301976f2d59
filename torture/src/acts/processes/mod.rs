//! Several processes on one file: Flatwater, plain SQLite, and one that maintains the file. Some are killed, some are
//! stopped, some hold a lock, some die in the middle of a commit. No process may get a wrong result.
//!
//! Owns: a round from its start to its audit. `trouble.rs` disturbs the processes, `calls.rs`, `plain.rs` and
//! `maintainer.rs` contain their work, `books.rs` the conditions that must hold.

mod books;
mod calls;
mod crowd;
mod holder;
mod ledger;
mod maintainer;
mod ours;
mod plain;
mod trouble;
mod turns;
mod witness;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flatwater::Options;
use rand::RngExt;
use rusqlite::Connection;

use self::crowd::Crowd;
use self::ledger::Told;
use self::turns::TurnFile;
use self::witness::Cell;
use super::Act;
use crate::board::Board;
use crate::checks;
use crate::finding::Finding;
use crate::parts::part;
use crate::round::Round;

pub(crate) const ACT: Act = Act {
    name: "processes",
    about: "several processes on one file, ours and plain, that are killed, stopped, and hold locks",
    round,
    parts: &[
        (OURS, |args| witness::runs(args, ours::part)),
        (PLAIN, |args| witness::runs(args, plain::part)),
        (MAINTAINER, |args| witness::runs(args, maintainer::part)),
        (SWITCHER, |args| witness::runs(args, maintainer::switcher)),
        ("processes-holder", holder::part),
        (SURVIVOR, survivor),
    ],
};

const OURS: &str = "processes-ours";
const PLAIN: &str = "processes-plain";
const MAINTAINER: &str = "processes-maintainer";
const SWITCHER: &str = "processes-switcher";
const SURVIVOR: &str = "processes-survivor";
/// After the round, a write and a read must succeed within this time.
const LIVES: Duration = Duration::from_secs(30);

fn round(round: &mut Round) -> Result<(), Finding> {
    let path = witness::database(round.directory());
    Connection::open(&path)?.execute_batch(books::SCHEMA)?;
    let board = Board::open(round.directory())?;
    let is_fair = round.rng.random_ratio(4, 5);
    let mut crowd = Crowd::new(round.directory().to_owned(), is_fair);
    for name in cast(round) {
        let seed = round.rng.random();
        crowd.joins(name, seed)?;
    }
    crowd.all_work(&board)?;
    let mut turn_file = TurnFile::new(round.directory());
    trouble::make(round, &mut crowd, &board, &mut turn_file)?;
    let incarnations = crowd.incarnations;
    if round.rng.random_ratio(1, 3) {
        crowd.disperse();
    }
    crowd.finish()?;
    // What one that was killed left there may be left; what the act put there is nobody else's to remove.
    turn_file.clear()?;
    let holds = witness::holds(round.directory(), incarnations)?;
    round.hold.merge(&holds);
    let told = Told::read(round.directory(), incarnations)?;
    count(round, &told, &board)?;
    // The first process that opens the file has to recover it.
    if round.rng.random_ratio(1, 2) {
        survives(&path)?;
    }
    checks::is_sound(&path)?;
    books::audit(&path, &told, board.highest(Cell::Value)?)?;
    // Sometimes in this process, which must have no leftovers afterwards; its last thread ends only after seconds.
    if round.rng.random_ratio(1, 5) { lives(&path) } else { survives(&path) }?;
    if turn_file.is_there() {
        return Err(Finding::new("the last process that wrote leaves the file of turns"));
    }
    Ok(())
}

/// Returns the parts of a round.
fn cast(round: &mut Round) -> Vec<&'static str> {
    let mut cast = vec![MAINTAINER];
    cast.extend((0..round.rng.random_range(1..=3)).map(|_| OURS));
    cast.extend((0..round.rng.random_range(1..=2)).map(|_| PLAIN));
    cast
}

fn count(round: &mut Round, told: &Told, board: &Board) -> Result<(), Finding> {
    let acknowledged = (told.acknowledged.len() + told.counted.len()) as u64;
    let reads = board.sum(Cell::Reads)?;
    if acknowledged == 0 || reads == 0 {
        return Err(Finding::new(format!("only {acknowledged} writes and {reads} reads were answered in a round")));
    }
    round.counts.add("writes acknowledged", acknowledged);
    round.counts.add("outcomes unknown", told.unknown.len() as u64);
    round.counts.add("reads checked", reads);
    round.counts.add("calls on their caller's thread", board.sum(Cell::Inline)?);
    round.counts.add("maintenance statements", board.sum(Cell::Works)?);
    round.counts.add("turns taken", board.sum(Cell::Turns)?);
    round.counts.add("switches of the journal mode", board.sum(Cell::Switches)?);
    Ok(())
}

/// Runs `lives` in a separate process.
fn survives(path: &Path) -> Result<(), Finding> {
    let ended = part(SURVIVOR).arg(path).output()?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Err(Finding::new(format!("a process that comes afterwards ends with {}", ended.status)).with_history(said))
}

fn survivor(args: &[String]) -> ExitCode {
    match lives(Path::new(args.first().expect("the round says which file"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            eprintln!("{}", finding.what);
            ExitCode::FAILURE
        }
    }
}

/// Opens the file with Flatwater, writes and reads.
fn lives(path: &Path) -> Result<(), Finding> {
    let began = Instant::now();
    let db = Options::new(path).open().wait()?;
    let before: Option<i64> = db.with_timeout(LIVES).query_optional_value(books::VALUE, ()).wait()?;
    let after: Option<i64> = db.with_timeout(LIVES).query_optional_value(books::COUNT, ()).wait()?;
    db.close().wait()?;
    if after != before.map(|before| before + 1) {
        return Err(Finding::new(format!("the counter was {before:?} and is raised to {after:?}")));
    }
    if began.elapsed() > 2 * LIVES {
        return Err(Finding::new(format!(
            "a file that nobody uses is opened, read and written in {:?}",
            began.elapsed()
        )));
    }
    Ok(())
}
