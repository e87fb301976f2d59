//! Connections of the load, all with the same settings: the lab's, no checkpoint of their own, and a busy handler that
//! pauses as Flatwater's does. Leaves out: what is done on them.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use rusqlite::{Connection, ffi};
use setlk_timeout::{Job, Setlk};

thread_local! {
    static BUSY_CALLS: Cell<u64> = const { Cell::new(0) };
}

/// What the lab gives to every peer, but for checkpoints, which are left to one thread.
pub(crate) const SETTINGS: &str = "PRAGMA journal_mode = wal; PRAGMA synchronous = normal;
    PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384;";

/// How often SQLite asked the busy handler on this thread.
pub(crate) fn busy_calls() -> u64 {
    BUSY_CALLS.get()
}

/// The engine's pauses (`lock.rs`): none, then short ones, then 1 ms that never grows. It gives up after ten seconds.
fn wait(tries: i32) -> bool {
    BUSY_CALLS.set(BUSY_CALLS.get() + 1);
    match tries {
        0 => {}
        1..=20 => thread::sleep(Duration::from_micros(75)),
        21..=60 => thread::sleep(Duration::from_micros(250)),
        _ => thread::sleep(Duration::from_millis(1)),
    }
    tries < 10_000
}

/// Opens a connection that waits.
pub(crate) fn open(job: &Job) -> Result<Connection> {
    let mut connection = open_impatient(job)?;
    connection.busy_handler(Some(wait))?;
    // Again, because setting a busy handler sets it to 0.
    set_setlk(&connection, job.setlk)?;
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

/// Opens a connection without a busy handler and settings: all waiting that is left is that of the file layer.
pub(crate) fn open_impatient(job: &Job) -> Result<Connection> {
    let connection = Connection::open(&job.db)?;
    connection.busy_timeout(Duration::ZERO)?;
    set_setlk(&connection, job.setlk)?;
    Ok(connection)
}

/// `sqlite3_setlk_timeout`. Without the flag it does nothing and answers OK.
#[allow(unsafe_code)]
fn set_setlk(connection: &Connection, setlk: Setlk) -> Result<()> {
    let flags = if setlk.on_connect { ffi::SQLITE_SETLK_BLOCK_ON_CONNECT } else { 0 };
    // SAFETY: the handle is that of an open connection, which outlives the call; no other thread uses it, since the
    // connection is borrowed here and is not `Sync`. The call keeps no pointer.
    let code = unsafe { ffi::sqlite3_setlk_timeout(connection.handle(), setlk.ms, flags) };
    ensure!(code == ffi::SQLITE_OK, "sqlite3_setlk_timeout: {code}");
    Ok(())
}
