//! A second SQLite library in the process of an open database: what it destroys where nobody guards the file, that
//! nothing is lost where we do, and that it is noticed.

use flatwater::ErrorKind;
use flatwater::options::Durability;
use second_sqlite::Connection as Second;

use crate::support::{COUNT, INSERT, TestFile, count, is_alone_in_process, rows, wait_until, while_writing};

/// Without this the other tests prove nothing.
#[test]
fn unguarded_rows_are_lost_when_the_second_library_closes_the_file() {
    if !is_alone_in_process("second_copy::unguarded_rows_are_lost_when_the_second_library_closes_the_file") {
        return;
    }
    let file = TestFile::new();
    let first = file.plain();
    first.execute_batch("PRAGMA synchronous = FULL; INSERT INTO t VALUES (1)").unwrap();
    let second = Second::open(&file.path());
    assert_eq!(second.integer(COUNT), Some(1));
    drop(second);
    for _ in 0..100 {
        first.execute(INSERT, []).unwrap();
    }
    assert_eq!(rows(&first), 101);
    assert_eq!(file.visit(), 1, "a hundred acknowledged rows are in a file without a name");
    // As after a crash: closing would copy the lost WAL into the database.
    std::mem::forget(first);
    assert_eq!(file.visit(), 1);
}

/// Here the second library finds the file in use, and it is the visitor that would take the WAL away.
#[test]
fn unguarded_rows_are_lost_when_a_process_visits_after_the_second_library() {
    if !is_alone_in_process("second_copy::unguarded_rows_are_lost_when_a_process_visits_after_the_second_library") {
        return;
    }
    let file = TestFile::new();
    let first = file.plain();
    first.execute_batch("PRAGMA synchronous = FULL; INSERT INTO t VALUES (1)").unwrap();
    // It closes the files without asking whether it is the last.
    for suffix in ["", "-shm"] {
        drop(std::fs::File::open(format!("{}{suffix}", file.path().display())).unwrap());
    }
    assert_eq!(file.visit(), 1);
    for _ in 0..100 {
        first.execute(INSERT, []).unwrap();
    }
    assert_eq!(file.visit(), 1);
    std::mem::forget(first);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_second_library_closes_the_file() {
    if !is_alone_in_process("second_copy::nothing_acknowledged_is_lost_when_the_second_library_closes_the_file") {
        return;
    }
    for durability in [Durability::Normal, Durability::Full] {
        let file = TestFile::new();
        let options = file.options().durability(durability).tuning(|t| t.allow_second_sqlite(true));
        let db = options.open().wait().unwrap();
        let acknowledged = while_writing(&db, |another_round| {
            for _ in 0..5 {
                another_round();
                let second = Second::open(&file.path());
                assert!(second.integer(COUNT).unwrap() > 0);
                drop(second);
                another_round();
                assert!(file.visit() > 0);
                assert!(file.has_wal());
                another_round();
            }
        });
        assert_eq!(file.visit(), acknowledged, "{durability:?}");
        assert_eq!(count(&db), acknowledged, "{durability:?}");
        db.close().wait().unwrap();
        assert!(!file.has_wal());
        assert_eq!(rows(&file.plain()), acknowledged, "{durability:?}");
    }
}

#[test]
fn a_second_library_that_was_there_before_is_refused_or_counted() {
    if !is_alone_in_process("second_copy::a_second_library_that_was_there_before_is_refused_or_counted") {
        return;
    }
    let file = TestFile::new();
    let second = Second::open(&file.path());
    second.execute(INSERT);
    let error = file.options().open().wait().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("open")), "{error}");
    assert!(error.message().contains("another SQLite library in this process"), "{error}");
    assert!(error.message().contains(second_sqlite::LIBRARY), "{error}");
    second.execute(INSERT);
    assert_eq!(file.visit(), 2, "the refused open took nothing away from the other library");
    let db = file.options().tuning(|t| t.allow_second_sqlite(true)).open().wait().unwrap();
    assert!(db.stats().second_copies > 0);
    db.execute(INSERT, ()).wait().unwrap();
    db.close().wait().unwrap();
    assert_eq!(second.integer(COUNT), Some(3));
}

#[test]
fn a_second_library_that_comes_later_ends_writing_until_the_file_is_opened_again() {
    if !is_alone_in_process(
        "second_copy::a_second_library_that_comes_later_ends_writing_until_the_file_is_opened_again",
    ) {
        return;
    }
    let file = TestFile::new();
    let db = file.open();
    db.execute(INSERT, ()).wait().unwrap();
    let second = Second::open(&file.path());
    let mut written = 1;
    let mut refusal = None;
    wait_until(|| {
        match db.execute(INSERT, ()).wait() {
            Ok(_) => written += 1,
            Err(error) => refusal = Some(error),
        }
        refusal.is_some()
    });
    let error = refusal.unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.message().contains("another SQLite library in this process"), "{error}");
    assert_eq!(count(&db), written, "reads go on");
    assert_eq!(second.integer(COUNT), Some(written));
    drop(second);
    assert_eq!(db.execute(INSERT, ()).wait().unwrap_err().kind(), ErrorKind::Misuse, "until it is opened again");
    db.close().wait().unwrap();
    let db = file.open();
    db.execute(INSERT, ()).wait().unwrap();
    assert_eq!(count(&db), written + 1);
    db.close().wait().unwrap();
    assert_eq!(file.visit(), written + 1);
}

#[test]
fn closing_takes_nothing_away_from_a_second_library() {
    if !is_alone_in_process("second_copy::closing_takes_nothing_away_from_a_second_library") {
        return;
    }
    for allowed in [false, true] {
        let file = TestFile::new();
        let db = file.options().tuning(|t| t.allow_second_sqlite(allowed)).open().wait().unwrap();
        for _ in 0..50 {
            db.execute(INSERT, ()).wait().unwrap();
        }
        let second = Second::open(&file.path());
        db.close().wait().unwrap();
        assert!(file.has_wal(), "allowed: {allowed}");
        let mut expected = 50;
        for round in 0..3 {
            for _ in 0..50 {
                second.execute(INSERT);
            }
            expected += 50;
            assert_eq!(file.visit(), expected, "allowed: {allowed}, round {round}");
        }
        drop(second);
        assert_eq!(file.visit(), expected, "allowed: {allowed}");
        file.open().close().wait().unwrap();
        assert!(!file.has_wal(), "allowed: {allowed}: nobody holds it any more");
    }
}

/// Its locks are those of the process, so closing a descriptor of the file would take them away.
#[test]
fn closing_takes_nothing_away_from_a_plain_connection() {
    if !is_alone_in_process("second_copy::closing_takes_nothing_away_from_a_plain_connection") {
        return;
    }
    let file = TestFile::new();
    let plain = file.plain();
    let mut expected = rows(&plain);
    for _ in 0..3 {
        let db = file.open();
        db.execute(INSERT, ()).wait().unwrap();
        db.close().wait().unwrap();
        assert_eq!(file.visit(), expected + 1);
        assert!(file.has_wal());
        for _ in 0..100 {
            plain.execute(INSERT, []).unwrap();
        }
        expected += 101;
        assert_eq!(file.visit(), expected);
    }
    drop(plain);
    assert_eq!(file.visit(), expected);
    assert!(!file.has_wal());
}
