//! `transaction(body)` as a call: its deadline, waiting for it on a plain thread, giving it up, and the error of its body.

use std::future::pending;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use flatwater::calls::{CancelOutcome, TimeoutEffect};
use flatwater::{Error, ErrorKind, Result};

use super::interactive::{content, insert};
use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, empty_table};

in_both_places!(
    nothing_begins_before_the_first_poll,
    it_is_waited_for_on_a_plain_thread,
    it_is_cancelled_in_every_state,
    a_deadline_of_zero_runs_no_body,
    a_body_that_waits_for_something_else_ends_at_the_deadline,
    a_statement_of_the_body_ends_at_the_deadline,
    nothing_is_committed_after_the_deadline,
    the_deadline_of_a_nested_one_leaves_the_outer_one_open,
    the_deadline_of_a_handle_ends_its_bodies,
);

const SOON: Duration = Duration::from_millis(30);

fn is_timeout(error: &Error, operation: &str) {
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
    assert_eq!(error.operation(), Some(operation), "{error}");
}

async fn nothing_begins_before_the_first_poll(place: &Place) {
    let db = empty_table(place.options()).await;
    let never = db.transaction(async |tx| tx.execute("INSERT INTO t VALUES (1)", ()).await);
    // It would wait for the transaction if that had begun.
    insert(&db.begin().await.unwrap(), 2).await;
    drop(never);
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn it_is_waited_for_on_a_plain_thread(place: &Place) {
    let db = empty_table(place.options()).await;
    let other = db.clone();
    let waited = std::thread::spawn(move || {
        let kept = other.transaction(async |tx| {
            insert(tx, 1).await;
            tx.transaction(async |inner| {
                insert(inner, 2).await;
                Ok("kept")
            })
            .await
        });
        let undone = other.transaction(async |tx| {
            insert(tx, 3).await;
            tx.execute("nonsense", ()).await?;
            Ok(())
        });
        (kept.wait(), undone.wait().unwrap_err().kind())
    });
    assert_eq!(waited.join().unwrap(), (Ok("kept"), ErrorKind::Sql));
    assert_eq!(content(&db).await, [1, 2]);
    let inside = db.clone();
    let refused = db.write_with(move |_| {
        inside.transaction(async |_| Ok(())).wait()?;
        Ok::<_, Error>(())
    });
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Misuse);
}

