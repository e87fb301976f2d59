//! The care of an encrypted database: checks, vacuums, copies, parts of values, files from strangers.

use std::os::unix::fs::FileExt;
use std::path::Path;

use flatwater::options::{AutoVacuum, Journal, Key};
use flatwater::{Database, ErrorKind, Options};
use futures_util::TryStreamExt;

use super::{EncryptedFile, PASSPHRASE, PLAIN, with_sqlcipher};
use crate::support::{TestFile, count, empty_table, integer, run};

/// The pages of an encrypted file, in bytes.
const PAGE: u64 = 4096;

const ROWS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100)
    INSERT INTO t SELECT randomblob(1000) FROM n";

async fn filled(options: Options) -> Database {
    let db = empty_table(options).await;
    db.execute_script("CREATE TABLE other (a); INSERT INTO other VALUES (1)").await.unwrap();
    db.execute(ROWS, ()).await.unwrap();
    db
}

fn opens(path: &Path) -> bool {
    let is_encrypted = !std::fs::read(path).unwrap().starts_with(PLAIN);
    is_encrypted && integer(&with_sqlcipher(path, PASSPHRASE), "SELECT count(*) FROM t") == 100
}

async fn problems(db: &Database) -> Vec<String> {
    db.integrity_check().try_collect().await.unwrap()
}

/// Inverts a bit of a page.
fn damage(path: &Path, page: u64) {
    let disk = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (mut byte, at) = ([0], (page - 1) * PAGE + 100);
    disk.read_exact_at(&mut byte, at).unwrap();
    disk.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[test]
fn a_compact_copy_has_the_key_of_its_database() {
    run(async {
        let file = EncryptedFile::new();
        let db = filled(file.options()).await;
        db.execute("DELETE FROM other", ()).await.unwrap();
        let copy = file.beside("copy.db");
        db.vacuum_into(&copy).await.unwrap();
        assert!(opens(&copy));
        let copied = Options::new(&copy).key(Key::text(PASSPHRASE)).open().await.unwrap();
        assert_eq!(count(&copied).await, 100);
        assert_eq!(problems(&copied).await, [""; 0]);
        copied.close().await.unwrap();
        let error = Options::new(&copy).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Key);
    });
}

#[test]
fn a_vacuum_leaves_an_encrypted_file_and_nothing_plain() {
    run(async {
        let file = EncryptedFile::new();
        let db = filled(file.options()).await;
        let mark = "a text that is easy to find";
        db.execute("UPDATE other SET a = ?", (mark,)).await.unwrap();
        db.execute("DELETE FROM t", ()).await.unwrap();
        let before = std::fs::metadata(file.path()).unwrap().len();
        db.vacuum().await.unwrap();
        assert!(std::fs::metadata(file.path()).unwrap().len() < before.max(100 * 1000));
        assert!(!file.has(mark.as_bytes()) && !file.has(PLAIN));
        assert_eq!(db.query_value::<String>("SELECT a FROM other", ()).await.unwrap(), mark);
        db.close().await.unwrap();
        assert_eq!(integer(&with_sqlcipher(&file.path(), PASSPHRASE), "SELECT count(*) FROM other"), 1);
    });
}

#[test]
fn an_incremental_vacuum_gives_pages_of_an_encrypted_file_back() {
    run(async {
        let file = EncryptedFile::new();
        let db = filled(file.options().tuning(|t| t.auto_vacuum(AutoVacuum::Incremental))).await;
        db.execute("DELETE FROM t", ()).await.unwrap();
        assert!(db.incremental_vacuum(10).await.unwrap() == 10 && db.incremental_vacuum(0).await.unwrap() > 10);
        assert_eq!(problems(&db).await, [""; 0]);
    });
}

#[test]
fn an_encrypted_database_does_not_become_plain_bytes_nor_encrypted_bytes_one_in_memory() {
    run(async {
        let file = EncryptedFile::new();
        let db = filled(file.options()).await;
        let error = db.serialize().await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("serialize")), "{error}");
        assert!(
            error.message().contains("would not be encrypted") && error.hint().unwrap().contains("export"),
            "{error}"
        );
        // By way of a plain file it does, which the program asks for.
        let plain = file.beside("plain.db");
        db.export(&plain, None).await.unwrap();
        let copy =
            Options::new(":memory:").tuning(|t| t.deserialize(std::fs::read(&plain).unwrap())).open().await.unwrap();
        assert_eq!(count(&copy).await, 100);
        db.close().await.unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        let error = Options::new(":memory:").tuning(|t| t.deserialize(bytes)).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    });
}

