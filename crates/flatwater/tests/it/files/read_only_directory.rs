//! Files in a directory without write permission, such as a mounted image: what can be read there, and that nothing in
//! it changes. Root may write every file, so each test runs in a separate process as another user.
#![cfg(target_os = "linux")]

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use flatwater::options::Journal;
use flatwater::{Database, ErrorKind, Migrations, Options};

use crate::support::{TestFile, as_child, files, is_alone_in_process, nobody};

const PATH: &str = "FLATWATER_READER_PATH";

fn sum(options: Options) -> Option<i64> {
    let db: Database = options.open().wait().unwrap();
    let sum = db.query_optional_value("SELECT sum(a) FROM t", ()).wait().unwrap();
    assert_eq!(db.execute("INSERT INTO t VALUES (3)", ()).wait().unwrap_err().kind(), ErrorKind::Misuse);
    db.close().wait().unwrap();
    sum
}

/// Runs `body` while neither the directory nor a file in it can be written. Checks that nothing in it changes.
fn while_frozen(file: &TestFile, body: impl FnOnce()) {
    let set_modes = |of_files: u32, of_directory: u32| {
        for (name, _) in files(file.directory()) {
            set_permissions(file.directory().join(name), Permissions::from_mode(of_files)).unwrap();
        }
        set_permissions(file.directory(), Permissions::from_mode(of_directory)).unwrap();
    };
    set_modes(0o444, 0o555);
    std::fs::write(file.directory().join("x"), b"").expect_err("this test must not run as root");
    let before = files(file.directory());
    body();
    assert!(files(file.directory()) == before, "something in the directory changed");
    // The directory first, or its files cannot be reached.
    set_modes(0o644, 0o755);
}

/// Creates a file in this journal mode with the rows 1 and 2, and returns the connection that wrote them.
fn written(journal: &str) -> (TestFile, rusqlite::Connection) {
    let file = TestFile::new();
    let plain = file.plain();
    plain
        .execute_batch(&format!(
            "PRAGMA journal_mode = {journal}; CREATE TABLE t (a); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)"
        ))
        .unwrap();
    (file, plain)
}

/// The state after a crash, or in a copy of a live file.
#[test]
fn a_wal_file_with_the_files_beside_it_is_read() {
    if !is_alone_in_process("files::read_only_directory::a_wal_file_with_the_files_beside_it_is_read", nobody()) {
        return;
    }
    let (original, _writer) = written("wal");
    let file = copy(&original, &["", "-wal", "-shm"]);
    while_frozen(&file, || {
        for _ in 0..3 {
            assert_eq!(sum(file.options().read_only(true)), Some(3));
        }
    });
}

#[test]
fn a_wal_without_its_index_is_never_passed_over() {
    if !is_alone_in_process("files::read_only_directory::a_wal_without_its_index_is_never_passed_over", nobody()) {
        return;
    }
    let (original, _writer) = written("wal");
    let file = copy(&original, &["", "-wal"]);
    while_frozen(&file, || {
        let error = file.options().read_only(true).open().wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(!error.hint().unwrap().contains("immutable"), "the rows in the WAL would be lost: {error}");
    });
    assert_eq!(sum(file.options().read_only(true)), Some(3));
}

fn copy(original: &TestFile, suffixes: &[&str]) -> TestFile {
    let file = TestFile::new();
    for suffix in suffixes {
        std::fs::copy(original.beside(suffix), file.beside(suffix)).unwrap();
    }
    file
}

#[test]
fn a_wal_file_that_is_being_written_is_read() {
    if !is_alone_in_process("files::read_only_directory::a_wal_file_that_is_being_written_is_read", nobody()) {
        return;
    }
    let (file, _writer) = written("wal");
    while_frozen(&file, || {
        let output = as_child("files::read_only_directory::reader").env(PATH, file.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

#[test]
#[ignore = "runs as the child of the test above"]
fn reader() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    assert_eq!(sum(Options::new(path).read_only(true)), Some(3));
}

#[test]
fn a_wal_file_alone_names_what_opens_it() {
    if !is_alone_in_process("files::read_only_directory::a_wal_file_alone_names_what_opens_it", nobody()) {
        return;
    }
    let (file, writer) = written("wal");
    writer.close().unwrap();
    while_frozen(&file, || {
        let error = file.options().read_only(true).open().wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(error.hint().unwrap().contains("`Tuning::assume_immutable`"), "{error}");
        assert_eq!(sum(file.options().tuning(|t| t.assume_immutable(true))), Some(3));
        assert_eq!(sum(Options::new(format!("file:{}?immutable=1", file.path().display()))), Some(3));
    });
}

#[test]
fn a_file_with_a_rollback_journal_is_read() {
    if !is_alone_in_process("files::read_only_directory::a_file_with_a_rollback_journal_is_read", nobody()) {
        return;
    }
    let (file, writer) = written("delete");
    writer.close().unwrap();
    while_frozen(&file, || {
        assert_eq!(sum(file.options().read_only(true)), Some(3));
        assert_eq!(sum(file.options().tuning(|t| t.assume_immutable(true))), Some(3));
        let error = file.options().open().wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(error.hint().unwrap().contains("`Options::read_only`"), "{error}");
    });
}

#[test]
fn a_write_that_needs_a_journal_names_the_directory_that_cannot_be_written() {
    if !is_alone_in_process(
        "files::read_only_directory::a_write_that_needs_a_journal_names_the_directory_that_cannot_be_written",
        nobody(),
    ) {
        return;
    }
    let (file, writer) = written("delete");
    writer.close().unwrap();
    set_permissions(file.directory(), Permissions::from_mode(0o555)).unwrap();
    let db = file.options().journal(Journal::Keep).open().wait().unwrap();
    let errors = [
        db.execute("INSERT INTO t VALUES (3)", ()).wait().unwrap_err(),
        db.execute_many("INSERT INTO t VALUES (?)", [(3,)]).wait().unwrap_err(),
        db.migrate(Migrations::new([("1_a", "INSERT INTO t VALUES (3)")])).wait().unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Io, Some("SQLITE_READONLY_DIRECTORY")), "{error}");
        let directory = format!("the directory {} cannot be written", file.directory().display());
        assert!(error.message().contains(&directory), "{error}");
        assert!(error.hint().unwrap().contains("permissions of the directory"), "{error}");
    }
    assert_eq!(db.query_optional_value("SELECT sum(a) FROM t", ()).wait().unwrap(), Some(3));
    set_permissions(file.directory(), Permissions::from_mode(0o755)).unwrap();
    db.execute("INSERT INTO t VALUES (3)", ()).wait().unwrap();
}

#[test]
fn a_file_that_may_not_be_read_is_told_from_a_directory_that_may_not_be_written() {
    if !is_alone_in_process(
        "files::read_only_directory::a_file_that_may_not_be_read_is_told_from_a_directory_that_may_not_be_written",
        nobody(),
    ) {
        return;
    }
    let (file, writer) = written("wal");
    writer.close().unwrap();
    set_permissions(file.path(), Permissions::from_mode(0o000)).unwrap();
    for options in [file.options(), file.options().read_only(true), file.options().journal(Journal::Keep)] {
        let error = options.open().wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        assert!(error.message().contains("may not be read by this user"), "{error}");
        assert_eq!(error.hint(), Some("check the permissions of the file"), "{error}");
    }
    set_permissions(file.path(), Permissions::from_mode(0o644)).unwrap();
    assert_eq!(file.plain().query_row("SELECT sum(a) FROM t", [], |row| row.get(0)), Ok(3));
}
