//! How long a poll blocks the thread that makes it: act 5, which runs inside the other acts.
//!
//! Owns: the longest wall time and CPU time of one poll, and the longest delay of an idle thread that repeatedly sleeps
//! for a millisecond. That delay shows how the machine itself delays threads. A long poll is a finding only if the
//! machine does not explain it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::round::Finding;

/// The longest a poll may take beyond the delay of the idle thread.
const TOO_LONG: Duration = Duration::from_millis(500);
const NAP: Duration = Duration::from_millis(1);

/// The longest times, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) polls: u64,
    pub(crate) wall_us: u64,
    pub(crate) cpu_us: u64,
    pub(crate) idle_us: u64,
}

impl Hold {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.polls += other.polls;
        self.wall_us = self.wall_us.max(other.wall_us);
        self.cpu_us = self.cpu_us.max(other.cpu_us);
        self.idle_us = self.idle_us.max(other.idle_us);
    }
}

/// Measures polls from its creation until it is read.
pub(crate) struct Gauge {
    longest: Arc<Longest>,
    idle: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Longest {
    polls: AtomicU64,
    wall_us: AtomicU64,
    cpu_us: AtomicU64,
    idle_us: AtomicU64,
    over: AtomicBool,
}

/// A future that measures its polls.
pub(crate) struct Gauged<F> {
    future: Pin<Box<F>>,
    longest: Arc<Longest>,
}

impl Gauge {
    pub(crate) fn new() -> Self {
        let longest = Arc::<Longest>::default();
        let shared = longest.clone();
        let idle = std::thread::spawn(move || {
            while !shared.over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(NAP);
                shared.idle_us.fetch_max(micros(began.elapsed().saturating_sub(NAP)), Ordering::Relaxed);
            }
        });
        Self { longest, idle: Some(idle) }
    }

    /// Wraps a future to measure its polls.
    pub(crate) fn watch<F: Future>(&self, future: F) -> Gauged<F> {
        Gauged { future: Box::pin(future), longest: self.longest.clone() }
    }

    /// Adds the measured times to `into`. Returns a finding if a poll blocked its thread for long and the machine does
    /// not explain it.
    pub(crate) fn read(mut self, into: &mut Hold) -> Result<(), Finding> {
        self.stop();
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let hold = Hold {
            polls: read(&self.longest.polls),
            wall_us: read(&self.longest.wall_us),
            cpu_us: read(&self.longest.cpu_us),
            idle_us: read(&self.longest.idle_us),
        };
        into.merge(&hold);
        // Both times must be long: a busy machine does not increase CPU time, and a wait increases only wall time.
        if hold.wall_us > micros(TOO_LONG) + 2 * hold.idle_us {
            return Err(Finding::new(format!(
                "a poll held its thread for {} us ({} us of CPU at most), where an idle thread was held up {} us",
                hold.wall_us, hold.cpu_us, hold.idle_us
            )));
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.longest.over.store(true, Ordering::Relaxed);
        if let Some(idle) = self.idle.take() {
            // The idle thread cannot panic.
            let _ = idle.join();
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<F: Future> Future for Gauged<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let (began, cpu) = (Instant::now(), thread_cpu());
        let poll = self.future.as_mut().poll(context);
        let (wall, cpu) = (began.elapsed(), thread_cpu().saturating_sub(cpu));
        self.longest.polls.fetch_add(1, Ordering::Relaxed);
        self.longest.wall_us.fetch_max(micros(wall), Ordering::Relaxed);
        self.longest.cpu_us.fetch_max(micros(cpu), Ordering::Relaxed);
        poll
    }
}

/// Returns the CPU time of this thread.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
