//! What is asked of a server, and what is known of it after each attempt and in the end.
//!
//! Owns: these forms. Pure. Leaves out: asking (`cluster`), and what an answer means (`rqlite`, `libsql`).

use std::time::Instant;

use bytes::Bytes;
use flatwater::Error;

use crate::options::Level;
use crate::results::{Failure, StatementResult};

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Its statements are one transaction.
    Write,
    /// Its statement reads.
    Read(Level),
    /// Its statements read the newest state, and all the same one.
    Snapshot,
}

pub(crate) struct Request {
    pub(crate) how: How,
    pub(crate) body: Bytes,
    /// It reads, or changes nothing the second time: if nothing is known of an attempt, there is another one.
    pub(crate) repeats: bool,
    pub(crate) until: Instant,
}

/// What is known after one attempt.
pub(crate) enum Verdict {
    /// Of each statement, up to the one that failed. `index` says which state of the database was the newest, if the server tells.
    Results { results: Vec<StatementResult>, index: Option<u64> },
    /// The node that is to be asked instead, as `host:port`.
    Elsewhere(String),
    /// It was not executed, and may be at another time or by another node.
    NotExecuted(String),
    /// It may have been executed, or may be yet.
    Unknown(String),
    /// It was not executed and never will be.
    Refused(Error),
    /// It failed as a whole, and all of it was undone.
    Undone(Failure),
    /// It failed, and it is not known whether some of it has stayed all the same.
    Doubtful(Failure),
    /// It was executed, and its answer cannot be made.
    Unmade(String),
}

/// What is known of a request in the end.
pub(crate) enum Known {
    Results(Vec<StatementResult>),
    /// It was not executed.
    Refused(Error),
    /// It failed as a whole, and nothing of it has stayed.
    Undone(Failure),
    /// The same, but that it is not known whether some of it has stayed.
    Doubtful(Failure),
    /// Its time is over, and it was not executed, unless it `repeats`.
    TooLate(String),
    /// It may have been executed, and does not repeat.
    Unknown(String),
}
