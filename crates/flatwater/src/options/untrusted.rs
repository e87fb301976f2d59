//! Files from strangers.
//!
//! Owns: the setters. Plain values, usable on any thread. Leaves out: what protects a connection
//! (`connection::open::untrusted`).

use super::Options;
use super::tuning::Tuning;

/// How many steps a statement takes at most on an untrusted file. SQLite makes some ten millions in a second.
pub(super) const UNTRUSTED_STEPS: u32 = 1_000_000_000;
/// How many bytes a result has at most on an untrusted file.
pub(super) const UNTRUSTED_RESULT: usize = 64 << 20;
/// How much memory SQLite takes at most for one statement on an untrusted file.
pub(super) const UNTRUSTED_MEMORY: usize = 128 << 20;

impl Options {
    /// Opens a file that a stranger may have made, such as an upload (<https://sqlite.org/security.html>). Default off.
    ///
    /// - It is opened [`read_only`](Self::read_only), unless that is set to false.
    /// - Its schema runs no function and no virtual table that has effects or is not known to have none: functions of
    ///   the program in its views, triggers, indexes and constraints fail unless they are
    ///   [`SQLITE_INNOCUOUS`](https://sqlite.org/c3ref/c_deterministic.html). The program's own statements may call
    ///   them.
    /// - No SQL writes its schema or its pages directly, and each page is checked when it is read.
    /// - Lengths (16 MiB), columns (500), the depth of expressions (100) and other sizes have low limits, beyond which
    ///   a statement fails. A statement ends after 1,000,000,000 steps, or after [`Tuning::step_limit`].
    /// - A result has at most 64 MiB, or [`Tuning::result_limit`]. A stream may be longer: its parts may not.
    /// - SQLite takes at most 128 MiB of memory for a statement, or [`Tuning::memory_limit`].
    ///
    /// It does not limit time: set a [`timeout`](Self::timeout).
    /// [`integrity_check`](crate::Database::integrity_check) says whether it is damaged.
    pub fn untrusted(mut self) -> Self {
        self.untrusted = true;
        self
    }
}

impl Tuning {
    /// Ends a statement after about so many steps of SQLite's virtual machine, with
    /// [`ErrorKind::Sql`](crate::ErrorKind::Sql). Of a stream this counts for each fetch. Default: no limit, except for
    /// a file that is [`untrusted`](Options::untrusted).
    pub fn step_limit(mut self, steps: u32) -> Self {
        self.0.step_limit = Some(steps);
        self
    }

    /// Ends a statement whose result takes more than so many bytes of memory, with [`ErrorKind::Sql`](crate::ErrorKind::Sql):
    /// 16 bytes for each value, and the bytes of texts and blobs; or the length of the JSON. Of a stream this counts for
    /// each fetch. A write that returns too much is executed, and the error says so. Default: no limit, except for a file
    /// that is [`untrusted`](Options::untrusted).
    pub fn result_limit(mut self, bytes: usize) -> Self {
        self.0.result_limit = Some(bytes);
        self
    }

    /// Ends a statement for which SQLite takes more than so many bytes of memory, with
    /// [`ErrorKind::Sql`](crate::ErrorKind::Sql): values that it computes, what it gathers, and the pages that it reads into the
    /// cache, so it has to be larger than the caches. Of a stream this counts for each fetch. SQLite ends a transaction or a
    /// snapshot with such a statement. It has no effect in a program that used SQLite before its first use of Flatwater. Default:
    /// no limit, except for a file that is [`untrusted`](Options::untrusted).
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.0.memory_limit = Some(bytes);
        self
    }
}
