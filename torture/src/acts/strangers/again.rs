//! Whether plain SQLite agrees with itself about a damaged file.
//!
//! It does not always. Of a cell that goes on behind the end of its page it reads what lies there in memory: its own notes
//! on the page, which have addresses in them. Two connections may read two things there, and Flatwater's lie elsewhere in
//! memory than the oracle's. So plain SQLite is asked again, with some of the questions left out, and whether there are such
//! cells. What it does not decide itself is nobody's error.

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
/// bytes in the memory that is free. True if it answers otherwise than it did, or tells of cells
/// behind the end of their page.
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
        let reads = [1.0, 0.0, 0.2, 0.7][at % 4];
        match replayed(files, path, way, asked, |_| rng.random_bool(reads)) {
            Some((Answer::NotKnown(_), _)) | None => false,
            Some((again, plain)) => again != *expected || plain.is_some_and(|mut plain| plain.has_cells_beyond_pages()),
        }
    })
}

/// The answer to the last of the questions, after all writes before and those reads that are wanted, and who gave it.
fn replayed(
    files: &Stranger,
    path: &Path,
    way: Way,
    asked: &[Ask],
    mut is_wanted: impl FnMut(&Ask) -> bool,
) -> Option<(Answer, Option<Plain>)> {
    let directory = path.parent()?;
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).ok()?;
    files.write(path).ok()?;
    let mut plain = match Plain::open(path, way) {
        Ok(plain) => plain,
        Err(refused) => return Some((refused, None)),
    };
    let mut last = Answer::Done(0);
    for (at, ask) in asked.iter().enumerate() {
        if at + 1 == asked.len() || ask.is_write() || is_wanted(ask) {
            last = plain.ask(ask);
        }
    }
    Some((last, Some(plain)))
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
