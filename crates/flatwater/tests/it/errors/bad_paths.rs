//! Paths and files that cannot be opened or written: the text of the error, and that no file was changed.
//!
//! Root may write every file, so tests of permissions run in a separate process as another user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flatwater::{Database, Error, ErrorKind, Options};

use crate::support::{TestFile, as_child, files, run, wait_until};

/// Returns the error of opening with these options. No file in the directory may change.
async fn refused(file: &TestFile, options: Options) -> Error {
    let before = files(file.directory());
    let error = options.clone().open().await.unwrap_err();
    assert_eq!(options.open().wait().unwrap_err(), error);
    assert!(files(file.directory()) == before, "a file was touched");
    assert_eq!(error.operation(), Some("open"), "{error:?}");
    error
}

#[test]
fn paths_that_name_no_file_are_refused_with_a_sentence() {
    let file = TestFile::new();
    run(async {
        let missing = file.directory().join("no such directory").join("a.db");
        std::fs::write(file.directory().join("file"), b"").unwrap();
        let cases: [(PathBuf, ErrorKind, &str); 5] = [
            ("".into(), ErrorKind::Misuse, "empty"),
            (file.directory().join("a\0b.db"), ErrorKind::Open, "NUL"),
            (file.directory().to_owned(), ErrorKind::Open, "is a directory"),
            (missing, ErrorKind::Open, "no such directory does not exist"),
            (file.directory().join("file").join("a.db"), ErrorKind::Open, "does not exist"),
        ];
        for (path, kind, words) in cases {
            let error = refused(&file, Options::new(&path)).await;
            assert_eq!((error.kind(), error.sqlite_code()), (kind, None), "{error}");
            assert!(error.message().contains(words), "{error}");
            assert!(kind == ErrorKind::Misuse || error.hint().is_some(), "{error}");
        }
    });
}

#[test]
fn a_missing_file_is_not_created_where_it_shall_not_be() {
    let file = TestFile::new();
    run(async {
        for options in [file.options().read_only(true), file.options().create(false)] {
            let error = refused(&file, options).await;
            assert_eq!(error.kind(), ErrorKind::Open);
            assert!(error.message().contains("test.db does not exist") && error.hint().is_some(), "{error}");
        }
        assert!(!file.path().exists());
        file.open().await.close().await.unwrap();
        file.options().create(false).open().await.unwrap().close().await.unwrap();
    });
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let file = TestFile::new();
    run(async {
        for content in [b"a".repeat(10_000), b"SQLite format 4".repeat(300), b"short".to_vec()] {
            std::fs::write(file.path(), content).unwrap();
            for options in [file.options(), file.options().read_only(true)] {
                let error = refused(&file, options).await;
                assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Open, Some("SQLITE_NOTADB")), "{error}");
                assert!(error.message().contains("test.db is not a SQLite database"), "{error}");
                assert!(error.hint().unwrap().contains("check the path"), "{error}");
            }
        }
        std::fs::write(file.path(), b"").unwrap();
        file.open().await.close().await.unwrap();
    });
}

#[test]
fn a_damaged_file_is_refused_by_its_name_and_left_as_it_is() {
    let file = TestFile::new();
    run(async {
        file.plain().execute_batch("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1)").unwrap();
        let whole = std::fs::read(file.path()).unwrap();
        let text = whole.windows(12).position(|bytes| bytes == b"CREATE INDEX").unwrap();
        let mut misspelt = whole.clone();
        misspelt[text + 3] = b'x';
        for damaged in [whole[..whole.len() - 4096].to_vec(), misspelt] {
            std::fs::write(file.path(), damaged).unwrap();
            for options in [file.options(), file.options().read_only(true)] {
                let error = refused(&file, options).await;
                assert_eq!(
                    (error.kind(), error.sqlite_name()),
                    (ErrorKind::Corrupt, Some("SQLITE_CORRUPT")),
                    "{error}"
                );
                assert!(error.message().contains("test.db: "), "{error}");
                assert!(error.hint().unwrap().contains("backup"), "{error}");
            }
        }
        std::fs::write(file.path(), whole).unwrap();
    });
}

