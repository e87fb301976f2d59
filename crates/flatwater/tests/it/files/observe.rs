//! The option `observe`: the file in which an open database shows its figures to `flatwater top`.
#![cfg(unix)]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Killed, TestFile, as_child, files, integer, is_alone_in_process, nobody, wait_until};

const PATH: &str = "FLATWATER_OBSERVED_PATH";

fn observed(path: &Path) -> flatwater::Options {
    flatwater::Options::new(path).tuning(|tuning| tuning.observe(true))
}

/// The files with figures beside the database.
fn records(file: &TestFile) -> Vec<PathBuf> {
    let names = files(file.directory()).into_iter().map(|(name, _)| name);
    let records = names.filter(|name| name.to_string_lossy().starts_with("test.db-observe-"));
    records.map(|name| file.directory().join(name)).collect()
}

/// The record in a file, if it has the length that its first line says.
fn read(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    let (head, record) = text.split_once('\n')?;
    let length = head.strip_prefix("flatwater observe 1 ")?.split(' ').next()?.parse().ok()?;
    serde_json::from_str(record.get(..length)?).ok()
}

/// Waits for a record that fits, of the only file.
fn until_record(file: &TestFile, fits: impl Fn(&Value) -> bool) -> Value {
    let mut found = None;
    wait_until(|| {
        found = records(file).first().and_then(|path| read(path)).filter(|record| fits(record));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn an_open_database_shows_its_figures_until_it_is_closed() {
    let file = TestFile::new();
    let db = observed(&file.path()).open().wait().unwrap();
    db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    let record = until_record(&file, |record| !record["calls"].as_array().unwrap().is_empty());
    assert_eq!(
        (record["process"].as_u64(), record["journal"].as_str()),
        (Some(std::process::id().into()), Some("wal"))
    );
    assert!(record["in_transaction"] == false && record["oldest_read"].is_null(), "{record}");

    let snapshot = db.snapshot().wait().unwrap();
    snapshot.query("SELECT * FROM t", ()).wait().unwrap();
    let transaction = db.begin().wait().unwrap();
    transaction.execute("INSERT INTO t VALUES (?)", ("a bound secret",)).wait().unwrap();
    let record = until_record(&file, |record| record["in_transaction"] == true && !record["oldest_read"].is_null());
    assert!(record["writer"].as_str().unwrap().contains("INSERT INTO t VALUES (?)"), "{record}");
    assert!(!record.to_string().contains("a bound secret"), "{record}");
    transaction.rollback().wait().unwrap();
    drop(snapshot);
    db.close().wait().unwrap();
    assert!(records(&file).is_empty());
}

#[test]
fn each_database_that_is_observed_has_a_file_and_the_others_have_none() {
    let (first, second, plain) = (TestFile::new(), TestFile::new(), TestFile::new());
    let open = |file: &TestFile| observed(&file.path()).open().wait().unwrap();
    let [of_first, of_second] = [open(&first), open(&second)];
    let unobserved = plain.options().open().wait().unwrap();
    wait_until(|| records(&first).len() == 1 && records(&second).len() == 1);
    assert!(records(&plain).is_empty());
    of_first.close().wait().unwrap();
    assert!(records(&first).is_empty());
    std::fs::remove_file(&records(&second)[0]).unwrap();
    wait_until(|| records(&second).len() == 1);
    [of_second, unobserved].into_iter().for_each(|db| db.close().wait().unwrap());
    assert!(records(&second).is_empty());
}

#[test]
fn a_parked_database_has_no_file() {
    if !is_alone_in_process("files::observe::a_parked_database_has_no_file", None) {
        return;
    }
    let (first, second) = (TestFile::new(), TestFile::new());
    let [parked, used] = [&first, &second].map(|file| observed(&file.path()).open().wait().unwrap());
    wait_until(|| records(&first).len() == 1 && records(&second).len() == 1);
    flatwater::process::set_max_open(1);
    wait_until(|| {
        used.query("SELECT 1", ()).wait().unwrap();
        records(&first).is_empty()
    });
    assert!(parked.stats().parked > 0);
    parked.query("SELECT 1", ()).wait().unwrap();
    flatwater::process::set_max_open(64);
    parked.query("SELECT 1", ()).wait().unwrap();
    wait_until(|| records(&first).len() == 1);
    [parked, used].into_iter().for_each(|db| db.close().wait().unwrap());
}

#[test]
#[ignore = "the child of another test"]
fn shows_its_figures_until_it_is_killed() {
    let path = PathBuf::from(std::env::var_os(PATH).expect("the parent says where"));
    let _db = observed(&path).open().wait().unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn what_a_killed_process_leaves_the_next_one_removes() {
    let file = TestFile::new();
    file.options().open().wait().unwrap().close().wait().unwrap();
    let child = || {
        let mut child = as_child("files::observe::shows_its_figures_until_it_is_killed");
        Killed(child.env(PATH, file.path()).spawn().unwrap())
    };
    let (killed, lives) = (child(), child());
    wait_until(|| records(&file).iter().filter(|path| read(path).is_some()).count() == 2);
    drop(killed);
    assert_eq!(records(&file).len(), 2, "nobody could remove it");
    let db = observed(&file.path()).open().wait().unwrap();
    let own = u64::from(std::process::id());
    let processes = || {
        let process = |path: &PathBuf| read(path)?["process"].as_u64();
        records(&file).iter().map(process).collect::<Option<Vec<u64>>>()
    };
    wait_until(|| {
        processes().is_some_and(|of| of.len() == 2 && of.contains(&own) && of.contains(&lives.0.id().into()))
    });
    db.close().wait().unwrap();
    assert_eq!(records(&file).len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_changes_nothing_for_the_program() {
    if !is_alone_in_process("files::observe::a_folder_that_cannot_be_written_changes_nothing_for_the_program", nobody())
    {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let file = TestFile::new();
    file.plain().execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (7)").unwrap();
    let rights = |mode| std::fs::set_permissions(file.directory(), std::fs::Permissions::from_mode(mode)).unwrap();
    rights(0o555);
    let db = observed(&file.path()).read_only(true).open().wait().unwrap();
    for _ in 0..100 {
        assert_eq!(db.query_value::<i64>("SELECT a FROM t", ()).wait().unwrap(), 7);
    }
    db.close().wait().unwrap();
    assert!(records(&file).is_empty());
    rights(0o755);
    assert_eq!(integer(&file.plain(), "SELECT a FROM t"), 7);
}
