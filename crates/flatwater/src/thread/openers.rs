//! The threads that open databases.
//!
//! Owns: the openings that wait for a thread, and starting the threads. A few threads wait a moment for the next opening,
//! since starting a thread takes a large part of the time of an open. Runs on the threads that call `open`, for a moment,
//! and on `fw-open`. Invariant: an opening never waits for another one: there is a thread for each, as opening may block
//! for long. One lock guards the state, and is never held while a database is opened. Leaves out: what opening does.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use flatwater_sqlite::PerProcess;

use super::park::start;

type Opening = Box<dyn FnOnce() + Send>;

/// How long a thread waits for another opening, and how many do.
const WAIT: Duration = Duration::from_secs(1);
const MOST: usize = 2;

#[derive(Default)]
struct Openers {
    /// At most as many as threads wait.
    openings: VecDeque<Opening>,
    /// The waiting threads for which there is no opening yet.
    free: usize,
}

static OPENERS: PerProcess<Openers> = PerProcess::new(Openers::default);
/// Signalled for each opening that is left to a waiting thread.
static LEFT: Condvar = Condvar::new();

/// Runs `opening` on a thread that may block.
///
/// # Errors
/// The system's error, if no thread can be started. `opening` is dropped then.
pub(crate) fn run(opening: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut openers = OPENERS.lock();
    if openers.free > 0 {
        openers.free -= 1;
        openers.openings.push_back(Box::new(opening));
        drop(openers);
        LEFT.notify_one();
        return Ok(());
    }
    drop(openers);
    start("fw-open", move || {
        opening();
        while let Some(opening) = next() {
            opening();
        }
    })?;
    Ok(())
}

/// Waits for an opening. `None`: the thread ends.
fn next() -> Option<Opening> {
    let mut openers = OPENERS.lock();
    if openers.free >= MOST {
        return None;
    }
    openers.free += 1;
    let waited = LEFT.wait_timeout_while(openers, WAIT, |openers| openers.openings.is_empty());
    let (mut openers, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let opening = openers.openings.pop_front();
    if opening.is_none() {
        openers.free -= 1;
    }
    opening
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_opening_that_blocks_holds_up_no_other() {
        let (release, blocked) = channel::<()>();
        let (done, all) = channel();
        let first = done.clone();
        run(move || {
            blocked.recv().unwrap();
            first.send(0).unwrap();
        })
        .unwrap();
        for number in 1..20 {
            let done = done.clone();
            run(move || done.send(number).unwrap()).unwrap();
        }
        let mut others: Vec<_> = (1..20).map(|_| all.recv().unwrap()).collect();
        others.sort_unstable();
        assert!(others.into_iter().eq(1..20));
        release.send(()).unwrap();
        assert_eq!(all.recv(), Ok(0));
    }

    #[test]
    fn an_opening_that_panics_ends_its_own_thread_only() {
        let (done, all) = channel();
        for number in 0..50 {
            let done = done.clone();
            let opening = move || {
                done.send(number).unwrap();
                assert!(number % 7 != 0, "one of those that panic");
            };
            run(opening).unwrap();
        }
        assert_eq!((0..50).map(|_| all.recv().unwrap()).sum::<i32>(), (0..50).sum::<i32>());
    }
}
