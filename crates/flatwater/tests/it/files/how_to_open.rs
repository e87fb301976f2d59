//! Ways to open a file: by URI, with its own journal mode, as immutable, with SQL for every connection.

use flatwater::options::Journal;
use flatwater::{Database, Error, ErrorKind, Options};

use crate::support::{TestFile, count, empty_table, integer, run};

async fn journal_mode(db: &Database) -> String {
    db.query_optional_value("PRAGMA journal_mode", ()).await.unwrap().unwrap()
}

#[test]
fn a_uri_opens_its_file_as_it_says() {
    let file = TestFile::new();
    let uri = |query: &str| Options::new(format!("file:{}{query}", file.path().display()));
    run(async {
        assert_eq!(uri("?mode=rw").open().await.unwrap_err().kind(), ErrorKind::Open, "it does not exist");
        empty_table(uri("?mode=rwc")).await.close().await.unwrap();
        let reader = uri("?mode=ro&vfs=unix").open().await.unwrap();
        assert_eq!(count(&reader).await, 0);
        assert_eq!(reader.execute("DELETE FROM t", ()).await.unwrap_err().kind(), ErrorKind::Misuse);
        reader.close().await.unwrap();
        let unknown = uri("?mode=ro&vfs=no-such-vfs").open().await.unwrap_err();
        assert!(unknown.message().contains("no-such-vfs"), "{unknown}");
        for (query, said) in [("?cache=shared", "`cache`"), ("?nolock=1", "nolock"), ("?mode=rx", "mode=rx")] {
            let error = uri(query).open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains(said), "{error}");
        }
        let memory = Database::open("file:x?mode=memory").await.unwrap();
        assert_eq!(journal_mode(&memory).await, "memory");
    });
    let strange = std::fs::read_dir(file.directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let strange: Vec<_> = strange.filter(|name| !name.to_str().unwrap().starts_with("test.db")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn a_file_that_keeps_its_journal_mode_has_one_connection() {
    let file = TestFile::new();
    file.plain().execute_batch("PRAGMA journal_mode = truncate; CREATE TABLE t (a)").unwrap();
    run(async {
        let before = std::fs::read(file.path()).unwrap();
        let db = file.options().journal(Journal::Keep).open().await.unwrap();
        let stats = db.stats();
        assert!(stats.one_connection);
        assert_eq!(stats.journal, "delete", "truncate is a connection's own way of it");
        assert_eq!(std::fs::read(file.path()).unwrap(), before, "opening writes nothing");
        let inserts = (0..50).map(|_| db.execute("INSERT INTO t VALUES (1)", ()));
        assert!(futures_util::future::join_all(inserts).await.iter().all(Result::is_ok));
        assert_eq!(count(&db).await, 50);
        assert_eq!(db.read_with(|c| Ok::<_, Error>(integer(c, "SELECT count(*) FROM t"))).await.unwrap(), 50);
        assert!(!file.beside("-wal").exists());
        let transaction = db.begin().await.unwrap();
        transaction.execute("DELETE FROM t", ()).await.unwrap();
        let waits = db.with_timeout(std::time::Duration::from_millis(20)).query("SELECT * FROM t", ()).await;
        assert_eq!(waits.unwrap_err().kind(), ErrorKind::Timeout, "a read waits for the transaction's end");
        transaction.rollback().await.unwrap();
        let reader = file.options().journal(Journal::Keep).read_only(true).open().await.unwrap();
        assert_eq!(count(&reader).await, 50);
        let refused = reader.query("DELETE FROM t RETURNING a", ()).await.unwrap_err();
        assert!(refused.kind() == ErrorKind::Misuse && refused.message().contains("read-only"), "{refused}");
    });
}

#[test]
fn a_wal_file_that_keeps_its_journal_mode_has_readers() {
    let file = TestFile::new();
    run(async {
        empty_table(file.options()).await.close().await.unwrap();
        let db = file.options().journal(Journal::Keep).open().await.unwrap();
        assert_eq!((db.stats().journal.as_str(), db.stats().one_connection), ("wal", false));
        let transaction = db.begin().await.unwrap();
        assert_eq!(count(&db).await, 0, "a reader does not wait");
        drop(transaction);
    });
}

#[test]
fn an_immutable_file_is_read_without_any_file_beside_it() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
        let before = std::fs::metadata(file.path()).unwrap().modified().unwrap();
        let db = file.options().tuning(|t| t.assume_immutable(true)).open().await.unwrap();
        assert_eq!(count(&db).await, 1);
        assert_eq!(std::fs::read_dir(file.directory()).unwrap().count(), 1, "no -wal, no -shm");
        assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap_err().kind(), ErrorKind::Misuse);
        db.close().await.unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().modified().unwrap(), before);
    });
}

