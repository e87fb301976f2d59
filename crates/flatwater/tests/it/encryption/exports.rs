//! `export`: from plain to encrypted and back, whole or not at all.

use std::time::Duration;

use flatwater::options::Key;
use flatwater::{Database, ErrorKind, Options};

use super::{EncryptedFile, PASSPHRASE, PLAIN, with_sqlcipher};
use crate::support::{TestFile, files, foreign_keys_violated, integrity, run};

/// What is hard to copy: rowids, sequences, virtual tables, generated columns, triggers, views, statistics.
const SCHEMA: &str = "
    PRAGMA user_version = 7; PRAGMA application_id = 77;
    CREATE TABLE gaps (a); INSERT INTO gaps (rowid, a) VALUES (3, 'c'), (9, 'i');
    CREATE TABLE seq (id INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE); INSERT INTO seq VALUES (41, 'x'); DELETE FROM seq;
    INSERT INTO seq (b) VALUES ('y');
    CREATE TABLE \"odd 'name\"\"\" (k PRIMARY KEY, v AS (k || '!') STORED) WITHOUT ROWID; INSERT INTO \"odd 'name\"\"\" VALUES ('q');
    CREATE TABLE child (id INTEGER PRIMARY KEY, parent REFERENCES seq (id)); INSERT INTO child VALUES (1, 42);
    CREATE VIRTUAL TABLE words USING fts5 (text); INSERT INTO words VALUES ('some words');
    CREATE INDEX upper ON gaps (upper(a)) WHERE a > 'b';
    CREATE VIEW seen AS SELECT a FROM gaps;
    CREATE TRIGGER logs AFTER INSERT ON gaps BEGIN INSERT INTO child (parent) VALUES (42); END;
    ANALYZE";

/// All that the database contains, as text.
fn content(connection: &rusqlite::Connection) -> Vec<String> {
    let mut said = vec![integrity(connection), format!("{:?}", foreign_keys_violated(connection))];
    let text = |sql: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at)).collect::<Result<Vec<_>, _>>()
        };
        let rows: Vec<_> = statement.query_map([], row).unwrap().map(Result::unwrap).collect();
        format!("{sql}: {rows:?}")
    };
    for sql in [
        "PRAGMA user_version",
        "PRAGMA application_id",
        "PRAGMA encoding",
        "PRAGMA auto_vacuum",
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2",
        "SELECT rowid, * FROM gaps",
        "SELECT * FROM seq",
        "SELECT * FROM sqlite_sequence",
        "SELECT * FROM child",
        "SELECT * FROM \"odd 'name\"\"\"",
        "SELECT rowid, * FROM words WHERE words MATCH 'some'",
        "SELECT * FROM seen",
        "SELECT * FROM sqlite_stat1 ORDER BY 1, 2",
    ] {
        said.push(text(sql));
    }
    said
}

async fn filled(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(SCHEMA).await.unwrap();
    db
}

#[test]
fn a_plain_database_is_encrypted_and_decrypted_again_with_all_that_is_in_it() {
    run(async {
        let (plain, copies) = (TestFile::new(), EncryptedFile::unchecked());
        let shape = "PRAGMA encoding = 'UTF-16le'; PRAGMA auto_vacuum = FULL; CREATE TABLE first (a); DROP TABLE first";
        plain.plain().execute_batch(shape).unwrap();
        let db = filled(plain.options()).await;
        let before = content(&plain.plain());
        assert!(before[4].contains("UTF-16le") && before[5].contains("Integer(1)"));
        let encrypted = copies.path();
        db.export(&encrypted, Some(Key::text(PASSPHRASE))).await.unwrap();
        assert!(!copies.has(PLAIN));
        assert_eq!(content(&with_sqlcipher(&encrypted, PASSPHRASE)), before);
        let db = copies.open().await;
        let decrypted = copies.beside("plain.db");
        db.export(&decrypted, None).await.unwrap();
        assert_eq!(content(&rusqlite::Connection::open(&decrypted).unwrap()), before);
        let other = copies.beside("other.db");
        db.export(&other, Some(Key::raw(&[5; 32]))).await.unwrap();
        assert_eq!(content(&with_sqlcipher(&other, &format!("x'{}'", "05".repeat(32)))), before);
        let db = Options::new(&other).key(Key::raw(&[5; 32])).open().await.unwrap();
        db.execute("INSERT INTO gaps VALUES ('z')", ()).await.unwrap();
    });
}

