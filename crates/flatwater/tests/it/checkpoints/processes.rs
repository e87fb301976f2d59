//! Other users of the file: a second database in this process, a second Flatwater on the same file, and plain
//! connections that checkpoint at any time. Every acknowledged write is present, the WAL returns below its limit, and
//! no caller starves.
//!
//! The other process is this program, which runs the ignored test below and executes commands line by line.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::stats::WalBlocker;
use flatwater::{Database, Options};

use crate::support::{TestFile, as_child, count, empty_table, integer, run, until};

const INSERT: &str = "INSERT INTO t VALUES (randomblob(8000))";
const LIMIT: u64 = 1 << 20;
const LIMIT_FRAMES: u32 = 254;
const PATH: &str = "FLATWATER_BESIDE_PATH";

fn small(path: &Path) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(LIMIT).hard_limit_bytes(64 * LIMIT);
    Options::new(path).checkpoint(Checkpoint::Managed(managed))
}

fn plain(path: &Path) -> rusqlite::Connection {
    let plain = rusqlite::Connection::open(path).unwrap();
    plain.busy_timeout(Duration::from_secs(60)).unwrap();
    plain
}

/// The commands: `flatwater N` and `plain N` write rows; `restart` and `truncate` checkpoint, if no lock prevents it.
#[test]
#[ignore = "runs as the child of the tests below"]
fn child() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let path = Path::new(&path);
    let (mut flatwater, mut connection) = (None, None);
    for line in std::io::stdin().lines().map(Result::unwrap) {
        let (what, rows) = line.split_once(' ').unwrap_or((&line, "0"));
        let rows: usize = rows.parse().unwrap();
        if what == "flatwater" {
            let db = flatwater.get_or_insert_with(|| small(path).open().wait().unwrap());
            let blocking = db.clone();
            for _ in 0..rows {
                blocking.execute(INSERT, ()).wait().unwrap();
            }
            let wal = db.stats().wal;
            assert_eq!(wal.failures, 0, "{wal:?}");
            println!("did {}", wal.resets);
            continue;
        }
        let connection = connection.get_or_insert_with(|| plain(path));
        match what {
            "plain" => {
                for _ in 0..rows {
                    connection.execute(INSERT, []).unwrap();
                }
            }
            mode => {
                let sql = format!("PRAGMA wal_checkpoint({mode})");
                connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap();
            }
        }
        println!("did 0");
    }
    if let Some(db) = flatwater {
        db.close().wait().unwrap();
    }
}

struct Beside {
    child: Child,
    tells: Option<ChildStdin>,
    says: Lines<BufReader<ChildStdout>>,
}

