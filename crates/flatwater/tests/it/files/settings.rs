//! The options have their documented effect, checked on the connections they apply to. This includes the defaults.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::options::{Durability, Inline, TempStore};
use flatwater::rusqlite::OptionalExtension;
use flatwater::{Database, Error, ErrorKind, Options, Value, params};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, count, empty_table, grouped, integer, integrity, run};

in_both_places!(
    the_defaults_hold_on_every_connection,
    every_option_reaches_its_connections,
    without_groups_and_alone_every_write_commits_by_itself,
    attached_databases_are_there_on_the_writer_and_on_every_reader,
    attached_databases_have_the_durability_of_the_options,
    waits_can_be_set_to_for_ever,
);

/// Returns the values of the PRAGMAs on the writer and on a reader; no value is an empty text.
async fn pragmas<const N: usize>(db: &Database, names: [&'static str; N]) -> [[String; N]; 2] {
    let read = move |c: &rusqlite::Connection| -> Result<[String; N], Error> {
        Ok(names.map(|name| match c.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).optional().unwrap() {
            Some(Value::Text(text)) => text,
            Some(Value::Integer(number)) => number.to_string(),
            None => String::new(),
            other => panic!("{other:?}"),
        }))
    };
    [db.write_with(move |tx| read(tx)).await.unwrap(), db.read_with(read).await.unwrap()]
}

const PRAGMAS: [&str; 6] = ["journal_mode", "synchronous", "foreign_keys", "cache_size", "mmap_size", "temp_store"];

async fn the_defaults_hold_on_every_connection(place: &Place) {
    let db = place.open().await;
    let [writer, reader] = pragmas(&db, PRAGMAS).await;
    match place {
        Place::File(_) => {
            assert_eq!(writer, ["wal", "1", "1", "-16384", "0", "2"]);
            // SQLCipher's own default is memory, so there files are asked for.
            let files = if cfg!(feature = "sqlcipher") { "1" } else { "0" };
            assert_eq!(reader, ["wal", "1", "1", "-4096", "0", files]);
        }
        // There is one connection, without a WAL and without a file to map.
        Place::Memory => assert_eq!([writer, reader], [["memory", "1", "1", "-16384", "", "2"]; 2]),
    }
}

async fn every_option_reaches_its_connections(place: &Place) {
    let options = place.options().durability(Durability::Full).foreign_keys(false).tuning(|t| t.mmap_bytes(1 << 20));
    let db = options
        .tuning(|t| t.writer_cache_bytes(3 << 20).reader_cache_bytes(1000).temp_store(TempStore::File))
        .open()
        .await
        .unwrap();
    let [writer, reader] = pragmas(&db, PRAGMAS).await;
    match place {
        Place::File(_) => {
            assert_eq!(writer, ["wal", "2", "0", "-3072", "1048576", "1"]);
            assert_eq!(reader, ["wal", "2", "0", "-1", "1048576", "1"]);
        }
        Place::Memory => assert_eq!([writer, reader], [["memory", "2", "0", "-3072", "", "1"]; 2]),
    }
    db.execute_script("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)").await.unwrap();
    db.execute("INSERT INTO c VALUES (7)", ()).await.unwrap();
    place.file().inspect(|file| file.violates_foreign_keys());
}

#[test]
fn a_large_transaction_spills_and_is_undone_or_committed_whole() {
    const ROWS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000)
        INSERT INTO t SELECT zeroblob(4000) FROM n";
    /// Longer than what may stay in memory, and much shorter than the rows.
    const SPILT: u64 = 8 << 20;
    for (spill, spills) in [(1 << 20, true), (64 << 20, false)] {
        let file = TestFile::new();
        let wal = || file.beside("-wal").metadata().unwrap().len();
        run(async {
            let db = empty_table(file.options().tuning(|t| t.writer_cache_bytes(1 << 20).spill_bytes(spill))).await;
            for (commits, rows) in [(false, 0), (true, 4000)] {
                let tx = db.begin().await.unwrap();
                tx.execute(ROWS, ()).await.unwrap();
                assert_eq!(wal() > SPILT, spills, "before the transaction ends");
                assert_eq!(count(&db).await, 0);
                if commits {
                    tx.commit().await.unwrap()
                } else {
                    tx.rollback().await.unwrap()
                }
                assert_eq!(count(&db).await, rows);
            }
            db.close().await.unwrap();
        });
        assert_eq!(integrity(&file.plain()), "ok");
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 4000);
    }
}

