//! The disturbances of a round's processes while they work.

use std::time::Duration;

use rand::RngExt;

use super::crowd::Crowd;
use super::holder::{Hold, LOCKS, MARKS, WRITE};
use super::{SWITCHER, cast};
use crate::round::{Finding, Round};

/// The minimum number of each kind, however short a round is.
const KILLS: u64 = 1;

/// Causes random disturbances, one after the other, until the round is over.
pub(super) fn make(round: &mut Round, crowd: &mut Crowd) -> Result<(), Finding> {
    let mut switches = round.rng.random_ratio(1, 4);
    while round.goes_on() || round.counts.0.get("kills").copied().unwrap_or(0) < KILLS {
        crowd.look()?;
        let at = round.rng.random_range(0..crowd.len());
        match round.rng.random_range(0..100) {
            0..30 => stops(round, crowd, at)?,
            30..50 => kills(round, crowd, at)?,
            50..70 => holds(round, crowd)?,
            70..95 => tears(round, crowd)?,
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

fn stops(round: &mut Round, crowd: &mut Crowd, at: usize) -> Result<(), Finding> {
    let time = Duration::from_millis(round.rng.random_range(1..=300));
    if crowd.stops(at, time)? {
        round.count("stops");
    }
    Ok(())
}

fn kills(round: &mut Round, crowd: &mut Crowd, at: usize) -> Result<(), Finding> {
    crowd.kills(at)?;
    round.count("kills");
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
        round.count("locks held");
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
        round.count("headers torn");
    }
    crowd.look()
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
