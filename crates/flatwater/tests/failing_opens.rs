//! Files beside the database that cannot be opened for writing for a moment, as at the limit of open files: SQLite then
//! opens them for reading, and nothing can be written for as long as the connection lives.
//!
//! Its own program, because the failures are switched on for the whole process.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "the other program uses the rest")]
#[path = "it/support.rs"]
mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, Error, ErrorKind, Options};
use flatwater_sqlite::fault::{Fault, fail_opens, have_opens_failed};
use flatwater_sqlite::{LockFile, LockedFile};
use rusqlite::config::DbConfig;
use support::{ENDLESS, TestFile, count, run, until};

const EMFILE: i32 = 24;
const ENDS: [&str; 2] = ["-wal", "-shm"];

/// A failure hits whatever opens meanwhile, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next opening for writing of such a file fails, and then is tried for reading, which succeeds.
fn once(end: &'static str) -> Fault {
    fail_opens(end, true, 0, 1, EMFILE)
}

/// A file with the table `t (a)`, and a plain connection that keeps the files beside it where they are.
fn written() -> (TestFile, rusqlite::Connection) {
    let file = TestFile::new();
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
    (file, plain)
}

/// As after a crash: the files beside the database are there, and nobody in this process has them open.
fn left_behind() -> TestFile {
    let (original, _plain) = written();
    let file = TestFile::new();
    for end in ["", "-wal", "-shm"] {
        std::fs::copy(original.beside(end), file.beside(end)).unwrap();
    }
    file
}

/// The same twice, the other one with the name `other.db`.
fn with_another_left_behind() -> TestFile {
    let (file, other) = (left_behind(), left_behind());
    for end in ["", "-wal", "-shm"] {
        std::fs::copy(other.beside(end), file.directory().join(format!("other.db{end}"))).unwrap();
    }
    file
}

/// The writer's connection is given up, and the next write opens another one.
async fn give_up_the_writers_connection(db: &Database) {
    let before = db.stats().replaced_connections;
    let other_than_before = |tx: &rusqlite::Transaction<'_>| {
        tx.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false).map(|_| ()).map_err(Error::from)
    };
    db.write_with(other_than_before).await.unwrap();
    assert_eq!(db.stats().replaced_connections, before + 1);
}

