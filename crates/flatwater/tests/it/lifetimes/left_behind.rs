//! A close returns in its time, whatever runs. What does not end is left behind and named, and nothing of it is
//! committed; the file is refused to others of this process until it has ended.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use flatwater::options::Inline;
use flatwater::{Database, Error, ErrorKind, Options};
use futures_util::FutureExt;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, as_child, count, empty_table, integer, run, until, wait_until, waiting};

in_both_places!(
    a_write_closure_that_does_not_end_is_left_behind_and_rolled_back,
    what_a_closure_with_the_whole_connection_does_after_the_close_is_not_committed,
    a_read_closure_that_does_not_end_is_left_behind,
    a_write_that_does_not_end_is_interrupted,
    a_closure_whose_statement_is_interrupted_by_a_close_is_told_that_it_is_closed,
);

fn hasty(options: Options) -> Options {
    options.tuning(|t| t.close_wait(Duration::from_millis(10)))
}

/// Code that waits until it is released.
struct Stuck {
    begun: Receiver<()>,
    release: Sender<()>,
}

impl Stuck {
    /// Returns it, and what the code calls to wait.
    fn new() -> (Self, impl FnOnce() + Send) {
        let ((begins, begun), (release, released)) = (channel(), channel::<()>());
        let wait = move || {
            begins.send(()).unwrap();
            // An error if the test has failed.
            let _ = released.recv();
        };
        (Self { begun, release }, wait)
    }

    async fn has_begun(self) -> Sender<()> {
        spawn_blocking(move || {
            self.begun.recv().unwrap();
            self.release
        })
        .await
        .unwrap()
    }
}

fn names(error: &Error, operation: &str, what: &str) {
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Busy, Some(operation)), "{error}");
    assert!(error.message().contains(what) && error.is_retryable() && error.hint().is_some(), "{error:?}");
}

