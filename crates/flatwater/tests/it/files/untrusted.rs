//! Files of strangers: what is in the schema runs nothing that has effects, is as small as it has to be, and ends.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::{Database, Error, ErrorKind, Options, params};
use futures_util::TryStreamExt;
use rusqlite::functions::FunctionFlags;

use crate::support::{TestFile, files, run, until};

/// A file that is made by other options, with this schema.
fn made(sql: &str) -> TestFile {
    let file = TestFile::new();
    file.plain().execute_batch(sql).unwrap();
    file
}

fn untrusted(file: &TestFile) -> Options {
    file.options().tuning(|t| t.untrusted()).readers(1)
}

async fn refused(db: &Database, sql: &str) -> Error {
    db.query(sql, ()).await.unwrap_err()
}

/// Registers a function that counts its calls.
fn counting(options: Options, calls: &Arc<AtomicU64>, flags: FunctionFlags) -> Options {
    let calls = calls.clone();
    options.on_connect(move |c| {
        let calls = calls.clone();
        c.create_scalar_function("effect", 0, FunctionFlags::SQLITE_UTF8 | flags, move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            Ok(1)
        })
    })
}

/// SQLite checks the cells of a page when it reads the page, and finds nothing wrong with one that is in the cache.
#[test]
fn damage_that_the_first_read_finds_is_told() {
    let file = made("CREATE TABLE t (a); CREATE TABLE u (a)");
    let bytes = std::fs::OpenOptions::new().write(true).open(file.path()).unwrap();
    // The reserved bytes at the end of each page: the first cell of the schema is not before them any more.
    bytes.write_all_at(&[3], 20).unwrap();
    run(async {
        for options in [untrusted(&file), untrusted(&file).read_only(false)] {
            assert_eq!(options.open().await.unwrap_err().kind(), ErrorKind::Corrupt);
        }
    });
    bytes.write_all_at(&[0], 20).unwrap();
}

/// A function that counts its calls.
fn effect(calls: &Arc<AtomicU64>) -> impl Fn(&rusqlite::functions::Context<'_>) -> rusqlite::Result<i64> + use<> {
    let calls = calls.clone();
    move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        Ok(1)
    }
}

/// SQLite checks the functions of a generated column, a CHECK and an index when it reads the schema, and refuses all of it.
#[test]
fn a_definition_calls_no_function_however_late_it_was_registered() {
    const DEFINITIONS: [&str; 4] = [
        "CREATE TABLE t (a, h AS (effect(a)))",
        "CREATE TABLE t (a, h AS (effect(a)) STORED)",
        "CREATE TABLE t (a CHECK (effect(a) IS NOT NULL))",
        "CREATE TABLE t (a); CREATE INDEX i ON t (effect(a))",
    ];
    const TEXTS: [&str; 3] = ["SELECT * FROM t", "INSERT INTO t (a) VALUES (1)", "PRAGMA integrity_check"];
    let calls: Arc<AtomicU64> = Arc::default();
    // A connection that only reads has no CHECKs.
    let is_there = |(definition, read_only): &(&str, bool)| !(*read_only && definition.contains("CHECK"));
    for (definition, read_only) in DEFINITIONS.into_iter().flat_map(|one| [(one, true), (one, false)]).filter(is_there)
    {
        let file = TestFile::new();
        let plain = file.plain();
        plain.create_scalar_function("effect", 1, FunctionFlags::SQLITE_DETERMINISTIC, |_| Ok(1)).unwrap();
        plain.execute_batch(&format!("{definition}; INSERT INTO t (a) VALUES (0)")).unwrap();
        drop(plain);
        let is_refused = |error: Error| {
            assert!(error.message().contains("unsafe use of effect()"), "{definition}: {error}");
            assert!(error.kind() == ErrorKind::Sql && error.hint().unwrap().contains("innocuous"), "{error:?}");
        };
        run(async {
            let flags = FunctionFlags::SQLITE_DETERMINISTIC;
            let of_file = || untrusted(&file).read_only(read_only);
            let on_connect = calls.clone();
            let options =
                of_file().on_connect(move |c| c.create_scalar_function("effect", 1, flags, effect(&on_connect)));
            is_refused(options.open().await.unwrap_err());

            let db = of_file().open().await.unwrap();
            db.query_value::<i64>("SELECT count(*) FROM sqlite_schema", ()).await.unwrap();
            db.functions().create_scalar_function("effect", 1, flags, effect(&calls)).unwrap();
            for sql in TEXTS.into_iter().filter(|sql| sql.starts_with("INSERT") || !definition.contains("CHECK")) {
                is_refused(db.query(sql, ()).await.unwrap_err());
            }
            let own = db.connection();
            is_refused(own.query(TEXTS[0], ()).await.unwrap_err());
            drop(own);
            assert_eq!(calls.load(Ordering::SeqCst), 0, "{definition}");
            // Without it the file is as it was.
            db.functions().remove_function("effect", 1).unwrap();
            db.query_value::<i64>("SELECT count(*) FROM sqlite_schema", ()).await.unwrap();
            db.close().await.unwrap();

            let db = of_file().open().await.unwrap();
            db.functions()
                .create_scalar_function("effect", 1, flags | FunctionFlags::SQLITE_INNOCUOUS, |_| Ok(1))
                .unwrap();
            db.query("SELECT * FROM t", ()).await.unwrap();
            db.close().await.unwrap();
        });
        // Plain SQLite checks the file afterwards, without the function.
        file.plain().execute_batch("DROP TABLE t").unwrap();
    }
}

