//! What concerns all databases of the process: how many may have connections, and closing all of them.
//!
//! Owns: the call that closes them. Its work runs on a thread of its own, or on the caller's if that may block. Invariant: each
//! database is closed once, by this call or by its last handle. Leaves out: how one is closed (`engine::closing`).

use std::sync::Arc;
use std::time::Duration;

use crate::api::call::Call;
use crate::engine::Engine;
use crate::engine::dispatch::{Awaited, Submitted};
use crate::engine::handle::called_from_within;
use crate::engine::parking;
use crate::engine::registry::{self, FileReservation};
use crate::error::Result;
use crate::queue::reply::reply;
use crate::thread::block_on::{block_on, in_closure, must_not_block};
use crate::workers::Answer;

/// Closes every database file that is open in this process, all at the same time, whoever opened it: for the end of a
/// service with many databases, whose closes one after another would each take their own time. For each file it does what
/// [`Database::close`](crate::Database::close) does for the last handle: it executes the writes submitted before, waits for
/// open transactions, and rolls these back after `wait`, or after the database's
/// [`Options::close_wait`](crate::Options::close_wait) if that is shorter. The answer arrives at most two seconds later.
///
/// It also waits for files whose close has begun before, as long as that takes. Handles that are left refuse calls with
/// `Closed`, and closing them too is no error. A file may be opened again afterwards. Databases in memory, and files that are
/// just being opened, stay open. If the future is dropped after its first poll, the databases are closed all the same.
///
/// # Errors
/// `Busy`, with the name of the closure or statement that does not end, of the first file that has one; the other files are
/// closed. `Misuse` inside a closure on a connection, which would wait for itself, and `Io` if no thread can be started;
/// nothing is closed then.
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

/// Sets how many databases of the process may have connections at a time; 0 counts as 1. Beyond that, the connections of those
/// that were not used for longest are closed, and the next call on one of them opens them again: the databases stay open, and
/// their handles valid. A call that needs connections while twice as many databases have some waits until others are closed,
/// up to its deadline, unless transactions, snapshots or cursors are open in all of them. Default 64. Does not block.
#[doc(alias = "max_open")]
pub fn set_max_open(databases: usize) {
    parking::set_max_open(databases);
}

/// Closes every open file, and returns the first error when all are closed. Blocks.
fn close_every_file(wait: Duration) -> Result<Answer> {
    let close = |(engine, reservation): (Arc<Engine>, Option<FileReservation>)| {
        let (promise, ended) = reply();
        match reservation {
            Some(reservation) => engine.close(Some(promise), reservation, wait.min(engine.options.close_wait)),
            None => engine.when_closed(Some(promise)),
        }
        ended
    };
    let ends: Vec<_> = registry::leave_all().into_iter().map(close).collect();
    let answers: Vec<_> = ends.into_iter().filter_map(block_on).collect();
    answers.into_iter().find(Result::is_err).unwrap_or(Ok(Answer::Done))
}
