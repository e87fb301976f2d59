//! What a front end opened: a database of this process, or one on a server.
//!
//! Owns: the difference between the two. Runs on the host's thread. Invariant: closing one at the end of a host takes a bounded time, whatever
//! a server does. Leaves out: calls, which go through the session of either.

use std::time::Duration;

use flatwater::bindings::server;
use flatwater::{Database, Result, Session};
use flatwater_remote::Remote;

/// How long the end of a host waits for one of its databases.
const CLOSE: Duration = Duration::from_secs(5);

/// A database of this process, or one on a server.
#[derive(Clone)]
pub enum Opened {
    /// A file, or a database in memory.
    File(Database),
    /// One on a server.
    Server(Remote),
}

impl Opened {
    /// What runs its statements.
    #[must_use]
    pub fn session(&self) -> &Session {
        match self {
            Self::File(database) => database,
            Self::Server(remote) => remote,
        }
    }

    /// Returns the database of this process. `what` is what needs one.
    ///
    /// # Errors
    /// `Misuse` for one on a server.
    pub fn file(&self, what: &str) -> Result<&Database> {
        match self {
            Self::File(database) => Ok(database),
            Self::Server(_) => Err(server::needs_database(what)),
        }
    }

    /// The address of a server, without its secrets.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        if let Self::Server(remote) = self { Some(remote.name()) } else { None }
    }

    /// Closes it, and waits for that, for up to five seconds: the host ends. What a process inherited is left alone.
    pub fn close_at_exit(self) {
        if server::usable(self.session()).is_err() {
            return;
        }
        let (ends, ended) = std::sync::mpsc::channel::<()>();
        let close = move || {
            let _ends = ends;
            // There is nobody to tell.
            let _ = match &self {
                Self::File(database) => database.close().wait(),
                Self::Server(remote) => remote.close().wait(),
            };
        };
        if server::start_thread("fw-close", close).is_ok() {
            let _ = ended.recv_timeout(CLOSE);
        }
    }
}
