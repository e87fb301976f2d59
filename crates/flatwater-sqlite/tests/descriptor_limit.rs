//! A process at its limit of open files: what fails says so, and all goes on when there are descriptors again.
//!
//! Its own program, because the limit is the process's; in one test, because what runs beside it would need descriptors.
#![cfg(target_os = "linux")]

use std::fs::File;

use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::rusqlite::Transaction;
use flatwater::rusqlite::config::DbConfig;
use flatwater::{Database, Error, ErrorKind, Options};

/// Until there are so many left.
fn leave_descriptors(left: usize) -> Vec<File> {
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - left);
    files
}

fn set_limit(files: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives for both calls.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = files;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}

/// After it the writer's connection is another one.
fn spoil(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map(|_| ()).map_err(Error::from)
}

fn is_told(error: &Error, left: usize) {
    assert!([ErrorKind::Open, ErrorKind::Io].contains(&error.kind()), "{left}: {error}");
    assert!(error.to_string().contains("open files"), "{left}: {error}");
}

fn insert(db: &Database) -> Result<(), Error> {
    db.execute("INSERT INTO t VALUES (zeroblob(6000))", ()).wait().map(drop)
}

#[test]
fn a_process_that_ran_out_of_descriptors_writes_and_reads_when_it_has_some_again() {
    set_limit(100);
    let directory = tempfile::tempdir().unwrap();
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20);
    let options = Options::new(directory.path().join("test.db")).checkpoint(Checkpoint::Managed(managed)).readers(2);
    let (mut rows, mut failures) = (0, 0);
    for left in 0..12 {
        let full = leave_descriptors(left);
        let opened = options.clone().open().wait();
        drop(full);
        let handle = opened.unwrap_or_else(|error| {
            failures += 1;
            is_told(&error, left);
            options.clone().open().wait().unwrap()
        });
        let db = handle.clone();
        db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
        insert(&db).unwrap();
        rows += 1;
        db.write_with(spoil).wait().unwrap();
        let full = leave_descriptors(left);
        // The writer, a reader and the checkpointer, as far as there are descriptors.
        let read = db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait();
        for _ in 0..100 {
            match insert(&db) {
                Ok(()) => rows += 1,
                Err(error) => {
                    failures += 1;
                    is_told(&error, left);
                }
            }
        }
        drop(full);
        read.map_or_else(|error| is_told(&error, left), |count| assert!(count.is_some()));
        let resets = handle.stats().wal.resets;
        while handle.stats().wal.resets < resets + 2 {
            insert(&db).unwrap();
            rows += 1;
        }
        assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), Some(rows));
        db.close().wait().unwrap();
    }
    assert!(failures > 0, "nothing failed");
}