impl Beside {
    fn start(file: &TestFile) -> Self {
        let mut child = as_child("checkpoints::processes::child")
            .env(PATH, file.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { tells: child.stdin.take(), child, says }
    }

    /// Sends a command and waits until it is done. Returns the number that the process prints.
    fn does(&mut self, what: &str) -> u64 {
        writeln!(self.tells.as_mut().unwrap(), "{what}").unwrap();
        let said = self.says.by_ref().map(Result::unwrap).find_map(|line| line.split_once("did ")?.1.parse().ok());
        said.expect("the other process failed")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        drop(self.tells.take());
        let ended = self.child.wait().unwrap();
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

/// Writes for as long as `other` runs on its thread. Returns the number of rows, and the result of `other`.
async fn write_while<T: Send>(db: &Database, other: impl FnOnce() -> T + Send) -> (i64, T) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(other));
            done.store(true, Ordering::SeqCst);
            answer
        });
        let mut rows = 0;
        let blocking = db.clone();
        while !done.load(Ordering::SeqCst) {
            blocking.execute(INSERT, ()).wait().unwrap();
            rows += 1;
        }
        (rows, other.join().unwrap().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[test]
fn two_databases_of_one_process_do_not_disturb_each_other() {
    let (one, other) = (TestFile::new(), TestFile::new());
    run(async {
        let blocked = empty_table(small(&one.path())).await;
        let free = empty_table(small(&other.path())).await;
        blocked.execute(INSERT, ()).await.unwrap();
        let reader = one.plain();
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        let mut rows = 0;
        while blocked.stats().wal.starved < 3 || free.stats().wal.resets < 3 {
            blocked.execute(INSERT, ()).await.unwrap();
            free.execute(INSERT, ()).await.unwrap();
            rows += 1;
        }
        let (held, wal) = (blocked.stats().wal, free.stats().wal);
        assert_eq!((held.resets, held.cause, held.failures), (0, Some(WalBlocker::Foreign), 0));
        assert_eq!((wal.starved, wal.cause, wal.failures), (0, None, 0));
        free.close().await.unwrap();
        reader.execute_batch("COMMIT").unwrap();
        until(|| blocked.stats().wal.resets > 0).await;
        assert_eq!(count(&blocked).await, rows + 1);
    });
}

/// Each of them makes progress although the other never stops.
#[test]
fn two_processes_with_a_checkpointer_each_both_go_on() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file.path())).await;
        let mut beside = Beside::start(&file);
        beside.does("flatwater 1");
        let (mut rows, mut went_on) = (1, 0);
        for time in 0.. {
            let (ours, _) = write_while(&db, || beside.does("flatwater 300")).await;
            rows += ours + 300;
            // This thread may not have run meanwhile.
            went_on += i32::from(ours > 0);
            if went_on == 3 {
                break;
            }
            assert!(time < 100, "we wrote beside the other {went_on} times");
        }
        // We go on while the other is there and does not stop either.
        for _ in 0..300 {
            db.execute(INSERT, ()).await.unwrap();
        }
        until(|| db.stats().wal.frames < LIMIT_FRAMES).await;
        let (wal, theirs) = (db.stats().wal, beside.does("flatwater 0"));
        assert_eq!(wal.failures, 0, "{wal:?}");
        assert!(wal.resets + theirs > 0, "{wal:?}");
        assert_eq!(count(&db).await, rows + 300);
        drop(beside);
        db.close().await.unwrap();
        assert!(!file.beside("-wal").exists());
    });
}

#[test]
fn a_foreign_process_that_checkpoints_while_it_writes_disturbs_nothing() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file.path())).await;
        let mut beside = Beside::start(&file);
        let (ours, _) = write_while(&db, || beside.does("plain 600")).await;
        for _ in 0..300 {
            db.execute(INSERT, ()).await.unwrap();
        }
        until(|| db.stats().wal.frames < LIMIT_FRAMES).await;
        let wal = db.stats().wal;
        assert_eq!((wal.failures, wal.backlog <= wal.frames), (0, true), "{wal:?}");
        // Ours waits at the hard limit. The other does not, but all it writes is 600 times three frames.
        assert!(wal.file_bytes < 80 * LIMIT, "{wal:?}");
        assert_eq!(count(&db).await, ours + 900);
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), ours + 900);
    });
}

#[test]
fn a_foreign_restart_or_truncate_at_any_moment_loses_nothing() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file.path())).await;
        let mut beside = Beside::start(&file);
        let mut rows = 0;
        // While ours writes and copies ...
        let (ours, ()) = write_while(&db, || {
            for _ in 0..100 {
                beside.does("restart");
                beside.does("truncate");
                beside.does("plain 2");
            }
        })
        .await;
        rows += ours + 200;
        assert_eq!(count(&db).await, rows);
        // ... and while it rests, with and without something in the WAL.
        for round in 0..20 {
            until(|| db.stats().writes_waiting == 0).await;
            beside.does(if round % 2 == 0 { "truncate" } else { "restart" });
            for _ in 0..round {
                db.execute(INSERT, ()).await.unwrap();
            }
            beside.does("plain 1");
            rows += round + 1;
            assert_eq!(count(&db).await, rows, "round {round}");
        }
        let resets = db.stats().wal.resets;
        while db.stats().wal.resets == resets {
            db.execute(INSERT, ()).await.unwrap();
            rows += 1;
        }
        let wal = db.stats().wal;
        assert_eq!(wal.failures, 0, "{wal:?}");
        assert_eq!(count(&db).await, rows);
    });
}
