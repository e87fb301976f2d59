//! Writes that join a group while it runs, at durability `full`.
//!
//! Another connection has the write lock: the writer's thread has taken one write and waits for it when the others come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flatwater::events::ExecutedOn;
use flatwater::options::{Durability, Inline};
use flatwater::{Database, Options};
use futures_util::future::join_all;
use rusqlite::Connection;

use crate::support::{TestFile, grouped, run, until};

const INSERT: &str = "INSERT INTO t VALUES (1)";

/// Returns a database that knows its schema and the text, and whose last write was alone.
async fn opened(options: Options, durability: Durability) -> Database {
    let db = grouped(options).durability(durability).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    while db.stats().groups == 0 {
        let transaction = db.begin().await.unwrap();
        let (written, ()) = futures_util::join!(join_all((0..4).map(|_| db.execute(INSERT, ()))), async {
            until(|| db.stats().writes_waiting == 4).await;
            transaction.commit().await.unwrap();
        });
        assert!(written.iter().all(Result::is_ok));
    }
    for _ in 0..2 {
        db.execute(INSERT, ()).await.unwrap();
    }
    db
}

/// Submits one write, and `more` when the writer's thread has taken it and waits for the lock. Returns how many groups there
/// were, and how many writes in them.
async fn one_and_more(db: &Database, other: &Connection, more: usize) -> (u64, u64) {
    let before = db.stats();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = |_| db.execute(INSERT, ());
    let (first, (more, ())) = futures_util::join!(write(0), async {
        until(|| db.stats().writes_waiting == 0).await;
        futures_util::join!(join_all((0..more).map(write)), async {
            until(|| db.stats().writes_waiting == more).await;
            other.execute_batch("COMMIT").unwrap();
        })
    });
    assert!(more.into_iter().chain([first]).all(|written| written.unwrap().changes == 1));
    let after = db.stats();
    assert_eq!(after.replays, before.replays);
    (after.groups - before.groups, after.members - before.members)
}

#[test]
fn a_write_that_was_taken_alone_is_joined_where_several_came_before() {
    let file = TestFile::new();
    run(async {
        let db = opened(file.options(), Durability::Full).await;
        let other = file.plain();
        assert_eq!(one_and_more(&db, &other, 99).await, (1, 99), "the one before was alone");
        for _ in 0..3 {
            assert_eq!(one_and_more(&db, &other, 99).await, (1, 100));
        }
        db.close().await.unwrap();
    });
}

#[test]
fn at_durability_normal_nothing_joins() {
    let file = TestFile::new();
    run(async {
        let options = file.options().tuning(|t| t.inline(Inline::Never));
        let db = opened(options, Durability::Normal).await;
        let other = file.plain();
        for _ in 0..3 {
            assert_eq!(one_and_more(&db, &other, 99).await, (1, 99));
        }
        db.close().await.unwrap();
    });
}

#[test]
fn awaited_writes_run_by_themselves_also_after_others_came_together() {
    let file = TestFile::new();
    run(async {
        let grouped = Arc::new(AtomicUsize::new(0));
        let count = grouped.clone();
        let options = file.options().on_statement(move |event| {
            count.fetch_add(usize::from(event.ran_on == Some(ExecutedOn::Group)), Ordering::Relaxed);
        });
        let db = opened(options, Durability::Full).await;
        let awaited = async || {
            let before = grouped.load(Ordering::Relaxed);
            for _ in 0..10 {
                db.execute(INSERT, ()).await.unwrap();
            }
            grouped.load(Ordering::Relaxed) - before
        };
        assert_eq!(awaited().await, 0);
        assert_eq!(one_and_more(&db, &file.plain(), 9).await, (1, 9));
        assert_eq!(awaited().await, 1, "the first one was expected to be followed by others");
        assert_eq!(awaited().await, 0);
        db.close().await.unwrap();
    });
}
