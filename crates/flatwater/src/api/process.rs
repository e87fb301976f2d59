//! What concerns all databases of the process: how many may have connections, and closing all of them.
//!
//! Owns: the call that closes them. Its work runs on a thread of its own, or on the caller's if that may block. Invariant: each
//! database is closed once, by this call or by its last handle. Leaves out: how one is closed (`engine::closing`).

use std::sync::Arc;
use std::time::Duration;

use crate::api::call::Call;
use crate::engine::dispatch::{Awaited, Submitted};
use crate::engine::handle::called_from_within;
use crate::engine::registry::{self, FileReservation};
use crate::engine::{Engine, parking};
use crate::error::Result;
use crate::queue::reply::reply;
use crate::thread::current::{block_on, in_closure, must_not_block};
use crate::workers::Answer;

/// Closes all database files that are open in this process at the same time, when a service with many databases ends.
/// For each file it does what [`Database::close`](crate::Database::close) does for the last handle: it executes the
/// writes submitted before, waits for open transactions, and rolls these back after `wait`, or after the database's
/// [`Options::close_wait`](crate::Options::close_wait) if that is shorter. The call returns at most two seconds later.
///
/// It also waits for closes that began earlier, as long as they take. Calls on the remaining handles return `Closed`,
/// except `close`, which succeeds. A file may be opened again afterwards. Databases in memory and on servers, and files that are being
/// opened, stay open. If the future is dropped after its first poll, the databases are still closed.
///
/// # Errors
/// `Busy` if a closure or a statement of a file does not end, with its name; the other files are closed. `Misuse`
/// inside a closure on a connection, where it would deadlock, and `Io` if no thread can be started; nothing is closed
/// then.
///
/// ```
/// # async fn example() -> flatwater::Result<()> {
/// flatwater::process::close_all(std::time::Duration::from_secs(3)).await?;
/// # Ok(()) }
/// ```
#[doc(alias = "shutdown")]
pub fn close_all(wait: Duration) -> Call<()> {
    let start = move |may_block| {
        if in_closure() || may_block && must_not_block() {
            return Err(called_from_within());
        }
        Submitted::blocking(may_block, Awaited::Close, move || close_every_file(wait))
    };
    Call::starting(None, "close_all", Box::new(start), |answer, _| answer.done())
}

/// Sets how many databases of the process may have connections at a time; 0 counts as 1. Beyond that, Flatwater closes
/// the connections of the least recently used databases, and the next call on one of them opens them again: the
/// databases stay open, and their handles valid. A call that needs connections while twice as many databases have some
/// waits until others are closed, up to its deadline, unless transactions, snapshots or cursors are open in all of
/// them. Default 64. Does not block.
#[doc(alias = "max_open")]
pub fn set_max_open(databases: usize) {
    parking::set_max_open(databases);
}

/// Closes every open file, and returns the first error when all are closed. Blocks.
fn close_every_file(wait: Duration) -> Result<Answer> {
    let close = |(engine, reservation): (Arc<Engine>, Option<FileReservation>)| {
        let (promise, ended) = reply();
        match reservation {
            Some(reservation) => engine.close(Some(promise), reservation, wait.min(engine.context.options.close_wait)),
            None => engine.when_closed(Some(promise)),
        }
        ended
    };
    let ends: Vec<_> = registry::leave_all().into_iter().map(close).collect();
    let answers: Vec<_> = ends.into_iter().filter_map(block_on).collect();
    answers.into_iter().find(Result::is_err).unwrap_or(Ok(Answer::Done))
}
