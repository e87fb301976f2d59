//! Starting the threads of this crate.
//!
//! Owns: how a thread starts and ends. Runs on the thread that starts one, and on the new one. Invariants: no thread of the
//! process forks while one starts or ends; a worker has the mark of those that may not wait. Leaves out: what the threads do;
//! threads that do one job (`background`).

use std::cell::Cell;
use std::io;
use std::thread::{Builder, Thread};
use std::time::Duration;

use flatwater_sqlite::ThreadChange;

use super::block_on::is_ours;

/// When a thread could not be started, and there is work for it, try again after this time.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);

thread_local! {
    /// Dropped when the standard library has noted the end of the thread.
    static END: Cell<Option<ThreadChange>> = const { Cell::new(None) };
}

/// Starts a thread that must not wait for a reply, because others wait for it.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub(crate) fn start_worker(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    start(name, || {
        is_ours();
        body();
    })
}

/// Starts a thread that may wait for replies.
///
/// # Errors
/// The system's error, if no thread can be started. `body` is dropped then.
pub(crate) fn start(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
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
