//! What is told through `tracing` (feature `tracing`): each event has its function, and without the feature they are empty.
//!
//! Owns: names, levels and fields. A normal step is `debug`; what somebody should look at is `warn`. The fields have
//! OpenTelemetry's names (<https://opentelemetry.io/docs/specs/semconv/db/>) where it has one. Invariants: no bound value;
//! whoever listens is foreign code, so nothing is told with a lock held. Leaves out: when to tell, and shortening SQL.
#![cfg_attr(not(feature = "tracing"), allow(unused_variables, dead_code))]

use std::path::Path;
use std::time::Duration;

use super::error::Error;

/// Whether anybody can listen.
pub(crate) const ARE_BUILT: bool = cfg!(feature = "tracing");

#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $path:expr, { $($fields:tt)* }, $message:literal) => {
        tracing::$level!(
            target: "flatwater",
            { db.system.name = "sqlite", db.namespace = %$path.display(), $($fields)* },
            $message
        )
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($($all:tt)*) => {};
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A read of ours that is in the way of a checkpoint, its age and its SQL; `None` if somebody else is.
pub(crate) type InTheWay<'a> = Option<(Duration, &'a str)>;

fn cause(by: InTheWay<'_>) -> &'static str {
    if by.is_some() { "read" } else { "foreign" }
}

/// Frames were copied; `left` were not reached.
pub(crate) fn copied(path: &Path, frames: u32, left: u32, took: Duration) {
    event!(debug, path, { frames, left, took_us = us(took), }, "copied frames of the WAL into the database");
}

/// The WAL was started over.
pub(crate) fn was_reset(path: &Path, took: Duration) {
    event!(debug, path, { took_us = us(took), }, "started the WAL over");
}

/// The WAL's file was made empty.
pub(crate) fn truncated(path: &Path) {
    event!(debug, path, {}, "made the WAL's file empty");
}

/// A checkpoint met a lock and is tried again later.
pub(crate) fn blocked(path: &Path, by: InTheWay<'_>) {
    event!(debug, path, { cause = cause(by), age_us = by.map(|(age, _)| us(age)), db.query.text = by.map(|(_, sql)| sql), }, "a checkpoint was blocked");
}

/// That happened several times in a row, for the first time since the WAL was started over.
pub(crate) fn starved(path: &Path, by: InTheWay<'_>) {
    event!(warn, path, { cause = cause(by), age_us = by.map(|(age, _)| us(age)), db.query.text = by.map(|(_, sql)| sql), },
        "the WAL cannot be started over and grows");
}

/// A read was ended because of `Options::read_limit`.
pub(crate) fn cut_off(path: &Path, age: Duration, sql: &str) {
    event!(warn, path, { age_us = us(age), db.query.text = sql, }, "ended a read that kept the WAL from starting over");
}

/// Writers waited because the WAL is beyond its hard limit, for the first time since it was started over.
pub(crate) fn waited_for_room(path: &Path, took: Duration) {
    event!(warn, path, { took_us = us(took), }, "the WAL is beyond its hard limit: writes wait");
}

/// A checkpoint failed for another reason than a lock.
pub(crate) fn checkpoint_failed(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), }, "a checkpoint failed");
}

/// Somebody else keeps the WAL short.
pub(crate) fn external(path: &Path) {
    event!(debug, path, {}, "checkpoints are left to another program");
}

/// Nothing may be written any more.
pub(crate) fn refused(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), },
        "writes are refused until the database is opened again");
}

/// Another SQLite library in the process has the file open, which `SecondCopy::Warn` lets pass.
pub(crate) fn second_copy(path: &Path, libraries: &[String]) {
    event!(warn, path, { libraries = libraries.join(", "), }, "another SQLite library in this process has the file open");
}

/// A transaction that holds the writer was not used for so long.
pub(crate) fn idle_transaction(path: &Path, idle: Duration) {
    event!(warn, path, { idle_us = us(idle), }, "a transaction holds the writer and is not used");
}

/// A COMMIT failed.
pub(crate) fn commit_failed(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), }, "a COMMIT failed");
}

/// A connection was replaced.
pub(crate) fn replaced_connection(path: &Path) {
    event!(debug, path, {}, "replaced a connection");
}
