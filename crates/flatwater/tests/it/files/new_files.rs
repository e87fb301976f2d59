//! What a file has from its first page on, and what is left beside a file that is opened or copied.

use flatwater::options::AutoVacuum;
use flatwater::{Database, Error, ErrorKind, Options};

use crate::support::{TestFile, files, integer, run};

async fn pragma(db: &Database, name: &str) -> i64 {
    db.query_optional_value(format!("PRAGMA {name}"), ()).await.unwrap().unwrap()
}

#[test]
fn a_new_file_gets_its_page_size_and_auto_vacuum_from_the_options() {
    for (auto_vacuum, value) in [(AutoVacuum::None, 0), (AutoVacuum::Full, 1), (AutoVacuum::Incremental, 2)] {
        for options in [None, Some(Options::new(":memory:"))] {
            let file = TestFile::new();
            run(async {
                let options =
                    options.unwrap_or_else(|| file.options()).tuning(|t| t.page_size(8192).auto_vacuum(auto_vacuum));
                let db = options.open().await.unwrap();
                db.execute("CREATE TABLE t (a)", ()).await.unwrap();
                assert_eq!((pragma(&db, "page_size").await, pragma(&db, "auto_vacuum").await), (8192, value));
            });
        }
    }
}

#[test]
fn a_file_that_exists_keeps_what_it_has() {
    let file = TestFile::new();
    file.plain().execute_batch("PRAGMA page_size = 1024; PRAGMA auto_vacuum = 1; CREATE TABLE t (a)").unwrap();
    run(async {
        for auto_vacuum in [AutoVacuum::None, AutoVacuum::Incremental] {
            let db = file.options().tuning(|t| t.page_size(16384).auto_vacuum(auto_vacuum)).open().await.unwrap();
            assert_eq!((pragma(&db, "page_size").await, pragma(&db, "auto_vacuum").await), (1024, 1));
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_page_size_that_sqlite_does_not_have_is_refused() {
    run(async {
        for bytes in [0, 256, 1000, 131_072] {
            let file = TestFile::new();
            let error = file.options().tuning(|t| t.page_size(bytes)).open().await.unwrap_err();
            assert!(error.kind() == ErrorKind::Misuse && error.message().contains("page_size"), "{error}");
            assert!(!file.path().exists());
        }
    });
}

#[test]
fn a_pragma_of_new_files_is_refused_elsewhere_and_answered_if_it_asks_for_what_is_so() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        for (sql, option) in [
            ("PRAGMA page_size = 8192", Some("Tuning::page_size")),
            ("PRAGMA auto_vacuum = FULL", Some("Tuning::auto_vacuum")),
            ("PRAGMA encoding = 'UTF-16le'", None),
        ] {
            for error in [db.execute(sql, ()).await.unwrap_err(), db.execute_script(sql).await.unwrap_err()] {
                assert!(error.message().contains("has no effect on a file that exists"), "{error}");
                let names = |option| error.hint().is_some_and(|hint| hint.contains(option));
                assert!(error.kind() == ErrorKind::Misuse && option.is_none_or(names), "{error}");
            }
            let other = TestFile::new();
            let error = other.options().on_open(sql).open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{sql} in on_open: {error}");
            let migrated = db.migrate([("001_a", sql)]).await.unwrap_err();
            assert_eq!(migrated.kind(), ErrorKind::Misuse, "{sql} in a migration: {migrated}");
        }
        for sql in ["PRAGMA page_size = 4096", "PRAGMA auto_vacuum = NONE", "PRAGMA encoding = 'UTF-8'"] {
            db.query(sql, ()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            db.execute(sql, ()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    });
}

#[test]
fn an_immutable_file_with_commits_beside_it_is_refused() {
    let (file, main) = (TestFile::new(), TestFile::new());
    main.plain().execute_batch("CREATE TABLE t (a)").unwrap();
    let plain = file.plain();
    plain.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    run(async {
        let refused = |error: Error| {
            assert_eq!(error.kind(), ErrorKind::Open, "{error}");
            assert!(error.message().contains("test.db-wal"), "{error}");
        };
        refused(file.options().tuning(|t| t.assume_immutable(true)).open().await.unwrap_err());
        let uri = format!("file:{}?immutable=1", file.path().display());
        refused(Options::new(&uri).open().await.unwrap_err());
        refused(main.options().tuning(|t| t.attach("other", &uri)).open().await.unwrap_err());
        // The last close copies the WAL and removes it.
        drop(plain);
        let db = file.options().tuning(|t| t.assume_immutable(true)).open().await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
        db.close().await.unwrap();
        std::fs::write(file.beside("-wal"), [0; 32]).unwrap();
        file.options().tuning(|t| t.assume_immutable(true)).open().await.unwrap().close().await.unwrap();
        std::fs::remove_file(file.beside("-wal")).unwrap();
        std::fs::write(file.beside("-journal"), b"\xd9\xd5\x05\xf9hot").unwrap();
        let error = file.options().tuning(|t| t.assume_immutable(true)).open().await.unwrap_err();
        assert!(error.message().contains("test.db-journal"), "{error}");
        std::fs::remove_file(file.beside("-journal")).unwrap();
    });
}

#[test]
fn a_backup_takes_no_name_of_a_side_file_and_no_directory() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1)").await.unwrap();
        let before = files(file.directory()).len();
        std::fs::create_dir(file.directory().join("folder")).unwrap();
        for name in
            ["test.db-journal", "test.db-wal", "test.db-shm", "test.db-turn", "none.db-journal", "folder", "new/"]
        {
            let error = db.backup(file.directory().join(name)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{name}: {error}");
        }
        assert_eq!(files(file.directory()).len(), before + 1, "nothing was written");
        assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
        for name in ["-wal", "wal", "copy-of-journal.db"] {
            db.backup(file.directory().join(name)).await.unwrap();
        }
        db.close().await.unwrap();
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
    });
}
