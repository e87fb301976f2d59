//! Act 7: files from untrusted sources. The act damages sound databases in many ways; Flatwater opens, reads and writes
//! them.
//!
//! Shows: no crash, no panic, no hang; clear errors; the same answers as plain SQLite to the same statements on an
//! equal copy; a file that is refused, or only read, is not changed.

mod again;
mod answer;
mod ask;
mod case;
mod damage;
mod names;
mod ours;
mod places;
mod plain;
mod sound;
mod stranger;
mod watch;
mod way;

use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use self::case::{Case, Place};
use self::damage::Target;
use self::sound::{Left, Sound};
use self::stranger::Stranger;
use self::watch::Watch;
use self::way::Way;
use super::Act;
use crate::finding::Finding;
use crate::round::{Counts, Round};

pub(crate) const ACT: Act = Act {
    name: "strangers",
    about: "damaged, foreign and hostile files: the answers of plain SQLite, or a clear error",
    round,
    parts: &[],
};

fn round(round: &mut Round) -> Result<(), Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let watch = Watch::new();
    let sounds = sounds(round)?;
    let mut place =
        Place { directory: round.path("case"), runtime: &runtime, watch: &watch, counts: Counts::default() };
    let odd = places::open_all(&place, &sounds[sounds.len() - 1].files)?;
    place.counts.add("unusual paths", odd);
    let mut ended = Ok(());
    // Until something was compared, however busy the machine is.
    while ended.is_ok() && (round.goes_on() || !place.counts.0.contains_key("compared answers")) {
        let seed = round.rng.random();
        ended = one_case(seed, &sounds, round.directory(), &mut place);
    }
    round.counts.merge(&place.counts);
    ended
}

/// Creates the databases of a round. Two have pages of the same size, so that the files of one can be put beside the
/// other.
fn sounds(round: &mut Round) -> Result<Vec<Sound>, Finding> {
    let scratch = round.directory().to_owned();
    let rng = &mut round.rng;
    let size = *[512, 1024, 4096, 4096, 8192, 65536].choose(rng).expect("there are some");
    [
        (Some(size), Left::WithWal),
        (Some(size), *[Left::WithWal, Left::WithHotJournal].choose(rng).expect("there are some")),
        (None, Left::WithHotJournal),
        (None, *[Left::InOrder, Left::InOrderInWalMode, Left::WithWal].choose(rng).expect("there are some")),
    ]
    .into_iter()
    .map(|(size, left)| sound::make(rng, &scratch, size, left))
    .collect()
}

/// Runs one damaged file. Everything random in it is derived from its own seed.
fn one_case(seed: u64, sounds: &[Sound], scratch: &Path, place: &mut Place<'_>) -> Result<(), Finding> {
    let rng = &mut StdRng::seed_from_u64(seed);
    let sound = sounds.choose(rng).expect("there are some");
    let mut target =
        Target { files: sound.files.clone(), pages: &sound.pages, others: sounds, scratch, asks: Vec::new() };
    let damage = damage::inflict(&mut target, rng);
    let way = Way::any(rng);
    let name = names::any(rng);
    if !names::has_room_beside(&name) {
        target.files = Stranger { main: target.files.main, ..Stranger::default() };
    }
    let about = format!("{}\ndamage: {}\nopened: {way:?}, as {name:?}", sound.about, damage.join("\ndamage: "));
    place.watch.announce(&format!("case {seed}\n{about}"));
    let case = Case { files: target.files, asks: target.asks, way, name };
    place.counts.add("damaged files", 1);
    case.run(place, rng).map_err(|finding| {
        let history = format!("{about}\n{}\n{}", kept(&case, seed), finding.history);
        finding.with_history(history)
    })
}

/// Keeps the damaged file for analysis, and returns where it is.
fn kept(case: &Case, seed: u64) -> String {
    let directory = std::env::temp_dir().join(format!("flatwater-stranger-{seed}"));
    let written = std::fs::create_dir_all(&directory).and_then(|()| case.files.write(&directory.join("stranger.db")));
    match written {
        Ok(()) => format!("the damaged file is kept in {}", directory.display()),
        Err(error) => format!("the damaged file could not be kept: {error}"),
    }
}
