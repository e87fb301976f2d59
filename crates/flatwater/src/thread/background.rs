//! Jobs that are not for the thread that has them: each has a helper thread for itself.
//!
//! Owns: giving a job its thread. Jobs that others wait for have a new thread, which may not wait for a reply itself.
//! Jobs that may wait, such as an opening, take a thread that waits a moment for the next one of them, since starting a
//! thread takes a large part of the time of an open; it keeps the name of its first job. Runs on any thread, for a
//! moment, and on the helpers. Invariants: a job never waits for another one, as it may block for long; if no thread
//! can be started, the caller knows, and does without. One lock guards the jobs that are left to waiting threads, and
//! is never held while one runs. Leaves out: what the jobs do; workers, which serve many requests (`start`).

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::lock;
use super::start::{start, start_worker};

/// How long a thread waits for another job that may wait, and how many do.
const WAIT: Duration = Duration::from_secs(1);
const MOST: usize = 2;

#[derive(Default)]
struct Lingering {
    /// At most as many as threads wait.
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    /// The waiting threads for which there is no job yet.
    free: usize,
}

static LEFT: PerProcess<Lingering> = PerProcess::new(Lingering::default);
/// Signalled for each job that is left to a waiting thread.
static ARRIVED: Condvar = Condvar::new();

/// Runs `job`, which must not wait for a reply. Calls `failed` if it panics, or if no thread can be started: then it returns
/// false.
pub(crate) fn run(name: &str, job: impl FnOnce() + Send + 'static, failed: impl Fn() + Copy + Send + 'static) -> bool {
    let job = move || catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| failed());
    let is_started = start_worker(name, job).is_ok();
    if !is_started {
        failed();
    }
    is_started
}

/// The same for a job that takes `value`.
///
/// # Errors
/// `value`, if no thread can be started.
pub(crate) fn run_with<T: Send + 'static>(name: &str, value: T, job: impl FnOnce(T) + Send + 'static) -> Result<(), T> {
    let take = |place: &Mutex<Option<T>>| lock(place).take();
    let place = Arc::new(Mutex::new(Some(value)));
    let taken = place.clone();
    let started = start_worker(name, move || {
        let _ = take(&taken).map(job);
    });
    match started {
        Ok(_) => Ok(()),
        Err(_) => take(&place).map_or(Ok(()), Err),
    }
}

/// Runs a job that may block, and wait for replies.
///
/// # Errors
/// The system's error, if no thread can be started. `job` is dropped then.
pub(crate) fn run_waiting(name: &str, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut left = LEFT.lock();
    if left.free > 0 {
        left.free -= 1;
        left.jobs.push_back(Box::new(job));
        drop(left);
        ARRIVED.notify_one();
        return Ok(());
    }
    drop(left);
    start(name, move || {
        job();
        while let Some(job) = next() {
            job();
        }
    })?;
    Ok(())
}

/// Waits for a job. `None`: the thread ends.
fn next() -> Option<Box<dyn FnOnce() + Send>> {
    let mut left = LEFT.lock();
    if left.free >= MOST {
        return None;
    }
    left.free += 1;
    let waited = ARRIVED.wait_timeout_while(left, WAIT, |left| left.jobs.is_empty());
    let (mut left, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let job = left.jobs.pop_front();
    if job.is_none() {
        left.free -= 1;
    }
    job
}

/// Drops a large value on another thread, as giving its memory back takes long; here if none can be started.
pub fn dispose<T: Send + 'static>(large: T) {
    // If no thread can be started, the closure is dropped here, and the value with it.
    let _ = run_waiting("fw-dispose", move || drop(large));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use crate::thread::block_on::must_not_block;

    use super::*;

    #[test]
    fn a_job_that_waits_holds_up_no_other() {
        let (release, blocked) = channel::<()>();
        let (done, all) = channel();
        let first = done.clone();
        run_waiting("fw-test", move || {
            blocked.recv().unwrap();
            first.send(0).unwrap();
        })
        .unwrap();
        for number in 1..20 {
            let done = done.clone();
            run_waiting("fw-test", move || done.send(number).unwrap()).unwrap();
        }
        let mut others: Vec<_> = (1..20).map(|_| all.recv().unwrap()).collect();
        others.sort_unstable();
        assert!(others.into_iter().eq(1..20));
        release.send(()).unwrap();
        assert_eq!(all.recv(), Ok(0));
    }

    #[test]
    fn a_job_that_panics_ends_its_own_thread_only() {
        let (done, all) = channel();
        for number in 0..50 {
            let done = done.clone();
            let job = move || {
                done.send(number).unwrap();
                assert!(number % 7 != 0, "one of those that panic");
            };
            run_waiting("fw-test", job).unwrap();
        }
        assert_eq!((0..50).map(|_| all.recv().unwrap()).sum::<i32>(), (0..50).sum::<i32>());
    }

    #[test]
    fn only_a_job_that_waits_may_do_so() {
        let (tell, told) = channel();
        let waits = tell.clone();
        run_waiting("fw-test", move || waits.send(must_not_block()).unwrap()).unwrap();
        assert!(!told.recv().unwrap());
        run_with("fw-test", tell.clone(), |tell| tell.send(must_not_block()).unwrap()).unwrap();
        assert!(told.recv().unwrap());
        assert!(run("fw-test", move || tell.send(must_not_block()).unwrap(), || {}));
        assert!(told.recv().unwrap());
    }

    #[test]
    fn the_panic_of_a_job_is_told() {
        static FAILED: Mutex<bool> = Mutex::new(false);
        assert!(run("fw-test", || panic!("expected"), || *FAILED.lock().unwrap() = true));
        while !*FAILED.lock().unwrap() {
            std::thread::yield_now();
        }
    }
}
