//! What is told through `tracing`: each event with its fields, and never a bound value.
//!
//! Its own program, because whoever listens does so for the whole process. Built with feature `tracing` only.

#[allow(dead_code, reason = "the other programs use the rest")]
#[path = "it/support.rs"]
mod support;

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits, Journal};
use flatwater::rusqlite::config::DbConfig;
use flatwater::{Database, Error, Options};
use support::{ENDLESS, TestFile, run, until};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps every event as one line: its level, and its fields in order.
struct Listener {
    lines: Mutex<Vec<String>>,
    spans: AtomicU64,
}

static LISTENER: LazyLock<&'static Listener> = LazyLock::new(|| {
    let listener: &Listener = Box::leak(Box::new(Listener { lines: Mutex::default(), spans: AtomicU64::new(1) }));
    tracing::subscriber::set_global_default(listener).unwrap();
    listener
});

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for &'static Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("flatwater")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The events of one file that begin with `message`.
fn told(file: &TestFile, level: Level, message: &str) -> Vec<String> {
    let path = file.path().canonicalize().unwrap();
    let of_file = format!("db.system.name=\"sqlite\" db.namespace={}", path.display());
    let lines = LISTENER.lines.lock().unwrap();
    let of_file = lines.iter().filter(|line| line.contains(&of_file));
    of_file.filter(|line| line.starts_with(&format!("{level} message={message}"))).cloned().collect()
}

const INSERT: &str = "INSERT INTO t VALUES (zeroblob(8000))";

async fn open(options: Options) -> Database {
    LazyLock::force(&LISTENER);
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    db
}

fn small(file: &TestFile, hard_limit_bytes: u64) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(hard_limit_bytes);
    file.options().checkpoint(Checkpoint::Managed(managed))
}

async fn write_until(db: &Database, condition: impl Fn() -> bool) {
    while !condition() {
        db.execute(INSERT, ()).await.unwrap();
    }
}

#[test]
fn the_steps_of_the_checkpointer_are_told() {
    let file = TestFile::new();
    run(async {
        let db = open(small(&file, 64 << 20)).await;
        write_until(&db, || !told(&file, Level::DEBUG, "restarted the WAL").is_empty()).await;
        let copied = told(&file, Level::DEBUG, "copied frames of the WAL into the database");
        assert!(copied.iter().any(|line| line.contains(" frames=") && line.contains(" took_us=")), "{copied:?}");
        assert!(told(&file, Level::WARN, "").is_empty());
        db.close().await.unwrap();
    });
}

#[test]
fn a_checkpoint_on_demand_is_told() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options().checkpoint(Checkpoint::External)).await;
        db.execute(INSERT, ()).await.unwrap();
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
        let copied = told(&file, Level::DEBUG, "copied frames of the WAL into the database");
        assert!(copied.len() == 1 && copied[0].contains(" left=0 ") && !copied[0].contains(" frames=0 "), "{copied:?}");
        db.checkpoint(CheckpointMode::Restart).await.unwrap();
        assert_eq!(told(&file, Level::DEBUG, "restarted the WAL").len(), 1);
        db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        assert_eq!(told(&file, Level::DEBUG, "truncated the WAL").len(), 1);
        assert_eq!(told(&file, Level::DEBUG, "copied frames of the WAL into the database").len(), 1);
        db.close().await.unwrap();
    });
}

#[test]
fn a_checkpoint_without_a_wal_is_not_told() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options().journal(Journal::Keep)).await;
        assert_eq!(db.stats().journal, "delete");
        db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        assert!(told(&file, Level::DEBUG, "truncated the WAL").is_empty());
        db.close().await.unwrap();
    });
}

#[test]
fn a_foreign_reader_that_starves_the_wal_is_told_once_until_it_is_gone() {
    let file = TestFile::new();
    run(async {
        let db = open(small(&file, 512 << 10)).await;
        db.execute(INSERT, ()).await.unwrap();
        let other = file.plain();
        other.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        let is_told = || !told(&file, Level::WARN, "the WAL cannot be restarted and grows").is_empty();
        write_until(&db, || db.stats().wal.starved > 2 && db.stats().wal.waits_for_room > 2 && is_told()).await;
        assert!(told(&file, Level::DEBUG, "a checkpoint was blocked").len() > 2);
        let starved = told(&file, Level::WARN, "the WAL cannot be restarted and grows");
        assert!(starved.len() == 1 && starved[0].ends_with(" cause=\"foreign\""), "{starved:?}");
        assert_eq!(told(&file, Level::WARN, "the WAL is beyond its hard limit: writes wait").len(), 1);
        other.execute_batch("COMMIT").unwrap();
    });
}

