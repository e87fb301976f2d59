//! Threads: how they start and what they stay for (`background`), what is known of the current one (`current`), how many are of use.
//!
//! Owns: the number of processors that the process may use, and locking a mutex. Any thread may ask for the number; the first one
//! blocks for a few reads of small files of the system. Leaves out: changes of it while the process runs.

pub mod background;
pub mod current;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::available_parallelism;

/// Returns the number of processors; `None` if the system does not tell. It is counted once, because on Linux this reads
/// the files of the process's control group.
pub fn cores() -> Option<usize> {
    static CORES: OnceLock<Option<usize>> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().ok().map(std::num::NonZero::get))
}

/// Locks the mutex, also after a panic in another thread: every critical section of this crate leaves its state
/// consistent.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
