//! Detects what no result shows: a panic on any thread of the process, and a step that never ends.
//!
//! Owns: the panic hook and a watchdog thread. If a step hangs, the watchdog ends the process with a message on stderr,
//! which the run turns into a finding. A crash is handled in the same way, because each step is printed there before it
//! begins.

use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::finding::Finding;

/// A call with a deadline of seconds returns long before this.
const HANGS: Duration = Duration::from_secs(60);
const HUNG: i32 = 3;

#[derive(Default)]
struct Seen {
    step: String,
    began: Option<Instant>,
    panics: Vec<String>,
    over: bool,
}

pub(super) struct Watch {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn new() -> Self {
        let seen: Arc<(Mutex<Seen>, Condvar)> = Arc::default();
        let hook = seen.clone();
        panic::set_hook(Box::new(move |what| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("without a name").to_owned();
            let said = format!("thread {name}: {what}\n{}", std::backtrace::Backtrace::force_capture());
            // If the panic is this program's own, the process may end with it.
            eprintln!("{said}");
            locked(&hook.0).panics.push(said);
        }));
        let looks = seen.clone();
        let thread = std::thread::spawn(move || look(&looks));
        Self { seen, thread: Some(thread) }
    }

    /// Records the step that begins now.
    pub(super) fn step(&self, step: impl Into<String>) {
        let mut seen = locked(&self.seen.0);
        (seen.step, seen.began) = (step.into(), Some(Instant::now()));
    }

    /// Prints the step that begins now, so that it is known if this process crashes.
    pub(super) fn announce(&self, what: &str) {
        eprintln!("{what}");
        self.step(what);
    }

    /// Returns a finding if there was a panic since the last call.
    pub(super) fn nobody_panicked(&self) -> Result<(), Finding> {
        let mut seen = locked(&self.seen.0);
        let panics = std::mem::take(&mut seen.panics);
        if panics.is_empty() {
            return Ok(());
        }
        Err(Finding::new(format!("{} panics", panics.len())).with_history(panics.join("\n")))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        locked(&self.seen.0).over = true;
        self.seen.1.notify_all();
        drop(self.thread.take().map(JoinHandle::join));
        if !std::thread::panicking() {
            drop(panic::take_hook());
        }
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(seen: &(Mutex<Seen>, Condvar)) {
    let mut now = locked(&seen.0);
    while !now.over {
        if now.began.is_some_and(|began| began.elapsed() > HANGS) {
            eprintln!("HANGS: not answered within {} s: {}", HANGS.as_secs(), now.step);
            std::process::exit(HUNG);
        }
        now = seen.1.wait_timeout(now, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_a_thread_that_nobody_asks_is_seen() {
        let watch = Watch::new();
        let _ = std::thread::spawn(|| panic!("planted")).join();
        let finding = watch.nobody_panicked().unwrap_err();
        assert!(finding.history.contains("planted"), "{}", finding.history);
        assert!(watch.nobody_panicked().is_ok());
    }
}