#[test]
fn a_file_that_could_only_be_opened_for_reading_is_opened_again() {
    let _alone = alone();
    for end in ENDS {
        let file = left_behind();
        run(async {
            let fault = once(end);
            let db = file.open().await;
            drop(fault);
            db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_or_else(|error| panic!("{end}: {error}"));
            give_up_the_writers_connection(&db).await;
            let fault = once(end);
            db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_or_else(|error| panic!("{end}: {error}"));
            drop(fault);
            assert_eq!(count(&db).await, 2);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn a_database_that_cannot_be_written_is_not_opened_to_write() {
    let _alone = alone();
    for end in ENDS {
        let file = left_behind();
        run(async {
            let fault = fail_opens(end, true, 0, i64::MAX, EMFILE);
            let error = file.options().busy_timeout(Duration::from_millis(20)).open().await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")), "{error}");
            assert!(error.message().contains(end) && error.message().contains("cannot be written"), "{error}");
            assert!(error.hint().unwrap().contains("ulimit -n"), "{error}");
            drop(fault);
            let db = file.open().await;
            db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            db.close().await.unwrap();
        });
    }
}

/// The `-shm` is open once in a process. A reader opens it for reading, while the writer has no connection, and there is no
/// checkpointer that could have one.
async fn reader_with_a_read_only_index(file: &TestFile) -> (Database, Fault) {
    let db = file.options().readers(2).checkpoint(Checkpoint::External).open().await.unwrap();
    db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    give_up_the_writers_connection(&db).await;
    (db, once("-shm"))
}

#[test]
fn readers_let_go_of_a_wal_index_that_the_writer_cannot_write() {
    let (_alone, file) = (alone(), left_behind());
    run(async {
        let (db, fault) = reader_with_a_read_only_index(&file).await;
        assert_eq!(count(&db).await, 1);
        drop(fault);
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(count(&db).await, 2);
        db.close().await.unwrap();
    });
}

#[test]
fn a_read_that_keeps_such_a_wal_index_is_waited_for_and_then_told() {
    let (_alone, file) = (alone(), left_behind());
    run(async {
        let (db, fault) = reader_with_a_read_only_index(&file).await;
        let long = tokio::spawn({
            let db = db.clone();
            async move { db.query(ENDLESS, ()).await }
        });
        until(|| db.stats().wal.oldest_read.is_some() && have_opens_failed()).await;
        drop(fault);
        let error = db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(error.hint().unwrap().contains("long reads"), "{error}");
        assert_eq!(count(&db).await, 1, "reads go on");
        long.abort();
        until(|| db.stats().wal.oldest_read.is_none()).await;
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(count(&db).await, 2);
        db.close().await.unwrap();
    });
}

#[test]
fn a_reader_that_cannot_bring_its_wal_index_up_to_date_is_not_used_again() {
    let (_alone, file) = (alone(), left_behind());
    run(async {
        let (db, fault) = reader_with_a_read_only_index(&file).await;
        assert_eq!(count(&db).await, 1);
        drop(fault);
        // As if a process had died while it wrote the header.
        let index = std::fs::OpenOptions::new().write(true).open(file.beside("-shm")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&index, &[1; 96], 0).unwrap();
        let error = db.query("SELECT count(*) FROM t", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains("-shm"), "{error}");
        assert_eq!(count(&db).await, 1);
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        db.close().await.unwrap();
    });
}

/// A connection of this process that is not Flatwater's has the `-shm` open for reading.
#[test]
fn somebody_elses_connection_is_told_and_the_database_opens_when_it_is_gone() {
    let (_alone, file) = (alone(), left_behind());
    run(async {
        let fault = once("-shm");
        let plain = file.plain();
        assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), 0);
        drop(fault);
        let options = file.options().busy_timeout(Duration::from_millis(20));
        let error = options.clone().open().await.unwrap_err();
        assert!(error.hint().unwrap().contains("not Flatwater's"), "{error}");
        drop(plain);
        let db = options.open().await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
    });
}

/// Each BEGIN IMMEDIATE begins a write in each file: with one of the files beside an attached one nothing at all could be
/// written.
#[test]
fn an_attached_file_that_could_only_be_opened_for_reading_is_opened_again() {
    let _alone = alone();
    let writes = ["INSERT INTO main.t VALUES (1)", "INSERT INTO other.t VALUES (1)"];
    for (end, sql) in
        ["other.db", "other.db-wal", "other.db-shm"].into_iter().flat_map(|end| writes.map(|sql| (end, sql)))
    {
        let file = with_another_left_behind();
        let path = file.directory().join("other.db");
        // As if another process used the file: a wal-index that nobody else has is not believed.
        let other = LockFile::open(&file.directory().join("other.db-shm"), LockedFile::WalIndex).unwrap();
        assert!(other.hold().unwrap());
        run(async {
            let fault = once(end);
            let db = file.options().tuning(|t| t.attach("other", path)).open().await.unwrap();
            drop(fault);
            assert_eq!(count(&db).await, 0);
            db.execute(sql, ()).await.unwrap_or_else(|error| panic!("{end}: {sql}: {error}"));
            give_up_the_writers_connection(&db).await;
            let fault = once(end);
            db.execute(sql, ()).await.unwrap_or_else(|error| panic!("{end}: {sql}: {error}"));
            drop(fault);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn an_attached_file_that_cannot_be_written_is_told_by_its_name() {
    let _alone = alone();
    for end in ["other.db-wal", "other.db-shm"] {
        let file = with_another_left_behind();
        run(async {
            let options = file
                .options()
                .tuning(|t| t.attach("other", file.directory().join("other.db")))
                .busy_timeout(Duration::from_millis(20));
            let fault = fail_opens(end, true, 0, i64::MAX, EMFILE);
            let error = options.clone().open().await.unwrap_err();
            drop(fault);
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")), "{error}");
            assert!(error.message().contains("other.db-wal or "), "{error}");
            assert!(error.message().contains("cannot be written"), "{error}");
            options.open().await.unwrap().execute("INSERT INTO other.t VALUES (1)", ()).await.unwrap();
        });
    }
}

/// An open looks for it; here another program switches the attached file to WAL behind it, so a write meets it.
#[test]
fn a_write_that_finds_a_file_open_for_reading_only_runs_once_more() {
    type Write = fn(Database) -> futures_util::future::BoxFuture<'static, Result<(), Error>>;
    const INSERT: &str = "INSERT INTO other.t VALUES (1)";
    let writes: [Write; 6] = [
        |db| Box::pin(async move { db.execute(INSERT, ()).await.map(drop) }),
        |db| Box::pin(async move { db.execute_many("INSERT INTO other.t VALUES (?)", [(1,)]).await.map(drop) }),
        |db| Box::pin(async move { db.batch([(INSERT, flatwater::params![])]).await.map(drop) }),
        |db| Box::pin(async move { db.execute_script(INSERT).await.map(drop) }),
        |db| Box::pin(async move { db.write_with(|tx| tx.execute(INSERT, []).map(|_| ()).map_err(Error::from)).await }),
        |db| {
            Box::pin(async move {
                let tx = db.begin().await?;
                tx.execute(INSERT, ()).await?;
                tx.commit().await
            })
        },
    ];
    let _alone = alone();
    for (at, write) in writes.into_iter().enumerate() {
        let ((file, _), (other, other_plain)) = (written(), written());
        other_plain.execute_batch("PRAGMA journal_mode = delete").unwrap();
        run(async {
            let db = file.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
            let to_wal = "PRAGMA journal_mode = wal; CREATE TABLE u (a)";
            other_plain.execute_batch(to_wal).unwrap();
            let fault = once("-wal");
            write(db.clone()).await.unwrap_or_else(|error| panic!("write {at}: {error}"));
            drop(fault);
            assert_eq!(db.stats().replaced_connections, 1, "write {at}");
            assert_eq!(support::integer(&other_plain, "SELECT count(*) FROM t"), 1, "write {at}: once");
            write(db.clone()).await.unwrap();
            assert_eq!(db.stats().replaced_connections, 1, "write {at}");
            db.close().await.unwrap();
        });
    }
}

fn small(file: &TestFile) -> Options {
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20);
    file.options().checkpoint(Checkpoint::Managed(managed))
}

/// Writes rows of 6,000 bytes until `condition` holds.
async fn write_until(db: &Database, condition: impl Fn(&flatwater::stats::WalStats) -> bool) {
    while !condition(&db.stats().wal) {
        db.execute("INSERT INTO t VALUES (zeroblob(6000))", ()).await.unwrap();
    }
}

#[test]
fn a_checkpointer_whose_wal_is_open_for_reading_only_gets_another_connection() {
    let _alone = alone();
    for end in ["-wal", ""] {
        let (file, _plain) = written();
        run(async {
            let db = small(&file).open().await.unwrap();
            // Nothing but the checkpointer opens a connection from here on.
            let fault = fail_opens(if end.is_empty() { "test.db" } else { end }, true, 0, 3, EMFILE);
            write_until(&db, |wal| wal.failures >= 1).await;
            let failed = db.stats().wal;
            write_until(&db, |wal| wal.resets >= failed.resets + 3).await;
            drop(fault);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn nobody_waits_for_room_that_a_failing_checkpointer_cannot_make() {
    let (_alone, (file, _plain)) = (alone(), written());
    run(async {
        let db = small(&file).open().await.unwrap();
        let fault = fail_opens("-wal", true, 0, i64::MAX, EMFILE);
        write_until(&db, |wal| wal.failures >= 2).await;
        let before = db.stats().wal;
        // Four times the hard limit.
        for _ in 0..700 {
            db.execute("INSERT INTO t VALUES (zeroblob(6000))", ()).await.unwrap();
        }
        let after = db.stats().wal;
        assert_eq!((after.waits_for_room, after.slowed), (before.waits_for_room, before.slowed));
        drop(fault);
        write_until(&db, |wal| wal.resets >= after.resets + 2).await;
        db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn an_open_that_the_system_refuses_says_what_the_system_said() {
    let _alone = alone();
    let table = [
        (EMFILE, "too many open files", "ulimit -n"),
        (23, "too many open files on this machine", "limit"),
        (28, "no space left", "free space"),
        (5, "the disk failed", "may be intact"),
        (13, "permission denied", ""),
        (30, "mounted read-only", ""),
    ];
    for (errno, words, advice) in table {
        for end in ["test.db", "-wal", "-shm"] {
            let file = left_behind();
            run(async {
                let fault = fail_opens(end, false, 0, i64::MAX, errno);
                for options in [file.options(), file.options().read_only(true)] {
                    let error = options.open().await.unwrap_err();
                    assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")), "{end} {error}");
                    assert!(error.message().contains(words), "{end} {errno}: {error}");
                    let advised = error.hint().unwrap();
                    assert!(advised.contains(advice), "{end} {errno}: {error}");
                    assert!(errno != EMFILE || !advised.contains("permission"), "{error}");
                }
                drop(fault);
                file.open().await.close().await.unwrap();
            });
        }
    }
}
