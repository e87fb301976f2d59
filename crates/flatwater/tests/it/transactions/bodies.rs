//! `transaction(body)`: the results of a body, how it fails, and where it runs.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use flatwater::{ConnectionOptions, Database, Error, ErrorKind, Transaction};
use futures_util::FutureExt;

use super::interactive::{content, insert};
use crate::place::{Place, in_both_places};
use crate::support::empty_table;

in_both_places!(
    an_error_of_the_callers_own_type_rolls_back_and_comes_back,
    a_panic_in_the_body_rolls_back,
    transactions_and_nested_ones_run_in_spawned_tasks,
    a_body_that_uses_the_database_instead_is_refused_at_once_and_can_go_on,
    a_body_that_closes_its_database_is_refused_at_once,
    a_live_query_waits_for_no_body_that_awaits_it,
    a_body_whose_transaction_has_ended_may_use_the_database,
    a_task_that_a_body_spawned_merely_waits,
    a_body_that_is_given_up_half_way_is_rolled_back,
);

#[derive(Debug, PartialEq)]
enum Mine {
    Refused(u8),
    Flatwater(ErrorKind),
}

impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Flatwater(error.kind())
    }
}

async fn an_error_of_the_callers_own_type_rolls_back_and_comes_back(place: &Place) {
    let db = empty_table(place.options()).await;
    let refused = db.try_transaction(async |tx| {
        insert(tx, 1).await;
        Err::<(), _>(Mine::Refused(7))
    });
    assert_eq!(refused.await, Err(Mine::Refused(7)));
    let failed = db.try_transaction(async |tx| {
        insert(tx, 1).await;
        tx.execute("nonsense", ()).await?;
        Ok::<_, Mine>(())
    });
    assert_eq!(failed.await, Err(Mine::Flatwater(ErrorKind::Sql)));
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn a_panic_in_the_body_rolls_back(place: &Place) {
    let db = empty_table(place.options()).await;
    for nested in [false, true] {
        let body = db.transaction(async |tx| {
            insert(tx, 1).await;
            if nested {
                tx.transaction(async |inner| {
                    insert(inner, 2).await;
                    panic!("expected")
                })
                .await
            } else {
                panic!("expected")
            }
        });
        let ended: Result<Result<(), Error>, _> = AssertUnwindSafe(body).catch_unwind().await;
        assert!(ended.is_err());
        assert_eq!(content(&db).await, [0_i64; 0]);
    }
    let (spawned, watched) = (db.clone(), db.clone());
    let task = tokio::spawn(async move {
        let tx = spawned.begin().await.unwrap();
        insert(&tx, 3).await;
        panic!("expected");
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(content(&watched).await, [0_i64; 0]);
}

async fn transactions_and_nested_ones_run_in_spawned_tasks(place: &Place) {
    let db = empty_table(place.options()).await;
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let db = db.clone();
            tokio::spawn(async move {
                db.transaction(async |tx| {
                    insert(tx, n).await;
                    tx.transaction(async |inner| {
                        tokio::task::yield_now().await;
                        insert(inner, n + 100).await;
                        let undone = inner.try_transaction(async |innermost| {
                            innermost.execute("DELETE FROM t", ()).await?;
                            Err::<(), _>(Mine::Refused(1))
                        });
                        assert_eq!(undone.await, Err(Mine::Refused(1)));
                        Ok::<_, Error>(())
                    })
                    .await
                })
                .await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(content(&db).await, (0..20).chain(100..120).collect::<Vec<_>>());
    // An open transaction can be handed from task to task.
    let tx: Transaction<'static> = db.begin().await.unwrap();
    let tx = tokio::spawn(async move {
        insert(&tx, 999).await;
        tx
    });
    tx.await.unwrap().commit().await.unwrap();
    assert_eq!(content(&db).await.last(), Some(&999));
}

async fn a_body_that_uses_the_database_instead_is_refused_at_once_and_can_go_on(place: &Place) {
    let (db, other) = (empty_table(place.options()).await, Database::open(":memory:").await.unwrap());
    let own = ConnectionOptions::new().busy_timeout(Duration::from_secs(3600)).connect(&db);
    own.query("SELECT 1", ()).await.unwrap();
    let errors = db.transaction(async |tx| {
        insert(tx, 1).await;
        let mut errors = vec![
            db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err(),
            db.clone().ungrouped().execute_script("DELETE FROM t").await.unwrap_err(),
            db.query("DELETE FROM t RETURNING a", ()).await.unwrap_err(),
            db.begin().await.unwrap_err(),
            db.transaction(async |_| Ok::<_, Error>(())).await.unwrap_err(),
            db.write_with(|_| Ok::<_, Error>(())).await.unwrap_err(),
            db.execute("DELETE FROM t", ()).wait().unwrap_err(),
            own.execute("DELETE FROM t", ()).await.unwrap_err(),
            own.execute_script("BEGIN IMMEDIATE").await.unwrap_err(),
        ];
        errors.push(tx.transaction(async |_| db.execute("DELETE FROM t", ()).await).await.unwrap_err());
        // Readers see what was there before; without them a read would wait for the body too.
        let read = db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await;
        let blocking = db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait();
        let closure = db.read_with(|_| Ok::<_, Error>(())).await;
        if place.has_readers() {
            assert_eq!((read, blocking, closure), (Ok(Some(0)), Ok(Some(0)), Ok(())));
        } else {
            errors.extend([read.unwrap_err(), blocking.unwrap_err(), closure.unwrap_err()]);
        }
        // Another database is another matter.
        other.execute("CREATE TABLE t (a)", ()).await?;
        other.transaction(async |tx| tx.execute("INSERT INTO t VALUES (1)", ()).await).await?;
        insert(tx, 3).await;
        Ok::<_, Error>(errors)
    });
    let errors = errors.await.unwrap();
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.hint().unwrap().contains("the transaction the body was given"), "{error}");
    }
    assert_eq!(content(&db).await, [1, 3]);
}

async fn a_body_whose_transaction_has_ended_may_use_the_database(place: &Place) {
    let db = empty_table(place.options()).await;
    db.execute("CREATE TABLE one (a UNIQUE)", ()).await.unwrap();
    let ended = db.transaction(async |tx| {
        insert(tx, 1).await;
        tx.execute("INSERT INTO one VALUES (1)", ()).await?;
        tx.transaction(async |tx| {
            tx.execute("INSERT OR ROLLBACK INTO one VALUES (1)", ()).await.unwrap_err();
            db.execute("INSERT INTO t VALUES (2)", ()).await
        })
        .await
        .unwrap_err();
        db.execute("INSERT INTO t VALUES (3)", ()).await?;
        Ok::<_, Error>(())
    });
    assert!(ended.await.unwrap_err().message().contains("SQLite rolled back"));
    assert_eq!(content(&db).await, [2, 3]);
}

async fn a_body_that_closes_its_database_is_refused_at_once(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.close_wait(Duration::from_secs(3600)))).await;
    let body = db.transaction(async |tx| {
        for error in [db.close().await.unwrap_err(), db.close().wait().unwrap_err()] {
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("close")));
            assert!(error.hint().unwrap().contains("when the transaction is over"), "{error}");
        }
        insert(tx, 1).await;
        if place.has_readers() {
            // It is not the last handle of the file.
            place.options().tuning(|t| t.close_wait(Duration::from_secs(3600))).open().await?.close().await?;
        }
        insert(tx, 2).await;
        Ok::<_, Error>(())
    });
    body.await.unwrap();
    assert_eq!(content(&db).await, [1, 2]);
    db.close().await.unwrap();
}