#[test]
fn sql_for_new_connections_runs_on_each_and_its_failure_is_the_opens() {
    let file = TestFile::new();
    run(async {
        empty_table(file.options()).await.close().await.unwrap();
        let options =
            || file.options().on_open("PRAGMA case_sensitive_like = 1").on_open("SELECT 1; PRAGMA threads = 3");
        let db = options().open().await.unwrap();
        let asks = |c: &rusqlite::Connection| {
            Ok::<_, Error>((integer(c, "SELECT 'A' LIKE 'a'"), integer(c, "PRAGMA threads")))
        };
        assert_eq!(db.write_with(move |tx| asks(tx)).await.unwrap(), (0, 3));
        assert_eq!(db.read_with(asks).await.unwrap(), (0, 3));
        db.close().await.unwrap();
        for (sql, said) in [
            ("SELEC 1", "syntax error"),
            ("INSERT INTO no_such_table VALUES (1)", "no_such_table"),
            ("PRAGMA foreign_keys = 0", "foreign_keys"),
            ("PRAGMA journal_mode = delete", "journal_mode"),
            ("PRAGMA no_such = 1", "no_such"),
            ("BEGIN", "BEGIN"),
            ("ATTACH 'x.db' AS x", "ATTACH"),
            ("CREATE TEMP TABLE x (a)", "TEMP"),
        ] {
            let error = file.options().on_open(sql).open().await.unwrap_err();
            assert!(error.message().starts_with("`on_open` failed") && error.message().contains(said), "{error}");
            assert_eq!((error.operation(), error.sql()), (Some("open"), Some(sql)));
        }
        assert_eq!(count(&file.open().await).await, 0, "and nothing is left behind");
    });
}

#[test]
fn an_attached_file_can_be_read_only_by_its_uri() {
    let file = TestFile::new();
    let other = file.directory().join("other 1.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE o (a); INSERT INTO o VALUES (7)").unwrap();
    run(async {
        let uri = format!("file:{}?mode=ro", other.display().to_string().replace(' ', "%20"));
        let db = file.options().tuning(|t| t.attach("o", uri)).open().await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("SELECT a FROM o.o", ()).await.unwrap(), Some(7));
        let error = db.execute("DELETE FROM o.o", ()).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_READONLY"));
    });
}

#[test]
fn a_copy_from_one_point_in_time_is_made_by_vacuum_into() {
    let file = TestFile::new();
    let copy = file.directory().join("copy.db");
    run(async {
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.execute("VACUUM INTO ?", (copy.to_str().unwrap(),)).await.unwrap();
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    });
    assert_eq!(integer(&rusqlite::Connection::open(&copy).unwrap(), "SELECT count(*) FROM t"), 1);
}

#[test]
fn an_attached_file_that_must_exist_is_not_created() {
    let file = TestFile::new();
    let missing = file.directory().join("missing.db");
    run(async {
        let uri = format!("file:{}?mode=rw", missing.display());
        assert_eq!(file.options().tuning(|t| t.attach("m", uri)).open().await.unwrap_err().kind(), ErrorKind::Open);
        assert!(!missing.exists());
        use std::os::unix::ffi::OsStringExt;
        let strange = file.directory().join(std::ffi::OsString::from_vec(b"\xff.db".to_vec()));
        file.options().tuning(|t| t.attach("s", &strange)).open().await.unwrap().close().await.unwrap();
        assert!(strange.exists(), "another file was attached in its place");
    });
}

#[test]
fn sql_for_new_connections_that_fails_on_readers_fails_the_open() {
    let file = TestFile::new();
    run(async {
        empty_table(file.options()).await.close().await.unwrap();
        let error = file.options().on_open("INSERT INTO t VALUES (1)").open().await.unwrap_err();
        assert!(error.message().contains("`on_open` failed"), "{error}");
    });
}

#[test]
fn a_vfs_without_files_is_not_taken_for_a_file_that_was_removed() {
    run(async {
        let options = Options::new("/in-the-vfs-only").journal(Journal::Keep).tuning(|t| t.vfs("memdb"));
        let db = empty_table(options).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}
