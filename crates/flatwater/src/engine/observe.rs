//! The figures of open databases with the option `observe`, for `flatwater top`.
//!
//! Owns: the tick, and what a record says. The tick is on the timer's thread, which touches no file; a helper thread writes the records,
//! and may hang with a file system. Invariants: no call does more for it than without the option, since a record is made of what
//! `stats` has; at most one thread writes; a parked database has no record; no record has a bound value, and that of an encrypted
//! database no SQL. Leaves out: the file (`file::observed`).

use std::fmt::{Display, Write};
use std::sync::Weak;
use std::time::{Duration, Instant};

use flatwater_sqlite::PerProcess;

use super::Engine;
use super::file_table::FILES;
use crate::stats::{CallStats, WalBlocker};
use crate::workers::interfaces::TakesOver;
use crate::workers::readers::Readers;
use flatwater_base::encode::json::push_string;
use flatwater_base::thread::background;
use flatwater_base::time::later;
use flatwater_base::time::recurring::Recurring;

/// How often the records are written.
const PERIOD: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Observing {
    ticks: Recurring,
    is_writing: bool,
}

static OBSERVING: PerProcess<Observing> = PerProcess::new(Observing::default);

/// Called when a file is open: writes the records of all that are to have one, from now on.
pub(super) fn begin(engine: &Engine) {
    if engine.observed.is_some() {
        OBSERVING.lock().ticks.by(Instant::now(), tick);
    }
}

/// Runs on the timer's thread.
fn tick() -> Option<Instant> {
    let observed = observed();
    if observed.is_empty() {
        return None;
    }
    if !std::mem::replace(&mut OBSERVING.lock().is_writing, true) {
        let writing = Writing;
        // If no thread can be started, the next tick tries again.
        let _ = background::run_waiting("fw-check", move || {
            let _writing = writing;
            // A file system that hangs keeps no other engine than its own.
            observed.iter().filter_map(Weak::upgrade).for_each(|engine| write(&engine));
        });
    }
    Some(later(Instant::now(), PERIOD))
}

/// Dropped when the records are written, or cannot be.
struct Writing;

impl Drop for Writing {
    fn drop(&mut self) {
        OBSERVING.lock().is_writing = false;
    }
}

/// The open engines that have a record.
fn observed() -> Vec<Weak<Engine>> {
    FILES.lock().entries.values().filter(|entry| entry.is_observed()).map(|entry| entry.engine.clone()).collect()
}

/// Writes the record of an engine. Blocks on the file system.
fn write(engine: &Engine) {
    let Some(file) = &engine.observed else { return };
    if engine.watch().is_some_and(|watch| watch.parked.is_set()) {
        file.let_go(false);
    } else {
        file.write(&record(engine));
    }
}

/// Returns the figures as a JSON object.
fn record(engine: &Engine) -> String {
    let (stats, shows_sql) = (engine.stats(), !engine.is_encrypted());
    let mut record = Object::begin();
    record.number("process", std::process::id());
    record.text("program", program().as_deref());
    record.number("period_ms", PERIOD.as_millis());
    record.text("journal", Some(&stats.journal));
    record.number("writes_waiting", stats.writes_waiting);
    record.number("reads_waiting", stats.reads_waiting);
    record.number("readers_held", stats.readers_held);
    record.number("groups", stats.groups);
    record.number("members", stats.members);
    record.number("failed_commits", stats.failed_commits);
    record.number("wal_frames", stats.wal.frames);
    record.number("wal_backlog", stats.wal.backlog);
    record.number("wal_bytes", stats.wal.file_bytes);
    record.number("wal_starved", stats.wal.starved);
    record.number("live_queries", stats.live.queries);
    record.number("turns_waited_us", stats.turns.waited_us);
    let sql = |sql: String| if shows_sql { sql } else { "(not shown, because the database is encrypted)".to_owned() };
    let oldest = engine.readers.as_ref().and_then(Readers::oldest);
    record.number("oldest_read_us", oldest.as_ref().map_or(0, |oldest| oldest.age().as_micros()));
    record.text("oldest_read", oldest.map(|oldest| sql(oldest.sql())).as_deref());
    let (in_transaction, writer) = on_writer(engine).unzip();
    record.number("in_transaction", in_transaction.unwrap_or(false));
    record.text("writer", writer.map(sql).as_deref());
    record.text("blocker", stats.wal.cause.map(|cause| blocker(cause, sql)).as_deref());
    record.list("calls", stats.calls.iter().map(of_calls));
    record.end()
}

/// Returns whether a caller has a transaction open, and what it ran last, or what the writer runs.
fn on_writer(engine: &Engine) -> Option<(bool, String)> {
    let writer = engine.writer.as_ref()?;
    let in_transaction = writer.ongoing().has_transaction();
    if in_transaction || writer.is_active() { Some((in_transaction, writer.ongoing().name()?)) } else { None }
}

/// The name of the program that runs.
fn program() -> Option<String> {
    Some(std::env::current_exe().ok()?.file_name()?.to_string_lossy().into_owned())
}

fn blocker(blocker: WalBlocker, sql: impl Fn(String) -> String) -> String {
    match blocker {
        WalBlocker::Read { sql: text, .. } => sql(text),
        WalBlocker::Foreign => "another process, or another library of this one".to_owned(),
    }
}

fn of_calls(calls: &CallStats) -> String {
    let mut object = Object::begin();
    object.text("kind", Some(calls.kind));
    object.number("count", calls.count);
    object.number("p50_us", calls.p50_us);
    object.number("p99_us", calls.p99_us);
    object.number("max_us", calls.max_us);
    object.end()
}

/// A JSON object that is being written.
struct Object(String);

impl Object {
    fn begin() -> Self {
        Self("{".to_owned())
    }

    fn name(&mut self, name: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{name}\":");
    }

    fn number(&mut self, name: &str, number: impl Display) {
        self.name(name);
        let _ = write!(self.0, "{number}");
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        self.name(name);
        match text {
            Some(text) => push_string(&mut self.0, text),
            None => self.0.push_str("null"),
        }
    }

    fn list(&mut self, name: &str, objects: impl Iterator<Item = String>) {
        self.name(name);
        let _ = write!(self.0, "[{}]", objects.collect::<Vec<_>>().join(","));
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
