//! Wrong keys, short files and damaged pages: an error that says so, and never a panic; and a connection on which a
//! page could not be decrypted is not used again.

use std::os::unix::fs::FileExt;

use flatwater::options::Key;
use flatwater::{ErrorKind, Options};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::EncryptedFile;
use crate::support::{count, empty_table, files, run};

/// The pages of an encrypted file, in bytes.
const PAGE: u64 = 4096;

/// A passphrase takes SQLCipher a tenth of a second, and a raw key none.
const TEXTS: usize = 10;

async fn filled() -> EncryptedFile {
    let file = EncryptedFile::unchecked();
    let db = empty_table(file.options()).await;
    let rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100)
        INSERT INTO t SELECT randomblob(1000) FROM n";
    db.execute(rows, ()).await.unwrap();
    db.close().await.unwrap();
    file
}

#[test]
fn a_thousand_wrong_keys_open_nothing_and_change_nothing() {
    run(async {
        let file = filled().await;
        let before = files(file.path().parent().unwrap());
        let mut rng = StdRng::seed_from_u64(7);
        for number in 0..1000 {
            let key = if number < TEXTS {
                let text: String = (0..rng.random_range(1..100)).map(|_| rng.random::<char>()).collect();
                Key::text(&text)
            } else {
                Key::raw(&rng.random())
            };
            let error = Options::new(file.path()).key(key).open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Key, "{error}");
            assert!(error.message().starts_with("the key does not open"), "{error}");
        }
        assert_eq!(files(file.path().parent().unwrap()), before);
        assert_eq!(count(&file.open().await).await, 100);
    });
}

#[test]
fn a_file_that_was_cut_off_is_an_error() {
    run(async {
        let whole = std::fs::read(filled().await.path()).unwrap();
        // A file of one byte is an empty one to SQLite.
        for length in [2, 15, 16, 17, 100, 511, 512, 1024, 4095] {
            let file = EncryptedFile::unchecked();
            std::fs::write(file.path(), &whole[..length]).unwrap();
            let error = file.options().open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Key, "{length}: {error}");
        }
        for length in [4097, 3 * 4096, whole.len() - 100, whole.len() / 2] {
            let file = EncryptedFile::unchecked();
            std::fs::write(file.path(), &whole[..length]).unwrap();
            let read = match file.options().open().await {
                Ok(db) => db.query("SELECT * FROM t", ()).await.map(drop),
                Err(error) => Err(error),
            };
            assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt, "{length}");
        }
    });
}

#[test]
fn a_damaged_first_page_is_a_key_that_does_not_open_the_file() {
    run(async {
        let file = filled().await;
        let whole = std::fs::read(file.path()).unwrap();
        let mut rng = StdRng::seed_from_u64(8);
        for _ in 0..30 {
            let mut damaged = whole.clone();
            let at = rng.random_range(0..PAGE as usize);
            damaged[at] ^= rng.random_range(1..=255_u8);
            std::fs::write(file.path(), damaged).unwrap();
            let error = file.options().open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Key, "byte {at}: {error}");
            assert!(error.hint().unwrap().contains("damaged"));
        }
    });
}

/// SQLCipher decrypts nothing more on a connection with which it could not decrypt one page.
#[test]
fn a_damaged_page_costs_what_needs_it_and_no_other_read() {
    run(async {
        let file = filled().await;
        {
            let db = file.open().await;
            db.execute("CREATE TABLE other (a)", ()).await.unwrap();
            db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
            db.close().await.unwrap();
        }
        let disk = std::fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let mut byte = [0];
        disk.read_exact_at(&mut byte, 10 * PAGE + 100).unwrap();
        disk.write_all_at(&[byte[0] ^ 1], 10 * PAGE + 100).unwrap();
        drop(disk);
        let db = file.options().readers(1).open().await.unwrap();
        for _ in 0..20 {
            let error = db.query("SELECT sum(length(a)) FROM t", ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert_eq!(db.query_value::<i64>("SELECT a FROM other", ()).await.unwrap(), 1);
            let error = db.execute("UPDATE t SET a = zeroblob(length(a))", ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            db.execute("UPDATE other SET a = 1", ()).await.unwrap();
        }
        db.close().await.unwrap();
    });
}