/// Closes the database, whose close leaves `what` behind, and checks what is refused meanwhile.
async fn leaves(db: &Database, place: &Place, what: &str) {
    names(&db.close().await.unwrap_err(), "close", what);
    names(&db.close().await.unwrap_err(), "close", what);
    assert_eq!(db.query("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
    if let Some(file) = place.file() {
        for options in [hasty(file.options()), hasty(file.options()).read_only(true)] {
            names(&options.open().await.unwrap_err(), "open", what);
        }
        let link = file.directory().join("link.db");
        std::os::unix::fs::symlink(file.path(), &link).unwrap();
        names(&Options::new(&link).open().await.unwrap_err(), "open", what);
    }
}

/// Opens the file again, when what was left behind has ended. Returns its rows.
async fn rows_afterwards(place: &Place) -> Option<i64> {
    let file = place.file()?;
    let db = loop {
        match file.options().open().await {
            Ok(db) => break db,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
        tokio::task::yield_now().await;
    };
    let rows = count(&db).await;
    db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    db.close().await.unwrap();
    assert!(!file.beside("-wal").exists() && !file.beside("-shm").exists());
    Some(rows)
}

async fn a_write_closure_that_does_not_end_is_left_behind_and_rolled_back(place: &Place) {
    let db = empty_table(hasty(place.options())).await;
    let (stuck, wait) = Stuck::new();
    let closure = move |tx: &rusqlite::Transaction<'_>| {
        tx.execute("INSERT INTO t VALUES (1)", [])?;
        wait();
        tx.execute("INSERT INTO t VALUES (2)", []).map_err(Error::from)
    };
    let running = tokio::spawn(db.write_with(closure));
    let release = stuck.has_begun().await;
    let behind = tokio::spawn(db.execute("INSERT INTO t VALUES (3)", ()));
    let closure_behind = tokio::spawn(db.write_with(|_| Ok::<_, Error>(())));
    until(|| db.stats().writes_waiting == 2).await;
    leaves(&db, place, "a closure of `write_with`").await;
    // What waits is answered without it.
    assert_eq!(behind.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(closure_behind.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    if let Some(file) = place.file() {
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
    }
    release.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(rows_afterwards(place).await.is_none_or(|rows| rows == 0));
}

async fn what_a_closure_with_the_whole_connection_does_after_the_close_is_not_committed(place: &Place) {
    let db = empty_table(hasty(place.options())).await;
    let (stuck, wait) = Stuck::new();
    let closure = move |c: &mut rusqlite::Connection| {
        c.execute("INSERT INTO t VALUES (1)", [])?;
        wait();
        let alone = c.execute("INSERT INTO t VALUES (2)", []);
        let tx = c.transaction()?;
        tx.execute("INSERT INTO t VALUES (3)", [])?;
        Ok::<_, Error>((alone.is_ok(), tx.commit().is_ok()))
    };
    let running = tokio::spawn(db.with_connection(closure));
    let release = stuck.has_begun().await;
    leaves(&db, place, "a closure of `with_connection`").await;
    release.send(()).unwrap();
    assert_eq!(running.await.unwrap().unwrap(), (false, false));
    assert!(rows_afterwards(place).await.is_none_or(|rows| rows == 1));
}

async fn a_read_closure_that_does_not_end_is_left_behind(place: &Place) {
    let db = empty_table(hasty(place.options())).await;
    let (stuck, wait) = Stuck::new();
    let running = tokio::spawn(db.read_with(move |_| {
        wait();
        Ok::<_, Error>(7)
    }));
    let release = stuck.has_begun().await;
    leaves(&db, place, "a closure").await;
    release.send(()).unwrap();
    // What it read is true.
    assert_eq!(running.await.unwrap().unwrap(), 7);
    assert!(rows_afterwards(place).await.is_none_or(|rows| rows == 0));
}

/// The readers are free for others only if the writer's closure need not end first.
#[test]
fn reads_end_and_what_waits_for_a_reader_is_answered_while_a_write_does_not_end() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(hasty(file.options()).tuning(|t| t.extra_readers(1))).await;
        let ((stuck_write, wait_write), (stuck_read, wait_read)) = (Stuck::new(), Stuck::new());
        let write = tokio::spawn(db.write_with(move |_| {
            wait_write();
            Ok::<_, Error>(())
        }));
        let read = tokio::spawn(db.read_with(move |_| {
            wait_read();
            Ok::<_, Error>(7)
        }));
        let releases = [stuck_write.has_begun().await, stuck_read.has_begun().await];
        let behind = tokio::spawn(db.read_with(|_| Ok::<_, Error>(8)));
        until(|| db.stats().reads_waiting == 1).await;
        let endless = tokio::spawn(db.query(ENDLESS, ()));
        names(&db.close().await.unwrap_err(), "close", "a closure of `write_with`");
        assert_eq!(endless.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(behind.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        releases.iter().for_each(|release| release.send(()).unwrap());
        assert_eq!(read.await.unwrap().unwrap(), 7);
        assert_eq!(write.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        let db = loop {
            match file.options().open().await {
                Ok(db) => break db,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
            }
            tokio::task::yield_now().await;
        };
        db.close().await.unwrap();
    });
}

/// Whatever the closure makes of it: its own error, or nothing.
async fn a_closure_whose_statement_is_interrupted_by_a_close_is_told_that_it_is_closed(place: &Place) {
    for swallows in [false, true] {
        let place = place.another();
        let db = empty_table(hasty(place.options())).await;
        let (stuck, wait) = Stuck::new();
        let running = tokio::spawn(db.write_with(move |tx| {
            wait();
            let ran = tx.execute(&format!("INSERT INTO t {ENDLESS}"), []).map_err(Error::from);
            if swallows { Ok(0) } else { ran }
        }));
        stuck.has_begun().await.send(()).unwrap();
        let closed = db.close().await;
        assert!(closed.as_ref().is_ok() || closed.is_err_and(|error| error.message().contains("write_with")));
        assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert!(rows_afterwards(&place).await.is_none_or(|rows| rows == 0));
    }
}

async fn a_write_that_does_not_end_is_interrupted(place: &Place) {
    let db = empty_table(hasty(place.options())).await;
    let endless = format!("INSERT INTO t {ENDLESS}");
    let running = tokio::spawn(db.execute(&endless, ()));
    until(|| db.stats().inline.queued > 0 && waiting(&db) == 0).await;
    let closed = db.close().await;
    assert!(closed.as_ref().is_ok() || closed.is_err_and(|error| error.message().contains("INSERT INTO t WITH")));
    assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(rows_afterwards(place).await.is_none_or(|rows| rows == 0));
}

/// Such a database has no writer.
#[test]
fn a_closure_on_a_database_that_is_only_read_is_left_behind() {
    let file = TestFile::new();
    run(async {
        empty_table(file.options()).await.close().await.unwrap();
        let db = hasty(file.options()).read_only(true).open().await.unwrap();
        let (stuck, wait) = Stuck::new();
        let running = tokio::spawn(db.read_with(move |_| {
            wait();
            Ok::<_, Error>(())
        }));
        let release = stuck.has_begun().await;
        names(&db.close().await.unwrap_err(), "close", "a closure");
        names(&file.options().open().await.unwrap_err(), "open", "a closure");
        release.send(()).unwrap();
        running.await.unwrap().unwrap();
        wait_until(|| file.options().open().wait().is_ok());
    });
}

/// Begins a closure that does not end before the returned sender is used or dropped.
async fn begin_stuck(db: &Database) -> (JoinHandle<Result<(), Error>>, Sender<()>) {
    let (stuck, wait) = Stuck::new();
    let running = tokio::spawn(db.write_with(move |tx| {
        tx.execute("INSERT INTO t VALUES (1)", [])?;
        wait();
        Ok(())
    }));
    (running, stuck.has_begun().await)
}

#[test]
fn the_drop_of_the_last_handle_leaves_a_closure_behind_as_a_close_does() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(hasty(file.options())).await;
        let (running, release) = begin_stuck(&db).await;
        // The call, which has a handle, is dropped with its task. Its closure runs on.
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        drop(db);
        // The drop closes in the background: an open waits for it, and is refused when the closure is left behind.
        names(&file.options().open().await.unwrap_err(), "open", "a closure of `write_with`");
        release.send(()).unwrap();
    });
    wait_until(|| file.options().open().wait().is_ok());
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
}

#[test]
fn a_closure_on_its_callers_thread_is_left_behind_too() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(hasty(file.options().tuning(|t| t.inline(Inline::Never)))).await;
        let (stuck, wait) = Stuck::new();
        let running = std::thread::spawn({
            let db = db.clone();
            move || {
                let closure = |tx: &rusqlite::Transaction<'_>| {
                    tx.execute("INSERT INTO t VALUES (1)", [])?;
                    wait();
                    Ok::<_, Error>(())
                };
                db.write_with(closure).wait()
            }
        });
        let release = stuck.has_begun().await;
        names(&db.close().await.unwrap_err(), "close", "a closure of `write_with`");
        release.send(()).unwrap();
        assert_eq!(spawn_blocking(|| running.join().unwrap()).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        wait_until(|| file.options().open().wait().is_ok());
    });
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
}

