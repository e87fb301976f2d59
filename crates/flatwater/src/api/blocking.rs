//! Waiting for a call without a runtime.
//!
//! Owns: when a thread may block, and that it does the work itself if a connection is free. Runs on the caller's thread.
//! Invariant: a thread that could deadlock is refused. Leaves out: the states of the call (`call`).

use std::task::Poll;

use crate::api::call::Call;
use crate::engine::handle::called_from_within;
use crate::engine::opening::Opening;
use crate::error::{Error, Result};
use crate::inline::budget;
use crate::thread::block_on::{block_on, must_not_block};

impl<T, E: From<Error>> Call<T, E> {
    /// Blocks this thread until the call completes. Do not use it on a thread that runs an event loop. If a connection
    /// is free, this thread does the work.
    ///
    /// # Errors
    /// Returns the errors of the operation, and `Misuse` where this thread could deadlock: in a closure on a
    /// connection, or on a thread of the database.
    pub fn wait(mut self) -> Result<T, E> {
        if self.caller.is_some() && must_not_block() {
            return Err(called_from_within().in_operation(self.operation).into());
        }
        if self.is_new()
            && let Poll::Ready(answer) = self.begin(true, None)
        {
            budget::renew();
            return self.finish(answer);
        }
        let result = block_on(self);
        budget::renew();
        result
    }

    /// Blocks this thread, which opens a database, until the result is there. Whoever gives the opening up gives this call up.
    pub(crate) fn wait_within(mut self, opening: &Opening) -> Result<T, E> {
        if let Poll::Ready(answer) = self.begin(true, Some(opening)) {
            return self.finish(answer);
        }
        block_on(self)
    }
}
