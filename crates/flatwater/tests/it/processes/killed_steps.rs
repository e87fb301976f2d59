//! kill -9 between any two system calls of SQLite, from the open of a file to the end of its close: every acknowledged
//! write is present, and the file opens at once with plain SQLite and with Flatwater.
//!
//! The child is this program, which runs the ignored test below.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flatwater::{Error, Options, params};
use flatwater_sqlite::fault::kill_at_call;

use crate::support::{TestFile, as_child, integer, integrity, run_until_killed};

const PATH: &str = "FLATWATER_STEPS_PATH";
const CALL: &str = "FLATWATER_STEPS_CALL";
const INSERT: &str = "INSERT INTO t VALUES (?)";
/// The number of rows that exist before the child starts.
const BEFORE: i64 = 100;
/// The number of rows that the child writes.
const WRITTEN: i64 = 6;

fn acknowledge(row: i64) {
    let mut out = std::io::stdout();
    writeln!(out, "ack {row}").unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "runs as the child of the tests below"]
fn child() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let _fault = kill_at_call(std::env::var(CALL).unwrap().parse().unwrap());
    let db = Options::new(path).open().wait().unwrap();
    acknowledge(0);
    db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
    db.execute(INSERT, (1,)).wait().unwrap();
    acknowledge(1);
    db.batch([(INSERT, params![2]), (INSERT, params![3])]).wait().unwrap();
    acknowledge(3);
    db.query("SELECT * FROM t", ()).wait().unwrap();
    db.write_with(|tx| {
        tx.execute(INSERT, [4])?;
        tx.execute(INSERT, [5]).map_err(Error::from)
    })
    .wait()
    .unwrap();
    acknowledge(5);
    db.execute(INSERT, (WRITTEN,)).wait().unwrap();
    acknowledge(WRITTEN);
    db.close().wait().unwrap();
}

/// Runs the child on a copy of `start`, and kills it at call number `call`. Returns false if it survived.
fn is_killed(start: &Path, call: i64) -> bool {
    let file = TestFile::new();
    for suffix in ["", "-wal", "-journal"] {
        let from = start.join(format!("test.db{suffix}"));
        if from.exists() {
            std::fs::copy(from, file.beside(suffix)).unwrap();
        }
    }
    let mut child = as_child("processes::killed_steps::child");
    let (killed, said) = run_until_killed(child.env(PATH, file.path()).env(CALL, call.to_string()), call);
    let acknowledged = said.lines().filter_map(|line| line.split_once("ack ")?.1.parse::<i64>().ok()).max();
    let before = if start.join("test.db").exists() { BEFORE } else { 0 };
    // Who opens it first after the kill finds what there is to repair.
    if call % 2 == 0 {
        check_with_us(&file, before, acknowledged, call);
        check_plain(&file, before, acknowledged, call);
    } else {
        check_plain(&file, before, acknowledged, call);
        check_with_us(&file, before, acknowledged, call);
    }
    killed
}

fn check_plain(file: &TestFile, before: i64, acknowledged: Option<i64>, call: i64) {
    let plain = file.plain();
    assert_eq!(integrity(&plain), "ok", "call {call}");
    if integer(&plain, "SELECT count(*) FROM sqlite_schema") > 0 {
        let rows = integer(&plain, "SELECT count(*) FROM t");
        let newest = integer(&plain, "SELECT ifnull(max(a), 0) FROM t WHERE a > 0");
        assert_eq!(integer(&plain, "SELECT count(*) FROM t WHERE a < 0"), before, "call {call}: as they were");
        assert_eq!(rows, before + newest, "call {call}: in order, without a hole");
        assert!([0, 1, 3, 5, WRITTEN].contains(&newest), "call {call}: half of a write is there: {newest}");
        assert!(acknowledged.is_none_or(|row| row <= newest), "call {call}: {acknowledged:?}, found {newest}");
    } else {
        assert!(before == 0 && acknowledged.is_none_or(|row| row == 0), "call {call}: the table is gone");
    }
}

fn check_with_us(file: &TestFile, before: i64, acknowledged: Option<i64>, call: i64) {
    // However busy the machine is.
    let db = file.options().tuning(|t| t.close_wait(Duration::from_secs(300))).open().wait().unwrap();
    db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
    let rows: Option<i64> = db.query_optional_value("SELECT count(*) FROM t", ()).wait().unwrap();
    assert!(rows >= acknowledged.map(|row| before + row), "call {call}: {rows:?}");
    db.close().wait().unwrap();
    for suffix in ["-wal", "-shm", "-journal"] {
        assert!(!file.beside(suffix).exists(), "call {call}: {suffix} is left behind");
    }
}

/// Kills at call number 1, 2, and so on, on a few threads, until nothing is killed at `BEYOND` numbers in a row: how many calls a
/// run makes depends on how its threads take turns. Returns the last number at which something was killed.
pub(crate) fn kill_everywhere(is_killed: impl Fn(i64) -> bool + Sync) -> i64 {
    const BEYOND: i64 = 8;
    let (next, last_killed) = (AtomicI64::new(1), AtomicI64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let call = next.fetch_add(1, Ordering::SeqCst);
                    if call > last_killed.load(Ordering::SeqCst) + BEYOND {
                        return;
                    }
                    if is_killed(call) {
                        last_killed.fetch_max(call, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    last_killed.into_inner()
}

const ROWS: &str = "CREATE TABLE t (a);
    WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100) INSERT INTO t SELECT -x FROM n";

#[test]
fn a_new_file_survives_a_kill_between_any_two_steps() {
    let nothing = tempfile::tempdir().unwrap();
    let steps = kill_everywhere(|call| is_killed(nothing.path(), call));
    assert!(steps > 80, "{steps} steps are not all of them");
}

/// A killed process left its WAL behind.
#[test]
fn a_wal_file_survives_a_kill_between_any_two_steps() {
    let (file, start) = (TestFile::new(), tempfile::tempdir().unwrap());
    let plain = file.plain();
    plain.execute_batch(&format!("PRAGMA journal_mode = wal; {ROWS}")).unwrap();
    for suffix in ["", "-wal"] {
        std::fs::copy(file.beside(suffix), start.path().join(format!("test.db{suffix}"))).unwrap();
    }
    let steps = kill_everywhere(|call| is_killed(start.path(), call));
    assert!(steps > 80, "{steps} steps are not all of them");
}

/// It also left its journal behind: opening the file rolls back a transaction, and then switches the file to WAL.
#[test]
fn a_file_with_a_rollback_journal_survives_a_kill_between_any_two_steps() {
    let (file, start) = (TestFile::new(), tempfile::tempdir().unwrap());
    let plain = file.plain();
    plain.execute_batch(ROWS).unwrap();
    // With a cache this small the transaction has changed the file before it ends.
    plain
        .execute_batch(
            "PRAGMA cache_size = 2; BEGIN; UPDATE t SET a = 7; CREATE TABLE u AS SELECT a, randomblob(900) FROM t",
        )
        .unwrap();
    for suffix in ["", "-journal"] {
        std::fs::copy(file.beside(suffix), start.path().join(format!("test.db{suffix}"))).unwrap();
    }
    let journal = std::fs::read(start.path().join("test.db-journal")).unwrap();
    assert_ne!(journal[8..12], [0; 4], "it has pages to roll back");
    let steps = kill_everywhere(|call| is_killed(start.path(), call));
    assert!(steps > 80, "{steps} steps are not all of them");
}
