//! A database on a libSQL server, as a program uses it.
//!
//! Owns: the handle. Runs on callers' threads. Leaves out: its transactions, which are those of any database, and serving them
//! (`transaction`).

use std::future::Future;
use std::ops::Deref;
use std::time::{Duration, Instant};

use flatwater::bindings::server::{self, error};
use flatwater::calls::TransactionCall;
use flatwater::{Call, Error, ErrorCode, Result, Transaction};

use crate::dialect::Dialect;
use crate::options::{Level, RemoteOptions};
use crate::remote::Remote;

/// A database on a libSQL server: sqld, or Turso. It is a [`Remote`], to which it derefs, with interactive transactions.
///
/// The server has one primary, which writes, and replicas, which may be read from: [`Level::None`]. If the primary fails nobody takes its
/// place; writes wait for it, and fail when their time is over.
///
/// The primary commits one transaction at a time. One that is open for longer than five seconds may be rolled back
/// when another one waits for it, and one that is not used for ten seconds is rolled back: both are the server's limits, and the next call of
/// the transaction says so.
#[derive(Clone)]
pub struct Libsql {
    remote: Remote,
}

impl Libsql {
    /// Returns the database at an address, such as `libsql://host?authToken=...`; see [`RemoteOptions::new`]. Starts a thread, and connects when
    /// the first call begins.
    ///
    /// # Errors
    /// `Misuse` for what is not the address of a libSQL server.
    pub fn connect(address: &str) -> Result<Self> {
        Self::with(RemoteOptions::new(address)?)
    }

    /// The same with these options.
    ///
    /// # Errors
    /// `Misuse` for the address of another server, and for a token or a certificate that cannot be used; `Io` if the thread cannot be started.
    pub fn with(options: RemoteOptions) -> Result<Self> {
        if options.address.dialect != Dialect::Libsql {
            let hint = "its address begins with libsql://; Remote::connect takes those of other servers";
            return Err(error(ErrorCode::InvalidPath, "it is not the address of a libSQL server".into(), hint));
        }
        Ok(Self { remote: Remote::with(options)? })
    }

    /// Returns a handle whose reads have this level. In a transaction they are the transaction's.
    #[must_use]
    pub fn with_level(&self, level: Level) -> Self {
        Self { remote: self.remote.with_level(level) }
    }

    /// Returns a handle whose calls have this time; see [`Remote::with_timeout`].
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { remote: self.remote.with_timeout(timeout) }
    }

    /// Returns a handle whose calls end by then; see [`Remote::with_deadline`].
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        Self { remote: self.remote.with_deadline(deadline) }
    }

    /// Begins a transaction that writes, with BEGIN IMMEDIATE. Other writes of the server wait until it ends. Dropping it rolls it back.
    ///
    /// It needs its connection to the server: if an answer is missing, or the server ends it, the call says so, and so do all that come
    /// after. Nothing of it was written then, and no other one is begun in its place. A call whose deadline passes while the server
    /// has it ends the transaction, too. Its nested transactions and its savepoints take no requests of their own: they go with the
    /// next statement.
    ///
    /// If the answer to its COMMIT is lost, the database is asked what became of it; `commit` returns `CommitUnknown` if it could not be
    /// asked in time.
    ///
    /// If the call is dropped, what was begun is rolled back.
    ///
    /// # Errors
    /// `Timeout` if the server did not begin it in time; `Open` if the server cannot be trusted or does not permit it; `Closed`; `Misuse`
    /// in a process that was forked.
    pub fn begin(&self) -> Call<Transaction<'static>> {
        server::begin(&self.remote)
    }

    /// Runs `body` in a transaction, as [`Database::transaction`](flatwater::Database::transaction) does. It is run once: if the transaction
    /// is lost, the error says so.
    ///
    /// # Errors
    /// The error that `body` returns, and those of [`begin`](Self::begin) and of a commit. Inside of the body: `Misuse` for a write on the
    /// database, which would wait for itself.
    pub fn transaction<F, R>(&self, body: F) -> TransactionCall<'static, impl Future<Output = Result<R>> + use<F, R>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R>,
    {
        server::run(&self.remote, body)
    }

    /// The same with a `body` that returns an error of the caller's own type.
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction).
    pub fn try_transaction<F, R, E>(
        &self,
        body: F,
    ) -> TransactionCall<'static, impl Future<Output = Result<R, E>> + use<F, R, E>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        server::run(&self.remote, body)
    }
}

impl Deref for Libsql {
    type Target = Remote;

    fn deref(&self) -> &Remote {
        &self.remote
    }
}

impl std::fmt::Debug for Libsql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Libsql").finish_non_exhaustive()
    }
}
