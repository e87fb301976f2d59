//! The threads of this crate: starting them, a job on one that is not to hold up its caller, and how long one stays without work.
//!
//! Owns: how a thread starts and ends; the helpers that wait for another job, of which there are never more than `MOST`; the places of
//! threads that linger, over all databases, each of which is given back. Runs on the thread that starts one, and on the new one.
//! Invariants: no thread of the process forks while one starts or ends; a worker has the mark of those that may not wait; a job never
//! waits for another one, as it may block for long; if no thread can be started, the caller knows, and does without. One lock guards
//! the jobs that are left to waiting threads, and is never held while one runs. Leaves out: what the threads and the jobs do, and
//! how a worker is woken.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, Thread};
use std::time::Duration;

use flatwater_sqlite::{PerProcess, ThreadChange};

use super::current::is_ours;
use super::{cores, lock};

/// When a thread could not be started, and there is work for it, try again after this time.
pub const AGAIN: Duration = Duration::from_millis(50);

thread_local! {
    /// Dropped when the standard library has noted the end of the thread.
    static END: Cell<Option<ThreadChange>> = const { Cell::new(None) };
}

/// Starts a thread that must not wait for a reply, because others wait for it.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub fn start_worker(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    start(name, || {
        is_ours();
        body();
    })
}

/// Starts a thread that may wait for replies.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub fn start(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            END.set(Some(ThreadChange::begin()));
        }
    }
    let starts = ThreadChange::begin();
    let started = Builder::new().name(name.into()).spawn(move || {
        drop(starts);
        let _ends = Ends;
        body();
    });
    started.map(|handle| handle.thread().clone())
}

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
pub fn run(name: &str, job: impl FnOnce() + Send + 'static, failed: impl Fn() + Copy + Send + 'static) -> bool {
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
pub fn run_with<T: Send + 'static>(name: &str, value: T, job: impl FnOnce(T) + Send + 'static) -> Result<(), T> {
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
pub fn run_waiting(name: &str, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
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

/// How long a thread lingers that has a place. Starting a thread takes longer than waking one.
const LONG: Duration = Duration::from_secs(10);
/// Places for each core, and at least.
const PER_CORE: usize = 4;
const LEAST: usize = 16;

/// Places for threads that wait for commits of other processes, for as long as there are live queries.
const FOLLOWERS: usize = 8;

type Places = PerProcess<usize>;

static LINGERING: Places = PerProcess::new(|| 0);
static FOLLOWING: Places = PerProcess::new(|| 0);

/// The place of a thread that lingers, if it got one. Dropping it gives the place to another thread.
pub struct Linger {
    has_place: bool,
    of: &'static Places,
}

impl Linger {
    /// Takes a place, if there is one.
    pub fn begin() -> Self {
        let most = cores().map_or(LEAST, |cores| (cores * PER_CORE).max(LEAST));
        Self::among(&LINGERING, most)
    }

    /// The same for a thread that waits for commits of other processes. These places are apart, for such a thread keeps its
    /// place for long.
    pub fn follow() -> Self {
        Self::among(&FOLLOWING, FOLLOWERS)
    }

    fn among(of: &'static Places, most: usize) -> Self {
        Self { has_place: take(&mut of.lock(), most), of }
    }

    /// Returns true if it has a place.
    pub fn has_place(&self) -> bool {
        self.has_place
    }

    /// Returns how long the thread may wait for work.
    pub fn time(&self) -> Duration {
        if self.has_place { LONG } else { Duration::ZERO }
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        if self.has_place {
            **self.of.lock() -= 1;
        }
    }
}

fn take(taken: &mut usize, most: usize) -> bool {
    let is_free = *taken < most;
    *taken += usize::from(is_free);
    is_free
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::thread::current::must_not_block;

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
        let (sender, receiver) = channel();
        let waits = sender.clone();
        run_waiting("fw-test", move || waits.send(must_not_block()).unwrap()).unwrap();
        assert!(!receiver.recv().unwrap());
        run_with("fw-test", sender.clone(), |sender| sender.send(must_not_block()).unwrap()).unwrap();
        assert!(receiver.recv().unwrap());
        assert!(run("fw-test", move || sender.send(must_not_block()).unwrap(), || {}));
        assert!(receiver.recv().unwrap());
    }

    #[test]
    fn the_panic_of_a_job_is_reported() {
        static FAILED: Mutex<bool> = Mutex::new(false);
        assert!(run("fw-test", || panic!("expected"), || *FAILED.lock().unwrap() = true));
        while !*FAILED.lock().unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn there_are_so_many_places_and_no_more() {
        let mut taken = 0;
        assert_eq!((0..5).filter(|_| take(&mut taken, 3)).count(), 3);
        taken -= 1;
        assert!(take(&mut taken, 3) && !take(&mut taken, 3));
    }

    #[test]
    fn a_thread_with_a_place_waits_and_one_without_does_not() {
        // It took no place, so it gives none back.
        let with = std::mem::ManuallyDrop::new(Linger { has_place: true, of: &LINGERING });
        assert_eq!(with.time(), LONG);
        assert_eq!(Linger { has_place: false, of: &LINGERING }.time(), Duration::ZERO);
    }
}
