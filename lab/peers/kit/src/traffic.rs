//! Deterministic traffic: the same draws for every peer, machine and run.
//!
//! Owns: the generator, named so that a library's new default cannot change it, and the skewed choice of a chat. Leaves
//! out: what is done with a draw.

use anyhow::Result;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const SEED: u64 = 0x000f_1a70_a7e2;

/// A source of draws.
pub struct Traffic(Xoshiro256PlusPlus);

impl Default for Traffic {
    fn default() -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(SEED))
    }
}

impl Traffic {
    /// A number from 0 to below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        // As 64 bits, so that draws do not depend on the width of a pointer.
        self.0.random_range(0..bound as u64) as usize
    }

    /// A place of `zipf`'s.
    pub fn place(&mut self, zipf: &Zipf) -> usize {
        zipf.0.sample(&mut self.0)
    }
}

/// Places from 0 whose likelihood falls with their rank: the second is half as likely as the first, and so on.
pub struct Zipf(WeightedIndex<f64>);

impl Zipf {
    pub fn new(places: usize) -> Result<Self> {
        Ok(Self(WeightedIndex::new((1..=places).map(|rank| 1.0 / rank as f64))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_are_these_for_ever() {
        let mut traffic = Traffic::default();
        let draws: Vec<_> = (0..8).map(|_| traffic.below(1000)).collect();
        let zipf = Zipf::new(100).unwrap();
        let places: Vec<_> = (0..8).map(|_| traffic.place(&zipf)).collect();
        assert_eq!((draws, places), (vec![195, 968, 619, 593, 341, 700, 840, 256], vec![4, 46, 1, 2, 1, 29, 2, 67]));
    }

    #[test]
    fn the_first_place_is_drawn_most() {
        let (mut traffic, zipf) = (Traffic::default(), Zipf::new(100).unwrap());
        let mut drawn = [0; 100];
        (0..10_000).for_each(|_| drawn[traffic.place(&zipf)] += 1);
        assert!(drawn[0] > drawn[1] && drawn[1] > drawn[9] && drawn[9] > drawn[99], "{drawn:?}");
        assert_eq!(drawn.iter().sum::<usize>(), 10_000);
    }
}
