//! Backups: a whole database at one point in time, under a name that was free, while others read and write.
//!
//! What happens in the middle of a backup is tested by `held_backup.rs` of `flatwater-sqlite`. The other process is this
//! program, which runs the ignored test below.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flatwater::options::Journal;
use flatwater::{Database, Error, ErrorKind, Options};

use crate::place::{Place, in_both_places};
use crate::support::{Killed, TestFile, as_child, files, integer, integrity, is_alone_in_process, nobody, run};

in_both_places!(
    a_backup_is_the_same_database,
    a_backup_replaces_nothing,
    a_path_at_which_no_file_can_be_made_is_refused,
    a_backup_that_is_too_late_or_dropped_leaves_nothing,
    the_same_name_is_given_once,
);

const PATH: &str = "FLATWATER_BACKUP_PATH";

fn names(directory: &Path) -> Vec<String> {
    files(directory).into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
}

/// Opens a backup with plain SQLite, and checks the whole of it.
fn opened(path: &Path) -> rusqlite::Connection {
    let plain = rusqlite::Connection::open(path).unwrap();
    assert_eq!(integrity(&plain), "ok");
    plain
}

async fn a_backup_is_the_same_database(place: &Place) {
    let copies = tempfile::tempdir().unwrap();
    for (n, page_size) in [512, 4096, 65536].into_iter().enumerate() {
        let place = place.another();
        let db = place.options().tuning(|t| t.page_size(page_size)).open().await.unwrap();
        db.execute_script(
            "PRAGMA user_version = 7; PRAGMA application_id = 1234;
             CREATE TABLE plain (a); CREATE INDEX by_a ON plain (a); CREATE TABLE empty (a PRIMARY KEY) WITHOUT ROWID;
             CREATE VIRTUAL TABLE words USING fts5 (w, content = plain, content_rowid = rowid);
             WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 800)
             INSERT INTO plain SELECT hex(zeroblob(n % 4000)) FROM n;
             DELETE FROM plain WHERE rowid % 3 = 0",
        )
        .await
        .unwrap();
        let path = copies.path().join(format!("{n}.db"));
        db.backup(&path).await.unwrap();
        let expected: Option<String> =
            db.query_optional_value("SELECT group_concat(rowid || a) FROM plain", ()).await.unwrap();
        let plain = opened(&path);
        let text = |sql| plain.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(Some(text("SELECT group_concat(rowid || a) FROM plain")), expected, "also the rowids");
        assert_eq!(integer(&plain, "PRAGMA user_version"), 7);
        assert_eq!(integer(&plain, "PRAGMA application_id"), 1234);
        assert_eq!(integer(&plain, "PRAGMA page_size"), i64::from(page_size));
        assert_eq!(text("PRAGMA journal_mode"), if place.file().is_some() { "wal" } else { "delete" });
        assert_eq!(integer(&plain, "SELECT count(*) FROM sqlite_schema WHERE name IN ('by_a', 'empty', 'words')"), 3);
        drop(plain);
        // It is a database like any other.
        let copy = Options::new(&path).open().await.unwrap();
        copy.execute("INSERT INTO plain VALUES ('more')", ()).await.unwrap();
        copy.close().await.unwrap();
    }
    assert_eq!(names(copies.path()), ["0.db", "1.db", "2.db"]);
}

async fn a_backup_replaces_nothing(place: &Place) {
    let db = place.open().await;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("file"), "mine").unwrap();
    std::fs::write(at("walled-wal"), "mine").unwrap();
    std::fs::write(at("left-journal"), "mine").unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("nowhere"), at("link")).unwrap();
    let before = files(directory.path());
    for name in ["file", "walled", "left", "folder", "link"] {
        if !cfg!(unix) && name == "link" {
            continue;
        }
        let error = db.backup(at(name)).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("backup")), "{error}");
        assert!(error.message().contains(&at(name).display().to_string()) && error.hint().is_some(), "{error}");
    }
    if let Some(file) = place.file() {
        assert_eq!(db.backup(file.path()).await.unwrap_err().kind(), ErrorKind::Misuse, "the database itself");
    }
    assert_eq!(files(directory.path()), before);
}

