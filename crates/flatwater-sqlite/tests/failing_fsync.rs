//! What the engine says and does when fsync fails: no ghost of a failed commit, nothing acknowledged lost.
//!
//! Its own program, because it puts its own `fsync` and `fdatasync` in the place of the C library's. That needs
//! `unsafe`, so it stands here and not with the engine's tests.
#![cfg(target_os = "linux")]

mod futures;
#[path = "interposed/syncs.rs"]
mod syncs;

use std::ffi::c_int;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flatwater::options::{Checkpoint, CheckpointLimits, Durability, GroupLimits};
use flatwater::{Database, ErrorKind, Options, rusqlite};
use futures::finish;

/// How many syncs pass before, and how many then fail.
static PASSING: AtomicI32 = AtomicI32::new(0);
static FAILING: AtomicI32 = AtomicI32::new(0);
/// Syncs that were done.
static DONE: AtomicI32 = AtomicI32::new(0);

fn sync(number: libc::c_long, fd: c_int) -> c_int {
    let takes_one = |left: &AtomicI32| {
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
    };
    // SQLite syncs the directory of a new file too, and does not look at the answer.
    let is_file = std::fs::metadata(format!("/proc/self/fd/{fd}")).is_ok_and(|metadata| metadata.is_file());
    if is_file && !takes_one(&PASSING) && takes_one(&FAILING) {
        // SAFETY: the C library's errno of this thread.
        unsafe { *libc::__errno_location() = libc::EIO };
        return -1;
    }
    DONE.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system call that the replaced function makes, with its argument.
    unsafe { libc::syscall(number, fd) as c_int }
}

fn with_database(test: impl FnOnce(&Path, &Database)) {
    with_options(|path| Options::new(path).durability(Durability::Full), test);
}