#[test]
fn a_file_in_another_journal_mode_is_switched_to_wal_for_good() {
    let file = TestFile::new();
    file.plain().execute_batch("PRAGMA journal_mode = DELETE; CREATE TABLE t (a)").unwrap();
    run(async {
        file.open().await.close().await.unwrap();
    });
    let mode: String = file.plain().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn as_many_read_closures_as_the_options_say_run_at_once() {
    let file = TestFile::new();
    run(async {
        for readers in [1, 3, 8] {
            let db = file.options().readers(1).tuning(|t| t.extra_readers(readers)).open().await.unwrap();
            let (all_there, inside) = (Arc::new(Barrier::new(readers)), Arc::new(AtomicUsize::new(0)));
            let reads = (0..readers * 3).map(|_| {
                let (all_there, inside) = (all_there.clone(), inside.clone());
                db.read_with(move |_| {
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    all_there.wait();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, Error>(now)
                })
            });
            let most = join_all(reads).await.into_iter().map(Result::unwrap).max();
            assert_eq!(most, Some(readers));
            db.close().await.unwrap();
        }
    });
}

async fn without_groups_and_alone_every_write_commits_by_itself(place: &Place) {
    let many = |db: Database| join_all((0..300).map(move |n| db.execute("INSERT INTO t VALUES (?)", (n,))));
    // A write on its caller's thread shares its commit with nobody.
    let no_group = empty_table(place.options().tuning(|t| t.no_group())).await;
    assert!(many(no_group.clone()).await.iter().all(Result::is_ok));
    assert_eq!(no_group.stats().groups, 0);
    no_group.close().await.unwrap();
    let another = place.another();
    let db = empty_table(grouped(another.options()).tuning(|t| t.inline(Inline::Never))).await;
    assert!(many(db.ungrouped()).await.iter().all(Result::is_ok));
    assert_eq!(db.stats().groups, 0);
    let blocker = db.begin().await.unwrap();
    let mut waiting = many(db.clone());
    assert!(futures_util::poll!(&mut waiting).is_pending());
    blocker.rollback().await.unwrap();
    assert!(waiting.await.iter().all(Result::is_ok));
    // The one that is served first may be taken before the others have come.
    assert!(db.stats().members > 256, "{:?}", db.stats());
}

async fn attached_databases_are_there_on_the_writer_and_on_every_reader(place: &Place) {
    let other = TestFile::new();
    other.plain().execute_batch("CREATE TABLE o (a); INSERT INTO o VALUES (1)").unwrap();
    let readers = if place.has_readers() { 2 } else { 1 };
    let options = place.options().readers(readers).tuning(|t| t.attach("o'ther", other.path()));
    let db = options.clone().open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let together = Arc::new(Barrier::new(readers));
    let reads = (0..readers).map(|_| {
        let together = together.clone();
        db.read_with(move |c| {
            together.wait();
            c.query_row("SELECT a FROM \"o'ther\".o", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
        })
    });
    assert!(join_all(reads).await.into_iter().all(|a| a == Ok(1)));
    let inserts = (2..=100).map(|n| db.execute("INSERT INTO \"o'ther\".o VALUES (?)", (n,)));
    assert!(join_all(inserts).await.iter().all(Result::is_ok));
    assert_eq!(db.stats().groups, 0, "a group touches one file");
    let both = [("INSERT INTO t VALUES (?)", params![7]), ("INSERT INTO \"o'ther\".o VALUES (?)", params![101])];
    db.batch(both).await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute("DELETE FROM \"o'ther\".o", ()).await.unwrap();
    tx.rollback().await.unwrap();
    let sum = "SELECT (SELECT sum(a) FROM t) + (SELECT sum(a) FROM \"o'ther\".o)";
    assert_eq!(db.query_optional_value::<i64>(sum, ()).await.unwrap(), Some(7 + 5151));
    db.close().await.unwrap();
    if place.file().is_some() {
        let db = options.read_only(true).open().await.unwrap();
        assert_eq!(db.query_optional_value::<i64>(sum, ()).await.unwrap(), Some(7 + 5151));
        db.close().await.unwrap();
    }
    let journal: String = other.plain().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(journal, "delete", "left as it is");
}

async fn attached_databases_have_the_durability_of_the_options(place: &Place) {
    let other = TestFile::new();
    for (durability, synchronous) in [(Durability::Full, "2"), (Durability::Normal, "1")] {
        let db =
            place.options().durability(durability).tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        let [writer, _] = pragmas(&db, ["main.synchronous", "other.synchronous"]).await;
        assert_eq!(writer, [synchronous, synchronous]);
        db.close().await.unwrap();
    }
}

#[test]
fn a_database_that_cannot_be_attached_keeps_the_whole_from_opening() {
    let file = TestFile::new();
    std::fs::write(file.directory().join("text"), "no database at all, just a text").unwrap();
    run(async {
        for (name, wanted) in [("missing/a.db", ErrorKind::Open), ("text", ErrorKind::Open)] {
            let path = file.directory().join(name);
            let error = file.options().tuning(|t| t.attach("other", &path)).open().await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (wanted, Some("open")), "{error}");
            assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        }
        file.open().await.close().await.unwrap();
    });
}

#[test]
fn what_would_be_another_database_on_every_connection_cannot_be_attached() {
    let file = TestFile::new();
    run(async {
        for path in [":memory:", ""] {
            let error = file.options().tuning(|t| t.attach("other", path)).open().await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("open")), "{path:?}: {error}");
        }
        let memory = Options::new(":memory:").tuning(|t| t.attach("other", ":memory:")).open().await.unwrap();
        memory.execute_script("CREATE TABLE other.o (a); INSERT INTO o VALUES (1)").await.unwrap();
        assert_eq!(memory.query_optional_value::<i64>("SELECT a FROM o", ()).await.unwrap(), Some(1));
    });
}

#[cfg(unix)]
#[test]
fn a_database_cannot_be_attached_to_itself_under_whatever_name() {
    let file = TestFile::new();
    let (link, around) = (file.directory().join("link"), file.directory().join("inner"));
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    std::fs::create_dir(&around).unwrap();
    run(async {
        file.open().await.close().await.unwrap();
        for path in [file.path(), link, around.join("..").join("test.db")] {
            let error = file.options().tuning(|t| t.attach("again", &path)).open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("itself"), "{error}");
        }
    });
}

async fn waits_can_be_set_to_for_ever(place: &Place) {
    let forever = |options: Options| {
        options.busy_timeout(Duration::MAX).tuning(|t| t.transaction_idle(Duration::MAX).close_wait(Duration::MAX))
    };
    let db = forever(place.options()).open().await.unwrap();
    let patient = db.with_timeout(Duration::MAX);
    patient.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let tx = patient.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(patient.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
    db.close().await.unwrap();
}
