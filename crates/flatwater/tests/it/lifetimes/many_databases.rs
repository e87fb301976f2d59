//! Thousands of databases, one after the other and at once: the resources they use and release. Each test runs alone in
//! a separate process.
#![cfg(target_os = "linux")]

use std::path::Path;

use flatwater::{Database, Options};

use crate::support::{TestFile, integer, is_alone_in_process, wait_until};

const MANY: usize = 1000;

/// Returns the names of Flatwater's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    let names = tasks.filter_map(|comm| std::fs::read_to_string(comm).ok());
    names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("fw-")).collect()
}

/// Returns the number of threads that serve requests.
fn workers() -> usize {
    threads().iter().filter(|name| name.starts_with("fw-writer") || name.starts_with("fw-reader")).count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the number of locks on all descriptors. Does not count flock locks, which this process may have inherited.
fn locks() -> usize {
    let all = std::fs::read_dir("/proc/self/fdinfo").unwrap().map(|info| info.unwrap().path());
    let texts = all.filter_map(|info| std::fs::read_to_string(info).ok());
    let ours = |line: &&str| line.starts_with("lock:") && !line.contains("FLOCK");
    texts.map(|text| text.lines().filter(ours).count()).sum()
}

fn open(path: &Path) -> Database {
    let db = Options::new(path).open().wait().unwrap();
    db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
    db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    db
}

fn nothing_is_left_after(mut use_it: impl FnMut(usize)) {
    let before = descriptors();
    (0..MANY).for_each(&mut use_it);
    wait_until(|| descriptors() <= before && locks() == 0 && threads().is_empty());
}

#[test]
fn a_file_opened_and_closed_a_thousand_times_leaves_nothing() {
    if !is_alone_in_process("lifetimes::many_databases::a_file_opened_and_closed_a_thousand_times_leaves_nothing", None)
    {
        return;
    }
    let file = TestFile::new();
    nothing_is_left_after(|n| {
        let db = open(&file.path());
        assert!(locks() > 0, "they can be seen");
        if n.is_multiple_of(2) {
            db.close().wait().unwrap();
        }
    });
    let rows = integer(&file.plain(), "SELECT count(*) FROM t");
    assert_eq!(usize::try_from(rows), Ok(MANY));
}

#[test]
fn a_thousand_files_that_are_deleted_leave_nothing() {
    if !is_alone_in_process("lifetimes::many_databases::a_thousand_files_that_are_deleted_leave_nothing", None) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    nothing_is_left_after(|n| {
        let path = directory.path().join(format!("{n}.db"));
        let db = open(&path);
        let delete = || {
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
            }
        };
        match n % 4 {
            0 => {
                delete();
                db.close().wait().unwrap();
            }
            1 => {
                delete();
                drop(db);
            }
            2 => {
                db.close().wait().unwrap();
                delete();
            }
            _ => {
                std::fs::remove_file(&path).unwrap();
                db.close().wait().unwrap();
            }
        }
    });
}

/// Returns the number of databases that the limit of descriptors allows: an open database has five, and each reader two
/// more.
fn as_many_as_allowed() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let limit = limit.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX);
    MANY.min(limit.saturating_sub(100) / 8)
}

#[test]
fn a_thousand_open_databases_have_threads_only_while_they_are_used() {
    if !is_alone_in_process(
        "lifetimes::many_databases::a_thousand_open_databases_have_threads_only_while_they_are_used",
        None,
    ) {
        return;
    }
    let (directory, many) = (tempfile::tempdir().unwrap(), as_many_as_allowed());
    assert!(many >= 100, "the limit of open files allows {many} databases only");
    flatwater::process::set_max_open(many);
    let databases: Vec<Database> = (0..many)
        .map(|n| {
            let options = Options::new(directory.path().join(format!("{n}.db")));
            let db = options.open().wait().unwrap();
            assert_eq!(workers(), 0, "{n} of {many} are open: {:?}", threads());
            db
        })
        .collect();
    wait_until(|| threads().iter().all(|name| name == "fw-timer"));
    let used = &databases[..50];
    for db in used {
        smol::block_on(async {
            db.execute("CREATE TABLE t (a)", ()).await.unwrap();
            db.query("SELECT * FROM t", ()).await.unwrap();
        });
    }
    assert!(workers() > 0, "{:?}", threads());
    wait_until(|| workers() == 0);
    for db in used {
        assert_eq!(db.query_optional_value("SELECT count(*) FROM t", ()).wait(), Ok(Some(0)), "it still works");
    }
    let before = descriptors();
    drop(databases);
    wait_until(|| descriptors() < before - 3 * many && workers() == 0 && locks() == 0);
}
