//! Events for `tracing` (feature `tracing`). Each event has a function, which is empty without the feature.
//!
//! Owns: names, levels and fields. A normal step is `debug`; a condition that needs attention is `warn`. Fields have
//! OpenTelemetry's names (<https://opentelemetry.io/docs/specs/semconv/db/>) where it defines one. Runs on the thread
//! of the caller of each function. Invariants: an event contains no bound value; a subscriber is foreign code, so
//! callers emit events without holding a lock. Leaves out: when to emit an event, and shortening SQL.
#![cfg_attr(not(feature = "tracing"), allow(unused_variables, dead_code))]

use std::path::Path;
use std::time::Duration;

pub(crate) mod statement_event;

use flatwater_base::error::Error;
pub use statement_event::{ExecutedOn, StatementEvent};

/// Whether events are compiled in, so that a subscriber can receive them.
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

/// The target of the events of calls.
#[cfg(feature = "tracing")]
const STATEMENT: &str = "flatwater::statement";

/// Returns true if a subscriber receives the events of calls, or those of slow calls if there is a limit for them.
pub(crate) fn statements_are_heard(has_limit: bool) -> bool {
    #[cfg(feature = "tracing")]
    return tracing::enabled!(target: STATEMENT, tracing::Level::DEBUG)
        || has_limit && tracing::enabled!(target: STATEMENT, tracing::Level::WARN);
    #[cfg(not(feature = "tracing"))]
    return false;
}

/// Processes do not take turns: the file for that cannot be used.
pub(crate) fn no_turns(path: &Path, error: &std::io::Error) {
    event!(warn, path, { error = %error }, "the turn file cannot be used: processes poll for the write lock");
}

/// The figures of the database cannot be written beside it. They are tried again, which sends no other event.
pub(crate) fn not_observed(path: &Path, error: &std::io::Error) {
    event!(warn, path, { error = %error }, "the figures cannot be written beside the database");
}

/// A call ended.
pub(crate) fn statement(event: &StatementEvent<'_>) {
    #[cfg(feature = "tracing")]
    {
        macro_rules! tell {
            ($level:ident, $message:literal) => {
                tracing::$level!(
                    target: STATEMENT,
                    {
                        db.system.name = "sqlite",
                        db.namespace = %event.path.display(),
                        db.operation.name = event.operation,
                        db.query.text = event.sql,
                        ran_on = event.ran_on.map(statement_event::ExecutedOn::name),
                        in_transaction = event.in_transaction,
                        queue_us = us(event.queue),
                        lock_us = us(event.lock),
                        run_us = us(event.run),
                        total_us = us(event.total),
                        db.response.returned_rows = event.rows,
                        changes = event.changes,
                        error.type = event.error.map(|error| error.kind().name()),
                        error = event.error.map(Error::message),
                    },
                    $message
                )
            };
        }
        if event.is_slow {
            tell!(warn, "a slow call");
        } else {
            tell!(debug, "a call");
        }
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The age and the SQL of this engine's read that blocks a checkpoint; `None` if another process blocks it.
pub(crate) type InTheWay<'a> = Option<(Duration, &'a str)>;

fn cause(by: InTheWay<'_>) -> &'static str {
    if by.is_some() { "read" } else { "foreign" }
}

/// A checkpoint copied `frames` frames; `left` frames remain.
pub(crate) fn checkpointed(path: &Path, frames: u32, left: u32, took: Duration) {
    event!(debug, path, { frames, left, took_us = us(took), }, "copied frames of the WAL into the database");
}

/// A checkpoint restarted the WAL.
pub(crate) fn was_restarted(path: &Path, took: Duration) {
    event!(debug, path, { took_us = us(took), }, "restarted the WAL");
}

/// A checkpoint truncated the WAL file to zero bytes.
pub(crate) fn truncated(path: &Path) {
    event!(debug, path, {}, "truncated the WAL");
}

/// A lock blocked a checkpoint, which will be tried again later.
pub(crate) fn blocked(path: &Path, by: InTheWay<'_>) {
    event!(debug, path, { cause = cause(by), age_us = by.map(|(age, _)| us(age)), db.query.text = by.map(|(_, sql)| sql), }, "a checkpoint was blocked");
}

/// A lock blocked several checkpoints in a row, and the WAL is beyond its soft limit, for the first time since it restarted.
pub(crate) fn starved(path: &Path, by: InTheWay<'_>) {
    event!(warn, path, { cause = cause(by), age_us = by.map(|(age, _)| us(age)), db.query.text = by.map(|(_, sql)| sql), },
        "the WAL cannot be restarted and grows");
}

/// A read was ended because it exceeded `Tuning::read_limit`.
pub(crate) fn cut_off(path: &Path, age: Duration, sql: &str) {
    event!(warn, path, { age_us = us(age), db.query.text = sql, }, "ended a read that blocked a restart of the WAL");
}

/// Writers waited because the WAL exceeds its hard limit, for the first time since the WAL restarted.
pub(crate) fn waited_for_room(path: &Path, took: Duration) {
    event!(warn, path, { took_us = us(took), }, "the WAL is beyond its hard limit: writes wait");
}

/// A checkpoint failed for a reason other than a lock.
pub(crate) fn checkpoint_failed(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), }, "a checkpoint failed");
}

/// Another program checkpoints the WAL.
pub(crate) fn external(path: &Path) {
    event!(debug, path, {}, "checkpoints are left to another program");
}

/// From now on the engine refuses all writes.
pub(crate) fn refused(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), },
        "writes are refused until the database is opened again");
}

/// A close has answered although `what` still runs.
pub(crate) fn left_behind(path: &Path, what: &str) {
    event!(warn, path, { db.query.text = what, }, "a close has returned although something is still running");
}

/// Another SQLite library in this process has the file open, which `allow_second_sqlite` allows.
pub(crate) fn second_copy(path: &Path, libraries: &[String]) {
    event!(warn, path, { libraries = libraries.join(", "), }, "another SQLite library in this process has the file open");
}

/// A transaction that holds the writer has been unused for `idle`.
pub(crate) fn idle_transaction(path: &Path, idle: Duration) {
    event!(warn, path, { idle_us = us(idle), }, "an idle transaction holds the writer");
}

/// A COMMIT failed.
pub(crate) fn commit_failed(path: &Path, error: &Error) {
    event!(warn, path, { error.type = error.kind().name(), error = error.message(), }, "a COMMIT failed");
}

/// A connection was closed and replaced by a new one.
pub(crate) fn replaced_connection(path: &Path) {
    event!(debug, path, {}, "replaced a connection");
}