#[test]
fn a_read_that_is_cut_off_is_told_with_its_sql_and_without_its_values() {
    let file = TestFile::new();
    run(async {
        let db = open(small(&file, 64 << 20).tuning(|t| t.read_limit(Duration::from_millis(50)))).await;
        db.execute(INSERT, ()).await.unwrap();
        let read = tokio::spawn(db.query(format!("SELECT ?, * FROM t, ({ENDLESS})"), ("secret",)));
        until(|| db.stats().wal.oldest_read.is_some()).await;
        write_until(&db, || read.is_finished()).await;
        let cut_off = told(&file, Level::WARN, "ended a read that blocked a restart of the WAL");
        assert_eq!(cut_off.len(), 1);
        assert!(cut_off[0].contains("db.query.text=\"SELECT ?, * FROM t, (WITH RECURSIVE"), "{cut_off:?}");
        let starved = told(&file, Level::WARN, "the WAL cannot be restarted and grows");
        assert!(starved.iter().all(|line| line.contains(" cause=\"read\" age_us=")), "{starved:?}");
        assert!(LISTENER.lines.lock().unwrap().iter().all(|line| !line.contains("secret")));
    });
}

#[test]
fn a_transaction_that_nobody_uses_is_told() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options()).await;
        let idle = db.begin().await.unwrap();
        until(|| !told(&file, Level::WARN, "an idle transaction holds the writer").is_empty()).await;
        idle.commit().await.unwrap();
    });
}

#[test]
fn a_file_taken_away_is_told_when_it_is_noticed() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options()).await;
        let away = file.directory().join("away.db");
        std::fs::rename(file.path(), &away).unwrap();
        std::fs::copy(&away, file.path()).unwrap();
        file.options().open().await.unwrap_err();
        let refused = told(&file, Level::WARN, "writes are refused until the database is opened again");
        assert_eq!(refused.len(), 1);
        assert!(refused[0].contains("error.type=\"io\""), "{refused:?}");
        db.close().await.unwrap();
    });
}

#[test]
fn a_wal_that_somebody_else_keeps_and_a_replaced_connection_are_told() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options().checkpoint(Checkpoint::External)).await;
        assert_eq!(told(&file, Level::DEBUG, "checkpoints are left to another program").len(), 1);
        db.write_with(|tx| tx.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map_err(Error::from))
            .await
            .unwrap();
        assert_eq!(told(&file, Level::DEBUG, "replaced a connection").len(), 1);
        db.close().await.unwrap();
    });
}

#[test]
fn a_call_is_told_with_its_times_and_a_slow_one_as_a_warning() {
    let file = TestFile::new();
    run(async {
        let db = open(file.options()).await;
        db.query("SELECT ?, a FROM t", ("secret",)).await.unwrap();
        let calls = told(&file, Level::DEBUG, "a call");
        let call = calls.iter().find(|line| line.contains("SELECT")).unwrap();
        let fields =
            "db.operation.name=\"query\" db.query.text=\"SELECT ?, a FROM t\" ran_on=\"reader\" in_transaction=false";
        assert!(call.contains(fields), "{call}");
        for field in ["queue_us=", "lock_us=0", "run_us=", "total_us=", "db.response.returned_rows=0"] {
            assert!(call.contains(field), "{call}");
        }
        assert!(!call.contains("secret") && !call.contains("error"), "{call}");
        let long = format!("SELECT missing, '{}'", "x".repeat(1_000));
        db.query(&long, ()).await.unwrap_err();
        let calls = told(&file, Level::DEBUG, "a call");
        let call = calls.iter().find(|line| line.contains("SELECT missing")).unwrap();
        assert!(call.contains("error.type=\"sql\" error=\"no such column: missing") && call.len() < 800, "{call}");
        assert!(told(&file, Level::WARN, "a slow call").is_empty());
    });
    let file = TestFile::new();
    run(async {
        let db = open(file.options().slow_statement(Duration::ZERO)).await;
        db.execute(INSERT, ()).await.unwrap();
        let slow = told(&file, Level::WARN, "a slow call");
        assert!(slow.iter().any(|line| line.contains(" changes=1")), "{slow:?}");
        assert!(told(&file, Level::DEBUG, "a call").is_empty());
    });
}
