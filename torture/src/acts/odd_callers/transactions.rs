//! What callers do with transactions: leak them, drop them elsewhere, use them after their end, end them in unusual
//! orders.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::task::Context;
use std::task::{Poll, Wake, Waker};
use std::thread;

use flatwater::{ErrorKind, Transaction};
use rand::RngExt;
use rand::rngs::StdRng;

use super::Piece;
use super::scene::{Scene, is_idle};
use super::waiting::{finish, poll_once};
use super::wakers::given_up;
use crate::finding::Finding;
use crate::writes::INSERT;

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("transactions that are leaked", leaked),
    Piece::new("transactions that are dropped on another thread", dropped_elsewhere),
    Piece::new("transactions that are dropped in a waker", dropped_in_a_waker),
    Piece::new("transactions whose calls outlive them", outlived),
    Piece::new("transactions that are left at each poll", left_at_each_poll),
    Piece::new("savepoints that are leaked or dropped with calls in flight", savepoints),
    Piece::new("bodies that use the database around their transaction", around),
];

/// Begins a transaction with one row, which must not be present unless it is committed.
fn open(scene: &Scene) -> Result<Option<(i64, Transaction<'static>)>, Finding> {
    let tx = finish("begin", scene.db.begin())??;
    let number = scene.ledger.begin(false);
    match finish("a write in a transaction", tx.execute(INSERT, (number,)))? {
        Ok(_) => Ok(Some((number, tx))),
        Err(error) if is_idle(&error) => {
            scene.ledger.refused(number);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// No caller can end a leaked transaction. Its idle limit ends it, and other callers continue.
fn leaked(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let Some((number, tx)) = open(scene)? else { return Ok(()) };
    scene.ledger.refused(number);
    std::mem::forget(tx);
    scene.write_now(rng)
}

fn dropped_elsewhere(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let Some((number, tx)) = open(scene)? else { return Ok(()) };
    scene.ledger.refused(number);
    let dropped = thread::spawn(move || drop(tx)).join();
    dropped.map_err(|_| Finding::new("the drop of a transaction panicked"))?;
    scene.write_now(rng)
}

/// Drops its transaction when it is called.
struct Drops(Mutex<Option<Transaction<'static>>>);

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(taken);
    }
}

/// The waker of a read drops the transaction that holds the writer.
fn dropped_in_a_waker(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let Some((number, tx)) = open(scene)? else { return Ok(()) };
    scene.ledger.refused(number);
    // The waker is called on a transaction's thread or on a reader's thread.
    let mut read =
        if rng.random_bool(0.5) { tx.query("SELECT count(*) FROM t", ()) } else { scene.db.query("SELECT 1", ()) };
    let drops = Arc::new(Drops(Mutex::new(Some(tx))));
    let waker = Waker::from(drops.clone());
    let _ = std::pin::Pin::new(&mut read).poll(&mut Context::from_waker(&waker));
    let answer = finish("a read whose waker drops a transaction", &mut read)?;
    if let Err(error) = answer
        && !is_idle(&error)
        && error.kind() != ErrorKind::Misuse
    {
        return Err(error.into());
    }
    drop((waker, read));
    drop(drops);
    scene.write_now(rng)
}

/// A call on a transaction that has ended is refused, no matter when the call was made.
fn outlived(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let Some((number, tx)) = open(scene)? else { return Ok(()) };
    let late = scene.ledger.begin(false);
    let (call, commits) = (tx.execute(INSERT, (late,)), rng.random_bool(0.5));
    scene.ledger.refused(late);
    if commits {
        let ended = finish("commit", tx.commit())?;
        scene.note(number, &ended)?;
    } else {
        scene.ledger.refused(number);
        drop(tx);
    }
    match finish("a call on a transaction that is over", call)? {
        Err(error) if error.kind() == ErrorKind::Misuse || is_idle(&error) => Ok(()),
        other => Err(Finding::new(format!("a call on a transaction that is over was answered {other:?}"))),
    }
}

/// The whole transaction as one future: begin, two writes, a savepoint, commit; dropped at a random poll.
fn left_at_each_poll(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..rng.random_range(1..10) {
        let (number, db) = (scene.ledger.begin(true), scene.db.clone());
        let mut body = Box::pin(async move {
            db.transaction(async |tx| {
                tx.execute(INSERT, (number,)).await?;
                let nested = tx.transaction(async |nested| {
                    nested.execute(INSERT, (number,)).await?;
                    nested.execute("INSERT INTO nowhere VALUES (1)", ()).await
                });
                assert!(nested.await.is_err(), "there is no such table");
                tx.execute(INSERT, (-number,)).await.map(drop)
            })
            .await
        });
        let mut answered = false;
        for _ in 0..rng.random_range(0..12) {
            if let Poll::Ready(answer) = poll_once(&mut body) {
                scene.note(number, &answer)?;
                answered = true;
                break;
            }
            thread::sleep(std::time::Duration::from_micros(rng.random_range(0..200)));
        }
        if !answered {
            given_up(scene, body);
        }
    }
    Ok(())
}

fn savepoints(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let Some((number, mut tx)) = open(scene)? else { return Ok(()) };
    let lost = scene.ledger.begin(false);
    let is_leaked = rng.random_bool(0.3);
    if let Ok(nested) = finish("a savepoint", tx.begin())? {
        let mut call = nested.execute(INSERT, (lost,));
        let _ = poll_once(&mut call);
        if rng.random_bool(0.5) {
            let _ = finish("a write in a savepoint", &mut call)?;
        }
        if is_leaked {
            // Nothing rolls back the savepoint, so its changes share the fate of its parent.
            std::mem::forget(nested);
        } else {
            scene.ledger.refused(lost);
            drop(nested);
        }
        drop(call);
    } else {
        scene.ledger.refused(lost);
    }
    let ended = finish("commit", tx.commit())?;
    if ended.is_err() {
        scene.ledger.refused(lost);
    }
    match &ended {
        // The parent of a savepoint that was never ended may return this error.
        Err(error) if is_leaked && error.kind() == ErrorKind::Misuse => scene.ledger.refused(number),
        _ => scene.note(number, &ended)?,
    }
    scene.write_now(rng)
}

/// A body that waits for the database itself would wait for its own end. Both `await` and `wait` must be refused.
fn around(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let blocks = rng.random_bool(0.5);
    let (kept, refused) = (scene.ledger.begin(false), scene.ledger.begin(false));
    let db = scene.db.clone();
    let body = scene.db.transaction(async move |tx: &mut Transaction<'_>| {
        tx.execute(INSERT, (kept,)).await?;
        let call = db.execute(INSERT, (refused,));
        let around = if blocks { call.wait() } else { call.await };
        Ok::<_, flatwater::Error>(around)
    });
    match finish("a body that uses the database", body)? {
        Ok(around) => {
            scene.ledger.acknowledged(kept);
            scene.ledger.answered(refused, &around);
            match around {
                Err(error) if error.kind() == ErrorKind::Misuse => Ok(()),
                other => Err(Finding::new(format!("a write around its own transaction was answered {other:?}"))),
            }
        }
        Err(error) if is_idle(&error) => {
            scene.ledger.refused(kept);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
