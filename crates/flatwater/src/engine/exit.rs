//! The end of a process that has encrypted databases open.
//!
//! Owns: closing them before SQLCipher frees its memory. Runs on the thread that exits, and blocks it for a moment.
//! SQLCipher registers a handler that frees the keys and the heap of all connections (`sqlcipher_extra_shutdown`),
//! while threads still use them: a process would crash instead of ending. The handler here is called before that one.
//! Plain databases are left as they are: the next open recovers them. Invariant: the exit waits no longer than the
//! close of a database takes that has `WAIT`. Leaves out: closing one (`closing`).
//!
//! ```text
//! main thread                             fw-writer
//! drops the last handle, returns          closes the connections
//! exit: closes, or waits for the close
//!                                         the last connection is closed
//! exit: SQLCipher frees its memory
//! ```

use std::time::Duration;

use flatwater_sqlite::at_exit;

use super::Engine;
use super::registry::leave_those;
use crate::queue::reply::reply;
use crate::thread::current::{block_on, must_not_block};

/// How long work in progress may take before it is ended.
const WAIT: Duration = Duration::from_millis(200);

/// Called when an encrypted database was opened.
pub(super) fn close_at_exit() {
    at_exit(close_encrypted);
}

fn close_encrypted() {
    if must_not_block() {
        return;
    }
    let ends: Vec<_> = leave_those(Engine::is_encrypted)
        .into_iter()
        .map(|(engine, reservation)| {
            let (promise, ended) = reply();
            match reservation {
                Some(reservation) => {
                    engine.close(Some(promise), reservation, WAIT.min(engine.context.options.close_wait))
                }
                None => engine.when_closed(Some(promise)),
            }
            ended
        })
        .collect();
    ends.into_iter().for_each(|ended| drop(block_on(ended)));
}
