//! Whether plain SQLite agrees with itself about a damaged file.
//!
//! It does not always. Of a cell that goes on behind the end of its page it reads what lies there in memory: its own notes
//! on the page, which have addresses in them. Two connections may read two things there, and Flatwater's lie elsewhere in
//! memory than the oracle's. So plain SQLite is asked again, with some of the questions left out; and once more with a check
//! for such cells, which tells whether one is in what was read. What it does not decide itself is nobody's error.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::answer::Answer;
use super::ask::Ask;
use super::plain::Plain;
use super::stranger::Stranger;
use super::way::Way;

/// How often it is asked again.
const TRIES: usize = 40;

/// Asks plain SQLite the last question again and again, each time on a new copy at `path` after the same writes, with other
/// bytes in the memory that is free. True if it answers otherwise than it did, or does where cells are checked.
pub(super) fn is_undecided(
    files: &Stranger,
    path: &Path,
    way: Way,
    asked: &[Ask],
    expected: &Answer,
    rng: &mut StdRng,
) -> bool {
    let differs = |answer: Option<Answer>| {
        answer.is_some_and(|again| again != *expected && !matches!(again, Answer::NotKnown(_)))
    };
    if differs(answer(files, path, || Plain::open_strict(path, way), asked, |_| true)) {
        return true;
    }
    (0..TRIES).any(|at| {
        litter(rng);
        // From a cache that has seen all that was read before, some of it, or nothing.
        let reads = [1.0, 0.0, 0.2, 0.7][at % 4];
        differs(answer(files, path, || Plain::open(path, way), asked, |_| rng.random_bool(reads)))
    })
}

/// The answer to the last of the questions, after all writes before and those reads that are wanted.
fn answer(
    files: &Stranger,
    path: &Path,
    open: impl FnOnce() -> Result<Plain, Answer>,
    asked: &[Ask],
    mut is_wanted: impl FnMut(&Ask) -> bool,
) -> Option<Answer> {
    let directory = path.parent()?;
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).ok()?;
    files.write(path).ok()?;
    let mut plain = match open() {
        Ok(plain) => plain,
        Err(refused) => return Some(refused),
    };
    let mut last = Answer::Done(0);
    for (at, ask) in asked.iter().enumerate() {
        if at + 1 == asked.len() || ask.is_write() || is_wanted(ask) {
            last = plain.ask(ask);
        }
    }
    plain.close();
    Some(last)
}

/// Leaves noise in memory that is free.
fn litter(rng: &mut StdRng) {
    let mut pieces = Vec::new();
    for _ in 0..rng.random_range(0..300) {
        let mut piece = vec![0; rng.random_range(1..9000)];
        rng.fill_bytes(&mut piece);
        pieces.push(piece);
    }
    drop(std::hint::black_box(pieces));
}