async fn a_live_query_waits_for_no_body_that_awaits_it(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut early = db.live("SELECT count(*) FROM t", ());
    early.next().await.unwrap().unwrap();
    let body = db.transaction(async |tx| {
        insert(tx, 1).await;
        let mut late = db.live("SELECT count(*) + 1 FROM t", ());
        match late.next().await.unwrap() {
            Ok(rows) => assert!(place.has_readers() && rows.len() == 1),
            Err(error) => {
                assert!(!place.has_readers());
                assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("live")));
                assert_eq!(early.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
            }
        }
        Ok::<_, Error>(late)
    });
    let mut late = body.await.unwrap();
    // Both go on.
    for live in [&mut early, &mut late] {
        assert_eq!(live.next().await.unwrap().unwrap().len(), 1);
    }
}

async fn a_task_that_a_body_spawned_merely_waits(place: &Place) {
    let db = empty_table(place.options()).await;
    let spawned = db.transaction(async |tx| {
        let db = db.clone();
        let spawned = tokio::spawn(async move { db.execute("INSERT INTO t VALUES (2)", ()).await });
        insert(tx, 1).await;
        Ok::<_, Error>(spawned)
    });
    assert_eq!(spawned.await.unwrap().await.unwrap().unwrap().last_insert_rowid, Some(2));
    assert_eq!(content(&db).await, [1, 2]);
}

async fn a_body_that_is_given_up_half_way_is_rolled_back(place: &Place) {
    let db = empty_table(place.options()).await;
    for nested in [false, true] {
        let (reached, halfway) = tokio::sync::oneshot::channel();
        let mut body = Box::pin(db.transaction(async |tx| {
            insert(tx, 1).await;
            if nested {
                let inner = tx.begin().await?;
                insert(&inner, 2).await;
                reached.send(()).unwrap();
                std::future::pending::<()>().await;
            } else {
                reached.send(()).unwrap();
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(())
        }));
        tokio::select! {
            _ = &mut body => unreachable!("the body never ends"),
            arrived = halfway => arrived.unwrap(),
        }
        drop(body);
        assert_eq!(content(&db).await, [0_i64; 0]);
    }
}
