//! The texts of one history.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::schema::{HOSTILE, READS, RETURNING, WRITES};

/// Few texts, so that each is used often. Without definitions among them, what was learnt about a text stays valid, so
/// its statements join groups and run inline.
pub(super) struct Palette {
    pub(super) writes: Vec<&'static str>,
    pub(super) hostile: Vec<&'static str>,
    pub(super) returning: Vec<&'static str>,
    pub(super) reads: Vec<&'static str>,
    pub(super) defines: bool,
}

impl Palette {
    pub(super) fn random(rng: &mut StdRng) -> Self {
        let is_whole = rng.random_range(0..3) == 0;
        let mut some = |from: &[&'static str], most: usize| -> Vec<&'static str> {
            let count = if is_whole { from.len() } else { rng.random_range(1..=most) };
            from.sample(rng, count).copied().collect()
        };
        Self {
            writes: some(WRITES, 8),
            hostile: some(HOSTILE, 2),
            returning: some(RETURNING, 3),
            reads: some(READS, 6),
            defines: rng.random(),
        }
    }
}