/// A schema is not read again in the middle of a statement or of a transaction that writes.
#[test]
fn a_function_waits_until_the_schema_can_be_read_again() {
    let file = made("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
    run(async {
        let db = untrusted(&file).read_only(false).open().await.unwrap();
        let own = db.connection();
        own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
        own.execute("CREATE TABLE u (a)", ()).await.unwrap();
        db.functions().create_scalar_function("later", 0, FunctionFlags::empty(), |_| Ok(7)).unwrap();
        let error = own.query("SELECT later()", ()).await.unwrap_err();
        assert!(error.message().contains("no such function"), "{error}");
        own.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
        own.execute("ROLLBACK", ()).await.unwrap();
        assert_eq!(own.query_value::<i64>("SELECT later()", ()).await.unwrap(), 7);
        assert!(own.query("SELECT * FROM u", ()).await.unwrap_err().message().contains("no such table"));
        drop(own);
        assert_eq!(db.query_value::<i64>("SELECT later() FROM t LIMIT 1", ()).await.unwrap(), 7);
        db.close().await.unwrap();
    });
}

#[test]
fn a_schema_calls_no_function_that_may_have_effects() {
    const SCHEMA: &str = "CREATE TABLE t (a); CREATE VIEW v AS SELECT effect() AS a;
        CREATE TRIGGER on_insert AFTER INSERT ON t BEGIN SELECT effect(); END";
    let file = made(SCHEMA);
    let calls = Arc::default();
    run(async {
        let db = counting(untrusted(&file).read_only(false), &calls, FunctionFlags::empty()).open().await.unwrap();
        let errors =
            [refused(&db, "SELECT * FROM v").await, db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Sql);
            assert!(error.message().contains("unsafe use of effect()"), "{error}");
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        assert_eq!(db.query_value::<i64>("SELECT effect()", ()).await.unwrap(), 1, "a statement of the program may");
        db.close().await.unwrap();

        let innocuous = FunctionFlags::SQLITE_INNOCUOUS;
        let db = counting(untrusted(&file), &calls, innocuous).open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT a FROM v", ()).await.unwrap(), 1);
        db.close().await.unwrap();
        let db = counting(file.options(), &calls, FunctionFlags::empty()).open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT a FROM v", ()).await.unwrap(), 1, "a file that is trusted");
    });
}

#[test]
fn the_file_is_only_read_unless_the_program_asks_to_write() {
    let file = made("CREATE TABLE t (a); INSERT INTO t VALUES (5)");
    run(async {
        let before = files(file.directory());
        let db = untrusted(&file).open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT a FROM t", ()).await.unwrap(), 5);
        assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap_err().kind(), ErrorKind::Misuse);
        db.close().await.unwrap();
        assert_eq!(files(file.directory()), before);
        let db = untrusted(&file).read_only(false).open().await.unwrap();
        db.execute("DELETE FROM t", ()).await.unwrap();
        let schema = db.with_connection(|c| {
            let write = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE t (b)'";
            c.execute_batch(write).map_err(Error::from)
        });
        assert_eq!(schema.await.unwrap_err().kind(), ErrorKind::Sql, "the schema is not written");
        db.vacuum().await.unwrap();
        db.vacuum_into(file.beside("-copy")).await.unwrap();
    });
}

