//! Opening the connection that writes, and giving up one that cannot.
//!
//! Owns: closing every connection of ours to the file if a file beside it could only be opened for reading, and opening it
//! anew. Used by whoever holds the token. Invariant: a connection that `open` answers could have begun to write. Blocks, for
//! `RECALL` at most beyond what opening takes. Leaves out: finding out whether a connection can write (`writable`).

use std::time::{Duration, Instant};

use flatwater_sqlite::Busy;

use super::connection::WriterConnection;
use crate::connection::open::{Connection, Role};
use crate::connection::writable::{is_read_only, may_pass};
use crate::error::{Error, Result};
use crate::file::watch::Watch;
use crate::options::Options;

/// How long connections that are in use are waited for when all are to be closed, and how often it is looked.
const RECALL: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(5);

/// Opens a connection that can write. If it cannot, all others are closed and it is opened again: at once, and as long as
/// that may help, until those that are in use have come back.
pub(super) fn open(
    options: &Options,
    watch: Option<&Watch>,
    role: Role,
    busy: impl Fn() -> Busy,
) -> Result<Connection> {
    let open = || Connection::open(options, role, busy());
    let first = open();
    let Some(watch) = watch.filter(|_| first.as_ref().is_err_and(is_read_only)) else { return first };
    let recall = watch.recalls.begin();
    let until = Instant::now() + RECALL.min(options.busy_timeout);
    loop {
        recall.collect();
        match open() {
            Err(error) if is_read_only(&error) && may_pass(options) && Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}

impl WriterConnection {
    /// BEGIN IMMEDIATE.
    pub(super) fn begin(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.begin(&mut connection.sqlite)?)
    }

    /// Whether what failed with `error` can be tried once more: nothing could be written on the connection, because a file
    /// of it could only be opened for reading, and so it was given up.
    pub(super) fn reopens_after(&mut self, error: &Error) -> bool {
        let reopens = is_read_only(error) && !self.is_in_memory() && self.is_autocommit() && self.is_half_open();
        if reopens {
            self.replace();
        }
        reopens
    }
}