async fn it_is_cancelled_in_every_state(place: &Place) {
    let db = empty_table(place.options()).await;
    let new = db.transaction(async |tx| tx.execute("INSERT INTO t VALUES (1)", ()).await);
    assert_eq!(new.cancel(), CancelOutcome::Withdrawn);
    let (reached, halfway) = tokio::sync::oneshot::channel();
    let mut running = db.transaction(async |tx| {
        insert(tx, 2).await;
        reached.send(()).unwrap();
        pending::<Result<()>>().await
    });
    tokio::select! {
        _ = &mut running => unreachable!("the body never ends"),
        arrived = halfway => arrived.unwrap(),
    }
    let mut waiting = db.transaction(async |tx| tx.execute("INSERT INTO t VALUES (3)", ()).await);
    assert!(pin!(&mut waiting).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(matches!(waiting.cancel(), CancelOutcome::Withdrawn | CancelOutcome::WriteInterrupted));
    assert_eq!(running.cancel(), CancelOutcome::WriteInterrupted);
    assert_eq!(content(&db).await, [0_i64; 0]);
    let mut done = db.transaction(async |tx| tx.execute("INSERT INTO t VALUES (4)", ()).await);
    (&mut done).await.unwrap();
    assert_eq!((&mut done).await.unwrap_err().kind(), ErrorKind::Misuse, "it was polled again");
    assert_eq!(done.cancel(), CancelOutcome::Answered);
    assert_eq!(content(&db).await, [4]);
}

async fn a_deadline_of_zero_runs_no_body(place: &Place) {
    let db = empty_table(place.options()).await;
    let body = async |_: &mut flatwater::Transaction<'_>| -> Result<()> { unreachable!("it began") };
    is_timeout(&db.transaction(body).timeout(Duration::ZERO).await.unwrap_err(), "begin");
    is_timeout(&db.transaction(body).timeout(Duration::ZERO).wait().unwrap_err(), "begin");
}

async fn a_body_that_waits_for_something_else_ends_at_the_deadline(place: &Place) {
    let db = empty_table(place.options()).await;
    let body = db.transaction(async |tx| {
        insert(tx, 1).await;
        pending::<Result<()>>().await
    });
    is_timeout(&body.timeout(SOON).await.unwrap_err(), "transaction");
    let body = db.transaction(async |tx| {
        insert(tx, 1).await;
        pending::<Result<()>>().await
    });
    is_timeout(&body.timeout(SOON).wait().unwrap_err(), "transaction");
    // Nor does it wait when SQLite has ended the transaction.
    let body = db.transaction(async |tx| {
        tx.execute("INSERT OR ROLLBACK INTO t VALUES (abs(-9223372036854775808))", ()).await.unwrap_err();
        pending::<Result<()>>().await
    });
    is_timeout(&body.timeout(SOON).await.unwrap_err(), "transaction");
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn a_statement_of_the_body_ends_at_the_deadline(place: &Place) {
    let db = empty_table(place.options()).await;
    let body = db.transaction(async |tx| {
        insert(tx, 1).await;
        tx.execute(&*format!("INSERT INTO t {ENDLESS}"), ()).await?;
        Ok(())
    });
    let error = body.timeout(SOON).await.unwrap_err();
    // On a thread that has used up its share the answer is held back for a moment, in which the body is dropped.
    if error.operation() == Some("transaction") {
        is_timeout(&error, "transaction");
    } else {
        is_timeout(&error, "execute");
        assert!(error.sql().is_some_and(|sql| sql.starts_with("INSERT INTO t")), "{error}");
    }
    // The body may go on after it, and is dropped then.
    let body = db.transaction(async |tx| {
        let failed = tx.query(ENDLESS, ()).await.unwrap_err();
        is_timeout(&failed, "query");
        pending::<Result<()>>().await
    });
    is_timeout(&body.timeout(SOON).await.unwrap_err(), "transaction");
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn nothing_is_committed_after_the_deadline(place: &Place) {
    let db = empty_table(place.options()).await;
    let body = db.transaction(async |tx| {
        insert(tx, 1).await;
        // The thread is held: nobody drops the body.
        let late = Instant::now() + SOON * 2;
        std::thread::sleep(late.saturating_duration_since(Instant::now()));
        Ok(())
    });
    assert_eq!(body.timeout(SOON).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(content(&db).await, [0_i64; 0]);
}

async fn the_deadline_of_a_nested_one_leaves_the_outer_one_open(place: &Place) {
    let db = empty_table(place.options()).await;
    let kept = db.transaction(async |tx| {
        insert(tx, 1).await;
        let inner = tx.transaction(async |inner| {
            insert(inner, 2).await;
            pending::<Result<()>>().await
        });
        is_timeout(&inner.timeout(SOON).await.unwrap_err(), "transaction");
        insert(tx, 3).await;
        Ok(())
    });
    kept.await.unwrap();
    assert_eq!(content(&db).await, [1, 3]);
}

async fn the_deadline_of_a_handle_ends_its_bodies(place: &Place) {
    let db = empty_table(place.options()).await;
    let request = db.with_deadline(Instant::now() + SOON);
    let body = request.transaction(async |_| pending::<Result<()>>().await);
    assert_eq!(body.await.unwrap_err().kind(), ErrorKind::Timeout);
    let mut patient = db.transaction(async |_| pending::<Result<()>>().await).timeout(Duration::MAX);
    let polled = pin!(&mut patient).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending));
}
