//! Whether plain SQLite agrees with itself about a damaged file.
//!
//! It does not always: of a cell that is said to go on behind the end of its page it reads what lies there in memory, and
//! that is its own notes on the page, which depend on what the connection did with it before. Flatwater reads with several
//! connections, each of which sees some of the questions. So plain SQLite is asked again with some of the questions left
//! out. What it does not decide itself is nobody's error.

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
/// bytes in the memory that is free. True if it answers otherwise than it did.
pub(super) fn is_undecided(
    files: &Stranger,
    path: &Path,
    way: Way,
    asked: &[Ask],
    expected: &Answer,
    rng: &mut StdRng,
) -> bool {
    (0..TRIES).any(|at| {
        litter(rng);
        // From a cache that has seen all that was read before, some of it, or nothing.
        let again = answer(files, path, way, asked, [1.0, 0.0, 0.2, 0.7][at % 4], rng);
        again.is_some_and(|again| again != *expected && !matches!(again, Answer::NotKnown(_)))
    })
}

fn answer(files: &Stranger, path: &Path, way: Way, asked: &[Ask], reads: f64, rng: &mut StdRng) -> Option<Answer> {
    let directory = path.parent()?;
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).ok()?;
    files.write(path).ok()?;
    let mut plain = match Plain::open(path, way) {
        Ok(plain) => plain,
        Err(refused) => return Some(refused),
    };
    let mut last = Some(Answer::Done(0));
    for (at, ask) in asked.iter().enumerate() {
        if at + 1 == asked.len() || ask.is_write() || rng.random_bool(reads) {
            last = Some(plain.ask(ask));
        }
    }
    plain.close();
    last
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
