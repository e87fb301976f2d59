//! What these tests share: a file that is checked at the end, a process of their own, and a process that visits the file.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use flatwater::{Database, Options, rusqlite};

/// A test that takes longer hangs. Says that it does; decides nothing else.
const HANGS: Duration = Duration::from_secs(600);
const ALONE: &str = "FLATWATER_TEST_ALONE";
const VISIT: &str = "FLATWATER_TEST_VISIT";

pub(crate) const INSERT: &str = "INSERT INTO t VALUES (1)";
pub(crate) const COUNT: &str = "SELECT count(*) FROM t";
const WRITERS: usize = 4;

/// A WAL file with an empty table `t (a)`, in a directory of its own. Dropping it checks the file.
pub(crate) struct TestFile(tempfile::TempDir);

impl TestFile {
    pub(crate) fn new() -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        file
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("test.db")
    }

    pub(crate) fn has_wal(&self) -> bool {
        self.0.path().join("test.db-wal").exists()
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path())
    }

    pub(crate) fn open(&self) -> Database {
        self.options().open().wait().unwrap()
    }

    /// A connection of the library that the engine uses too.
    pub(crate) fn plain(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    /// A process opens the file, checks it, closes it, and ends: without anybody's lock it takes the WAL away. Answers
    /// the rows of `t` that it found.
    pub(crate) fn visit(&self) -> i64 {
        let said = run_again("support::visitor", |command| command.arg("--ignored").env(VISIT, self.path()));
        let rows = said.lines().find_map(|line| line.split_once("rows: ")?.1.parse().ok());
        rows.unwrap_or_else(|| panic!("the visitor did not say how many rows there are:\n{said}"))
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.visit();
        }
    }
}

#[test]
#[ignore = "runs as the child of other tests"]
fn visitor() {
    let connection = rusqlite::Connection::open(std::env::var_os(VISIT).expect("the parent says where")).unwrap();
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    println!("rows: {}", rows(&connection));
    connection.close().unwrap();
}

/// The rows of `t`, as a plain connection sees them.
pub(crate) fn rows(connection: &rusqlite::Connection) -> i64 {
    connection.query_row(COUNT, [], |row| row.get(0)).unwrap()
}

/// The rows of `t`, as the engine sees them.
pub(crate) fn count(db: &Database) -> i64 {
    db.query_optional_value(COUNT, ()).wait().unwrap().unwrap()
}

/// Runs `body` while threads write rows one by one; `body` gets what waits until every one of them got another
/// acknowledgement. Answers how many rows were acknowledged.
pub(crate) fn while_writing(db: &Database, body: impl FnOnce(&dyn Fn())) -> i64 {
    let acknowledged: [AtomicI64; WRITERS] = std::array::from_fn(|_| AtomicI64::new(0));
    let ends = AtomicBool::new(false);
    let seen = || acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst));
    std::thread::scope(|scope| {
        let ends = Stop(&ends);
        for count in &acknowledged {
            let ends = ends.0;
            scope.spawn(move || {
                while !ends.load(Ordering::SeqCst) {
                    db.execute(INSERT, ()).wait().unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        body(&|| {
            let before = seen();
            wait_until(|| seen().iter().zip(before).all(|(now, before)| *now >= before + 2));
        });
    });
    seen().iter().sum()
}

/// Lets threads of a test end, also when it fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs one test of this program in a process of its own, and answers what it said.
fn run_again(test: &str, more: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    more(command.args(["--exact", test, "--nocapture"]));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the name of a test:\n{said}");
    said
}

/// True in a process in which this test runs alone, as POSIX locks are of a process. Otherwise runs it in such a
/// process, passes its failure on, and answers false.
pub(crate) fn is_alone_in_process(test: &str) -> bool {
    let is_alone = std::env::var_os(ALONE).is_some();
    if !is_alone {
        run_again(test, |command| command.env(ALONE, "1"));
    }
    is_alone
}

pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < HANGS, "the test hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
}
