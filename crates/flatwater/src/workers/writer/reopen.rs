//! Opening the connection that writes.
//!
//! Owns: closing all our connections to the file if a file beside it could only be opened for reading, and opening the
//! writer's connection again. Runs on the thread that holds the slot. Invariant: a connection that `open` returns was
//! able to begin a write. Blocks for at most `DRAIN` longer than opening takes. Leaves out: finding out whether a
//! connection can write (`open::access`).

use std::time::{Duration, Instant};

use flatwater_sqlite::Busy;

use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::connection::open::access::{is_read_only, may_pass};
use crate::workers::context::Context;
use flatwater_base::error::Result;

/// How long `open` waits for connections in use when all are to be closed, and how often it tries again.
const DRAIN: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(5);

/// Opens a connection that can write. If it cannot, closes all other connections and opens it again: at once, and as
/// long as that may help, until the connections in use are given back.
pub(crate) fn open(context: &Context, role: Role, busy: impl Fn() -> Busy) -> Result<EngineConnection> {
    let options = &context.options;
    let open = || EngineConnection::open(options, &context.functions, role, busy());
    let first = open();
    let Some(watch) = context.watch.as_ref().filter(|_| first.as_ref().is_err_and(is_read_only)) else { return first };
    let drain = watch.drains.begin();
    let until = Instant::now() + DRAIN.min(options.busy_timeout);
    loop {
        drain.collect();
        match open() {
            Err(error) if is_read_only(&error) && may_pass(options) && Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}