/// Another file at the same path would use the same WAL.
#[test]
fn a_file_in_the_place_of_one_that_is_left_behind_is_refused() {
    let file = TestFile::new();
    let aside = file.directory().join("aside.db");
    run(async {
        let db = empty_table(hasty(file.options())).await;
        let (running, release) = begin_stuck(&db).await;
        names(&db.close().await.unwrap_err(), "close", "a closure of `write_with`");
        std::fs::rename(file.path(), &aside).unwrap();
        std::fs::copy(&aside, file.path()).unwrap();
        names(&file.options().open().await.unwrap_err(), "open", "a closure of `write_with`");
        std::fs::rename(&aside, file.path()).unwrap();
        release.send(()).unwrap();
        assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        wait_until(|| file.options().open().wait().is_ok());
    });
}

#[test]
fn a_runtime_and_a_process_end_while_a_closure_is_left_behind() {
    let output = as_child("lifetimes::left_behind::child_that_ends").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the runtime has ended"), "{said}");
}

#[test]
#[ignore = "the child of another test"]
fn child_that_ends() {
    let file = TestFile::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let release = runtime.block_on(async {
        let db = empty_table(hasty(file.options())).await;
        let (_, release) = begin_stuck(&db).await;
        names(&db.close().await.unwrap_err(), "close", "a closure of `write_with`");
        release
    });
    drop(runtime);
    println!("the runtime has ended");
    // The closure still waits.
    std::fs::remove_dir_all(file.directory()).unwrap();
    std::mem::forget((release, file));
    std::process::exit(0);
}

/// Both files would use the same WAL.
#[tokio::test]
async fn a_file_that_replaced_one_that_is_being_closed_is_not_opened_before_the_close_ends() {
    let file = TestFile::new();
    // However slow the machine is, the close waits until the closure is released.
    let options = || file.options().tuning(|t| t.close_wait(Duration::from_secs(600)));
    let db = empty_table(options()).await;
    let (stuck, wait) = Stuck::new();
    let reading = tokio::spawn(db.read_with(move |_| {
        wait();
        Ok::<_, Error>(())
    }));
    let release = stuck.has_begun().await;
    let closing = tokio::spawn(db.close());
    until(|| db.query("SELECT 1", ()).now_or_never().is_some_and(|result| result.is_err())).await;
    let other = file.directory().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE other (a)").unwrap();
    std::fs::rename(&other, file.path()).unwrap();
    let refused = options().busy_timeout(Duration::from_millis(10)).open().await.unwrap_err();
    assert_eq!((refused.kind(), refused.is_retryable()), (ErrorKind::Busy, true), "{refused}");
    release.send(()).unwrap();
    closing.await.unwrap().unwrap();
    reading.await.unwrap().unwrap();
}
