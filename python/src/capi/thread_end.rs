//! Threads that the interpreter ends while they are within this package.
//!
//! Owns: what happens to them. Until Python 3.14 the interpreter ends a daemon thread, when it has ended itself and the
//! thread comes back for the lock, by unwinding its stack: through Rust, whose destructors would release objects, and the
//! lock, without having the lock. Invariants:
//! - when the exit handler of the package returns, no other thread is within a call, and none comes in again, so that there
//!   is nothing to unwind;
//! - a thread that is there all the same, because code of Python that a call runs did not return in time, waits for the
//!   end of the process, as it does from 3.14 on.
//!
//! ```text
//! main thread: exit handler                     daemon thread
//! ENDING is set                                 waits for a result, without the lock
//! closes every database, without the lock       its call is answered: closed
//! waits until INSIDE is 0                       takes the lock, makes the exception, leaves
//! returns; the interpreter ends                 catches it and calls again: refused, without running code of Python
//! ```
//!
//! Threads of the database call functions of Python. By the end of the exit handler none is within one, and none comes in
//! again: a function that is called then fails.

use std::mem::forget;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{ThreadId, current, panicking, park, sleep};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// How long the exit handler waits for code of Python that calls of other threads run.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK: Duration = Duration::from_micros(200);

/// How many calls are within the package, and may run code of Python. Changed with the interpreter's lock only.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// How many threads of the database are within a function of Python, or wait for the interpreter's lock.
static CALLED: AtomicUsize = AtomicUsize::new(0);
/// No thread of the database may touch the interpreter any more.
static GONE: AtomicBool = AtomicBool::new(false);
/// The process that loaded the module.
static PROCESS: PyOnceLock<u32> = PyOnceLock::new();
/// Set by the exit handler: its thread, and the exception for the others.
static ENDING: PyOnceLock<(ThreadId, Py<PyType>)> = PyOnceLock::new();

/// Runs `work` with the interpreter, on a thread that has its lock.
pub(super) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    Python::attach(|py| staying(|| work(py)))
}

/// Runs `work`, which may run code of Python. When the interpreter ends, raises on other threads than that of the exit
/// handler.
pub(crate) fn inside<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    if let Some((main, error)) = ENDING.get(py)
        && *main != current().id()
    {
        return Err(PyErr::from_type(error.bind(py).clone(), "the database is closed: the interpreter ends"));
    }
    let inside = Inside::enter();
    let done = staying(work);
    drop(inside);
    done
}

/// Runs `work` on a thread of the database, unless the interpreter has ended, which waits for it.
///
/// ```text
/// thread of the database                  exit handler
/// CALLED + 1                              GONE is set
/// looks at GONE                           waits until CALLED is 0
/// ```
pub(super) fn called_unless_gone<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Called;
    impl Drop for Called {
        fn drop(&mut self) {
            CALLED.fetch_sub(1, Ordering::SeqCst);
        }
    }
    CALLED.fetch_add(1, Ordering::SeqCst);
    let _called = Called;
    (!GONE.load(Ordering::SeqCst)).then(work)
}

/// Runs `work` with the interpreter, on a thread of this package, unless the interpreter has ended, which waits for it.
pub(crate) fn attached_unless_gone<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    called_unless_gone(|| Python::try_attach(|py| staying(|| work(py)))).flatten()
}

/// Called when the module is loaded.
pub(crate) fn load(py: Python<'_>) {
    let _ = PROCESS.set(py, std::process::id());
}

/// Begins the exit: from now on, `inside` raises `error` on other threads.
pub(crate) fn begin_exit(py: Python<'_>, error: Py<PyType>) {
    let _ = ENDING.set(py, (current().id(), error));
}

/// Waits until no call of another thread is within the package, nor a thread of the database within Python. In a forked
/// process those threads are not there.
pub(crate) fn wait_for_others(py: Python<'_>) {
    if PROCESS.get(py) != Some(&std::process::id()) {
        return;
    }
    let end = Instant::now() + PATIENCE;
    while INSIDE.load(Ordering::Relaxed) > 0 && Instant::now() < end {
        py.detach(|| sleep(LOOK));
    }
    GONE.store(true, Ordering::SeqCst);
    while CALLED.load(Ordering::SeqCst) > 0 && Instant::now() < end {
        py.detach(|| sleep(LOOK));
    }
}

/// One call within the package. A panic leaves it too.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs `work`. If its stack is unwound, and not by a panic, the thread waits for the end of the process.
pub(super) fn staying<T>(work: impl FnOnce() -> T) -> T {
    let stays = Stays;
    let done = work();
    forget(stays);
    done
}

/// Is dropped only when the stack is unwound.
struct Stays;

impl Drop for Stays {
    fn drop(&mut self) {
        while !panicking() {
            park();
        }
    }
}
