//! Functions of which the program says that they are short: they may run on the threads of their callers.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use flatwater::{Database, Error, ErrorKind};

use super::registered::PURE;
use crate::support::{TestFile, empty_table, run};

/// The threads that a function ran on.
type Threads = Arc<Mutex<BTreeSet<bool>>>;

/// Creates `here(x)`, which returns x, and notes whether it runs on this thread.
fn here(db: &Database) -> Threads {
    let (threads, own): (Threads, ThreadId) = (Threads::default(), thread::current().id());
    let seen = threads.clone();
    db.functions()
        .create_short_function("here", 1, move |context| {
            seen.lock().unwrap().insert(thread::current().id() == own);
            context.get::<i64>(0)
        })
        .unwrap();
    threads
}

async fn until_here(threads: &Threads, mut call: impl AsyncFnMut()) {
    threads.lock().unwrap().clear();
    while !threads.lock().unwrap().contains(&true) {
        call().await;
    }
}

#[test]
fn a_function_that_is_said_to_be_short_runs_on_its_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let threads = here(&db);
        let mut n = 0;
        until_here(&threads, async || {
            assert_eq!(db.query_value::<i64>("SELECT here(?)", (7,)).await.unwrap(), 7);
        })
        .await;
        until_here(&threads, async || {
            n += 1;
            db.execute("INSERT INTO t VALUES (here(?))", (n,)).await.unwrap();
        })
        .await;
        until_here(&threads, async || {
            let tx = db.begin().await.unwrap();
            for _ in 0..5 {
                n += 1;
                tx.execute("INSERT INTO t VALUES (here(?) + 0)", (n,)).await.unwrap();
            }
            tx.commit().await.unwrap();
        })
        .await;
        let (count, sum) = db.query_one_as::<(i64, i64)>("SELECT count(*), sum(a) FROM t", ()).await.unwrap();
        assert_eq!((count, sum), (n, n * (n + 1) / 2));
    });
}

#[test]
fn it_fails_there_as_it_fails_on_a_thread_of_the_database() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let (inside, threads) = (db.clone(), here(&db));
        db.functions()
            .create_short_function("fails", 1, move |context| match context.get::<i64>(0)? {
                1 => Err(rusqlite::Error::UserFunctionError("planted".into())),
                2 => panic!("planted"),
                3 => inside
                    .execute("INSERT INTO t VALUES (1)", ())
                    .wait()
                    .map(|_| 3)
                    .map_err(|error| rusqlite::Error::UserFunctionError(error.message().into())),
                value => Ok(value),
            })
            .unwrap();
        let read = "SELECT here(1) + fails(?)";
        for _ in 0..3 {
            until_here(&threads, async || _ = db.query(read, (7,)).await.unwrap()).await;
            for (which, says) in [(1, "planted"), (2, "fails panicked: planted"), (3, "called the database")] {
                let error = db.query(read, (which,)).await.unwrap_err();
                assert!(error.kind() == ErrorKind::Sql && error.message().contains(says), "{error}");
                let tx = db.begin().await.unwrap();
                tx.execute("INSERT INTO t VALUES (fails(7))", ()).await.unwrap();
                let error = tx.execute("INSERT INTO t VALUES (fails(?))", (which,)).await.unwrap_err();
                assert!(error.message().contains(says), "{error}");
                tx.commit().await.unwrap();
            }
        }
        assert_eq!(db.query_value::<i64>("SELECT sum(a) / 7 FROM t", ()).await.unwrap(), 9);
    });
}

#[test]
fn only_the_one_that_was_said_to_be_short_is_taken_for_it() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let threads = here(&db);
        let (seen, own) = (threads.clone(), thread::current().id());
        let long = move |context: &rusqlite::functions::Context<'_>| {
            seen.lock().unwrap().insert(thread::current().id() == own);
            context.get::<i64>(0)
        };
        db.functions().create_scalar_function("here", 2, PURE, long.clone()).unwrap();
        let one = async || _ = db.query("SELECT here(1)", ()).await.unwrap();
        until_here(&threads, one).await;
        threads.lock().unwrap().clear();
        for _ in 0..30 {
            db.query("SELECT here(1, 2)", ()).await.unwrap();
        }
        assert_eq!(*threads.lock().unwrap(), BTreeSet::from([false]));
        // The one that takes its place is none.
        db.functions().create_scalar_function("here", 1, PURE, long).unwrap();
        threads.lock().unwrap().clear();
        for _ in 0..30 {
            one().await;
        }
        assert_eq!(*threads.lock().unwrap(), BTreeSet::from([false]));
        db.functions().remove_function("here", 1).unwrap();
        let error: Error = db.query("SELECT here(1)", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql);
    });
}

/// What a function drops.
type Kept = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

/// Creates `lets_go()`, which drops what is kept, and notes whether that was on this thread.
fn lets_go(db: &Database) -> (Kept, Threads) {
    let (kept, threads, own): (Kept, Threads, ThreadId) = (Kept::default(), Threads::default(), thread::current().id());
    let (drops, seen) = (kept.clone(), threads.clone());
    db.functions()
        .create_short_function("lets_go", 0, move |_| {
            let dropped = drops.lock().unwrap().take();
            if dropped.is_some() {
                seen.lock().unwrap().insert(thread::current().id() == own);
            }
            drop(dropped);
            Ok(1)
        })
        .unwrap();
    (kept, threads)
}

#[test]
fn one_that_drops_the_handle_in_which_it_is_called_does_not_wait_for_itself() {
    const SQL: &str = "SELECT lets_go()";
    const WRITE: &str = "INSERT INTO t VALUES (lets_go())";
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let (kept, threads) = lets_go(&db);
        let keep = |handle: Box<dyn Any + Send>| *kept.lock().unwrap() = Some(handle);
        until_here(&threads, async || {
            let tx = db.begin().await.unwrap();
            for _ in 0..5 {
                tx.query(SQL, ()).await.unwrap();
            }
            let call = tx.query(SQL, ());
            keep(Box::new(tx));
            // It has run to its end, or finds on a thread that its transaction is over.
            let _ = call.await;
        })
        .await;
        until_here(&threads, async || {
            let tx = db.begin().await.unwrap();
            for _ in 0..5 {
                tx.execute(WRITE, ()).await.unwrap();
            }
            let call = tx.execute(WRITE, ());
            keep(Box::new(tx));
            let _ = call.await;
        })
        .await;
        until_here(&threads, async || {
            let snapshot = db.snapshot().await.unwrap();
            for _ in 0..5 {
                snapshot.query(SQL, ()).await.unwrap();
            }
            let call = snapshot.query(SQL, ());
            keep(Box::new(snapshot));
            let _ = call.await;
        })
        .await;
        until_here(&threads, async || {
            let own = db.connection();
            for _ in 0..5 {
                own.query(SQL, ()).await.unwrap();
            }
            let call = own.query(SQL, ());
            keep(Box::new(own));
            let _ = call.await;
        })
        .await;
        // Nothing of that holds the writer, and nothing of the transactions is left.
        db.execute("INSERT INTO t VALUES (7)", ()).await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(), 7);
        db.close().await.unwrap();
    });
}
