//! Act: databases with attached files, in which other processes commit to one of the files alone.
//!
//! Owns: a round. In each turn some processes work for a while, all come to rest, and the two processes that use Flatwater
//! are told what plain SQLite now reads; their reads, their live queries and their PRAGMAs must say the same. `crew.rs`
//! starts the processes, `plain.rs` and `ours.rs` are their work (`reads.rs`, `writes.rs`, `watch.rs`), `asks.rs` what is
//! asked of all of them, `setup.rs` the files.

mod asks;
mod crew;
mod ours;
mod plain;
mod reads;
mod setup;
mod watch;
mod writes;

use rand::RngExt;
use rand::rngs::StdRng;

use super::Act;
use crate::checks;
use crate::finding::Finding;
use crate::round::Round;
use asks::Expected;
use crew::{Crew, Order};
use setup::Setup;

pub(crate) const ACT: Act = Act {
    name: "attached",
    about: "attached files, read and watched while other processes commit to one of them alone",
    round,
    parts: &[(OURS, ours::part), (PLAIN, plain::part)],
};

const OURS: &str = "attached-ours";
const PLAIN: &str = "attached-plain";
/// What no round may be without.
const NEVER_ZERO: [&str; 7] =
    ["commits", "schema changes", "live results", "PRAGMAs compared", "reads", "snapshots", "streams"];

fn round(round: &mut Round) -> Result<(), Finding> {
    let files = round.rng.random_range(2..=4);
    let setup = Setup { directory: round.directory().to_owned(), files };
    setup.make()?;
    let mut crew = Crew::new(&setup);
    for is_read_only in [true, false] {
        crew.joins(OURS, is_read_only, round.rng.random())?;
    }
    for _ in 0..round.rng.random_range(1..=2) {
        crew.joins(PLAIN, false, round.rng.random())?;
    }
    let mut turns = 0;
    while turns < 2 || round.goes_on() {
        // The first turn has all kinds of calls.
        let rests = turns > 0 && round.rng.random_bool(0.4);
        let order = work(&mut round.rng, &crew, files, rests);
        let counts = crew.obeys(&order)?;
        round.counts.merge(&counts);
        let expected = Expected::of(&setup, &mut round.rng)?;
        let counts = crew.obeys(&Order::Arrive(expected)).map_err(|finding| {
            let history = format!("after {order:?}\n{}", finding.history);
            finding.with_history(history)
        })?;
        round.counts.merge(&counts);
        turns += 1;
    }
    let counts = crew.ends()?;
    round.counts.merge(&counts);
    round.counts.add("turns", turns);
    (0..files).try_for_each(|file| checks::is_sound(&setup.path(file)))?;
    for what in NEVER_ZERO {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round without {what}")));
        }
    }
    Ok(())
}

/// Returns the next work. Most often one process writes to one attached file and nothing else happens, since a commit to
/// another file may bring to light what a commit to this one should have.
fn work(rng: &mut StdRng, crew: &Crew, files: usize, rests: bool) -> Order {
    let file = match rng.random_range(0..4) {
        0 => None,
        1 => Some(0),
        _ => Some(rng.random_range(1..files)),
    };
    let writer = rng.random_bool(0.7).then(|| crew.some_writer(rng));
    Order::Work { millis: rng.random_range(20..400), file, writer, rests }
}
