//! One file, one engine: opens of a file that is already open, by any name, with any rights; and files that change
//! while open.

use flatwater::options::Durability;
use flatwater::{Database, ErrorKind, Options};

use crate::support::{TestFile, count, empty_table, run, until};

/// Returns whether two handles belong to one engine: they then share its counters.
fn share_an_engine(one: &Database, other: &Database) -> bool {
    let calls = |db: &Database| db.stats().calls.iter().map(|call| call.count).sum::<u64>();
    calls(one) == calls(other) && calls(one) > 0
}

#[test]
fn a_file_is_one_engine_by_path_link_and_hard_link() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let [symbolic, hard, folder] = ["link.db", "hard.db", "folder"].map(|name| file.directory().join(name));
        std::os::unix::fs::symlink(file.path(), &symbolic).unwrap();
        std::fs::hard_link(file.path(), &hard).unwrap();
        std::os::unix::fs::symlink(file.directory(), &folder).unwrap();
        for path in [file.path(), symbolic, hard.clone(), folder.join("test.db"), folder.join("./test.db")] {
            let again = Database::open(&path).await.unwrap();
            again.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            assert!(share_an_engine(&db, &again), "{}", path.display());
        }
        assert_eq!(count(&db).await, 5);
        let uri = Database::open(format!("file:{}?mode=rw", file.path().display())).await.unwrap();
        assert!(share_an_engine(&db, &uri));
        std::fs::remove_file(hard).unwrap();
    });
}

#[test]
fn many_who_open_a_new_file_at_once_get_one_engine() {
    for _ in 0..50 {
        let file = TestFile::new();
        let link = file.directory().join("link.db");
        std::os::unix::fs::symlink(file.path(), &link).unwrap();
        let start = std::sync::Barrier::new(4);
        let all: Vec<Database> = std::thread::scope(|scope| {
            let opening = (0..4).map(|n| {
                let options = if n % 2 == 0 { file.options() } else { Options::new(&link) };
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let db = options.open().wait().unwrap();
                    db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
                    db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
                    db
                })
            });
            let opening: Vec<_> = opening.collect();
            opening.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|db| share_an_engine(&all[0], db)));
        run(async {
            assert_eq!(count(&all[0]).await, 4);
            all[0].close().await.unwrap();
        });
    }
}

#[test]
fn an_open_waits_for_a_close_no_longer_than_for_a_lock() {
    let file = TestFile::new();
    run(async {
        // However slow the machine is, the close waits until the closure is released.
        let options = || file.options().tuning(|t| t.close_wait(std::time::Duration::from_secs(600)));
        let db = empty_table(options()).await;
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (begun, began) = std::sync::mpsc::channel();
        let busy = tokio::spawn({
            let db = db.clone();
            async move {
                let closure = move |_: &rusqlite::Transaction<'_>| {
                    begun.send(()).unwrap();
                    let _ = released.recv();
                    Ok::<_, flatwater::Error>(())
                };
                db.write_with(closure).await
            }
        });
        tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
        let closing = tokio::spawn({
            let db = db.clone();
            async move { db.close().await }
        });
        let soon = db.with_timeout(std::time::Duration::from_millis(1));
        while soon.execute("DELETE FROM t", ()).await.unwrap_err().kind() != ErrorKind::Closed {}
        let impatient = options().busy_timeout(std::time::Duration::from_millis(20));
        let error = impatient.open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.message().contains("closed in this process"), "{error}");
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        closing.await.unwrap().unwrap();
        assert_eq!(count(&file.open().await).await, 0);
    });
}

#[test]
fn options_that_differ_are_refused_by_name() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        for (options, name) in [
            (file.options().durability(Durability::Full), "the option `durability`"),
            (file.options().foreign_keys(false), "the option `foreign_keys`"),
            (file.options().readers(7), "the option `readers`"),
            (file.options().tuning(|t| t.no_group()), "the option `group`"),
            (file.options().on_open("PRAGMA recursive_triggers = 1"), "the option `on_open`"),
            (file.options().tuning(|t| t.attach("other", file.directory().join("other.db"))), "the option `attach`"),
            (file.options().tuning(|t| t.assume_immutable(true)), "the option `assume_immutable`"),
        ] {
            let error = options.open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains(name), "{error}");
        }
        file.options().create(false).open().await.unwrap();
        db.close().await.unwrap();
        file.options().durability(Durability::Full).open().await.unwrap();
    });
}

