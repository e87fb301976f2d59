//! The check of all open files every few seconds.
//!
//! Owns: its tick, and the thread `fw-check`, which runs one check: it asks file systems, and may hang with one of them.
//! The tick is on the timer's thread, which asks no file system, so that no deadline waits for one. Invariants:
//! at most one check runs; while it hangs the tick goes on, and databases are parked. One lock guards the state, and is
//! never held while a file is checked. Leaves out: which files are open (`file_table`), and what is checked (`file::watch`).

use std::sync::Weak;
use std::time::{Duration, Instant};

use flatwater_sqlite::PerProcess;

use super::{file_table, parking};
use crate::file::guard;
use crate::file::second_library::mappings;
use crate::thread::background;
use crate::time::later;
use crate::time::recurring::Recurring;

/// How often all open files are checked.
const PERIOD: Duration = Duration::from_secs(3);

#[derive(Default)]
struct Check {
    ticks: Recurring,
    is_running: bool,
}

static CHECK: PerProcess<Check> = PerProcess::new(Check::default);

/// Called when a file is open: checks all open files from now on.
pub(super) fn begin() {
    CHECK.lock().ticks.by(next(), tick);
}

/// Called when a file was closed: stops the checks, if no file is open. They go on while something of closed files is
/// kept, because they retry to close it.
pub(super) fn end_if_unneeded() {
    // Before the lock: to read what is kept may wait for a file system.
    if guard::has_kept() {
        return;
    }
    let check = CHECK.lock();
    // Under the lock: a file that is opened from here on begins the checks after this.
    if !file_table::has_open() {
        check.ticks.end();
    }
}

fn next() -> Instant {
    later(Instant::now(), PERIOD)
}

/// Runs on the timer's thread.
fn tick() -> Option<Instant> {
    parking::look();
    run(&CHECK, || {
        look_at_all();
        end_if_unneeded();
    });
    Some(next())
}

/// Runs `look` on a thread of its own, unless the one before still runs. Does not block.
fn run(state: &'static PerProcess<Check>, look: impl FnOnce() + Send + 'static) {
    if std::mem::replace(&mut state.lock().is_running, true) {
        return;
    }
    let ended = || state.lock().is_running = false;
    let check = move || {
        look();
        ended();
    };
    // If no thread can be started, the next tick tries again.
    background::run("fw-check", check, ended);
}

/// Checks all open files. Blocks on their file systems.
fn look_at_all() {
    let mappings = mappings();
    // A check that hangs keeps no other engine than its own.
    for engine in file_table::open_engines().iter().filter_map(Weak::upgrade) {
        // `look` stores the error.
        let _ = engine.watch().map(|watch| watch.look(&mappings));
    }
    guard::close_kept();
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::time::timer;

    #[test]
    fn a_check_that_hangs_holds_up_no_alarm_and_no_other_check_begins() {
        static STATE: PerProcess<Check> = PerProcess::new(Check::default);
        let (begins, began) = channel();
        let (ends, ended) = channel::<()>();
        let hangs = move || {
            begins.send(()).unwrap();
            let _ = ended.recv();
        };
        let check = timer::at(Instant::now(), || run(&STATE, hangs));
        began.recv().unwrap();
        let (goes_off, went_off) = channel();
        let deadline = timer::at(Instant::now(), move || {
            run(&STATE, || panic!("the one before still runs"));
            goes_off.send(STATE.lock().is_running).unwrap();
        });
        assert!(went_off.recv_timeout(Duration::from_secs(60)).expect("the timer's thread is free"));
        drop((check, deadline, ends));
        while STATE.lock().is_running {
            std::thread::yield_now();
        }
    }
}
