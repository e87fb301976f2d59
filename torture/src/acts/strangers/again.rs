//! Checks whether plain SQLite gives the same answer twice about a damaged file.
//!
//! It does not always do so. For a cell that extends beyond the end of its page, SQLite reads the memory behind the
//! page: its own bookkeeping for the page, which contains addresses. Two connections may read different values there,
//! and Flatwater's are at other addresses than the oracle's. So plain SQLite runs the questions again, without some of
//! them, and is asked whether there are such cells. A difference that plain SQLite shows with itself is not a finding.

use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::answer::Answer;
use super::ask::Ask;
use super::plain::Plain;
use super::stranger::Stranger;
use super::way::Way;

/// The number of repetitions.
const TRIES: usize = 40;

/// Asks plain SQLite the last question repeatedly, each time on a new copy at `path` after the same writes, with other
/// bytes in the free memory. Returns true if the answer differs from the first one, or if there are cells that extend
/// beyond the end of their page.
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
        // With a cache that has seen all previous reads, some of them, or none.
        let reads = [1.0, 0.0, 0.2, 0.7][at % 4];
        match replayed(files, path, way, asked, |_| rng.random_bool(reads)) {
            Some((Answer::NotKnown(_), _)) | None => false,
            Some((again, plain)) => again != *expected || plain.is_some_and(|mut plain| plain.has_cells_beyond_pages()),
        }
    })
}

/// Returns the answer to the last question, after all previous writes and a share of the reads, and the connection that
/// gave it.
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

/// Fills free memory with random bytes.
fn litter(rng: &mut StdRng) {
    let mut pieces = Vec::new();
    for _ in 0..rng.random_range(0..300) {
        let mut piece = vec![0; rng.random_range(1..9000)];
        rng.fill_bytes(&mut piece);
        pieces.push(piece);
    }
    drop(std::hint::black_box(pieces));
}
