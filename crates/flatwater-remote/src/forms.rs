//! The forms of requests and answers of each kind of server.
//!
//! Owns: the choice among them. Pure. Invariant: what stands above this file does not know of kinds, but for what it refuses (`check`). Leaves
//! out: the forms (`rqlite`, `libsql`).

use bytes::Bytes;
use flatwater::bindings::server::One;

use crate::dialect::Dialect;
use crate::http::Sent;
use crate::options::Level;
use crate::request::{How, Verdict};
use crate::results::Failure;
use crate::{libsql, rqlite};

impl Dialect {
    /// Returns the statements of a request that is one transaction.
    pub(crate) fn transaction(self) -> Statements {
        match self {
            Self::Rqlite => Statements::Rqlite(rqlite::json::Statements::default()),
            Self::Libsql => Statements::Libsql(libsql::json::Steps::transaction()),
        }
    }

    /// Returns the statement of a request that reads a state that is no older than `index`.
    pub(crate) fn read(self, index: Option<u64>) -> Statements {
        match self {
            Self::Rqlite => Statements::Rqlite(rqlite::json::Statements::default()),
            Self::Libsql => Statements::Libsql(libsql::json::Steps::read(index)),
        }
    }

    /// Returns the statements of a request that reads one state, which is the newest.
    pub(crate) fn snapshot(self) -> Statements {
        match self {
            Self::Rqlite => self.read(None),
            Self::Libsql => Statements::Libsql(libsql::json::Steps::new(libsql::json::Around::Snapshot, None)),
        }
    }

    /// Returns what a question to the newest state begins with, and how it is asked. A replica that stands first in an address hands
    /// a transaction over to its primary, and answers a read by itself.
    pub(crate) fn question(self) -> (Statements, How) {
        match self {
            Self::Rqlite => (self.read(None), How::Read(Level::Strong)),
            Self::Libsql => (self.transaction(), How::Write),
        }
    }

    pub(crate) fn path(self, how: How) -> String {
        match self {
            Self::Rqlite => rqlite::json::path(how),
            Self::Libsql => libsql::json::PATH.to_owned(),
        }
    }

    /// Returns true for an error of a write after which nobody knows whether it was applied: the node that answered is one of several that
    /// execute it.
    pub(crate) fn is_of_one_node(self, failure: &Failure) -> bool {
        self == Self::Rqlite && rqlite::verdict::is_of_one_node(failure)
    }

    /// Returns what an attempt came to.
    pub(crate) fn verdict(self, how: How, sent: Sent) -> Verdict {
        match self {
            Self::Rqlite => rqlite::verdict::verdict(sent),
            Self::Libsql => libsql::verdict::verdict(how, sent),
        }
    }
}

/// The statements of one request.
pub(crate) enum Statements {
    Rqlite(rqlite::json::Statements),
    Libsql(libsql::json::Steps),
}

impl Statements {
    /// Adds a statement of ours, whose values are integers.
    pub(crate) fn own(&mut self, sql: &str, values: &[i64]) {
        match self {
            Self::Rqlite(statements) => statements.own(sql, values),
            Self::Libsql(steps) => steps.own(sql, values),
        }
    }

    /// Adds a caller's statement, which was checked.
    pub(crate) fn add(&mut self, one: &One<'_>) {
        match self {
            Self::Rqlite(statements) => statements.add(one),
            Self::Libsql(steps) => steps.add(one),
        }
    }

    /// Returns the body of the request.
    pub(crate) fn finish(self) -> Bytes {
        match self {
            Self::Rqlite(statements) => statements.finish(),
            Self::Libsql(steps) => steps.finish(None, true),
        }
    }
}
