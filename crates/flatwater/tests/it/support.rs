//! What the tests share: a database in its own directory that is checked at the end, waiting for conditions, and
//! running a test in a separate process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flatwater::options::{GroupLimits, Inline, InlineLimits};
use flatwater::{Database, Options};

/// The time after which a test counts as hung, even if ten other programs run. It only detects hangs.
const HANGS: Duration = Duration::from_secs(600);

/// Options with which writes that wait together form one group, however slow the machine is.
pub(crate) fn grouped(options: Options) -> Options {
    options.tuning(|t| t.group(GroupLimits::default().time(Duration::from_secs(3600))))
}

/// Options with limits so long that time decides nothing.
pub(crate) fn unhurried(options: Options) -> Options {
    options.readers(1).tuning(|t| t.inline(Inline::Auto(InlineLimits::default().time(Duration::from_secs(60)))))
}

/// A read that would take years.
pub(crate) const ENDLESS: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n WHERE x < 0";

/// A database file in its own directory. Dropping it checks the file with plain SQLite, including foreign keys.
pub(crate) struct TestFile {
    directory: tempfile::TempDir,
    may_violate: AtomicBool,
}

impl TestFile {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), may_violate: AtomicBool::new(false) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("test.db")
    }

    /// Declares that the test leaves rows without their parent on purpose.
    pub(crate) fn violates_foreign_keys(&self) {
        self.may_violate.store(true, Ordering::Relaxed);
    }

    /// Returns the file beside the database that ends with `suffix`, such as `-wal`.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.path().join(format!("test.db{suffix}"))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path())
    }

    pub(crate) async fn open(&self) -> Database {
        self.options().open().await.unwrap()
    }

    /// Returns a plain connection to the same file, as another program would have it.
    pub(crate) fn plain(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if std::thread::panicking() || !self.path().exists() {
            return;
        }
        let plain = self.plain();
        assert_eq!(integrity(&plain), "ok");
        let violated = foreign_keys_violated(&plain);
        assert!(
            violated.is_empty() || self.may_violate.load(Ordering::Relaxed),
            "foreign keys are violated: {violated:?}"
        );
    }
}

/// Returns the result of `PRAGMA integrity_check` for the main database. It does not check foreign keys.
pub(crate) fn integrity(connection: &rusqlite::Connection) -> String {
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// Returns the result of `PRAGMA foreign_key_check`: the tables with rows whose parent is missing, each with their
/// number.
pub(crate) fn foreign_keys_violated(connection: &rusqlite::Connection) -> Vec<(String, i64)> {
    let sql = "SELECT \"table\", count(*) FROM pragma_foreign_key_check GROUP BY 1";
    let mut statement = connection.prepare(sql).unwrap();
    let violated = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    violated.map(Result::unwrap).collect()
}

/// Runs the future on a runtime of two worker threads.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(HANGS, future).await });
    // What hangs must not keep the test from failing.
    runtime.shutdown_background();
    ended.expect("the test hangs")
}

/// Waits until `condition` holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits on a plain thread until `condition` holds.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < HANGS, "the test hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the single integer that `sql` returns on a plain connection.
pub(crate) fn integer(connection: &rusqlite::Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Returns every file in the directory with its content.
pub(crate) fn files(directory: &Path) -> Vec<(OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap_or_default())).collect();
    files.sort();
    files
}

/// Returns a command that runs this program's ignored test of that name, which is the child of another test.
pub(crate) fn as_child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture"]);
    command
}

/// A child that is killed when this is dropped, also by a test that fails.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child that may be killed at its call number `call`. Returns whether it was killed, and its output.
#[cfg(unix)]
pub(crate) fn run_until_killed(child: &mut Command, call: i64) -> (bool, String) {
    use std::os::unix::process::ExitStatusExt;
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "call {call}: {said}{}", String::from_utf8_lossy(&output.stderr));
    (killed, said)
}

/// Returns true in a process in which this test runs alone, as user `uid` if it is given: the test then continues.
/// Otherwise runs the test in such a process, passes on its failure, and returns false.
#[cfg(unix)]
pub(crate) fn is_alone_in_process(test: &str, uid: Option<u32>) -> bool {
    use std::os::unix::process::CommandExt;
    const CHILD: &str = "FLATWATER_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    if let Some(uid) = uid {
        child.uid(uid).gid(uid);
    }
    let output = child.output().unwrap_or_else(|error| panic!("the test program cannot be run again: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the name of a test:\n{said}");
    false
}

/// Returns a user who is not root and owns no files, if this process is root, because root may write every file.
#[cfg(unix)]
pub(crate) fn nobody() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let owner = tempfile::tempfile().unwrap().metadata().unwrap().uid();
    (owner == 0).then_some(65534)
}

/// Opens a database with the table `t (a)`.
pub(crate) async fn empty_table(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    db
}

/// Returns the number of calls that wait to be served.
pub(crate) fn waiting(db: &Database) -> usize {
    let stats = db.stats();
    stats.writes_waiting + stats.reads_waiting
}

/// Returns the number of rows of `t`.
pub(crate) async fn count(db: &Database) -> i64 {
    db.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap().unwrap()
}