fn with_options(options: impl FnOnce(&Path) -> Options, test: impl FnOnce(&Path, &Database)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    PASSING.store(0, Ordering::SeqCst);
    FAILING.store(0, Ordering::SeqCst);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let db = options(&path).open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
    db.execute("INSERT INTO t VALUES (0)", ()).wait().unwrap();
    test(&path, &db);
    db.close().wait().unwrap();
    let checked: String = plain(&path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

fn plain(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

fn numbers(connection: &rusqlite::Connection) -> Vec<i64> {
    let mut statement = connection.prepare("SELECT n FROM t ORDER BY n").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// What a recovery after a crash at this moment would find: the database and the WAL, without the wal-index.
fn after_a_crash(path: &Path) -> Vec<i64> {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("test.db");
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(name(path), name(&copy)).unwrap();
    }
    numbers(&plain(&copy))
}

#[test]
fn sqlite_by_itself_leaves_a_ghost_of_a_failed_commit() {
    with_database(|path, db| {
        db.close().wait().unwrap();
        let connection = plain(path);
        connection.execute_batch("PRAGMA synchronous = FULL; INSERT INTO t VALUES (1)").unwrap();
        FAILING.store(1, Ordering::SeqCst);
        connection.execute("INSERT INTO t VALUES (2)", []).unwrap_err();
        assert_eq!(numbers(&connection), [0, 1]);
        assert_eq!(after_a_crash(path), [0, 1, 2], "this is what the fence is there for");
    });
}

/// The first sync fails and every later one says that all is well: what the system forgot is not written by them.
#[test]
fn after_a_failed_sync_nothing_is_written_any_more_and_reads_go_on() {
    with_database(|path, db| {
        FAILING.store(1, Ordering::SeqCst);
        let error = db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap_err();
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Io, Some("SQLITE_IOERR_FSYNC")), "{error}");
        assert_eq!(after_a_crash(path), [0], "it leaves no ghost");
        let refused = db.execute("INSERT INTO t VALUES (2)", ()).wait().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
        assert!(refused.to_string().contains("reopen the file"), "{refused}");
        assert_eq!(db.query_optional_value("SELECT count(*) FROM t", ()).wait().unwrap(), Some(1));
        db.close().wait().unwrap();
        let again = Options::new(path).open().wait().unwrap();
        again.execute("INSERT INTO t VALUES (100)", ()).wait().unwrap();
        assert_eq!(after_a_crash(path), [0, 100]);
        again.close().wait().unwrap();
    });
}

/// The checkpoint's, those of both files before the WAL is started over, and that of its new header.
#[test]
fn whichever_sync_of_a_checkpoint_fails_nothing_is_written_any_more() {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(8 << 20);
    let small =
        |path: &Path| Options::new(path).durability(Durability::Normal).checkpoint(Checkpoint::Managed(managed));
    for passing in 0..12 {
        with_options(small, |path, db| {
            let mut known = vec![0];
            PASSING.store(passing, Ordering::SeqCst);
            FAILING.store(1, Ordering::SeqCst);
            let mut at_failure = None;
            let error = loop {
                let n = i64::try_from(known.len()).unwrap();
                match db.execute("INSERT INTO t VALUES (?)", (n,)).wait() {
                    Ok(_) => known.push(n),
                    Err(error) => break error,
                }
                if FAILING.load(Ordering::SeqCst) == 0 {
                    let done = DONE.load(Ordering::SeqCst);
                    let before = *at_failure.get_or_insert(done);
                    assert!(done < before + 20, "sync {passing} failed, and all goes on");
                }
            };
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            // The one is new, the other is known to be short and would run here at once.
            assert!(db.execute("INSERT INTO t VALUES (-1)", ()).wait().is_err());
            assert!(db.execute("INSERT INTO t VALUES (?)", (-2,)).wait().is_err());
            assert_eq!(after_a_crash(path), known);
        });
    }
}

#[test]
fn a_failed_batch_and_a_failed_closure_leave_no_ghost() {
    with_database(|path, db| {
        FAILING.store(1, Ordering::SeqCst);
        let rows = (1..50).map(|n| (n,));
        assert_eq!(db.execute_many("INSERT INTO t VALUES (?)", rows).wait().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(after_a_crash(path), [0]);
    });
    with_database(|path, db| {
        FAILING.store(1, Ordering::SeqCst);
        let error = db
            .write_with(|tx| tx.execute("INSERT INTO t VALUES (1)", []).map_err(flatwater::Error::from))
            .wait()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(after_a_crash(path), [0]);
    });
}

#[test]
fn a_write_whose_fence_fails_too_is_unknown() {
    with_database(|path, db| {
        FAILING.store(2, Ordering::SeqCst);
        let error = db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
        FAILING.store(0, Ordering::SeqCst);
        let found: Vec<(i64,)> = db.query_as("SELECT n FROM t ORDER BY n", ()).wait().unwrap();
        assert!(found.contains(&(0,)), "{found:?}");
        let found: Vec<i64> = found.into_iter().map(|(n,)| n).collect();
        assert_eq!(after_a_crash(path), found, "what is seen is what a crash leaves");
    });
}

/// Members of a group whose COMMIT meets a failing fsync run again, each by itself.
#[test]
fn a_group_whose_fsync_fails_is_applied_once() {
    let hour = GroupLimits::default().time(Duration::from_secs(3600));
    let lost_groups = AtomicI32::new(0);
    for _ in 0..30 {
        let grouped = |path: &Path| Options::new(path).durability(Durability::Full).tuning(|t| t.group(hour));
        with_options(grouped, |path, db| {
            let handle = grouped(path).open().wait().unwrap();
            let mut known = vec![0];
            // The first group finds that the schema is not the one its text was learnt under.
            for (first, failures) in [(10, 0), (20, 0), (30, 1)] {
                // The writer is held until all wait.
                let holder = finish(handle.begin()).unwrap();
                let threads: Vec<_> = (first..first + 8)
                    .map(|n| {
                        let db = db.clone();
                        std::thread::spawn(move || (n, db.execute("INSERT INTO t VALUES (?)", (n,)).wait()))
                    })
                    .collect();
                while db.stats().writes_waiting < 8 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                FAILING.store(failures, Ordering::SeqCst);
                finish(holder.rollback()).unwrap();
                for thread in threads {
                    match thread.join().unwrap() {
                        (n, Ok(_)) => known.push(n),
                        (_, Err(error)) => assert_eq!((error.kind(), failures), (ErrorKind::Io, 1), "{error}"),
                    }
                }
            }
            FAILING.store(0, Ordering::SeqCst);
            // A text that takes long on a busy machine is no member.
            lost_groups.fetch_add(i32::from(db.stats().replays > 1), Ordering::SeqCst);
            known.sort_unstable();
            assert_eq!(after_a_crash(path), known);
        });
    }
    assert!(lost_groups.load(Ordering::SeqCst) > 0, "there was no group");
}
