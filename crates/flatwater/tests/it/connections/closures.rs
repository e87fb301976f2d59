//! Closures on rusqlite's connection: what they may use, how they end, and that they cannot wait for the database.
//!
//! Leaves out: closures that change the state of the connection (`hostile_closures`).

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flatwater::{Database, Error, ErrorKind, Options};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, wait_until};

in_both_places!(
    a_write_closure_commits_what_it_did_if_it_answers_ok,
    a_closure_that_panics_is_rolled_back_and_reported,
    a_read_closure_sees_one_point_in_time_and_cannot_write,
    rusqlites_own_tools_can_be_used,
    a_closure_that_calls_the_database_is_refused_and_goes_on,
    a_closure_that_closes_its_database_does_not_wait_for_itself,
);

async fn one_row(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1)").await.unwrap();
    db
}

async fn sum(db: &Database) -> i64 {
    db.query_optional_value("SELECT sum(a) FROM t", ()).await.unwrap().unwrap()
}

#[derive(Debug, PartialEq)]
enum Mine {
    No(&'static str),
    Flatwater(ErrorKind),
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Flatwater(error.kind())
    }
}

fn insert(tx: &rusqlite::Transaction<'_>, n: i64) {
    assert_eq!(tx.execute("INSERT INTO t VALUES (?)", [n]).unwrap(), 1);
}

async fn a_write_closure_commits_what_it_did_if_it_answers_ok(place: &Place) {
    let db = one_row(place.options()).await;
    let rowid = db.write_with(|tx| {
        insert(tx, 10);
        Ok::<_, Mine>(tx.last_insert_rowid())
    });
    assert_eq!(rowid.await, Ok(2));
    assert_eq!(sum(&db).await, 11);
    let refused = db.write_with(|tx| {
        insert(tx, 100);
        Err::<(), _>(Mine::No("not this time"))
    });
    assert_eq!(refused.await, Err(Mine::No("not this time")));
    assert_eq!(sum(&db).await, 11);
    let failed = db.write_with(|tx| tx.execute("nonsense", []).map_err(Error::from)).await.unwrap_err();
    assert_eq!((failed.kind(), failed.sqlite_code()), (ErrorKind::Sql, Some(1)), "{failed}");
    db.close().await.unwrap();
}

async fn a_closure_that_panics_is_rolled_back_and_reported(place: &Place) {
    let db = one_row(place.options()).await;
    let wrote = db.write_with(|tx| -> Result<(), Error> {
        insert(tx, 10);
        panic!("no {}", "more")
    });
    let read = db.read_with(|_| -> Result<(), Error> { panic!("no more") });
    for error in [wrote.await.unwrap_err(), read.await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("panicked: no more"), "{error}");
    }
    assert_eq!(sum(&db).await, 1);
    db.write_with(|tx| tx.execute("INSERT INTO t VALUES (2)", []).map_err(Error::from)).await.unwrap();
    assert_eq!(sum(&db).await, 3);
    db.close().await.unwrap();
}

async fn a_read_closure_sees_one_point_in_time_and_cannot_write(place: &Place) {
    let db = one_row(place.options()).await;
    for sql in ["INSERT INTO t VALUES (2)", "CREATE TABLE u (a)", "PRAGMA user_version = 3"] {
        let error = db.read_with(move |c| c.execute_batch(sql).map_err(Error::from)).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_READONLY"), "{error}");
    }
    let sums = db.read_with(|c| {
        let sum = || c.query_row("SELECT sum(a) FROM t", [], |row| row.get::<_, i64>(0));
        Ok::<_, Error>((sum()?, sum()?))
    });
    assert_eq!(sums.await.unwrap(), (1, 1));
    db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
    assert_eq!(sum(&db).await, 3);
    db.close().await.unwrap();
}