#[test]
fn a_view_without_an_end_ends_after_its_steps() {
    let file = made(
        "CREATE TABLE t (a); INSERT INTO t VALUES (1);
         CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n",
    );
    run(async {
        let options = || untrusted(&file).tuning(|t| t.step_limit(100_000));
        let db = options().open().await.unwrap();
        for _ in 0..2 {
            let error = refused(&db, "SELECT * FROM endless").await;
            assert_eq!(error.kind(), ErrorKind::Sql);
            assert!(error.message().contains("more than 100000 steps"), "{error}");
            let streamed = db.stream("SELECT * FROM endless", ()).try_collect::<Vec<_>>().await.unwrap_err();
            assert!(streamed.message().contains("more than 100000 steps"), "{streamed}");
            assert_eq!(db.query_value::<i64>("SELECT a FROM t", ()).await.unwrap(), 1, "the connection goes on");
        }
        db.close().await.unwrap();
        // Of a write nothing is kept.
        let db = options().read_only(false).open().await.unwrap();
        let error = db.execute("INSERT INTO t SELECT * FROM endless", ()).await.unwrap_err();
        assert!(error.message().contains("more than 100000 steps"), "{error}");
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 1);
        let default = refused(&db, "SELECT * FROM endless").await;
        assert_eq!(default.kind(), ErrorKind::Sql);
        db.close().await.unwrap();
        // A deadline ends it too, and says so.
        let db = untrusted(&file).timeout(Duration::from_millis(20)).open().await.unwrap();
        assert_eq!(refused(&db, "SELECT * FROM endless").await.kind(), ErrorKind::Timeout);
    });
}

#[test]
fn views_of_views_that_double_end_with_an_error() {
    // Each view has the one before twice: more than a thousand million tables.
    let mut schema = String::from("CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE VIEW v0 AS SELECT a FROM t;");
    for depth in 1..30 {
        let before = depth - 1;
        schema += &format!("CREATE VIEW v{depth} AS SELECT x.a FROM v{before} AS x, v{before} AS y;");
    }
    let file = made(&schema);
    run(async {
        let db = untrusted(&file).tuning(|t| t.step_limit(1_000_000)).open().await.unwrap();
        let error = refused(&db, "SELECT * FROM v29").await;
        assert!(!matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Closed), "{error}");
        assert_eq!(db.query_value::<i64>("SELECT a FROM v2", ()).await.unwrap(), 1, "the connection goes on");
    });
}

#[test]
fn what_is_larger_than_a_schema_needs_is_refused() {
    let sum = vec!["a"; 300].join(" + ");
    let columns: Vec<String> = (0..600).map(|n| format!("c{n}")).collect();
    let file = made("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(20000000))");
    let deep = made(&format!("CREATE TABLE t (a); CREATE VIEW deep AS SELECT {sum} AS a FROM t"));
    let wide = made(&format!("CREATE TABLE t (a); CREATE TABLE wide ({})", columns.join(", ")));
    run(async {
        let db = untrusted(&file).open().await.unwrap();
        let long = refused(&db, "SELECT a FROM t").await;
        assert!(long.message().contains("too big"), "{long}");
        db.close().await.unwrap();
        // SQLite reads all of the schema before it reads anything else.
        for (file, says) in [(&deep, "maximum depth 100"), (&wide, "too many columns")] {
            let error = untrusted(file).open().await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Corrupt, Some("open")), "{error}");
            assert!(error.message().contains(says), "{error}");
            file.options().readers(1).open().await.unwrap().close().await.unwrap();
        }
    });
}

/// Rows without an end, of 100,000 bytes each.
const HUGE: &str = "CREATE VIEW huge AS
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, zeroblob(100000) AS b FROM n";
const TEXTS: &str = "CREATE VIEW texts AS SELECT i, hex(b) AS b FROM huge";
const NARROW: &str = "CREATE VIEW narrow AS SELECT i FROM huge";

fn is_too_large<T>(answer: flatwater::Result<T>, limit: usize) {
    let Err(error) = answer else { panic!("it has more than {limit} bytes") };
    assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Sql, Some(rusqlite::ffi::SQLITE_TOOBIG)), "{error}");
    assert!(error.message().contains(&format!("more than {limit} bytes")), "{error}");
    assert!(error.hint().unwrap().contains("`Tuning::result_limit`"), "{error}");
    assert_eq!(error.applied(), None, "{error}");
}

