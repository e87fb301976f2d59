//! Opening encrypted files: what is on the disk, and other programs with SQLCipher.

use flatwater::options::{AutoVacuum, Durability, Journal, Key};
use flatwater::{Error, ErrorKind, Options};

use super::{EncryptedFile, PASSPHRASE, PLAIN, with_sqlcipher};
use crate::support::{TestFile, count, empty_table, integer, run};

const MARK: &str = "a text that is easy to find";

#[test]
fn nothing_plain_is_on_the_disk_while_it_is_open_nor_afterwards() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000) INSERT INTO t SELECT ? FROM n";
        db.execute(many, (MARK,)).await.unwrap();
        assert_eq!(count(&db).await, 1000);
        assert!(std::fs::metadata(file.beside("test.db-wal")).unwrap().len() > 20_000);
        for is_open in [true, false] {
            assert!(!file.has(MARK.as_bytes()) && !file.has(PLAIN) && !file.has(b"CREATE TABLE"), "open: {is_open}");
            db.close().await.unwrap();
        }
        let db = file.open().await;
        assert_eq!(count(&db).await, 1000);
        let plain = TestFile::new();
        let db = empty_table(plain.options()).await;
        db.execute("INSERT INTO t VALUES (?)", (MARK,)).await.unwrap();
        db.close().await.unwrap();
        let bytes = std::fs::read(plain.path()).unwrap();
        assert!(bytes.starts_with(PLAIN) && bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes()));
    });
}

#[test]
fn a_raw_key_opens_what_it_encrypted_and_is_sqlciphers_raw_key() {
    run(async {
        let file = EncryptedFile::unchecked();
        let options = || Options::new(file.path()).key(Key::raw(&[0xa7; 32]));
        let db = empty_table(options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
        assert_eq!(integer(&with_sqlcipher(&file.path(), &format!("x'{}'", "a7".repeat(32))), "SELECT a FROM t"), 1);
        let db = options().open().await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn sqlcipher_opens_our_files_and_we_open_those_of_sqlcipher() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        let other = with_sqlcipher(&file.path(), PASSPHRASE);
        assert_eq!(integer(&other, "SELECT a FROM t"), 1, "while it is open");
        other.execute_batch("INSERT INTO t VALUES (2)").unwrap();
        assert_eq!(count(&db).await, 2);
        db.close().await.unwrap();
        drop(other);

        let theirs = EncryptedFile::new();
        let other = with_sqlcipher(&theirs.path(), PASSPHRASE);
        other.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
        drop(other);
        let db = theirs.open().await;
        assert_eq!(count(&db).await, 1);
        assert_eq!(db.stats().journal, "wal");
    });
}

#[test]
fn what_new_files_have_works_beside_a_key() {
    run(async {
        let file = EncryptedFile::new();
        let options = file.options().durability(Durability::Full).tuning(|t| t.auto_vacuum(AutoVacuum::Full));
        let db = empty_table(options.clone()).await;
        db.execute("INSERT INTO t VALUES (zeroblob(1000000))", ()).await.unwrap();
        db.execute("DELETE FROM t", ()).await.unwrap();
        db.close().await.unwrap();
        assert!(std::fs::metadata(file.path()).unwrap().len() < 100_000);
        let db = options.open().await.unwrap();
        assert_eq!(count(&db).await, 0);
        db.close().await.unwrap();
        let db = file.options().read_only(true).open().await.unwrap();
        assert_eq!(count(&db).await, 0);

        let kept = EncryptedFile::new();
        let options = kept.options().journal(Journal::Keep);
        let db = empty_table(options.clone()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(db.stats().journal, "delete");
        db.close().await.unwrap();
        assert_eq!(count(&options.open().await.unwrap()).await, 1);
    });
}

#[test]
fn the_same_key_joins_the_open_database_and_another_one_is_refused() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        let same = file.open().await;
        same.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(count(&db).await, 1);
        let plain = || Options::new(file.path());
        for other in [plain().key(Key::text("hunter2")), plain().key(Key::raw(&[7; 32])), plain()] {
            let error = other.open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains("another value of the option `key`"), "{error}");
            assert!(!format!("{error} {error:?}").contains("hunter2") && !error.to_string().contains(PASSPHRASE));
        }
    });
}

#[test]
fn attached_files_have_the_same_key_each_with_its_salt() {
    run(async {
        let (file, other) = (EncryptedFile::new(), EncryptedFile::new());
        let db = empty_table(other.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
        let options = file.options().tuning(|t| t.attach("o", other.path()));
        let db = options.clone().open().await.unwrap();
        let rows = db.query_value::<i64>("SELECT count(*) FROM o.t", ()).await.unwrap();
        db.execute("INSERT INTO o.t VALUES (2)", ()).await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        assert_eq!((rows, db.query_value::<i64>("SELECT count(*) FROM o.t", ()).await.unwrap()), (1, 2));
        db.close().await.unwrap();
        assert_eq!(count(&other.open().await).await, 2);

        let plain = TestFile::new();
        plain.plain().execute_batch("CREATE TABLE t (a)").unwrap();
        let error = file.options().tuning(|t| t.attach("o", plain.path())).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Key);
        assert!(error.message().contains("cannot be attached"), "{error}");
        let error = plain.options().tuning(|t| t.attach("o", other.path())).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open);
        let db = plain.options().tuning(|t| t.attach("p", plain.beside("-other"))).open().await.unwrap();
        db.execute("CREATE TABLE p.t (a)", ()).await.unwrap();
        db.close().await.unwrap();
        assert!(std::fs::read(plain.beside("-other")).unwrap().starts_with(PLAIN));
    });
}

#[test]
fn each_connection_has_the_keys_of_all_files() {
    run(async {
        let (file, other) = (EncryptedFile::new(), EncryptedFile::new());
        empty_table(other.options()).await.close().await.unwrap();
        let db = empty_table(file.options().readers(8).tuning(|t| t.attach("o", other.path()))).await;
        let arrive = std::sync::Arc::new(std::sync::Barrier::new(8));
        let reads = (0..8).map(|_| {
            let arrive = arrive.clone();
            db.read_with(move |connection| {
                arrive.wait();
                Ok::<_, Error>(connection.query_row("SELECT count(*) FROM t, o.t", [], |row| row.get::<_, i64>(0))?)
            })
        });
        for read in futures_util::future::join_all(reads).await {
            assert_eq!(read.unwrap(), 0);
        }
    });
}
