//! The settings for who listens to statements.
//!
//! Owns: their setters. Usable on any thread. Leaves out: the event, and when it is sent.

use std::sync::Arc;
use std::time::Duration;

use super::Options;
use super::tuning::Tuning;
use crate::events::statement_event::{Listener, StatementEvent};

impl Options {
    /// Calls `listener` once for each call that ends, with its SQL, its times and its outcome: for a log of queries, for
    /// metrics, or for a list of slow statements. Without a listener nothing is measured. Default: none.
    ///
    /// The listener runs on the thread that polls the call to its end, or drops it, before the call returns. A slow
    /// listener delays everything on that thread, and in a transaction all other writes. It may call the database;
    /// these calls are not reported. It must not wait for the database while its own task has a transaction, a snapshot
    /// or a stream open. If the listener holds a handle, the database stays open until
    /// [`close`](crate::Database::close). If it panics, the call still returns its result. To open the file again in
    /// this process, pass a clone of these options.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::events::StatementEvent;
    /// use flatwater::Options;
    ///
    /// let log = |event: &StatementEvent<'_>| println!("{:?} {}", event.total, event.sql.unwrap_or(event.operation));
    /// let db = Options::new("app.db").on_statement(log).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn on_statement(mut self, listener: impl Fn(&StatementEvent<'_>) + Send + Sync + 'static) -> Self {
        self.on_statement = Some(Listener::new(Arc::new(listener)));
        self
    }
}

impl Tuning {
    /// Sets the duration from which a call counts as slow: then [`is_slow`](StatementEvent::is_slow) is true, and its event for
    /// `tracing` has the level `warn` instead of `debug`. Default: no call is slow.
    pub fn slow_statement(mut self, limit: Duration) -> Self {
        self.0.slow_statement = Some(limit);
        self
    }
}