#[test]
fn a_result_without_an_end_is_an_error_that_names_the_limit_however_it_is_read() {
    const LIMIT: usize = 1 << 20;
    let file = made(&format!("{HUGE}; {TEXTS}; {NARROW}; CREATE TABLE t (a)"));
    run(async {
        let options = || untrusted(&file).tuning(|t| t.result_limit(LIMIT));
        let db = options().open().await.unwrap();
        for sql in ["SELECT * FROM huge", "SELECT * FROM texts", "SELECT * FROM narrow"] {
            is_too_large(db.query(sql, ()).await, LIMIT);
            is_too_large(db.query_as::<(i64,)>(sql, ()).await, LIMIT);
            is_too_large(db.query_json(sql, ()).await, LIMIT);
            is_too_large(db.live(sql, ()).next().await.unwrap(), LIMIT);
            let snapshot = db.snapshot().await.unwrap();
            is_too_large(snapshot.query(sql, ()).await, LIMIT);
            is_too_large(snapshot.query_json(sql, ()).await, LIMIT);
            let connection = db.connection();
            is_too_large(connection.query(sql, ()).await, LIMIT);
            is_too_large(connection.batch([(sql, params![])]).await, LIMIT);
            connection.execute("BEGIN", ()).await.unwrap();
            is_too_large(connection.query_json(sql, ()).await, LIMIT);
            connection.execute("ROLLBACK", ()).await.unwrap();
            assert_eq!(db.query_one_as::<(i64,)>("SELECT count(*) FROM t", ()).await.unwrap(), (0,));
        }
        // A stream has no end, but each of its parts has: one row is too long for a part.
        let mut stream = db.stream("SELECT * FROM huge", ());
        for _ in 0..100 {
            stream.next().await.unwrap().unwrap();
        }
        drop(stream);
        let row = ["b"; 11].join(", ");
        is_too_large(db.query_one(format!("SELECT {row} FROM huge"), ()).await, LIMIT);
        is_too_large(db.stream(format!("SELECT {row} FROM huge"), ()).next().await.unwrap(), LIMIT);
        db.close().await.unwrap();

        let db = options().read_only(false).open().await.unwrap();
        let transaction = db.begin().await.unwrap();
        is_too_large(transaction.query("SELECT * FROM huge", ()).await, LIMIT);
        is_too_large(transaction.stream("SELECT * FROM huge", ()).next().await.unwrap(), LIMIT);
        transaction.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 1);
        db.close().await.unwrap();

        let db = untrusted(&file).open().await.unwrap();
        is_too_large(db.query("SELECT * FROM huge", ()).await, 64 << 20);
        is_too_large(db.query_json("SELECT * FROM huge", ()).await, 64 << 20);
    });
}

#[test]
fn a_write_that_returns_too_much_is_done_and_says_so() {
    let file = made("CREATE TABLE t (a)");
    const INSERT: &str = "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
        SELECT i FROM n RETURNING a, a AS b, a AS c, a AS d";
    run(async {
        let db = file.options().tuning(|t| t.result_limit(1 << 16)).open().await.unwrap();
        let rows = async || db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap();
        for (call, kept) in [("query", 5_000), ("query_json", 10_000), ("run", 15_000)] {
            let answer = match call {
                "query" => db.query(INSERT, ()).await.map(drop),
                "run" => db.run(INSERT, ()).await.map(drop),
                _ => db.query_json(INSERT, ()).await.map(drop),
            };
            let error = answer.unwrap_err();
            assert!(error.message().contains("more than 65536 bytes"), "{error}");
            assert_eq!((error.applied(), rows().await), (Some(TimeoutEffect::Yes), kept), "{error}");
        }
        let transaction = db.begin().await.unwrap();
        assert_eq!(transaction.query(INSERT, ()).await.unwrap_err().applied(), Some(TimeoutEffect::Yes));
        assert_eq!(transaction.run(INSERT, ()).await.unwrap_err().applied(), Some(TimeoutEffect::Yes));
        transaction.commit().await.unwrap();
        assert_eq!(rows().await, 25_000);
        // Of several statements nothing is left.
        let error = db.batch([("DELETE FROM t", params![]), (INSERT, params![])]).await.unwrap_err();
        assert_eq!((error.applied(), rows().await), (None, 25_000), "{error}");
    });
}