#[test]
fn parts_of_a_value_are_read_and_written_encrypted() {
    run(async {
        let file = EncryptedFile::new();
        let db = filled(file.options()).await;
        let mark = "a text that is easy to find";
        db.execute("INSERT INTO t (rowid, a) VALUES (500, zeroblob(50000))", ()).await.unwrap();
        let blob = db.open_blob("t", "a", 500).await.unwrap();
        blob.write_at(40_000, mark.as_bytes().to_vec()).await.unwrap();
        assert_eq!(blob.read_at(40_000, mark.len()).await.unwrap(), mark.as_bytes());
        db.checkpoint(flatwater::calls::CheckpointMode::Truncate).await.unwrap();
        assert!(!file.has(mark.as_bytes()));
    });
}

#[test]
fn a_file_of_a_stranger_is_read_with_its_key() {
    run(async {
        let file = EncryptedFile::new();
        filled(file.options()).await.close().await.unwrap();
        let db = file.options().tuning(|t| t.untrusted()).open().await.unwrap();
        assert_eq!(count(&db).await, 100);
        let error = db.execute("DELETE FROM t", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(problems(&db).await, [""; 0]);
        let error =
            Options::new(file.path()).key(Key::text("another")).tuning(|t| t.untrusted()).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "it is open with another key: {error}");
        db.close().await.unwrap();
        let error =
            Options::new(file.path()).key(Key::text("another")).tuning(|t| t.untrusted()).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Key, "{error}");
    });
}

#[test]
fn a_check_names_the_pages_that_cannot_be_decrypted_and_spoils_no_other_call() {
    run(async {
        for journal in [Journal::Wal, Journal::Keep] {
            let file = EncryptedFile::unchecked();
            let options = || file.options().readers(1).journal(journal);
            filled(options()).await.close().await.unwrap();
            let sound = options().open().await.unwrap();
            assert_eq!(problems(&sound).await, [""; 0]);
            sound.close().await.unwrap();
            damage(&file.path(), 11);
            damage(&file.path(), 20);
            let db = options().open().await.unwrap();
            for _ in 0..3 {
                let found = problems(&db).await;
                assert_eq!(
                    found,
                    [11, 20].map(|page| format!("HMAC verification failed for page {page}")),
                    "{journal:?}"
                );
                assert_eq!(db.query_value::<i64>("SELECT a FROM other", ()).await.unwrap(), 1);
                db.execute("UPDATE other SET a = 1", ()).await.unwrap();
            }
            // A check of what is sound finds nothing.
            let of_table: Vec<_> = db.integrity_check().table("other").try_collect().await.unwrap();
            assert_eq!(of_table, [""; 0]);
            damage(&file.path(), 11);
            damage(&file.path(), 20);
            assert_eq!(problems(&db).await, [""; 0], "what was repaired is sound");
        }
    });
}

#[test]
fn problems_of_rows_are_told_of_an_encrypted_database_too() {
    run(async {
        let file = EncryptedFile::unchecked();
        let db = filled(file.options()).await;
        db.with_connection(|c| {
            let break_it = "CREATE TABLE plain (a); INSERT INTO plain VALUES (NULL); PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE TABLE plain (a NOT NULL)' WHERE name = 'plain';
                PRAGMA writable_schema = RESET";
            Ok::<_, flatwater::Error>(c.execute_batch(break_it)?)
        })
        .await
        .unwrap();
        assert_eq!(problems(&db).await, ["NULL value in plain.a"]);
    });
}

/// KEY '' says that a file is plain; without KEY it would have the key of the main one.
#[test]
fn a_plain_file_is_no_attached_file_of_an_encrypted_database() {
    run(async {
        let (file, plain) = (EncryptedFile::new(), TestFile::new());
        empty_table(plain.options()).await.close().await.unwrap();
        let error = file.options().tuning(|t| t.attach("plain", plain.path())).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Key, "{error}");
        let other = EncryptedFile::new();
        empty_table(other.options()).await.close().await.unwrap();
        let error = TestFile::new().options().tuning(|t| t.attach("other", other.path())).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Open, "{error}");
        // A closure reads it, and keeps what it needs.
        let db = empty_table(file.options()).await;
        let path = plain.path().to_str().unwrap().to_owned();
        db.with_connection(move |c| {
            c.execute("ATTACH ?1 AS plain KEY ''", [path])?;
            Ok::<_, flatwater::Error>(
                c.execute_batch("INSERT INTO plain.t VALUES (7); INSERT INTO main.t SELECT a FROM plain.t")?,
            )
        })
        .await
        .unwrap();
        assert_eq!(count(&db).await, 1);
    });
}
