//! The disturbances of a round's processes while they work.

use std::time::{Duration, Instant};

use rand::RngExt;

use super::crowd::{Crowd, patience};
use super::holder::{Hold, LOCKS, MARKS, WRITE};
use super::turns::TurnFile;
use super::witness::Cell;
use super::{SWITCHER, cast};
use crate::board::Board;
use crate::finding::Finding;
use crate::round::Round;

const KILLS: &str = "processes killed";
const SPOILED: &str = "turn files spoiled";

/// Causes random disturbances, one after the other, until the round is over. However short it is, a process is killed, the
/// file of turns is spoiled, and turns are taken, if they are in this round.
pub(super) fn make(
    round: &mut Round,
    crowd: &mut Crowd,
    board: &Board,
    turn_file: &mut TurnFile,
) -> Result<(), Finding> {
    let mut switches = round.rng.random_ratio(1, 4);
    let until = patience();
    while round.goes_on() || lacks(round, crowd, board)? {
        if Instant::now() > until {
            return Err(Finding::new("no process takes a turn, or none makes the file of turns"));
        }
        crowd.look()?;
        let at = round.rng.random_range(0..crowd.len());
        match round.rng.random_range(0..100) {
            0..25 => stops(round, crowd, at)?,
            25..42 => kills(round, crowd, at)?,
            42..58 => holds(round, crowd)?,
            58..80 => tears(round, crowd)?,
            80..95 => spoils(round, turn_file)?,
            95.. if switches => {
                switches = false;
                switches_the_journal(round, crowd)?;
            }
            _ => {}
        }
        wait(round, crowd, 0..60)?;
    }
    Ok(())
}

/// Returns true if something that each round has has not been done yet.
fn lacks(round: &Round, crowd: &Crowd, board: &Board) -> Result<bool, Finding> {
    let is_missing = |what| !round.counts.0.contains_key(what);
    Ok(is_missing(KILLS) || crowd.is_fair && (is_missing(SPOILED) || board.sum(Cell::Turns)? == 0))
}

fn stops(round: &mut Round, crowd: &mut Crowd, at: usize) -> Result<(), Finding> {
    let time = Duration::from_millis(round.rng.random_range(1..=300));
    if crowd.stops(at, time)? {
        round.count("processes stopped");
    }
    Ok(())
}

fn kills(round: &mut Round, crowd: &mut Crowd, at: usize) -> Result<(), Finding> {
    crowd.kills(at)?;
    round.count(KILLS);
    let seed = round.rng.random();
    crowd.starts_again(at, seed)
}

/// Stops a process while it holds one random lock, or all read marks.
fn holds(round: &mut Round, crowd: &mut Crowd) -> Result<(), Finding> {
    let one = round.rng.random_range(LOCKS);
    let hold = Hold {
        directory: round.directory().to_owned(),
        locks: if round.rng.random_ratio(1, 6) { MARKS } else { one..=one },
        exclusive: round.rng.random(),
        of_descriptor: round.rng.random(),
        tears: false,
    };
    let time = Duration::from_millis(round.rng.random_range(50..=500));
    if crowd.holds(&hold, time)? {
        round.count("locks held by other processes");
    }
    Ok(())
}

/// Stops or kills a committing process between the two copies of the header.
fn tears(round: &mut Round, crowd: &mut Crowd) -> Result<(), Finding> {
    let hold = Hold {
        directory: round.directory().to_owned(),
        locks: WRITE..=WRITE,
        exclusive: true,
        of_descriptor: round.rng.random(),
        tears: true,
    };
    let dies = round.rng.random_ratio(3, 4);
    let time = Duration::from_millis(if dies { 0 } else { round.rng.random_range(1..=300) });
    if crowd.holds(&hold, time)? {
        round.count("torn wal-index headers");
    }
    crowd.look()
}

fn spoils(round: &mut Round, turn_file: &mut TurnFile) -> Result<(), Finding> {
    if turn_file.spoil(&mut round.rng)? {
        round.count(SPOILED);
    }
    Ok(())
}

/// All processes end; others start while one of them switches the journal mode.
fn switches_the_journal(round: &mut Round, crowd: &mut Crowd) -> Result<(), Finding> {
    crowd.look()?;
    crowd.disperse();
    let seed = round.rng.random();
    crowd.joins(SWITCHER, seed)?;
    wait(round, crowd, 0..100)?;
    for name in cast(round) {
        let seed = round.rng.random();
        crowd.joins(name, seed)?;
        wait(round, crowd, 0..20)?;
    }
    Ok(())
}

fn wait(round: &mut Round, crowd: &mut Crowd, millis: std::ops::Range<u64>) -> Result<(), Finding> {
    std::thread::sleep(Duration::from_millis(round.rng.random_range(millis)));
    crowd.look()
}
