//! One round of an act: its random numbers, its directory, what it counts, and what a finding is.
//!
//! Everything random in a round comes from its seed, so that the seed repeats it as far as threads allow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::gauge::Hold;

/// Something that must not be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What is wrong, in a sentence.
    pub(crate) what: String,
    /// The shortest history that still shows it, or what is known of how it came about.
    pub(crate) history: String,
}

impl Finding {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), history: String::new() }
    }

    pub(crate) fn with_history(self, history: impl Into<String>) -> Self {
        Self { history: history.into(), ..self }
    }
}

impl<E: std::error::Error> From<E> for Finding {
    /// An error where none may be.
    fn from(error: E) -> Self {
        Self::new(format!("unexpected error: {error}"))
    }
}

/// What a round, or all rounds of an act, did: a word and how often.
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

/// What a process tells of a round, or of its share of one, in its last line.
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

    /// `None` if the process ended before it could tell.
    pub(crate) fn heard(said: &str) -> Option<Self> {
        serde_json::from_str(said.lines().last()?).ok()
    }
}

/// A round while it runs.
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) rng: StdRng,
    pub(crate) counts: Counts,
    /// The longest that a poll held the thread that made it, and what an idle thread saw meanwhile.
    pub(crate) hold: Hold,
    /// When a round should be over; a little later is no harm.
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

    /// Whether there is time for more.
    pub(crate) fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    pub(crate) fn count(&mut self, what: &str) {
        self.counts.add(what, 1);
    }

    /// A path in the round's own directory, which goes with it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}
