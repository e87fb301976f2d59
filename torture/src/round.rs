//! One round of an act: its random numbers, its directory, its counts, and its findings.
//!
//! Everything random in a round is derived from its seed, so the same seed repeats the round as far as thread timing
//! allows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::gauge::Hold;

/// What a round, or all rounds of an act, did: a count per word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts(pub(crate) BTreeMap<String, u64>);

impl Counts {
    pub(crate) fn add(&mut self, what: &str, count: u64) {
        if let Some(so_far) = self.0.get_mut(what) {
            *so_far += count;
        } else {
            self.0.insert(what.to_owned(), count);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            self.add(what, *count);
        }
    }
}

/// The result of a round, or of one process of it, which the process prints as its last line.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) counts: Counts,
    pub(crate) hold: Hold,
    pub(crate) finding: Option<Finding>,
}

impl Told {
    pub(crate) fn tell(&self) {
        println!("{}", serde_json::to_string(self).expect("counts and texts are JSON"));
    }

    /// Parses the result; `None` if the process ended before it printed one.
    pub(crate) fn heard(said: &str) -> Option<Self> {
        serde_json::from_str(said.lines().last()?).ok()
    }
}

/// A running round.
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) rng: StdRng,
    pub(crate) counts: Counts,
    /// The longest time that a poll blocked its thread, and the longest delay of an idle thread meanwhile.
    pub(crate) hold: Hold,
    /// When the round should end. A small delay is harmless.
    pub(crate) until: Instant,
    directory: tempfile::TempDir,
}

impl Round {
    pub(crate) fn new(seed: u64, length: Duration) -> std::io::Result<Self> {
        Ok(Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
            counts: Counts::default(),
            hold: Hold::default(),
            until: Instant::now() + length,
            directory: tempfile::tempdir()?,
        })
    }

    /// Returns whether there is time left.
    pub(crate) fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    pub(crate) fn count(&mut self, what: &str) {
        self.counts.add(what, 1);
    }

    /// Returns a path in the round's own directory, which is deleted with the round.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}
