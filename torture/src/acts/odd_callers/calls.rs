//! What callers do with the futures of their calls: drop them at any poll, move them, leak them, never poll them, poll
//! them again after completion.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use flatwater::{Error, ErrorKind};
use rand::RngExt;
use rand::rngs::StdRng;

use super::Piece;
use super::scene::Scene;
use super::waiting::{finish, poll_once};
use super::wakers::given_up;
use crate::finding::Finding;
use crate::writes::{INSERT, Op};

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("calls that are dropped at each poll", dropped_at_each_poll),
    Piece::new("calls that are dropped on another thread", dropped_elsewhere),
    Piece::new("calls that move to another thread between two polls", moved),
    Piece::new("calls that are never polled", never_polled),
    Piece::new("calls that are polled after their answer", polled_after_the_answer),
    Piece::new("calls that are leaked", leaked),
    Piece::new("reads that are dropped while they run", dropped_reads),
];

/// A read that takes seconds unless it is interrupted.
const LONG: &str =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 10000000) SELECT max(x) FROM n";

/// Polls a call a random number of times, with pauses in which it can be queued, run or completed; then drops it.
fn dropped_at_each_poll(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for polls in 0..rng.random_range(1..12) {
        let tx = if rng.random_bool(0.2) { Some(finish("begin", scene.db.begin())??) } else { None };
        let (number, mut op) = scene.write(rng);
        let mut answered = false;
        for _ in 0..polls {
            if let Poll::Ready(answer) = poll_once(&mut op) {
                scene.note(number, &answer)?;
                answered = true;
                break;
            }
            thread::sleep(Duration::from_micros(rng.random_range(0..300)));
        }
        drop(tx);
        if polls == 0 {
            scene.ledger.refused(number);
        }
        if !answered {
            given_up(scene, op);
        }
    }
    Ok(())
}

fn begun(scene: &Scene, rng: &mut StdRng) -> Result<Option<(i64, Op)>, Finding> {
    let (number, mut op) = scene.write(rng);
    match poll_once(&mut op) {
        Poll::Pending => Ok(Some((number, op))),
        Poll::Ready(answer) => scene.note(number, &answer).map(|()| None),
    }
}

fn dropped_elsewhere(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let mut calls = Vec::new();
    for _ in 0..rng.random_range(1..20) {
        calls.extend(begun(scene, rng)?);
    }
    let shared = scene.clone();
    thread::scope(|scope| {
        scope.spawn(move || calls.into_iter().for_each(|(_, op)| given_up(&shared, op)));
    });
    Ok(())
}

/// Each poll is made by another thread, with that thread's own waker.
fn moved(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..rng.random_range(1..6) {
        let tx = if rng.random_bool(0.5) { Some(finish("begin", scene.db.begin())??) } else { None };
        let Some((number, mut op)) = begun(scene, rng)? else { continue };
        for _ in 0..rng.random_range(0..4) {
            let polled = thread::spawn(move || {
                let poll = poll_once(&mut op);
                (op, poll)
            });
            let (back, poll) = polled.join().map_err(|_| Finding::new("a poll panicked"))?;
            if let Poll::Ready(answer) = poll {
                scene.note(number, &answer)?;
                return Ok(());
            }
            op = back;
        }
        drop(tx);
        let answer = thread::spawn(move || finish("a call that moved", op)).join();
        scene.note(number, &answer.map_err(|_| Finding::new("a poll panicked"))??)?;
    }
    Ok(())
}

fn never_polled(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..50 {
        let (number, op) = scene.write(rng);
        scene.ledger.refused(number);
        given_up(scene, op);
        let number = scene.ledger.begin(false);
        scene.ledger.refused(number);
        drop(scene.db.execute(INSERT, (number,)));
    }
    drop(scene.db.begin());
    drop(scene.db.close());
    Ok(())
}

/// A call that is polled after completion returns an error, each time.
fn polled_after_the_answer(scene: &Arc<Scene>, _: &mut StdRng) -> Result<(), Finding> {
    let number = scene.ledger.begin(false);
    let mut call = scene.db.execute(INSERT, (number,));
    let answer = finish("a write", &mut call)?;
    scene.note(number, &answer)?;
    refuses_again(&mut call)?;
    let mut read = scene.db.query_optional_value::<i64>("SELECT count(*) FROM t WHERE n = ?", (number,));
    if finish("a read", &mut read)?? != Some(1) {
        return Err(Finding::new("a read does not see the write that was answered before"));
    }
    refuses_again(&mut read)?;
    let mut fails = scene.db.query("SELECT nonsense FROM nowhere", ());
    if finish("a read that fails", &mut fails)?.is_ok() {
        return Err(Finding::new("nonsense was answered"));
    }
    refuses_again(&mut fails)
}

fn refuses_again<T>(mut call: impl Future<Output = Result<T, Error>> + Unpin) -> Result<(), Finding> {
    for _ in 0..3 {
        match poll_once(&mut call) {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Misuse => {}
            Poll::Ready(Err(error)) => return Err(Finding::new(format!("polled after its answer: {error}"))),
            Poll::Ready(Ok(_)) => return Err(Finding::new("polled after its answer, a call answered again")),
            Poll::Pending => return Err(Finding::new("polled after its answer, a call waits for another")),
        }
    }
    Ok(())
}

/// Futures that are never dropped, polled or not. There are few of them, because their memory is never freed; the last
/// close ends what they hold.
fn leaked(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..rng.random_range(1..4) {
        let number = scene.ledger.begin(false);
        let mut call = scene.db.execute(INSERT, (number,));
        if let Poll::Ready(answer) = call_polled(&mut call, rng) {
            scene.note(number, &answer)?;
        }
        std::mem::forget(call);
        let mut read = scene.db.query("SELECT count(*) FROM t", ());
        let _ = call_polled(&mut read, rng);
        std::mem::forget(read);
    }
    Ok(())
}

/// Polls a call up to three times, or not at all.
fn call_polled<F: Future + Unpin>(call: &mut F, rng: &mut StdRng) -> Poll<F::Output> {
    for _ in 0..rng.random_range(0..4) {
        let poll = std::pin::Pin::new(&mut *call).poll(&mut Context::from_waker(Waker::noop()));
        if poll.is_ready() {
            return poll;
        }
    }
    Poll::Pending
}

/// Drops long reads. Each must end early; otherwise a few of them would occupy all readers for the rest of the round.
fn dropped_reads(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let mut long: Vec<_> = (0..rng.random_range(1..6)).map(|_| scene.db.query(LONG, ())).collect();
    for read in &mut long {
        if let Poll::Ready(answer) = poll_once(read) {
            answer?;
        }
    }
    thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
    scene.count("dropped calls", long.len() as u64);
    drop(long);
    let one = finish("a read behind reads that were dropped", scene.db.query_optional_value::<i64>("SELECT 1", ()))??;
    if one == Some(1) { Ok(()) } else { Err(Finding::new(format!("SELECT 1 answered {one:?}"))) }
}