/// The switch to WAL is a commit. In a file with auto_vacuum, a commit reads the number of free pages.
#[test]
fn a_file_whose_switch_to_wal_fails_in_its_commit_is_refused_and_can_be_read() {
    let file = TestFile::new();
    let path = file.directory().join("damaged.db");
    file.plain().execute_batch("PRAGMA auto_vacuum = 1; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let mut damaged = std::fs::read(file.path()).unwrap();
    damaged[36..40].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
    std::fs::write(&path, damaged).unwrap();
    run(async {
        let error = refused(&file, Options::new(&path)).await;
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Corrupt, Some("SQLITE_CORRUPT")), "{error}");
        let db = Options::new(&path).read_only(true).open().await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(), Some(1));
        db.close().await.unwrap();
    });
}

#[test]
fn a_hot_journal_is_not_rolled_back_by_who_only_reads_and_he_is_told() {
    let (original, file) = (TestFile::new(), TestFile::new());
    let plain = original.plain();
    plain
        .execute_batch(
            "CREATE TABLE t (a); INSERT INTO t VALUES (1); PRAGMA cache_size = 1; BEGIN IMMEDIATE;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100)
             INSERT INTO t SELECT zeroblob(3000) FROM n",
        )
        .unwrap();
    for end in ["", "-journal"] {
        std::fs::copy(original.beside(end), file.beside(end)).unwrap();
    }
    run(async {
        let error = refused(&file, file.options().read_only(true)).await;
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Open, Some("SQLITE_READONLY_ROLLBACK")), "{error}");
        assert!(error.message().contains("test.db has a -journal"), "{error}");
        assert!(error.hint().unwrap().contains("read_only"), "{error}");
        let db = file.open().await;
        assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(), Some(1));
    });
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let file = TestFile::new();
    let socket = file.directory().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(std::process::Command::new("mkfifo").arg(file.path()).status().unwrap().success());
    for path in [file.path(), socket] {
        for read_only in [false, true] {
            let error = Options::new(&path).read_only(read_only).open().wait().unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")), "{error}");
            assert!(error.message().contains("is a pipe or a socket") && error.hint().is_some(), "{error}");
        }
    }
    std::fs::remove_file(file.path()).unwrap();
}

#[test]
fn odd_file_names_are_taken_as_they_are() {
    use std::os::unix::ffi::OsStringExt;
    let file = TestFile::new();
    run(async {
        for name in ["a b?mode=ro#x%41.db", "'\";--.db", "Z\u{fc}rich.db", "-x.db"] {
            names_one_file(&file, name.into()).await;
        }
        names_one_file(&file, OsString::from_vec(b"\xff\xfe.db".to_vec())).await;
    });
}

async fn names_one_file(file: &TestFile, name: OsString) {
    let before = files(file.directory()).len();
    let db = Database::open(file.directory().join(&name)).await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    assert!(db.query("SELECT a FROM t", ()).await.unwrap().is_empty());
    db.close().await.unwrap();
    let after = files(file.directory());
    assert!(after.len() == before + 1 && after.iter().any(|(there, _)| *there == name), "{name:?}: {after:?}");
}

/// Returns the errors of every writing call.
async fn write_errors(db: &Database) -> Vec<Error> {
    let insert = "INSERT INTO t VALUES (2)";
    vec![
        db.execute(insert, ()).await.unwrap_err(),
        db.execute("CREATE TABLE u (a)", ()).await.unwrap_err(),
        db.execute("PRAGMA user_version = 7", ()).await.unwrap_err(),
        db.query("INSERT INTO t VALUES (2) RETURNING a", ()).await.unwrap_err(),
        db.query("WITH two AS (SELECT 2) INSERT INTO t SELECT * FROM two RETURNING a", ()).await.unwrap_err(),
        db.execute_many("INSERT INTO t VALUES (?)", [(2,), (3,)]).await.unwrap_err(),
        db.batch([(insert, flatwater::params![])]).await.unwrap_err(),
        db.execute_script(insert).await.unwrap_err(),
        db.begin().await.unwrap_err(),
        db.transaction(async |tx| tx.execute("DELETE FROM t", ()).await).await.unwrap_err(),
        db.write_with(|tx| tx.execute("DELETE FROM t", []).map_err(Error::from)).await.unwrap_err(),
        db.execute(insert, ()).wait().unwrap_err(),
    ]
}