#[test]
fn a_short_write_that_returns_too_much_is_done_once() {
    let file = made("CREATE TABLE t (a)");
    run(async {
        let db = file.options().tuning(|t| t.result_limit(100)).open().await.unwrap();
        let insert = "INSERT INTO t VALUES (?) RETURNING a";
        for _ in 0..10 {
            db.run(insert, ("x",)).await.unwrap();
        }
        for call in ["run", "query"] {
            for _ in 0..10 {
                let long = ("x".repeat(200),);
                let done = match call {
                    "run" => db.run(insert, long).await.map(drop),
                    _ => db.query(insert, long).await.map(drop),
                };
                assert_eq!(done.unwrap_err().applied(), Some(TimeoutEffect::Yes), "{call}");
            }
        }
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 30);
    });
}

#[test]
fn a_stream_of_a_file_in_rollback_mode_is_read_in_parts() {
    let file = made(&format!("PRAGMA journal_mode = DELETE; {HUGE}"));
    run(async {
        for options in [untrusted(&file), file.options().readers(1).read_only(true)] {
            let db = options.open().await.unwrap();
            assert_eq!(db.stats().journal, "delete");
            let snapshot = db.snapshot().await.unwrap();
            for mut parts in [db.batches("SELECT * FROM huge", ()), snapshot.batches("SELECT * FROM huge", ())] {
                let mut rows = 0;
                for _ in 0..10 {
                    let part = parts.next().await.unwrap().unwrap();
                    assert_eq!((part.len(), part.get(0).unwrap().get::<i64>(0).unwrap()), (3, rows + 1));
                    rows += 3;
                }
            }
            drop(snapshot);
            // An end of the stream is an end of its lock on the file.
            until(|| db.stats().readers_held == 0).await;
            file.plain().execute_batch("CREATE TABLE IF NOT EXISTS u (a)").unwrap();
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_page_with_a_cell_beyond_its_end_is_an_error_and_no_other_row() {
    let file = made("CREATE TABLE t (a); INSERT INTO t VALUES ('first'), ('second')");
    let whole = std::fs::read(file.path()).unwrap();
    let mut bytes = whole.clone();
    let root = file.plain().query_row("SELECT rootpage FROM sqlite_schema", [], |row| row.get::<_, usize>(0)).unwrap();
    let size = bytes.len() / 2;
    // The second byte of the first cell's place: it points to the last bytes of the page.
    let page = &mut bytes[(root - 1) * size..root * size];
    (page[8], page[9]) = (0x0f, 0xff);
    std::fs::write(file.path(), &bytes).unwrap();
    run(async {
        let db = untrusted(&file).open().await.unwrap();
        let error = refused(&db, "SELECT * FROM t").await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        // The check may end with an error, which the cell causes.
        let found = db.integrity_check().quick().next().await.unwrap();
        assert!(found.is_ok() || found.is_err_and(|error| error.kind() == ErrorKind::Corrupt));
        db.close().await.unwrap();
    });
    std::fs::write(file.path(), whole).unwrap();
}

#[test]
fn bytes_of_strangers_are_opened_in_memory_under_the_same_rules() {
    let file = made("CREATE TABLE t (a); INSERT INTO t VALUES (5); CREATE VIEW v AS SELECT effect() AS a");
    let bytes = std::fs::read(file.path()).unwrap();
    let calls = Arc::default();
    run(async {
        let options = Options::new(":memory:").tuning(|t| t.untrusted().deserialize(bytes));
        let db = counting(options, &calls, FunctionFlags::empty()).open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT a FROM t", ()).await.unwrap(), 5);
        assert!(refused(&db, "SELECT * FROM v").await.message().contains("unsafe use"));
        // What a closure switches off is on again afterwards.
        db.with_connection(|c| {
            let trusted = rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA;
            c.set_db_config(trusted, true).map_err(Error::from)
        })
        .await
        .unwrap();
        assert!(refused(&db, "SELECT * FROM v").await.message().contains("unsafe use"));
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_second_handle_of_the_file_has_to_be_untrusted_too() {
    let file = made("CREATE TABLE t (a)");
    run(async {
        let _db = untrusted(&file).open().await.unwrap();
        let error = file.options().readers(1).read_only(true).open().await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("untrusted"), "{error}");
        untrusted(&file).open().await.unwrap();
    });
}