#[test]
fn a_function_that_an_index_needs_is_there_if_on_connect_registers_it() {
    use flatwater::rusqlite::functions::FunctionFlags;
    run(async {
        let (plain, copies) = (TestFile::new(), EncryptedFile::unchecked());
        let options = plain.options().on_connect(|connection| {
            let flags =
                FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
            connection.create_scalar_function("twice", 1, flags, |context| Ok(context.get::<i64>(0)? * 2))
        });
        let db = options.open().await.unwrap();
        db.execute_script("CREATE TABLE t (a); CREATE INDEX i ON t (twice(a)); INSERT INTO t VALUES (21)")
            .await
            .unwrap();
        db.export(copies.path(), Some(Key::text(PASSPHRASE))).await.unwrap();
        let copy = with_sqlcipher(&copies.path(), PASSPHRASE);
        assert_eq!(copy.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 21);
        db.execute("DROP INDEX i", ()).await.unwrap();
    });
}

#[test]
fn nothing_is_left_behind_by_an_export_that_fails() {
    run(async {
        let (plain, copies) = (TestFile::new(), EncryptedFile::unchecked());
        let db = filled(plain.options()).await;
        let key = || Some(Key::text(PASSPHRASE));
        let taken = copies.beside("taken.db");
        std::fs::write(&taken, "mine").unwrap();
        let error = db.export(&taken, key()).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("exists already"), "{error}");
        assert_eq!(db.export(copies.path(), Some(Key::text(""))).await.unwrap_err().kind(), ErrorKind::Misuse);
        let nowhere = copies.beside("nowhere").join("copy.db");
        assert_eq!(db.export(nowhere, key()).await.unwrap_err().kind(), ErrorKind::Open);
        // SQL that only the schema's writer can repair: the copy cannot run it.
        plain
            .plain()
            .execute_batch(
                "PRAGMA writable_schema = ON; CREATE TABLE bad (a);
            UPDATE sqlite_schema SET sql = 'CREATE TABLE bad (a, b AS (missing(a)))' WHERE name = 'bad'",
            )
            .unwrap();
        let error = db.export(copies.path(), key()).await.unwrap_err();
        assert!(error.message().contains("cannot be exported"), "{error}");
        let memory = Options::new(":memory:").open().await.unwrap();
        assert_eq!(memory.export(copies.path(), key()).await.unwrap_err().kind(), ErrorKind::Misuse);
        let left: Vec<_> = files(copies.path().parent().unwrap()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["taken.db"]);
        let good =
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE bad (a)' WHERE name = 'bad'";
        plain.plain().execute_batch(good).unwrap();
        plain.plain().execute_batch("DROP TABLE bad").unwrap();
    });
}

#[test]
fn an_export_that_is_given_up_ends_and_leaves_nothing() {
    run(async {
        let (plain, copies) = (TestFile::new(), EncryptedFile::unchecked());
        let db = plain.options().open().await.unwrap();
        db.execute_script("CREATE TABLE t (a); INSERT INTO t SELECT randomblob(3000) FROM json_each('[1,2,3,4,5,6,7,8,9,10]') a, json_each('[1,2,3,4,5,6,7,8,9,10]') b, json_each('[1,2,3,4,5,6,7,8,9,10]') c, json_each('[1,2,3,4,5,6,7,8,9,10]') d").await.unwrap();
        let export = db.export(copies.path(), Some(Key::text(PASSPHRASE))).timeout(Duration::from_millis(30));
        // On a fast machine it may be done before.
        if let Err(error) = export.await {
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            db.close().await.unwrap();
            assert!(files(copies.path().parent().unwrap()).is_empty());
        }
    });
}