async fn a_path_at_which_no_file_can_be_made_is_refused(place: &Place) {
    let db = place.open().await;
    for path in ["", "/", "..", ":memory:", "file:copy.db", "a\0b"] {
        let error = db.backup(path).await.unwrap_err();
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Misuse, true), "{path:?}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "mine").unwrap();
    for path in ["missing/copy.db", "file/copy.db"].map(|path| directory.path().join(path)) {
        let error = db.backup(&path).await.unwrap_err();
        assert_eq!((error.kind(), error.hint()), (ErrorKind::Open, Some("create it first")), "{error}");
    }
    let long = directory.path().join("n".repeat(300));
    let error = db.backup(&long).await.unwrap_err();
    assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Open, true), "{error}");
    assert_eq!(names(directory.path()), ["file"]);
    db.backup(directory.path().join("copy.db")).await.unwrap();
}

async fn a_backup_that_is_too_late_or_dropped_leaves_nothing(place: &Place) {
    let db = place.open().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy.db");
    let error = db.backup(&path).timeout(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true), "{error}");
    drop(db.backup(&path));
    db.clone().close().await.unwrap();
    assert_eq!(db.backup(&path).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(names(directory.path()), [""; 0]);
}

async fn the_same_name_is_given_once(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = directory.path().join(format!("{round}.db"));
        let racing: Vec<_> = (0..4).map(|_| tokio::spawn(db.backup(&path))).collect();
        let mut succeeded = 0;
        for backup in racing {
            match backup.await.unwrap() {
                Ok(()) => succeeded += 1,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Misuse, "{error}"),
            }
        }
        assert_eq!(succeeded, 1);
        opened(&path);
    }
    assert_eq!(names(directory.path()).len(), 20, "no partial file is left");
}

/// Every transaction keeps the two tables equal.
const TWICE: &str = "BEGIN IMMEDIATE; INSERT INTO one VALUES (randomblob(500)); UPDATE n SET n = n + 1;
                     INSERT INTO two SELECT a FROM one ORDER BY rowid DESC LIMIT 1; COMMIT";

#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let plain = rusqlite::Connection::open(path).unwrap();
    plain.busy_timeout(Duration::from_secs(600)).unwrap();
    plain.execute_batch("PRAGMA wal_autocheckpoint = 0").unwrap();
    for n in 0.. {
        plain.execute_batch(TWICE).unwrap();
        if n == 0 {
            println!("writes");
        }
        // The lock is free at times. SQLite's busy timeout has no order, and the other process could wait for seconds.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts the other process, and returns when it has written.
fn start_other(file: &TestFile) -> Killed {
    let mut child = as_child("files::backups::child").env(PATH, file.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let other = Killed(child);
    while lines.next().expect("the other process writes").unwrap() != "writes" {}
    other
}

async fn write_both(db: &Database) -> Result<(), Error> {
    db.transaction(async |tx| {
        tx.execute("INSERT INTO one VALUES (randomblob(500))", ()).await?;
        tx.execute("UPDATE n SET n = n + 1", ()).await?;
        tx.execute("INSERT INTO two SELECT a FROM one ORDER BY rowid DESC LIMIT 1", ()).await.map(drop)
    })
    .await
}

#[test]
fn a_backup_is_of_one_point_in_time_while_this_process_and_another_write() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute_script("CREATE TABLE one (a); CREATE TABLE two (a); CREATE TABLE n (n); INSERT INTO n VALUES (0)")
            .await
            .unwrap();
        // So that a backup takes longer than a write.
        db.execute("CREATE TABLE ballast (a)", ()).await.unwrap();
        db.execute_many("INSERT INTO ballast VALUES (randomblob(4000))", (0..2000).map(|_| ())).await.unwrap();
        let other = start_other(&file);
        let (ends, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0_i64)));
        let writes = tokio::spawn({
            let (db, ends, acknowledged) = (db.clone(), ends.clone(), acknowledged.clone());
            async move {
                while !ends.load(Ordering::Relaxed) {
                    write_both(&db).await.unwrap();
                    *acknowledged.lock().unwrap() += 1;
                }
            }
        });
        let copies = tempfile::tempdir().unwrap();
        // A write of this process is acknowledged during at least one backup.
        let (mut copied, mut grew) = (0, 0);
        while copied < 12 || grew == 0 {
            let path = copies.path().join(format!("{copied}.db"));
            let before = *acknowledged.lock().unwrap();
            db.backup(&path).await.unwrap();
            grew += i64::from(*acknowledged.lock().unwrap() > before);
            let plain = opened(&path);
            let rows = integer(&plain, "SELECT count(*) FROM one");
            assert_eq!(integer(&plain, "SELECT n FROM n"), rows);
            assert!(rows > before, "{before} writes were acknowledged before, and the other process wrote");
            let equal = "SELECT count(*) FROM one JOIN two ON one.rowid = two.rowid AND one.a = two.a";
            assert_eq!(integer(&plain, equal), rows);
            std::fs::remove_file(path).unwrap();
            copied += 1;
        }
        ends.store(true, Ordering::Relaxed);
        writes.await.unwrap();
        drop(other);
    });
}