#[test]
fn a_handle_with_fewer_rights_only_reads() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let reader = file.options().read_only(true).open().await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(count(&reader).await, 1);
        assert!(share_an_engine(&db, &reader));
        let refused = [
            reader.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err(),
            reader.query("INSERT INTO t VALUES (2) RETURNING a", ()).await.unwrap_err(),
            reader.ungrouped().execute_script("DELETE FROM t").await.unwrap_err(),
            reader.begin().await.unwrap_err(),
            reader.write_with(|tx| tx.execute("DELETE FROM t", ()).map_err(flatwater::Error::from)).await.unwrap_err(),
            reader.blocking_insert().await,
        ];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.to_string().contains("read-only"), "{error}");
        }
        assert_eq!(count(&db).await, 1);
        db.close().await.unwrap();
        assert_eq!(count(&reader).await, 1, "the last handle closes");
        let more = file.options().open().await.unwrap();
        more.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(count(&reader).await, 2);
    });
}

trait BlockingInsert {
    async fn blocking_insert(&self) -> flatwater::Error;
}

impl BlockingInsert for Database {
    async fn blocking_insert(&self) -> flatwater::Error {
        let call = self.execute("INSERT INTO t VALUES (3)", ());
        std::thread::spawn(|| call.wait().unwrap_err()).join().unwrap()
    }
}

#[test]
fn who_may_only_read_keeps_others_from_opening_to_write() {
    let file = TestFile::new();
    run(async {
        empty_table(file.options()).await.close().await.unwrap();
        let reader = file.options().read_only(true).open().await.unwrap();
        let error = file.options().open().await.unwrap_err();
        assert!(error.message().contains("the option `read_only`"), "{error}");
        assert_eq!(count(&reader).await, 0);
        reader.close().await.unwrap();
        empty_table_again(&file).await;
    });
}

async fn empty_table_again(file: &TestFile) {
    let db = file.open().await;
    db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    assert_eq!(count(&db).await, 1);
}

#[test]
fn the_last_handle_closes_and_the_others_only_leave() {
    let file = TestFile::new();
    run(async {
        let first = empty_table(file.options()).await;
        let second = file.open().await;
        let clone = first.clone();
        first.close().await.unwrap();
        first.close().await.unwrap();
        assert_eq!(clone.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err().kind(), ErrorKind::Closed);
        second.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert!(file.beside("-wal").exists());
        drop(second);
        until(|| !file.beside("-wal").exists()).await;
        let third = file.open().await;
        assert_eq!(count(&third).await, 1);
    });
}

#[test]
fn what_a_leaving_handle_submitted_is_done() {
    let file = TestFile::new();
    run(async {
        let first = empty_table(file.options()).await;
        let second = file.open().await;
        let transaction = first.begin().await.unwrap();
        let waiting = first.execute("INSERT INTO t VALUES (1)", ());
        let waiting = tokio::spawn(waiting);
        until(|| first.stats().writes_waiting == 1).await;
        first.close().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().changes, 1);
        assert_eq!(count(&second).await, 2);
    });
}

#[test]
fn a_file_replaced_under_an_open_handle_is_noticed_when_its_successor_is_opened() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let successor = file.directory().join("new.db");
        rusqlite::Connection::open(&successor).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
        std::fs::rename(&successor, file.path()).unwrap();
        let error = file.options().open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("replaced"), "{error}");
        let refused = db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err();
        assert_eq!((refused.kind(), refused.message()), (ErrorKind::Io, error.message()));
        assert_eq!(db.begin().await.unwrap_err().kind(), ErrorKind::Io);
        db.close().await.unwrap();
        std::fs::remove_file(file.beside("-wal")).unwrap();
        std::fs::remove_file(file.beside("-shm")).unwrap();
        let db = file.open().await;
        assert_eq!(count(&db).await, 0);
    });
}

#[test]
fn a_file_that_is_removed_under_an_open_handle_is_noticed_in_time() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(count(&db).await, 1);
        let transaction = db.begin().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        std::fs::remove_file(file.path()).unwrap();
        let mut transaction = Some(transaction);
        let error = loop {
            // What is written before it is noticed goes to the file that is gone.
            if let Some(transaction) = transaction.take() {
                let _ = transaction.commit().await;
            }
            if let Err(error) = db.execute("INSERT INTO t VALUES (3)", ()).await {
                break error;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("removed"), "{error}");
        assert!(count(&db).await >= 1, "reads go on");
        db.close().await.unwrap();
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(file.beside(suffix));
        }
    });
}
