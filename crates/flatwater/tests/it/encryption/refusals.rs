//! What is refused beside a key, and that no text has a key in it.

use std::sync::{Arc, Mutex};

use flatwater::options::{Key, TempStore};
use flatwater::{Error, ErrorKind, Options};

use super::{EncryptedFile, PASSPHRASE, with_sqlcipher};
use crate::support::{TestFile, empty_table, files, run};

fn message(options: Options) -> (ErrorKind, String) {
    let error = options.open().wait().unwrap_err();
    let shown = format!("{error} {error:?} {:?}", error.hint());
    assert!(!shown.contains("sesame") && !shown.contains("hunter2"), "{shown}");
    (error.kind(), shown)
}

#[test]
fn what_would_be_plain_beside_a_key_is_refused() {
    let file = EncryptedFile::new();
    let key = || Key::text(PASSPHRASE);
    for (options, said) in [
        (Options::new(":memory:").key(key()), "in memory is not encrypted"),
        (file.options().tuning(|t| t.temp_store(TempStore::File)), "temporary files are not encrypted"),
        (file.options().tuning(|t| t.page_size(8192)), "pages of 4,096 bytes"),
        (Options::new(file.path()).key(Key::text("")), "the key is empty"),
    ] {
        let (kind, message) = message(options);
        assert!(kind == ErrorKind::Misuse && message.contains(said), "{message}");
    }
    assert!(!file.path().exists());
}

#[test]
fn temporary_data_stays_in_memory_on_every_connection() {
    run(async {
        let ask = |connection: &rusqlite::Connection| {
            Ok::<_, Error>(connection.query_row("PRAGMA temp_store", [], |row| row.get::<_, i64>(0))?)
        };
        for store in [TempStore::Auto, TempStore::Memory] {
            let file = EncryptedFile::new();
            let db = empty_table(file.options().tuning(|t| t.temp_store(store))).await;
            assert_eq!(db.read_with(move |connection| ask(connection)).await.unwrap(), 2);
            assert_eq!(db.write_with(move |connection| ask(connection)).await.unwrap(), 2);
        }
        // A plain file is treated as it is without the feature: the default of SQLCipher's builds is memory.
        let plain = TestFile::new();
        let db = empty_table(plain.options()).await;
        assert_eq!(db.read_with(move |connection| ask(connection)).await.unwrap(), 1);
    });
}

#[test]
fn a_wrong_key_a_plain_file_and_a_missing_key_are_told_apart() {
    run(async {
        let (file, plain) = (EncryptedFile::new(), TestFile::new());
        empty_table(file.options()).await.close().await.unwrap();
        empty_table(plain.options()).await.close().await.unwrap();
        let before = (files(file.path().parent().unwrap()), files(plain.directory()));
        for read_only in [false, true] {
            for (options, said) in [
                (Options::new(file.path()).key(Key::text("hunter2")), "the key does not open"),
                (Options::new(file.path()).key(Key::raw(&[1; 32])), "the key does not open"),
                (Options::new(file.path()), "is encrypted, or is no SQLite database, and no key was given"),
                (Options::new(plain.path()).key(Key::text("hunter2")), "is not encrypted, and a key was given"),
            ] {
                let (kind, message) = message(options.read_only(read_only));
                assert!(kind == ErrorKind::Key && message.contains(said), "{message}");
            }
        }
        assert_eq!((files(file.path().parent().unwrap()), files(plain.directory())), before, "nothing was written");
    });
}

#[test]
fn a_file_that_is_no_database_is_not_called_encrypted() {
    let file = TestFile::new();
    std::fs::write(file.path(), "just a text\n".repeat(1024)).unwrap();
    let (kind, shown) = message(Options::new(file.path()));
    assert!(kind == ErrorKind::Open && shown.contains("is not a SQLite database"), "{shown}");
    std::fs::remove_file(file.path()).unwrap();
}

#[test]
fn a_key_in_sql_is_refused_and_not_shown() {
    run(async {
        let file = EncryptedFile::new();
        let heard = Arc::new(Mutex::new(String::new()));
        let listener = heard.clone();
        let options = file.options().on_statement(move |event| {
            listener.lock().unwrap().push_str(&format!("{event:?}"));
        });
        let db = empty_table(options).await;
        for sql in [
            "PRAGMA key = 'hunter2'",
            "PRAGMA rekey = 'hunter2'",
            "PRAGMA main.hexkey = '68756e74657232 hunter2'",
            "PRAGMA textrekey('hunter2')",
            "ATTACH 'x.db' AS x KEY 'hunter2'",
        ] {
            for error in [db.query(sql, ()).await.unwrap_err(), db.execute_script(sql).await.unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
                assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
            }
        }
        for sql in ["PRAGMA key = 'hunter2'", "PRAGMA rekey = 'hunter2'", "PRAGMA cipher_migrate"] {
            let refused = db.with_connection(move |connection| Ok::<_, Error>(connection.execute_batch(sql)?)).await;
            assert!(refused.unwrap_err().message().contains("not authorized"), "{sql}");
        }
        assert_eq!(db.query_value::<String>("PRAGMA cipher_version", ()).await.unwrap(), "4.19.0 community");
        let error = db.query("PRAGMA cipher_migrate", ()).await.unwrap_err();
        assert!(
            error.kind() == ErrorKind::Misuse && error.message().contains("of SQLCipher is not accepted"),
            "{error}"
        );
        assert!(!heard.lock().unwrap().contains("sesame"));
        db.close().await.unwrap();
        drop(with_sqlcipher(&file.path(), PASSPHRASE));
    });
}