#[test]
fn a_database_that_is_only_read_refuses_to_write_and_never_touches_the_file() {
    for journal in ["wal", "delete"] {
        let file = TestFile::new();
        let schema = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (a); INSERT INTO t VALUES (1)");
        file.plain().execute_batch(&schema).unwrap();
        let before = files(file.directory());
        run(async {
            let db = file.options().read_only(true).open().await.unwrap();
            for error in write_errors(&db).await {
                assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
                assert!(error.hint().unwrap().contains("read_only") && !error.is_retryable(), "{error}");
            }
            let error = db.read_with(|c| c.execute("DELETE FROM t", []).map_err(Error::from)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert_eq!(db.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(), Some(1));
            db.query("SELECT nonsense FROM t", ()).await.unwrap_err();
            db.close().await.unwrap();
            let error = db.execute("DELETE FROM t", ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        });
        assert_eq!(std::fs::read(file.path()).unwrap(), before[0].1, "{journal}");
    }
}

#[cfg(unix)]
mod permissions {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::support::{is_alone_in_process, nobody};

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told() {
        let test = "errors::bad_paths::permissions::a_directory_that_cannot_be_written_is_told";
        if !is_alone_in_process(test, nobody()) {
            return;
        }
        let file = TestFile::new();
        run(async {
            set_mode(file.directory(), 0o555);
            std::fs::write(file.directory().join("x"), b"").expect_err("this test must not run as root");
            let new = refused(&file, file.options()).await;
            set_mode(file.directory(), 0o755);
            let db = file.open().await;
            db.execute("CREATE TABLE t (a)", ()).await.unwrap();
            db.close().await.unwrap();
            set_mode(file.directory(), 0o555);
            let existing = refused(&file, file.options()).await;
            let read_only = refused(&file, file.options().read_only(true)).await;
            set_mode(file.directory(), 0o755);
            for error in [new, existing, read_only] {
                assert_eq!(error.kind(), ErrorKind::Open, "{error}");
                assert!(error.hint().unwrap().contains("directory must be writable"), "{error}");
            }
            file.open().await.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        });
    }

    #[test]
    fn a_file_beside_the_database_that_cannot_be_written_is_told() {
        let test = "errors::bad_paths::permissions::a_file_beside_the_database_that_cannot_be_written_is_told";
        if !is_alone_in_process(test, nobody()) {
            return;
        }
        for end in ["-wal", "-shm"] {
            let (original, file) = (TestFile::new(), TestFile::new());
            let plain = original.plain();
            plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
            for end in ["", "-wal", "-shm"] {
                std::fs::copy(original.beside(end), file.beside(end)).unwrap();
            }
            run(async {
                set_mode(&file.beside(end), 0o444);
                let error = file.options().open().await.unwrap_err();
                assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")), "{error}");
                assert!(error.message().contains(&format!("test.db{end} cannot be written")), "{error}");
                assert!(error.message().contains("permission denied"), "{error}");
                assert!(error.hint().unwrap().contains("check the permissions"), "{error}");
                let db = file.options().read_only(true).open().await.unwrap();
                assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
                db.close().await.unwrap();
                set_mode(&file.beside(end), 0o644);
                let db = file.open().await;
                db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
                db.close().await.unwrap();
            });
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_and_can_be_read() {
        let test = "errors::bad_paths::permissions::a_file_that_cannot_be_written_is_told_and_can_be_read";
        if !is_alone_in_process(test, nobody()) {
            return;
        }
        let file = TestFile::new();
        run(async {
            file.plain().execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
            set_mode(&file.path(), 0o444);
            let error = refused(&file, file.options()).await;
            assert_eq!(error.kind(), ErrorKind::Open, "{error}");
            assert!(error.message().contains("test.db cannot be written"), "{error}");
            assert!(error.hint().unwrap().contains("Options::read_only"), "{error}");
            let db = file.options().read_only(true).open().await.unwrap();
            assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
            db.close().await.unwrap();
            set_mode(&file.path(), 0o000);
            for options in [file.options(), file.options().read_only(true)] {
                let error = refused(&file, options).await;
                assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Open, Some("SQLITE_CANTOPEN")), "{error}");
            }
            set_mode(&file.path(), 0o644);
            let db = file.open().await;
            db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
            db.close().await.unwrap();
        });
    }
}

#[test]
#[ignore = "runs as the child of the test below"]
fn opens_what_is_refused() {
    for _ in 0..50 {
        Options::new("/no such directory/a.db").open().wait().unwrap_err();
    }
    let is_ours = |thread: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(thread.unwrap().path().join("comm")).is_ok_and(|name| name.starts_with("fw-"))
    };
    wait_until(|| !std::fs::read_dir("/proc/self/task").unwrap().any(is_ours));
}

#[cfg(target_os = "linux")]
#[test]
fn an_opening_that_is_refused_leaves_no_thread() {
    assert!(as_child("errors::bad_paths::opens_what_is_refused").status().unwrap().success());
}
