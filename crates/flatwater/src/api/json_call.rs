//! The call that returns rows as JSON, and how it writes them.
//!
//! Owns: the options of one call. Runs on the thread that polls it. Invariant: what is set after the call has begun has no effect.
//! Leaves out: the call itself (`call`), writing the document (`encode::json`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::api::call::Call;
use crate::engine::opening::CancelOutcome;
use crate::workers::work::Work;
use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::error::Result;

/// The future of [`query_json`](crate::Session::query_json): a [`Call`] whose document can have another form.
///
/// ```no_run
/// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
/// // [["9223372036854775807","Ada"],[1,"Bob"]]
/// let users: String = db.query_json("SELECT id, name FROM users", ()).arrays().big_integers_as_strings().await?;
/// # Ok(()) }
/// ```
#[must_use = "a call begins when it is awaited"]
pub struct JsonCall(pub(crate) Call<String>);

impl JsonCall {
    /// Makes each row an array of its values instead of an object. Several columns may then have the same name.
    pub fn arrays(self) -> Self {
        self.with(|options| options.arrays(true))
    }

    /// Writes an integer as a string if it is beyond 2^53 - 1 or below its negative: JavaScript, among others, cannot
    /// read it as a number without loss. Numbers within an embedded text stay as they are.
    pub fn big_integers_as_strings(self) -> Self {
        self.with(|options| options.big_integers_as_strings(true))
    }

    /// Inserts the texts of the columns of this name as JSON instead of as strings. Can be called several times. The
    /// name is the column's name in the result, and is case-sensitive; a result without such a column is written as
    /// usual.
    ///
    /// Flatwater checks each text, so that none can break the document. NULL and numbers are written as usual.
    ///
    /// Needs feature `serde_json`, which checks the texts.
    #[cfg(feature = "serde_json")]
    pub fn embed(self, column: impl Into<Box<str>>) -> Self {
        self.with(|options| options.embed(column))
    }

    /// Sets the deadline of this call. See [`Call::timeout`].
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout))
    }

    /// Sends this call to one of the database's threads even if it is known to be short. See [`Call::never_inline`].
    pub fn never_inline(self) -> Self {
        Self(self.0.never_inline())
    }

    /// Blocks this thread until the call completes. See [`Call::wait`].
    ///
    /// # Errors
    /// Returns the errors of the operation, and `Misuse` where this thread could deadlock.
    pub fn wait(self) -> Result<String> {
        self.0.wait()
    }

    /// Cancels the call, as dropping it does, and returns the effect. See [`Call::cancel`].
    pub fn cancel(self) -> CancelOutcome {
        self.0.cancel()
    }

    pub(crate) fn with(mut self, set: impl FnOnce(JsonOptions) -> JsonOptions) -> Self {
        if let Some(options) = self.0.pending.unbegun_work().and_then(Work::json_options) {
            *options = Arc::new(set((**options).clone()));
        }
        self
    }
}

impl Future for JsonCall {
    type Output = Result<String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

opaque!(JsonCall);
