//! The resources that a round must not leave behind in its process: descriptors, threads, locks, memory.
//!
//! They are recorded before and after the round. Threads end a moment after they were asked to, so the check waits for
//! all resources.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crate::finding::Finding;

/// After this time, threads and locks that still exist count as leftovers.
const PATIENCE: Duration = Duration::from_secs(30);
/// The memory that a round may keep: the allocator does not return all of what an act took for its images and
/// histories.
const MEMORY: u64 = 256 << 20;

/// The resources of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Belongings {
    /// The target of each open descriptor.
    descriptors: Vec<String>,
    threads: BTreeSet<String>,
    locks: usize,
    memory_bytes: u64,
}

impl Belongings {
    pub(crate) fn now() -> Self {
        Self { descriptors: descriptors(), threads: threads(), locks: locks(), memory_bytes: memory_bytes() }
    }

    /// Waits until no more resources exist than in `self`. Returns a finding if that does not happen.
    pub(crate) fn are_back(&self) -> Result<(), Finding> {
        let until = Instant::now() + PATIENCE;
        loop {
            let now = Self::now();
            let is_back = now.descriptors.len() <= self.descriptors.len()
                && now.threads.len() <= self.threads.len()
                && now.locks <= self.locks
                && now.memory_bytes <= self.memory_bytes + MEMORY;
            if is_back {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Finding::new("something is left after the round")
                    .with_history(format!("before: {self:?}\nafter: {now:?}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let led_to = |entry: fs::DirEntry| fs::read_link(entry.path()).ok().map(|path| path.display().to_string());
    let mut all: Vec<_> = entries.filter_map(led_to).filter(|path| !path.starts_with("/proc/")).collect();
    all.sort();
    all
}

/// All but the timer's thread, which never ends.
fn threads() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let named = |entry: fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        (name.trim() != "fw-timer").then(|| format!("{} {}", entry.file_name().to_string_lossy(), name.trim()))
    };
    entries.filter_map(named).collect()
}

/// Returns the number of file locks that belong to this process.
fn locks() -> usize {
    let own = std::process::id().to_string();
    let all = fs::read_to_string("/proc/locks").unwrap_or_default();
    all.lines().filter(|line| line.split_whitespace().nth(4) == Some(&own)).count()
}

fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
