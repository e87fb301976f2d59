//! A database on a libSQL server, and its interactive transactions, as a program uses them.
//!
//! Owns: these handles. Runs on callers' threads. Invariant: a transaction that goes out of scope without `commit` is rolled back. Leaves
//! out: serving the transaction (`transaction`).

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::bindings::server::{self, Asked, Server, error};
use flatwater::options::JsonOptions;
use flatwater::{Error, ErrorKind, Result, Session};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;

use crate::dialect::Dialect;
use crate::options::{Level, RemoteOptions};
use crate::remote::Remote;
use crate::thread::Way;
use crate::transaction::{Begin, Inside, has_ended};

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
    /// `Misuse` for the address of another server, and for a token or a certificate that cannot be used; `Open` if the thread cannot be started.
    pub fn with(options: RemoteOptions) -> Result<Self> {
        if options.address.dialect != Dialect::Libsql {
            let hint = "its address begins with libsql://; Remote::connect takes those of other servers";
            return Err(error(ErrorKind::Misuse, "it is not the address of a libSQL server".into(), hint));
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

    /// Returns a handle whose `query_json` writes rows as `options` say.
    #[must_use]
    pub fn with_json(&self, options: JsonOptions) -> Self {
        Self { remote: self.remote.with_json(options) }
    }

    /// Begins a transaction that writes. Other writes wait until it ends.
    ///
    /// Dropping the future rolls back what was begun.
    ///
    /// # Errors
    /// `Timeout` if the server did not begin it in time; `Open` if the server cannot be trusted or does not permit it; `Closed`; `Misuse`
    /// in a process that was forked.
    pub async fn begin(&self) -> Result<RemoteTransaction> {
        let remote = &self.remote;
        server::usable(remote)?;
        let time = server::time_of(remote).unwrap_or(remote.timeout);
        let (asked, inbox) = mpsc::unbounded_channel();
        let (answer, begun) = oneshot::channel();
        let way = Arc::new(Inner { inbox: asked.clone(), _thread: remote.way.clone() });
        let session = server::with_options_of(&server::session(way, "a transaction"), remote);
        remote.way.begin(Begin { inbox, until: Instant::now() + time, answer });
        begun.await.unwrap_or_else(|_| Err(gone()))?;
        Ok(RemoteTransaction { session, inbox: asked })
    }

    /// Runs `body` in a transaction, which is committed if it returns `Ok`, and rolled back if it returns an error, panics, or is
    /// dropped. It is run once: if the transaction is lost, the error says so.
    ///
    /// # Errors
    /// The error that `body` returns, and those of [`begin`](Self::begin) and [`commit`](RemoteTransaction::commit).
    pub async fn transaction<F, R, E>(&self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&RemoteTransaction) -> Result<R, E>,
        E: From<Error>,
    {
        let transaction = self.begin().await?;
        match body(&transaction).await {
            Ok(result) => {
                transaction.commit().await?;
                Ok(result)
            }
            Err(error) => {
                // The error of the body is returned.
                let _ = transaction.rollback().await;
                Err(error)
            }
        }
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

/// An open transaction on a libSQL server. Its operations are those of a [`Session`], to which it derefs; they run one after the other, and
/// its reads see its own writes. A statement that fails changes nothing, a batch is all or nothing, and the transaction stays open.
///
/// It needs its connection to the server: if an answer is missing, or the server ends it, the call says so, and so do all that come
/// after. Nothing of it was written then, and no other one is begun in its place. A call whose deadline passes while the server
/// has it ends the transaction, too.
///
/// Dropping it rolls it back, without waiting; calls of it that have not run by then fail.
#[must_use = "dropping a transaction rolls it back"]
pub struct RemoteTransaction {
    session: Session,
    inbox: UnboundedSender<Inside>,
}

impl RemoteTransaction {
    /// Commits the transaction. If the answer is lost, the database is asked what became of it. If the future is dropped before it
    /// completes, either all changes are committed, or none.
    ///
    /// # Errors
    /// `Constraint` for a deferred foreign key; `Io` if the transaction was lost before: nothing of it was written; `CommitUnknown` if the
    /// server could not be asked in time. After any error it is rolled back, except for `CommitUnknown`.
    pub async fn commit(self) -> Result<()> {
        self.end(true).await
    }

    /// Rolls back the transaction. Dropping it does the same without waiting. Succeeds if the server has already rolled it back.
    ///
    /// # Errors
    /// `Misuse` in a process that was forked.
    pub async fn rollback(self) -> Result<()> {
        self.end(false).await
    }

    async fn end(self, commits: bool) -> Result<()> {
        server::usable(&self.session)?;
        let (answer, ended) = oneshot::channel();
        let _ = self.inbox.send(Inside::End { commits, answer });
        ended.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for RemoteTransaction {
    fn drop(&mut self) {
        if server::usable(&self.session).is_ok() {
            let _ = self.inbox.send(Inside::Close(Box::new(|| {})));
        }
    }
}

impl Deref for RemoteTransaction {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for RemoteTransaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteTransaction").finish_non_exhaustive()
    }
}

/// The way into a transaction.
struct Inner {
    inbox: UnboundedSender<Inside>,
    /// It must not end before the transaction has.
    _thread: Arc<Way>,
}

impl Server for Inner {
    fn send(&self, asked: Asked) {
        if let Err(mpsc::error::SendError(Inside::Asked(asked))) = self.inbox.send(Inside::Asked(asked)) {
            asked.answer(Err(has_ended()));
        }
    }

    fn in_transaction(&self) -> bool {
        !self.inbox.is_closed()
    }

    /// What was sent is finished: without its answer the transaction would be lost.
    fn look_again(&self) {}

    fn close(&self, closed: Box<dyn FnOnce() + Send>) {
        if let Err(mpsc::error::SendError(Inside::Close(closed))) = self.inbox.send(Inside::Close(closed)) {
            closed();
        }
    }
}

fn gone() -> Error {
    error(ErrorKind::Closed, "the connection to the server was closed".into(), "connect again")
}
