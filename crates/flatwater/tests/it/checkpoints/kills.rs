//! kill -9 between any two system calls of a run with checkpoints, restarts, an explicit truncate and the close: every
//! acknowledged write is present, the file opens at once with plain SQLite and with Flatwater, and it can be written.
//!
//! The child is this program, which runs the ignored test below. Its pages are large and its limit is the smallest, so
//! that the WAL is restarted after a few frames.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, Options};
use flatwater_sqlite::fault::kill_at_call;

use crate::processes::killed_steps::kill_everywhere;
use crate::support::{TestFile, as_child, integer, integrity, run, run_until_killed};

const PATH: &str = "FLATWATER_CHECKPOINTS_PATH";
const PHASE: &str = "FLATWATER_CHECKPOINTS_PHASE";
const CALL: &str = "FLATWATER_CHECKPOINTS_CALL";
const INSERT: &str = "INSERT INTO t VALUES (?, zeroblob(3000))";
/// The number of rows that exist before the child starts, each from its own commit: enough for the checkpointer to
/// begin.
const BEFORE: i64 = 70;
const RESTARTS: u64 = 3;

fn options(path: &Path) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(64 << 20);
    Options::new(path).checkpoint(Checkpoint::Managed(managed))
}

fn say(what: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{what}").unwrap();
    out.flush().unwrap();
}

async fn write(db: &Database, row: &mut i64) {
    *row += 1;
    db.execute(INSERT, (*row,)).await.unwrap();
    say(&format!("ack {row}"));
}

#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let wanted = std::env::var(PHASE).unwrap();
    let call = std::env::var(CALL).unwrap().parse().unwrap();
    // The calls are counted from the beginning of the phase on.
    let begin = |phase: &str| {
        say(&format!("now {phase}"));
        (phase == wanted).then(|| kill_at_call(call))
    };
    run(async {
        let _opening = begin("opening");
        let db = options(Path::new(&path)).open().await.unwrap();
        let mut row = 0;
        let _writing = begin("writing");
        while db.stats().wal.resets < RESTARTS {
            write(&db, &mut row).await;
            // So that few rows, and so few calls, lie between two restarts.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let _truncating = begin("truncating");
        db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        for _ in 0..8 {
            write(&db, &mut row).await;
        }
        let _closing = begin("closing");
        db.close().await.unwrap();
        say("now closed");
    });
}

/// Returns the database and the WAL of a process that was killed.
fn start() -> tempfile::TempDir {
    let (file, start) = (TestFile::new(), tempfile::tempdir().unwrap());
    let plain = file.plain();
    plain
        .execute_batch(
            "PRAGMA page_size = 16384; PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a, b)",
        )
        .unwrap();
    (1..=BEFORE).for_each(|row| {
        plain.execute(INSERT, [-row]).unwrap();
    });
    for suffix in ["", "-wal"] {
        std::fs::copy(file.beside(suffix), start.path().join(format!("test.db{suffix}"))).unwrap();
    }
    start
}

/// Runs the child on a copy of `start`, and kills it at call number `call` of its phase. Returns false if it survived.
fn is_killed(start: &Path, phase: &str, call: i64) -> bool {
    let file = TestFile::new();
    for suffix in ["", "-wal"] {
        std::fs::copy(start.join(format!("test.db{suffix}")), file.beside(suffix)).unwrap();
    }
    let mut child = as_child("checkpoints::kills::child");
    child.env(PATH, file.path()).env(PHASE, phase).env(CALL, call.to_string());
    let (_, said) = run_until_killed(&mut child, call);
    let acknowledged = said.lines().filter_map(|line| line.split_once("ack ")?.1.parse().ok()).max().unwrap_or(0);
    // Who opens it first after the kill finds what there is to repair.
    if call % 2 == 0 {
        let newest = check(&file, acknowledged, call);
        write_on(&file, newest, call);
    } else {
        write_on(&file, acknowledged, call);
    }
    said.lines().filter_map(|line| Some(line.split_once("now ")?.1)).next_back() == Some(phase)
}

fn check(file: &TestFile, acknowledged: i64, call: i64) -> i64 {
    let plain = file.plain();
    assert_eq!(integrity(&plain), "ok", "call {call}");
    let newest = integer(&plain, "SELECT ifnull(max(a), 0) FROM t WHERE a > 0");
    assert_eq!(integer(&plain, "SELECT count(*) FROM t WHERE a < 0"), BEFORE, "call {call}: as they were");
    assert_eq!(integer(&plain, "SELECT count(DISTINCT a) FROM t WHERE a > 0"), newest, "call {call}: a hole");
    assert!(acknowledged <= newest, "call {call}: {acknowledged} was acknowledged, found {newest}");
    newest
}

/// Opens the file with Flatwater and writes rows, which must then be present too.
fn write_on(file: &TestFile, at_least: i64, call: i64) {
    let db = options(&file.path()).open().wait().unwrap();
    let newest: i64 =
        db.query_optional_value("SELECT ifnull(max(a), 0) FROM t WHERE a > 0", ()).wait().unwrap().unwrap();
    assert!(at_least <= newest, "call {call}: {at_least} were there, found {newest}");
    for row in 1..=20 {
        db.execute(INSERT, (newest + row,)).wait().unwrap();
    }
    db.close().wait().unwrap();
    assert!(!file.beside("-wal").exists(), "call {call}: the WAL is left behind");
    assert_eq!(check(file, newest + 20, call), newest + 20);
}

#[test]
fn a_run_through_every_checkpoint_survives_a_kill_between_any_two_calls() {
    let start = start();
    for (phase, at_least) in [("opening", 20), ("writing", 100), ("truncating", 10), ("closing", 15)] {
        let calls = kill_everywhere(|call| is_killed(start.path(), phase, call));
        println!("{phase}: killed at {calls} calls");
        assert!(calls >= at_least, "{phase}: {calls} calls are not all of them");
    }
}
