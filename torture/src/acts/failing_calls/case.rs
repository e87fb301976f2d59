//! A case: a plan and a load. A finding contains both, so that it can be repeated and shrunk.

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::plan::Plan;

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Load {
    /// Writes of one row, one after the other.
    Inline,
    /// Writes of one row, many at once.
    Group,
    /// Several statements, all or nothing.
    Batch,
    /// One statement with many rows of parameters.
    Many,
    /// A transaction with a savepoint, which may be rolled back.
    Transaction,
    /// A closure on the writer's connection.
    Closure,
    /// A write from a thread without a runtime.
    Blocking,
    /// One commit that covers the main and the attached file.
    Both,
    /// A write with a deadline of a few milliseconds.
    Deadline,
    Read,
    Checkpoint,
    /// Copies the database.
    Backup,
    /// Closes the database and opens it again.
    Reopen,
}

pub(super) const LOADS: [Load; 13] = [
    Load::Inline,
    Load::Group,
    Load::Batch,
    Load::Many,
    Load::Transaction,
    Load::Closure,
    Load::Blocking,
    Load::Both,
    Load::Deadline,
    Load::Read,
    Load::Checkpoint,
    Load::Backup,
    Load::Reopen,
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) plan: Plan,
    /// The seed of the load's random numbers.
    pub(super) seed: u64,
    pub(super) loads: Vec<Load>,
    pub(super) steps: u32,
    /// Whether durability is `full`.
    pub(super) full: bool,
    /// Whether there is an attached file.
    pub(super) attached: bool,
    /// Whether pages are read from a memory mapping.
    pub(super) mapped: bool,
    /// Whether calls already fail during the open, not only after it.
    pub(super) while_opening: bool,
}

impl Case {
    pub(super) fn random(rng: &mut StdRng, plan: Plan) -> Self {
        Self {
            plan,
            seed: rng.random_range(0..1_000_000_000),
            loads: LOADS.to_vec(),
            steps: rng.random_range(5..60),
            full: rng.random_bool(0.3),
            attached: rng.random_bool(0.6),
            mapped: rng.random_bool(0.3),
            while_opening: rng.random_bool(0.5),
        }
    }

    /// Returns shorter cases that may show the same finding, the shortest first.
    pub(super) fn shorter(&self) -> Vec<Self> {
        let mut all = Vec::new();
        if self.steps > 1 {
            all.push(Self { steps: self.steps / 2, ..self.clone() });
        }
        if self.loads.len() > 1 {
            let halves = self.loads.split_at(self.loads.len() / 2);
            all.extend([halves.0, halves.1].map(|loads| Self { loads: loads.to_vec(), ..self.clone() }));
            let without = |load: &Load| self.loads.iter().copied().filter(|other| other != load).collect();
            all.extend(self.loads.iter().map(|load| Self { loads: without(load), ..self.clone() }));
        }
        if self.attached {
            all.push(Self { attached: false, ..self.clone() });
        }
        all
    }
}
