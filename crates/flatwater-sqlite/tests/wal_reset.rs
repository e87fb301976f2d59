//! The interleaving of SQLite's WAL-reset bug (<https://sqlite.org/wal.html#walresetbug>): a checkpointer reads the
//! wal-index header, another connection starts the WAL over and writes, the checkpointer goes on. The library that is
//! linked here loses no page then.
//!
//! Its own program, because SQLite's fault simulator is one for the process. SQLite calls it with 660 right there.
#![cfg(target_os = "linux")]

use std::ffi::c_int;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flatwater::Options;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::rusqlite::{self, Connection, ffi};

/// A checkpoint has read the header.
const BETWEEN: c_int = 660;
const INSERT: &str = "INSERT INTO t VALUES (?, randomblob(3000))";

static OTHER: Mutex<Option<Other>> = Mutex::new(None);
/// How often the WAL was started over in between.
static WRAPPED: AtomicI64 = AtomicI64::new(0);

/// The connection that writes in between, and what it has written.
struct Other {
    connection: Connection,
    wal: std::path::PathBuf,
    rows: i64,
}

impl Other {
    /// If all is copied, so that whoever writes next starts the WAL over: a few rows or many, since a wrong count of
    /// copied frames may be beyond what is there or in the middle of it.
    fn write(&mut self) {
        // It takes no lock.
        let state = "PRAGMA wal_checkpoint(NOOP)";
        let frames = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let (frames, copied) = self.connection.query_row(state, [], frames).unwrap();
        if copied < frames {
            return;
        }
        let before = self.salts();
        for _ in 0..[1, 5, 20][self.rows as usize % 3] {
            self.rows += 1;
            self.connection.execute(INSERT, [-self.rows]).unwrap();
        }
        if self.salts() != before {
            WRAPPED.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// They change when the WAL starts over (<https://sqlite.org/fileformat2.html#walformat>). No lock lies on this file.
    fn salts(&self) -> Vec<u8> {
        std::fs::read(&self.wal).unwrap_or_default().get(16..24).unwrap_or_default().to_vec()
    }
}

unsafe extern "C" fn on_fault(number: c_int) -> c_int {
    // Between two rounds of the writer nobody else can write.
    let is_checkpointer = std::thread::current().name() == Some("fw-checkpoint");
    if number == BETWEEN && is_checkpointer {
        let wrote = std::panic::catch_unwind(|| {
            // Its own look is one of these, too, and finds the lock taken.
            if let Ok(mut other) = OTHER.try_lock()
                && let Some(other) = &mut *other
            {
                other.write();
            }
        });
        if wrote.is_err() {
            std::process::abort();
        }
    }
    0
}

fn numbers(path: &Path) -> Vec<i64> {
    let connection = Connection::open(path).unwrap();
    let checked: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
    let mut statement = connection.prepare("SELECT n FROM t WHERE length(b) = 3000 ORDER BY n").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_wal_that_starts_over_between_a_checkpoints_two_looks_loses_no_page() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(64 << 20);
    let options = Options::new(&path).checkpoint(Checkpoint::Managed(managed));
    let handle = options.open().wait().unwrap();
    let db = handle.clone();
    db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA busy_timeout = 60000; PRAGMA wal_autocheckpoint = 0").unwrap();
    let wal = directory.path().join("test.db-wal");
    *OTHER.lock().unwrap() = Some(Other { connection, wal, rows: 0 });
    // SAFETY: FAULT_INSTALL takes one function pointer of this type.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_FAULT_INSTALL, on_fault as unsafe extern "C" fn(c_int) -> c_int);
    }
    let mut rows = 0;
    while WRAPPED.load(Ordering::SeqCst) < 30 {
        rows += 1;
        db.execute(INSERT, (rows,)).wait().unwrap();
        // Lets the checkpointer reach the end of the WAL.
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: a null pointer takes the callback out.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_FAULT_INSTALL, std::ptr::null_mut::<std::ffi::c_void>());
    }
    // More resets: what was wrongly taken for copied is overwritten by them.
    let resets = handle.stats().wal.resets;
    while handle.stats().wal.resets < resets + 3 {
        rows += 1;
        db.execute(INSERT, (rows,)).wait().unwrap();
    }
    let other = OTHER.lock().unwrap().take().unwrap();
    let expected: Vec<i64> = (-other.rows..0).chain(1..=rows).collect();
    let wal = handle.stats().wal;
    assert_eq!(wal.failures, 0, "{wal:?}");
    assert_eq!(numbers(&path), expected);
    drop(other);
    db.close().wait().unwrap();
    assert_eq!(numbers(&path), expected);
}
