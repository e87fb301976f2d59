//! The setting of a history: the options of the database, the number of polling threads, the number of tasks.

use std::path::Path;
use std::time::Duration;

use flatwater::Options;
use flatwater::bindings::Internals as _;
use flatwater::options::{Checkpoint, CheckpointLimits, Durability, GroupLimits, Inline, InlineLimits};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// A setting, chosen at random for each history.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) tasks: usize,
    /// Whether two threads poll, instead of one.
    pub(super) two_threads: bool,
    pub(super) in_memory: bool,
    durability: Durability,
    readers: usize,
    queue: usize,
    group: Option<GroupLimits>,
    statement_cache: usize,
    inline: Inline,
    leases: bool,
    checkpoint: Checkpoint,
}

impl Setting {
    /// Returns a random setting for one task or for many.
    pub(super) fn random(rng: &mut StdRng, is_alone: bool) -> Self {
        let small = GroupLimits::default()
            .members(rng.random_range(2..5))
            .time(Duration::from_micros(rng.random_range(200..10_000)))
            .bytes(4096);
        let groups = [Some(GroupLimits::default()), Some(GroupLimits::default()), Some(small), None];
        let limits = |us, rows, bytes| {
            Inline::Auto(InlineLimits::default().time(Duration::from_micros(us)).rows(rows).bytes(bytes))
        };
        let inlines =
            [Inline::default(), Inline::default(), limits(5, 1, 200), limits(100_000, 9999, 1 << 20), Inline::Never];
        let small = Checkpoint::Managed(CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20));
        let pick = |from: &[usize], rng: &mut StdRng| *from.choose(rng).expect("a list with members");
        Self {
            tasks: if is_alone { 1 } else { pick(&[2, 3, 10, 30, 100, 300, 1000], rng) },
            two_threads: rng.random(),
            in_memory: rng.random_range(0..6) == 0,
            durability: if rng.random_range(0..4) == 0 { Durability::Full } else { Durability::Normal },
            readers: rng.random_range(1..5),
            queue: pick(&[1024, 1024, 16, 1], rng),
            group: groups[rng.random_range(0..groups.len())],
            statement_cache: pick(&[128, 128, 8, 1], rng),
            inline: inlines[rng.random_range(0..inlines.len())],
            leases: rng.random_range(0..4) > 0,
            checkpoint: if rng.random() { small } else { Checkpoint::default() },
        }
    }

    pub(super) fn options(&self, file: &Path) -> Options {
        let path = if self.in_memory { Path::new(":memory:") } else { file };
        // What is compared has no statistics.
        let options = Options::new(path)
            .optimize_every(None)
            .durability(self.durability)
            .readers(self.readers)
            .tuning(|t| t.queue(self.queue).statement_cache(self.statement_cache).inline(self.inline))
            .checkpoint(self.checkpoint)
            .tuning(|t| t.leases(self.leases));
        match self.group {
            Some(group) => options.tuning(|t| t.group(group)),
            None => options.tuning(|t| t.no_group()),
        }
    }

    /// Runs the future on a runtime with that many threads.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> std::io::Result<T> {
        let runtime = if self.two_threads {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?
        } else {
            tokio::runtime::Builder::new_current_thread().enable_time().build()?
        };
        Ok(runtime.block_on(future))
    }
}