#[test]
fn a_database_that_is_only_read_is_copied() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute("CREATE TABLE t AS SELECT 5 AS a", ()).await.unwrap();
        let second = file.options().read_only(true).open().await.unwrap();
        second.backup(file.beside("-1")).await.unwrap();
        drop(second);
        db.close().await.unwrap();
        for (copy, options) in [
            ("-2", file.options().read_only(true)),
            ("-3", file.options().read_only(true).tuning(|t| t.assume_immutable(true))),
        ] {
            let db = options.open().await.unwrap();
            db.backup(file.beside(copy)).await.unwrap();
            db.close().await.unwrap();
        }
        for copy in ["-1", "-2", "-3"] {
            assert_eq!(integer(&opened(&file.beside(copy)), "SELECT a FROM t"), 5);
        }
    });
}

#[test]
fn a_file_with_a_rollback_journal_is_copied() {
    let file = TestFile::new();
    file.plain().execute_batch("CREATE TABLE t AS SELECT 5 AS a").unwrap();
    run(async {
        for options in [file.options(), file.options().read_only(true)] {
            let db = options.journal(Journal::Keep).open().await.unwrap();
            let path = file.beside("-copy");
            db.backup(&path).await.unwrap();
            let plain = opened(&path);
            assert_eq!(integer(&plain, "SELECT a FROM t"), 5);
            assert_eq!(plain.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).unwrap(), "delete");
            drop(plain);
            std::fs::remove_file(path).unwrap();
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_vfs_that_writes_no_file_makes_no_backup() {
    let file = TestFile::new();
    run(async {
        let db = file.options().journal(Journal::Keep).tuning(|t| t.vfs("memdb")).open().await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let error = db.backup(file.beside("-copy")).await.unwrap_err();
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Misuse, true), "{error}");
        assert_eq!(names(file.directory()), [""; 0]);
    });
}

#[test]
fn a_backup_in_a_transaction_is_of_what_is_committed() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let copy = file.beside("-copy");
        db.transaction(async |tx| {
            tx.execute("INSERT INTO t VALUES (1)", ()).await?;
            db.backup(&copy).await
        })
        .await
        .unwrap();
        assert_eq!(integer(&opened(&copy), "SELECT count(*) FROM t"), 0);
        let memory = Options::new(":memory:").open().await.unwrap();
        let refused = memory.transaction(async |_| memory.backup(file.beside("-other")).await).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Misuse, "it would wait for the transaction, and that for it: {refused}");
    });
}

#[test]
#[cfg(unix)]
fn a_backup_can_be_read_by_no_more_users_than_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let file = TestFile::new();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    run(async {
        let db = file.open().await;
        for (n, bits) in [0o600, 0o640].into_iter().enumerate() {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(bits)).unwrap();
            let copy = file.beside(&format!("-{n}"));
            db.backup(&copy).await.unwrap();
            assert_eq!(mode(&copy) & !bits, 0, "{:o}", mode(&copy));
        }
    });
}

#[test]
#[cfg(unix)]
fn a_directory_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let nobody = nobody();
    if !is_alone_in_process("files::backups::a_directory_that_cannot_be_written_is_named", nobody) {
        return;
    }
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        let closed = file.directory().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
        std::fs::write(closed.join("x"), b"").expect_err("this test must not run as root");
        let error = db.backup(closed.join("copy.db")).await.unwrap_err();
        assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Open, true), "{error}");
        assert!(error.message().contains("copy.db"), "{error}");
    });
}
