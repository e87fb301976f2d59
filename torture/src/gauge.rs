//! How long a poll blocks the thread that makes it: act 5, which runs inside the other acts.
//!
//! Owns: the longest wall time and CPU time of one poll, and two controls that show what the machine does to a thread: the
//! longest delay of one that repeatedly sleeps for a millisecond, and the longest write of a page to a file of its own, on
//! the disk on which the acts have theirs. A long poll is a finding only if neither explains it; the finding then says in
//! which functions of the kernel its thread was seen to wait.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// The longest a poll may take beyond the delays of the controls.
const TOO_LONG: Duration = Duration::from_millis(500);
/// A poll that takes longer is looked at, once.
const LOOKED_AT: Duration = Duration::from_millis(200);
const NAP: Duration = Duration::from_millis(1);
/// The control's file gets no longer than this.
const FILE_BYTES: u64 = 1 << 20;

/// The longest times, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) polls: u64,
    pub(crate) wall_us: u64,
    pub(crate) cpu_us: u64,
    pub(crate) idle_us: u64,
    #[serde(default)]
    pub(crate) disk_us: u64,
}

impl Hold {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.polls += other.polls;
        self.wall_us = self.wall_us.max(other.wall_us);
        self.cpu_us = self.cpu_us.max(other.cpu_us);
        self.idle_us = self.idle_us.max(other.idle_us);
        self.disk_us = self.disk_us.max(other.disk_us);
    }
}

/// Measures polls from its creation until it is read.
pub(crate) struct Gauge {
    longest: Arc<Longest>,
    controls: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Longest {
    polls: AtomicU64,
    wall_us: AtomicU64,
    cpu_us: AtomicU64,
    idle_us: AtomicU64,
    disk_us: AtomicU64,
    over: AtomicBool,
    /// The polls that run now, of all threads.
    running: Mutex<Vec<Running>>,
    /// What was seen of the last one that was looked at.
    seen: Mutex<String>,
}

/// A poll that runs.
struct Running {
    thread: Pid,
    began: Instant,
    is_looked_at: bool,
}

/// A future that measures its polls.
pub(crate) struct Gauged<F> {
    future: Pin<Box<F>>,
    longest: Arc<Longest>,
}

impl Gauge {
    pub(crate) fn new() -> Self {
        let longest = Arc::<Longest>::default();
        let (idle, disk) = (longest.clone(), longest.clone());
        // Opened here: who counts descriptors when this returns counts it.
        let file = tempfile::tempfile();
        let controls = vec![std::thread::spawn(move || idle.sleep()), std::thread::spawn(move || disk.write(file))];
        Self { longest, controls }
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
            disk_us: read(&self.longest.disk_us),
        };
        into.merge(&hold);
        // Both times must be long: a busy machine does not increase CPU time, and a wait increases only wall time.
        if hold.wall_us > micros(TOO_LONG) + 2 * hold.idle_us.max(hold.disk_us) {
            return Err(Finding::new(format!(
                "a poll held its thread for {} us ({} us of CPU at most), where an idle thread was held up {} us, and a \
                 write to another file {} us; the thread was last seen in: {}",
                hold.wall_us,
                hold.cpu_us,
                hold.idle_us,
                hold.disk_us,
                lock(&self.longest.seen)
            )));
        }
        Ok(())
    }

    fn stop(&mut self) {
        self.longest.over.store(true, Ordering::Relaxed);
        for control in self.controls.drain(..) {
            // The controls do not panic.
            let _ = control.join();
        }
    }
}

impl Longest {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The control for the machine.
    fn sleep(&self) {
        while !self.is_over() {
            let began = Instant::now();
            std::thread::sleep(NAP);
            self.idle_us.fetch_max(micros(began.elapsed().saturating_sub(NAP)), Ordering::Relaxed);
            self.look();
        }
    }

    /// Notes where the threads of long polls wait.
    fn look(&self) {
        for poll in lock(&self.running).iter_mut() {
            if !poll.is_looked_at && poll.began.elapsed() > LOOKED_AT {
                poll.is_looked_at = true;
                *lock(&self.seen) = seen(poll.thread);
            }
        }
    }

    /// The control for the disk. Failing writes do not count: an act may make them fail.
    fn write(&self, file: io::Result<File>) {
        let Ok(mut file) = file else { return };
        let mut written = 0;
        while !self.is_over() {
            let began = Instant::now();
            if file.write_all(&[0; 4096]).is_ok() {
                self.disk_us.fetch_max(micros(began.elapsed()), Ordering::Relaxed);
                written += 4096;
            }
            if written >= FILE_BYTES && file.set_len(0).and_then(|()| file.rewind()).is_ok() {
                written = 0;
            }
            std::thread::sleep(NAP);
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
        let (thread, began, cpu) = (gettid(), Instant::now(), thread_cpu());
        lock(&self.longest.running).push(Running { thread, began, is_looked_at: false });
        let poll = self.future.as_mut().poll(context);
        let (wall, cpu) = (began.elapsed(), thread_cpu().saturating_sub(cpu));
        // A poll inside of this one has ended before it.
        let mut running = lock(&self.longest.running);
        if let Some(at) = running.iter().rposition(|poll| poll.thread == thread) {
            running.remove(at);
        }
        drop(running);
        self.longest.polls.fetch_add(1, Ordering::Relaxed);
        self.longest.wall_us.fetch_max(micros(wall), Ordering::Relaxed);
        self.longest.cpu_us.fetch_max(micros(cpu), Ordering::Relaxed);
        poll
    }
}

/// Returns in which function of the kernel a thread waits, with those who called it if this process may read them.
fn seen(thread: Pid) -> String {
    let read = |name| std::fs::read_to_string(format!("/proc/self/task/{thread}/{name}")).unwrap_or_default();
    let [stack, function, call] = ["stack", "wchan", "syscall"].map(read);
    format!("{function} (system call {}) {}", call.trim(), stack.replace('\n', " "))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the CPU time of this thread.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Gauge, NAP, lock};

    #[test]
    fn a_long_poll_is_looked_at_while_it_lasts() {
        let gauge = Gauge::new();
        let longest = gauge.longest.clone();
        let poll = gauge.watch(async move {
            while lock(&longest.seen).is_empty() {
                std::thread::sleep(NAP);
            }
        });
        futures_util::FutureExt::now_or_never(poll).expect("it ends in its first poll");
        assert!(lock(&gauge.longest.seen).contains("system call"), "{}", lock(&gauge.longest.seen));
        assert!(lock(&gauge.longest.running).is_empty());
    }
}