#[test]
fn no_debug_of_options_shows_the_key() {
    let options = Options::new("a.db").key(Key::text("hunter2"));
    assert!(!format!("{options:?}").contains("hunter2"));
}

/// SQLCipher acts on its PRAGMAs when they are prepared, EXPLAIN or not, and some change the whole process.
#[test]
fn no_road_takes_a_setting_of_sqlcipher() {
    const SETTINGS: &[&str] = &[
        "PRAGMA cipher_default_kdf_iter = 1",
        "PRAGMA cipher_default_page_size = 8192",
        "PRAGMA cipher_default_use_hmac = OFF",
        "PRAGMA cipher_default_plaintext_header_size = 32",
        "PRAGMA cipher_default_compatibility = 3",
        "PRAGMA /* a comment */ main . \"Cipher_Plaintext_Header_Size\" (32)",
        "PRAGMA cipher_use_hmac = OFF",
        "PRAGMA cipher_hmac_algorithm = HMAC_SHA1",
        "PRAGMA kdf_iter = 1",
        "PRAGMA cipher_log = stdout",
        "PRAGMA cipher_log_level = TRACE",
        "PRAGMA cipher_profile = stdout",
        "PRAGMA cipher_memory_security = OFF",
        "PRAGMA cipher_of_a_later_version",
        "EXPLAIN PRAGMA cipher_default_kdf_iter = 1",
        "PRAGMA temp_store = FILE",
    ];
    // What the process would do with a new file.
    let of_process = || {
        let plain = rusqlite::Connection::open_in_memory().unwrap();
        let mut settings = plain.prepare("PRAGMA cipher_default_settings").unwrap();
        let all = settings.query_map([], |row| row.get::<_, String>(0)).unwrap().collect::<rusqlite::Result<Vec<_>>>();
        all.unwrap()
    };
    run(async {
        let (file, before) = (EncryptedFile::new(), of_process());
        assert!(before.len() > 3, "{before:?}");
        let db = empty_table(file.options()).await;
        for (at, sql) in SETTINGS.iter().copied().enumerate() {
            let own = db.connection();
            own.execute("INSERT INTO t VALUES (0)", ()).await.unwrap();
            let version = format!("{at:03}");
            let whole = format!("-- no-transaction\n{sql}");
            let (in_transaction, outside) = ([(version.as_str(), sql)], [(version.as_str(), whole.as_str())]);
            let errors = [
                ("query", db.query(sql, ()).await.map(drop)),
                ("execute", db.execute(sql, ()).await.map(drop)),
                ("script", db.execute_script(sql).await),
                ("transaction", db.transaction(async |tx| -> Result<(), Error> { tx.execute_script(sql).await }).await),
                ("snapshot", db.snapshot().await.unwrap().query(sql, ()).await.map(drop)),
                ("live", db.live(sql, ()).next().await.unwrap().map(drop)),
                ("own", own.query(sql, ()).await.map(drop)),
                ("own", own.execute(sql, ()).await.map(drop)),
                ("own script", own.execute_script(sql).await),
                ("migration", db.migrate(in_transaction).await.map(drop)),
                ("migration", db.migrate(outside).await.map(drop)),
                ("whole", db.with_connection(move |c| -> Result<(), Error> { Ok(c.execute_batch(sql)?) }).await),
                ("read", db.read_with(move |c| -> Result<(), Error> { Ok(c.execute_batch(sql)?) }).await),
                ("write", db.write_with(move |c| -> Result<(), Error> { Ok(c.execute_batch(sql)?) }).await),
            ];
            for (road, error) in errors {
                assert!(error.is_err(), "{road}: {sql}");
            }
            drop(own);
            // No key has to be derived of this one.
            let other = || Options::new(file.beside("other.db")).key(Key::raw(&[7; 32]));
            other().on_open(sql).open().await.unwrap_err();
            other().on_connect(move |c| c.execute_batch(sql)).open().await.unwrap_err();
        }
        assert_eq!(of_process(), before);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
        let rows = crate::support::integer(&with_sqlcipher(&file.path(), PASSPHRASE), "SELECT count(*) FROM t");
        assert_eq!(rows, SETTINGS.len() as i64 + 1);
    });
}

#[test]
fn the_pages_of_an_encrypted_file_keep_their_size() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        let own = db.connection();
        own.execute("PRAGMA page_size = 8192", ()).await.unwrap_err();
        own.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(own.query_value::<String>("PRAGMA cipher_version", ()).await.unwrap(), "4.19.0 community");
        drop(own);
        let error = db.migrate([("1", "PRAGMA page_size = 8192")]).await.unwrap_err();
        assert!(error.message().contains("page_size"), "{error}");
        db.close().await.unwrap();
    });
}
