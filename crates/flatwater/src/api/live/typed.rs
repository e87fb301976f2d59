//! The results of a live query as values of the caller's type.
//!
//! Owns: on which thread they are made. Runs on the thread that polls, and makes many values on a thread of their own.
//! Invariant: a result whose values were not yielded yet is yielded by the next call. Leaves out: taking results (`live`).

use super::{Live, LiveRows};
use crate::error::Result;
use crate::queue::reply::{reply, wake};
use crate::thread::background;
use crate::values::decoded::decode_shared;
use crate::values::from_row::FromRow;
use crate::workers::outbox::FEW;

impl Live {
    /// The same as [`next`](Self::next), with each row as a `T`. More than 256 rows are read as `T` on a separate
    /// thread. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`next`](Self::next); `Misuse` if a row cannot be read as a `T`.
    pub async fn next_as<T: FromRow + Send + 'static>(&mut self) -> Option<Result<Vec<T>>> {
        let rows = match self.next().await? {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        let read = if rows.len() > FEW {
            self.results.unread = Some(rows.clone());
            let read = read_elsewhere(&rows).await;
            self.results.unread = None;
            read
        } else {
            rows.read()
        };
        Some(read.map_err(|error| error.in_operation("live")))
    }
}

/// Reads every row on another thread, or here if none can be started.
async fn read_elsewhere<T: FromRow + Send + 'static>(rows: &LiveRows) -> Result<Vec<T>> {
    let (promise, reply) = reply();
    let shared = rows.rows.clone();
    let read = move || {
        // The values of a call that was dropped are dropped here; their code may panic.
        if let Ok(waker) = promise.fill(decode_shared::<T>(&shared)) {
            wake(waker);
        }
    };
    background::run("fw-decode", read, || {});
    // Without a thread there is no reply.
    match reply.await {
        Some(decoded) => decoded.get(),
        None => rows.read(),
    }
}
