//! What the load of a round does: its settings, and what each step of each task writes. All of it is derived from the
//! seed, so that the reader of an image knows what it must contain.
//!
//! Owns: the plan, the schema, and the content of a step. Leaves out: executing it (`load`), finding it again
//! (`judge`).

use std::path::Path;

use flatwater::Options;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::plain;

pub(crate) const MAIN: &str = "main.db";
pub(crate) const SIDE: &str = "side.db";
pub(crate) const ACCOUNTS: u64 = 20;

/// Each commit appends to the ledger; everything else follows from the ledger.
pub(crate) const MAIN_SCHEMA: &str = "
    CREATE TABLE ledger (n INTEGER PRIMARY KEY, task, step, part, parts, filler BLOB);
    CREATE INDEX by_task ON ledger (task, step, part);
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents NOT NULL);
    CREATE TABLE bodies (task INTEGER PRIMARY KEY, body BLOB);
    INSERT INTO accounts
        WITH RECURSIVE ids (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids WHERE id < 19) SELECT id, 0 FROM ids;
";
pub(crate) const SIDE_SCHEMA: &str = "CREATE TABLE side_ledger (n INTEGER PRIMARY KEY, task, step, filler BLOB)";

/// The settings of one load.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    seed: u64,
    pub(crate) is_full: bool,
    pub(crate) tasks: u64,
    /// How many loads follow each other, each on an image of the power failure before it.
    pub(crate) lives: u32,
    /// How often a load opens the database.
    pub(crate) phases: u64,
    /// Whether plain SQLite creates the databases before the load begins.
    pub(crate) is_made_before: bool,
    pub(crate) has_side: bool,
    /// Whether the attached file is in a rollback journal mode.
    pub(crate) side_has_journal: bool,
    filler: u64,
    is_managed: bool,
    has_groups: bool,
    /// Whether some writes to a WAL are reported as failed although they were made.
    pub(crate) writes_fail: bool,
    /// Whether some syncs of the WAL fail.
    pub(crate) syncs_fail: bool,
    /// Whether the files are encrypted. Only with the feature `sqlcipher`.
    pub(crate) is_encrypted: bool,
}

/// What one step writes in addition to its rows of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// One row. The write may run inline.
    Row,
    /// A batch that moves cents from one account to another.
    Move,
    /// The same as a transaction, with a nested one that is rolled back.
    Transaction,
    /// Several rows of the ledger.
    Many(u64),
    /// A long body that replaces the task's previous one.
    Body,
    /// Creates the task's own table, or drops it if it exists.
    Schema,
    /// Also a row in the attached file.
    Side,
}

impl Plan {
    #[cfg(test)]
    pub(crate) fn without_side(self) -> Self {
        Self { has_side: false, ..self }
    }

    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0070_6f77_6572);
        let is_full = rng.random_bool(0.5);
        let has_side = rng.random_bool(0.35);
        let side_has_journal = has_side && is_full && rng.random_bool(0.3);
        Self {
            seed,
            is_full,
            tasks: [1, 2, 4, 12][rng.random_range(0..4)],
            lives: rng.random_range(1..=2),
            phases: rng.random_range(1..=4),
            is_made_before: rng.random_bool(0.5),
            has_side,
            // With `normal`, SQLite guarantees less for a rollback journal than this act checks.
            side_has_journal,
            filler: [0, 200, 3_000][rng.random_range(0..3)],
            is_managed: rng.random_bool(0.8),
            has_groups: rng.random_bool(0.8),
            writes_fail: !side_has_journal && rng.random_bool(0.4),
            // With `normal`, a failed sync loses writes that were acknowledged before.
            syncs_fail: is_full && !has_side && rng.random_bool(0.4),
            is_encrypted: cfg!(feature = "sqlcipher") && rng.random_bool(0.8),
        }
    }

    /// Returns whether a write may fail with an error of the disk.
    pub(crate) fn fails(&self) -> bool {
        self.writes_fail || self.syncs_fail
    }

    pub(crate) fn options(&self, directory: &Path) -> Options {
        let durability = if self.is_full { Durability::Full } else { Durability::Normal };
        let mut options = Options::new(directory.join(MAIN)).durability(durability);
        options = if self.is_managed {
            options.checkpoint(Checkpoint::Managed(
                CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20),
            ))
        } else {
            options.checkpoint(Checkpoint::External)
        };
        if !self.has_groups {
            options = options.tuning(|t| t.no_group());
        }
        if self.is_encrypted {
            options = options.key(plain::key());
        }
        if self.has_side {
            options = options.tuning(|t| t.attach("side", directory.join(SIDE)));
        }
        options
    }

    /// Returns what a step of a task does.
    pub(crate) fn step(&self, task: u64, step: u64) -> Step {
        match hash(&[self.seed, task, step]) % 100 {
            0..45 => Step::Row,
            45..60 => Step::Move,
            60..70 => Step::Transaction,
            70..80 => Step::Many(2 + step % 4),
            80..85 => Step::Body,
            85..88 => Step::Schema,
            _ if self.has_side => Step::Side,
            _ => Step::Row,
        }
    }

    /// Returns how many rows of the ledger a step has.
    pub(crate) fn parts(&self, task: u64, step: u64) -> u64 {
        if let Step::Many(parts) = self.step(task, step) { parts } else { 1 }
    }

    /// Returns the account to take from, the account to give to, and the amount.
    pub(crate) fn moves(&self, task: u64, step: u64) -> (u64, u64, i64) {
        let hash = hash(&[self.seed, task, step, 1]);
        (hash % ACCOUNTS, (hash >> 8) % ACCOUNTS, (hash >> 16) as i64 % 1_000)
    }

    pub(crate) fn filler(&self, task: u64, step: u64, part: u64) -> Vec<u8> {
        let length = hash(&[self.seed, task, step, part, 2]) % (self.filler + 1);
        bytes(hash(&[self.seed, task, step, part, 3]), length)
    }

    /// Returns the body of a step.
    pub(crate) fn body(&self, task: u64, step: u64) -> Vec<u8> {
        let length = hash(&[self.seed, task, step, 4]) % 30_000;
        bytes(hash(&[self.seed, task, step, 5]), length)
    }
}

fn bytes(seed: u64, length: u64) -> Vec<u8> {
    (0..length.div_ceil(8)).flat_map(|at| hash(&[seed, at]).to_le_bytes()).take(length as usize).collect()
}

/// splitmix64 over all numbers.
fn hash(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state, number| {
        let state = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        state ^ (state >> 31)
    })
}