async fn rusqlites_own_tools_can_be_used(place: &Place) {
    let db = one_row(place.options().readers(1)).await;
    db.execute("CREATE TABLE b (data BLOB)", ()).await.unwrap();
    for round in 0..3_u8 {
        let written = db.write_with(move |tx| -> Result<i64, Error> {
            tx.prepare_cached("INSERT INTO b VALUES (zeroblob(?))")?.execute([1000])?;
            let rowid = tx.last_insert_rowid();
            tx.blob_open("main", "b", "data", rowid, false)?.write_all(&[round; 1000]).unwrap();
            tx.execute_batch("SAVEPOINT mine; DELETE FROM b; ROLLBACK TO mine; RELEASE mine")?;
            tx.execute_batch("CREATE TEMP TABLE scratch AS SELECT * FROM t; DROP TABLE scratch")?;
            Ok(rowid)
        });
        let rowid = written.await.unwrap();
        let read = db.read_with(move |c| -> Result<Vec<u8>, Error> {
            assert_eq!(c.prepare_cached("SELECT a FROM t")?.query_row([], |row| row.get::<_, i64>(0))?, 1);
            let mut bytes = Vec::new();
            c.blob_open("main", "b", "data", rowid, true)?.read_to_end(&mut bytes).unwrap();
            Ok(bytes)
        });
        assert_eq!(read.await.unwrap(), [round; 1000]);
    }
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM b", ()).await.unwrap(), Some(3));
    assert_eq!(db.stats().replaced_connections, 0, "nothing was out of order");
}

/// Returns the errors of calls from inside a closure, all of which fail at once.
fn calls_from_inside(db: &Database) -> Vec<Error> {
    let blocking = db.clone();
    vec![
        blocking.execute("INSERT INTO t VALUES (7)", ()).wait().unwrap_err(),
        blocking.query("SELECT a FROM t", ()).wait().unwrap_err(),
        blocking.batch([("", ()); 0]).wait().unwrap_err(),
        blocking.write_with(|_| Ok::<_, Error>(())).wait().unwrap_err(),
        blocking.read_with(|_| Ok::<_, Error>(())).wait().unwrap_err(),
        smol::block_on(db.execute_script("DELETE FROM t")).unwrap_err(),
        smol::block_on(db.query_optional_value::<i64>("SELECT a FROM t", ())).unwrap_err(),
        smol::block_on(db.begin()).unwrap_err(),
    ]
}

async fn a_closure_that_calls_the_database_is_refused_and_goes_on(place: &Place) {
    let db = one_row(place.options()).await;
    let (for_write, for_read) = (db.clone(), db.clone());
    let wrote = db.write_with(move |tx| {
        insert(tx, 2);
        Ok::<_, Error>(calls_from_inside(&for_write))
    });
    let mut errors = wrote.await.unwrap();
    errors.extend(db.read_with(move |_| Ok::<_, Error>(calls_from_inside(&for_read))).await.unwrap());
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("closure") && error.hint().is_some(), "{error}");
    }
    assert_eq!(sum(&db).await, 3);
    db.close().await.unwrap();
}

/// Runs `call` on a separate thread and waits for its end, within the time limit of a test.
fn ends(call: impl FnOnce() + Send + 'static) {
    let ended = Arc::new(AtomicBool::new(false));
    let done = ended.clone();
    std::thread::spawn(move || {
        call();
        done.store(true, Ordering::SeqCst);
    });
    wait_until(|| ended.load(Ordering::SeqCst));
}

async fn a_closure_that_closes_its_database_does_not_wait_for_itself(place: &Place) {
    for write in [true, false] {
        let place = place.another();
        let options = place.options();
        ends(move || {
            let db = options.open().wait().unwrap();
            let inner = db.clone();
            let closed = if write {
                db.write_with(move |_| Ok::<_, Error>(inner.close().wait()))
            } else {
                db.read_with(move |_| Ok::<_, Error>(inner.close().wait()))
            };
            assert_eq!(closed.wait().unwrap().unwrap_err().kind(), ErrorKind::Misuse);
            db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
            db.close().wait().unwrap();
        });
    }
}

#[test]
fn a_closure_may_drop_the_last_handle() {
    for write in [true, false] {
        let file = TestFile::new();
        let wal = file.beside("-wal");
        let db = file.options().open().wait().unwrap();
        db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
        let inner = db.clone();
        if write {
            smol::block_on(db.write_with(move |_| {
                drop(inner);
                Ok::<_, Error>(())
            }))
            .unwrap();
        } else {
            smol::block_on(db.read_with(move |_| {
                drop(inner);
                Ok::<_, Error>(())
            }))
            .unwrap();
        }
        drop(db);
        wait_until(|| !wal.exists());
    }
}
