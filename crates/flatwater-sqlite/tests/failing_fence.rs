//! A write to the WAL that fails with durability `normal`, where no commit is synced: what is on the disk when the failure
//! is told.
//!
//! Its own program, because it puts its own `pwrite`, `fsync` and `fdatasync` in the place of the C library's.
#![cfg(target_os = "linux")]

#[path = "interposed/syncs.rs"]
mod syncs;
#[path = "interposed/writes.rs"]
mod writes;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use flatwater::options::{Checkpoint, Durability};
use flatwater::{Database, ErrorKind, Options};

/// Writes to a WAL, and syncs of one, that are to fail.
static FAILING_WRITES: AtomicI32 = AtomicI32::new(0);
static FAILING_SYNCS: AtomicI32 = AtomicI32::new(0);
/// Something was written to a WAL since it was synced.
static IS_UNSYNCED: AtomicBool = AtomicBool::new(false);

fn takes_one(left: &AtomicI32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left > 0).then(|| left - 1)).is_ok()
}

fn is_wal(fd: c_int) -> bool {
    let file = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    file.as_os_str().as_encoded_bytes().ends_with(b"-wal")
}

fn fail() {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = libc::EIO };
}

fn writes(fd: c_int) -> bool {
    if is_wal(fd) {
        IS_UNSYNCED.store(true, Ordering::SeqCst);
        if takes_one(&FAILING_WRITES) {
            fail();
            return false;
        }
    }
    true
}

fn sync(number: libc::c_long, fd: c_int) -> c_int {
    if is_wal(fd) {
        if takes_one(&FAILING_SYNCS) {
            fail();
            return -1;
        }
        IS_UNSYNCED.store(false, Ordering::SeqCst);
    }
    // SAFETY: the system call that the replaced function makes, with its argument.
    unsafe { libc::syscall(number, fd) as c_int }
}

/// Nobody but the writer touches the WAL.
fn with_database(test: impl FnOnce(&Database)) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    FAILING_WRITES.store(0, Ordering::SeqCst);
    FAILING_SYNCS.store(0, Ordering::SeqCst);
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new(directory.path().join("test.db"));
    let options = options.durability(Durability::Normal).checkpoint(Checkpoint::External);
    let db = options.open().wait().unwrap();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
    test(&db);
    db.close().wait().unwrap();
}

#[test]
fn the_fence_is_on_the_disk_before_the_failure_is_told() {
    with_database(|db| {
        for n in 0..10 {
            db.execute("INSERT INTO t VALUES (?)", (n,)).wait().unwrap();
            assert!(IS_UNSYNCED.load(Ordering::SeqCst), "a commit alone syncs nothing");
            FAILING_WRITES.store(1, Ordering::SeqCst);
            let error = db.execute("INSERT INTO t VALUES (?)", (100 + n,)).wait().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(!IS_UNSYNCED.load(Ordering::SeqCst), "the fence is in the system's cache only");
        }
        assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), Some(10));
    });
}

#[test]
fn a_fence_that_cannot_be_synced_leaves_the_outcome_unknown() {
    with_database(|db| {
        FAILING_WRITES.store(1, Ordering::SeqCst);
        FAILING_SYNCS.store(1, Ordering::SeqCst);
        let error = db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
        let refused = db.execute("INSERT INTO t VALUES (2)", ()).wait().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Io, "{refused}");
        assert!(refused.message().contains("sync"), "{refused}");
        assert_eq!(
            db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(),
            Some(0),
            "reads go on"
        );
    });
}
