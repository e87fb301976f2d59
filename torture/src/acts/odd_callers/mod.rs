//! Odd callers: many of them misuse the API at the same time, and the database must keep working.
//!
//! Owns: the round. A database is under an ordinary load, while threads run random pieces against it, each of which
//! breaks one rule of the API. Afterwards an ordinary write and read must succeed, the database must contain what its
//! callers were told, and the frame checks for leftovers in the process.

mod calls;
mod closures;
mod exits;
mod forking;
mod forks;
mod load;
mod openings;
mod runtimes;
mod scene;
mod threads;
mod transactions;
mod waiting;
mod wakers;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::acts::Act;
use crate::checks::is_sound;
use crate::finding::Finding;
use crate::round::{Counts, Round};
use load::Load;
use scene::Scene;
use waiting::finish;

pub(crate) const ACT: Act = Act {
    name: "odd-callers",
    about: "forks, misbehaving wakers, leaked and moved calls, closures that panic, dropped runtimes, sudden exits, many opens",
    round,
    parts: &[("odd-exit", exits::part), ("odd-forking", forking::part)],
};

/// One misuse of the API.
struct Piece {
    /// The rule it breaks.
    name: &'static str,
    run: fn(&Arc<Scene>, &mut StdRng) -> Result<(), Finding>,
}

impl Piece {
    const fn new(name: &'static str, run: fn(&Arc<Scene>, &mut StdRng) -> Result<(), Finding>) -> Self {
        Self { name, run }
    }
}

type Pieces = &'static [&'static [Piece]];

const PIECES: Pieces = &[
    calls::PIECES,
    closures::PIECES,
    exits::PIECES,
    openings::PIECES,
    runtimes::PIECES,
    threads::PIECES,
    transactions::PIECES,
    wakers::PIECES,
];

/// Pieces that leave something in their process until it ends, and ordinary pieces beside them.
const FORKING_PIECES: Pieces = &[
    forks::PIECES,
    calls::PIECES,
    forks::PIECES,
    openings::PIECES,
    forks::PIECES,
    closures::FORGETFUL_PIECES,
    threads::PIECES,
    transactions::PIECES,
    wakers::PIECES,
];

/// The share of rounds that run in a process that forks.
const FORKS: f64 = 0.25;
/// The number of threads that run pieces.
const MAKERS: usize = 3;
/// A piece that takes longer counts as hung. Each of its calls has its own, shorter limit.
const HANGS: Duration = Duration::from_secs(120);
/// After all pieces, an ordinary write and read must succeed within this time.
const LIVES: Duration = Duration::from_secs(30);

fn round(round: &mut Round) -> Result<(), Finding> {
    if round.rng.random_bool(FORKS) {
        return forking::round(round);
    }
    let directory = round.directory().to_owned();
    campaign(&directory, round.until, &mut round.rng, PIECES, &mut round.counts)
}

/// Runs random pieces against one database until the time is over.
fn campaign(
    directory: &Path,
    until: Instant,
    rng: &mut StdRng,
    pieces: Pieces,
    counts: &mut Counts,
) -> Result<(), Finding> {
    let scene = Arc::new(Scene::new(directory, rng)?);
    let load = Load::start(&scene, rng);
    let makers: Vec<_> = (0..MAKERS).map(|_| Maker::start(&scene, pieces, until, rng.random())).collect();
    let made = all_over(makers);
    // After a finding it is unknown what still runs; the process ends, and everything with it.
    let made = made.and_then(|()| scene.found_aside()).and_then(|()| load.stop()).and_then(|()| end(&scene));
    counts.merge(&scene.counts());
    counts.add("acknowledged writes", scene.ledger.count_acknowledged());
    made?;
    for what in ["misuses of the API", "calls", "acknowledged writes"] {
        if counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round without {what}")));
        }
    }
    Ok(())
}

/// Checks that the database still works, closes, and contains what its callers were told.
fn end(scene: &Scene) -> Result<(), Finding> {
    let (number, began) = (scene.ledger.begin(false), Instant::now());
    let wrote = finish("a plain write after all pieces", scene.db.execute(crate::writes::INSERT, (number,)))?;
    scene.note(number, &wrote)?;
    let read = "SELECT count(*) FROM t WHERE n = ?";
    let read = finish("a plain read after all pieces", scene.db.query_optional_value::<i64>(read, (number,)))??;
    if wrote.is_err() || read != Some(1) {
        return Err(Finding::new(format!("a plain write answered {wrote:?}, and its read {read:?}")));
    }
    if began.elapsed() > LIVES {
        return Err(Finding::new(format!("a plain write and read took {} s", began.elapsed().as_secs())));
    }
    finish("the last close", scene.db.close())??;
    scene.ledger.agrees_with(&crate::writes::rows(&scene.path)?)?;
    is_sound(&scene.path)
}

/// A thread that runs pieces until the time is over.
struct Maker {
    thread: JoinHandle<Result<(), Finding>>,
    takes: Arc<Mutex<(&'static str, Instant)>>,
}

impl Maker {
    fn start(scene: &Arc<Scene>, pieces: Pieces, until: Instant, seed: u64) -> Self {
        let takes = Arc::new(Mutex::new(("nothing", Instant::now())));
        let (scene, told) = (scene.clone(), takes.clone());
        let thread = thread::spawn(move || {
            let mut rng = StdRng::seed_from_u64(seed);
            while Instant::now() < until {
                let kind = pieces[rng.random_range(0..pieces.len())];
                let piece = &kind[rng.random_range(0..kind.len())];
                *told.lock().unwrap_or_else(PoisonError::into_inner) = (piece.name, Instant::now());
                take(piece, &scene, &mut rng)?;
                *told.lock().unwrap_or_else(PoisonError::into_inner) = ("nothing", Instant::now());
                scene.count("misuses of the API", 1);
            }
            Ok(())
        });
        Self { thread, takes }
    }
}

fn take(piece: &Piece, scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let taken = catch_unwind(AssertUnwindSafe(|| (piece.run)(scene, rng)));
    let named = |finding: Finding| {
        let history = format!("piece: {}\n{}", piece.name, finding.history);
        finding.with_history(history)
    };
    taken.unwrap_or_else(|panic| Err(Finding::new(format!("it panicked: {}", said(&*panic))))).map_err(named)
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Waits for all threads. A finding or a hang of one of them ends the wait at once.
fn all_over(mut makers: Vec<Maker>) -> Result<(), Finding> {
    while !makers.is_empty() {
        for maker in makers.extract_if(.., |maker| maker.thread.is_finished()).collect::<Vec<_>>() {
            maker.thread.join().unwrap_or_else(|panic| Err(Finding::new(said(&*panic))))?;
        }
        for maker in &makers {
            let (piece, since) = *maker.takes.lock().unwrap_or_else(PoisonError::into_inner);
            if piece != "nothing" && since.elapsed() > HANGS {
                return Err(Finding::new(format!("it hangs: {piece}")));
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
