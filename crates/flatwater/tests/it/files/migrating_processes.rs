//! Migrations in many processes at once, and in one that is killed: each is applied once, whole or not at all.
//!
//! The children are this program, which runs the ignored tests below.

use std::fs::File;
use std::process::{Child, Stdio};

use flatwater::Options;
use flatwater::bindings::Internals as _;

use crate::support::{TestFile, as_child, integer, wait_until};

const PATH: &str = "FLATWATER_MIGRATED_PATH";
const GATE: &str = "FLATWATER_MIGRATED_GATE";
const PROCESSES: usize = 16;
const STEPS: usize = 12;

fn options() -> Options {
    Options::new(std::env::var_os(PATH).expect("the parent says where"))
}

/// Steps each of which fails if it runs twice or too early, and counts itself.
fn steps() -> Vec<(String, String)> {
    let step = |n: usize| {
        let sql = format!(
            "CREATE TABLE t{n} (a PRIMARY KEY); INSERT INTO t{n} SELECT count(*) FROM ran; INSERT INTO ran VALUES ({n})"
        );
        (format!("{n:03}_step"), sql)
    };
    let first = ("000_init".to_owned(), "CREATE TABLE ran (step INTEGER PRIMARY KEY)".to_owned());
    std::iter::once(first).chain((1..=STEPS).map(step)).collect()
}

#[test]
#[ignore = "runs as the child of the test below"]
fn opens() {
    let gate = File::open(std::env::var_os(GATE).expect("the parent says where")).unwrap();
    gate.lock_shared().unwrap();
    let db = options().migrations(steps()).open().wait().unwrap();
    db.execute("INSERT INTO processes VALUES (?)", (i64::from(std::process::id()),)).wait().unwrap();
    db.close().wait().unwrap();
}

#[test]
fn sixteen_processes_that_start_at_once_apply_each_migration_once() {
    for round in 0..5 {
        let file = TestFile::new();
        file.plain().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE processes (id)").unwrap();
        let gate = file.directory().join("gate");
        let lock = File::create(&gate).unwrap();
        lock.lock().unwrap();
        let start = || -> Child {
            let mut child = as_child("files::migrating_processes::opens");
            child.env(PATH, file.path()).env(GATE, &gate).stdout(Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
        lock.unlock().unwrap();
        for mut child in children {
            assert!(child.wait().unwrap().success(), "round {round}");
        }
        let plain = file.plain();
        let count = |table: &str| usize::try_from(integer(&plain, &format!("SELECT count(*) FROM {table}")));
        assert_eq!(
            [count("processes"), count("ran"), count("_flatwater_migrations")],
            [Ok(PROCESSES), Ok(STEPS), Ok(STEPS + 1)]
        );
        assert_eq!(integer(&plain, &format!("SELECT a FROM t{STEPS}")), i64::try_from(STEPS).unwrap() - 1, "in order");
    }
}

/// A step that the parent sees begin: it fills the WAL with pages of a transaction that never ends.
const LONG: &str = "INSERT INTO t SELECT randomblob(4000) FROM
    (WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n)";

#[test]
#[ignore = "runs as the child of the test below"]
fn never_ends() {
    let list =
        [("1_init", "CREATE TABLE t (a); INSERT INTO t VALUES (1)"), ("2_long", &*format!("DELETE FROM t; {LONG}"))];
    let _ = options().tuning(|t| t.spill_bytes(1 << 20)).migrations(list).open().wait();
}

#[test]
fn a_process_that_is_killed_in_a_migration_leaves_the_ones_before_it() {
    let file = TestFile::new();
    let mut child = as_child("files::migrating_processes::never_ends")
        .env(PATH, file.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| std::fs::metadata(file.beside("-wal")).is_ok_and(|wal| wal.len() > 8 << 20));
    child.kill().unwrap();
    child.wait().unwrap();
    let list = [("1_init", "CREATE TABLE t (a); INSERT INTO t VALUES (1)"), ("2_long", "SELECT 1")];
    let db = file.options().open().wait().unwrap();
    assert_eq!(db.migrate(list).wait().unwrap(), ["2_long"]);
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
    db.close().wait().unwrap();
}

#[cfg(target_os = "linux")]
mod between_system_calls {
    //! kill -9 between any two system calls of SQLite while migrations run.

    use flatwater_sqlite::fault::kill_at_call;

    use super::*;
    use crate::processes::killed_steps::kill_everywhere;
    use crate::support::run_until_killed;

    const CALL: &str = "FLATWATER_MIGRATED_CALL";
    const LIST: [(&str, &str); 3] = [
        ("1_init", "CREATE TABLE t (a); INSERT INTO t VALUES (1)"),
        (
            "2_rebuild",
            "CREATE TABLE u (a, b); INSERT INTO u SELECT a, 2 FROM t; DROP TABLE t; ALTER TABLE u RENAME TO t",
        ),
        ("3_vacuum", "-- no-transaction\nVACUUM"),
    ];

    #[test]
    #[ignore = "runs as the child of the test below"]
    fn child() {
        let _fault = kill_at_call(std::env::var(CALL).unwrap().parse().unwrap());
        let db = options().migrations(LIST).open().wait().unwrap();
        db.close().wait().unwrap();
    }

    /// Runs the child, and kills it at call number `call`. Returns false if it survived.
    fn is_killed(call: i64) -> bool {
        let file = TestFile::new();
        let mut child = as_child("files::migrating_processes::between_system_calls::child");
        let (killed, _) = run_until_killed(child.env(PATH, file.path()).env(CALL, call.to_string()), call);
        if file.path().exists() {
            let plain = file.plain();
            let has = |sql: &str| integer(&plain, &format!("SELECT count(*) FROM {sql}"));
            let noted = match has("sqlite_schema WHERE name = '_flatwater_migrations'") {
                0 => 0,
                _ => has("_flatwater_migrations"),
            };
            let columns = has("pragma_table_info('t')");
            assert_eq!(columns, [0, 1, 2, 2][usize::try_from(noted).unwrap()], "call {call}");
            assert_eq!(has("sqlite_schema WHERE name = 'u'"), 0, "call {call}");
        }
        let db = file.options().migrations(LIST).open().wait().unwrap();
        assert_eq!(integer(&file.plain(), "SELECT sum(a + b) FROM t"), 3, "call {call}");
        db.close().wait().unwrap();
        killed
    }

    #[test]
    fn a_kill_between_any_two_system_calls_leaves_whole_migrations() {
        let calls = kill_everywhere(is_killed);
        assert!(calls > 30, "{calls} calls are not all of them");
    }
}
