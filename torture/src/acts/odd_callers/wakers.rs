//! Wakers that misbehave. They are called on threads of the database and of other callers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use flatwater::Error;
use futures_util::future::join_all;
use rand::RngExt;
use rand::rngs::StdRng;

use super::Piece;
use super::scene::Scene;
use super::waiting::{finish, panic_quietly, poll_once, until, until_some};
use crate::finding::Finding;
use crate::writes::{INSERT, Op};

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("wakers that block", |scene, rng| crowd(scene, rng, Oddity::Blocks)),
    Piece::new("wakers that panic", |scene, rng| crowd(scene, rng, Oddity::Panics)),
    Piece::new("wakers that wait for the database", |scene, rng| crowd(scene, rng, Oddity::Waits)),
    Piece::new("wakers that begin another call", |scene, rng| crowd(scene, rng, Oddity::Begins)),
    Piece::new("wakers that drop other calls", |scene, rng| crowd(scene, rng, Oddity::DropsOthers)),
    Piece::new("wakers that panic when they are dropped", |scene, rng| crowd(scene, rng, Oddity::PanicsInDrop)),
    Piece::new("wakers that use the database when they are dropped", |scene, rng| {
        crowd(scene, rng, Oddity::WaitsInDrop)
    }),
    Piece::new("wakers that never wake", |scene, rng| crowd(scene, rng, Oddity::Nothing)),
    Piece::new("wakers that poll in place", polls_in_place),
    Piece::new("wakers that are replaced at each poll and cloned", replaced),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Oddity {
    Nothing,
    Blocks,
    Panics,
    Waits,
    Begins,
    DropsOthers,
    PanicsInDrop,
    WaitsInDrop,
}

/// A waker that misbehaves in one way each time it is called.
struct Odd {
    oddity: Oddity,
    scene: Arc<Scene>,
    calls: AtomicUsize,
    /// Calls that it drops, or has begun.
    held: Arc<Mutex<Vec<(i64, Op)>>>,
}

impl Odd {
    fn wait(&self) {
        let number = self.scene.ledger.begin(false);
        let answer = self.scene.db.execute(INSERT, (number,)).wait();
        self.scene.note_from_within(number, &answer);
    }

    fn begin(&self) {
        let number = self.scene.ledger.begin(false);
        let mut call = self.scene.db.execute(INSERT, (number,));
        match poll_once(&mut call) {
            Poll::Ready(answer) => self.scene.note_aside(number, &answer),
            Poll::Pending => self.hold(vec![(number, Box::pin(async move { call.await.map(drop) }))]),
        }
    }

    fn hold(&self, more: Vec<(i64, Op)>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    fn take_held(&self) -> Vec<(i64, Op)> {
        std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Wake for Odd {
    fn wake(self: Arc<Self>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.oddity {
            Oddity::Blocks => thread::sleep(Duration::from_millis(10)),
            Oddity::Panics => panic_quietly(),
            Oddity::Waits => self.wait(),
            Oddity::Begins => self.begin(),
            Oddity::DropsOthers => drop(self.take_held()),
            Oddity::Nothing | Oddity::PanicsInDrop | Oddity::WaitsInDrop => {}
        }
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        match self.oddity {
            Oddity::PanicsInDrop => panic_quietly(),
            Oddity::WaitsInDrop => self.wait(),
            _ => {}
        }
    }
}

/// Several calls with such wakers. Some wait for a transaction's end; some are dropped, the others run to their end.
fn crowd(scene: &Arc<Scene>, rng: &mut StdRng, oddity: Oddity) -> Result<(), Finding> {
    let tx = if rng.random_bool(0.6) { Some(finish("begin", scene.db.begin())??) } else { None };
    let odd = Arc::new(Odd { oddity, scene: scene.clone(), calls: AtomicUsize::new(0), held: Arc::default() });
    if oddity == Oddity::DropsOthers {
        odd.hold(begun(scene, rng, 6));
    }
    // The piece itself holds no waker, so the database drops the last one.
    let (seen, held) = (Arc::downgrade(&odd), odd.held.clone());
    let calls = polled_with(scene, rng, Waker::from(odd));
    scene.count("misbehaving wakers", calls.len() as u64);
    drop(tx);
    if oddity == Oddity::Nothing || rng.random_bool(0.5) {
        until_called(&seen);
    }
    let mut rest = Vec::new();
    for (number, mut op) in calls {
        if rng.random_bool(0.2) {
            given_up(scene, op);
            continue;
        }
        if oddity == Oddity::PanicsInDrop {
            // The poll that replaces the waker drops it, and the panic reaches the caller of that poll.
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll_once(&mut op)));
            match caught {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(answer)) => {
                    scene.note(number, &answer)?;
                    continue;
                }
                Err(_) => {
                    given_up(scene, op);
                    continue;
                }
            }
        }
        rest.push((number, op));
    }
    if oddity == Oddity::Begins {
        rest.extend(std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner)));
    }
    // Awaits all at once: one of them may be a transaction that has begun, and the others wait for its end.
    let answers = join_all(rest.into_iter().map(async |(number, op)| (number, op.await)));
    let answers = finish("calls whose first wakers were odd", answers)?;
    drop(std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner)));
    answers.iter().try_for_each(|(number, answer)| scene.note(*number, answer))
}

/// Returns up to a dozen calls, polled once with `waker`. Dropping the waker may panic on the thread that drops it.
fn polled_with(scene: &Scene, rng: &mut StdRng, waker: Waker) -> Vec<(i64, Op)> {
    let mut calls = Vec::new();
    for _ in 0..rng.random_range(1..12) {
        let (number, mut op) = scene.write(rng);
        match op.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => scene.note_aside(number, &answer),
            Poll::Pending => calls.push((number, op)),
        }
    }
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(waker)));
    calls
}

/// Drops the call. If that drops the last waker, its panic occurs on this thread.
pub(crate) fn given_up(scene: &Scene, op: Op) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(op)));
    scene.count("dropped calls", 1);
}

fn begun(scene: &Scene, rng: &mut StdRng, count: usize) -> Vec<(i64, Op)> {
    let mut calls: Vec<_> = (0..count).map(|_| scene.write(rng)).collect();
    calls.retain_mut(|(number, op)| match poll_once(op) {
        Poll::Ready(answer) => {
            scene.note_aside(*number, &answer);
            false
        }
        Poll::Pending => true,
    });
    calls
}

/// Waits briefly for the first call of the waker. There may be none, because a call can complete at its first poll.
fn until_called(odd: &Weak<Odd>) {
    for _ in 0..50 {
        match odd.upgrade() {
            Some(odd) if odd.calls.load(Ordering::SeqCst) == 0 => {
                // The panic occurs on the thread that drops the last reference.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(odd)));
                thread::sleep(Duration::from_micros(200));
            }
            Some(odd) => {
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(odd)));
                return;
            }
            None => return,
        }
    }
}

/// An executor that polls its call inside the waker, on the thread that calls the waker.
struct InPlace {
    op: Mutex<Option<Op>>,
    answer: Mutex<Option<Result<(), Error>>>,
    polls: AtomicUsize,
}

impl InPlace {
    fn poll(self: &Arc<Self>) {
        self.polls.fetch_add(1, Ordering::SeqCst);
        let waker = Waker::from(self.clone());
        // If the waker is called during a poll, the thread that polls now polls again.
        let mut seen = 0;
        while seen != self.polls.load(Ordering::SeqCst) {
            let Ok(mut op) = self.op.try_lock() else { return };
            seen = self.polls.load(Ordering::SeqCst);
            let Some(mut taken) = op.take() else { return };
            match taken.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(answer) => *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer),
                Poll::Pending => *op = Some(taken),
            }
        }
    }

    fn take_answer(&self) -> Option<Result<(), Error>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Wake for InPlace {
    fn wake(self: Arc<Self>) {
        self.poll();
    }
}

fn polls_in_place(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let tasks: Vec<_> = (0..rng.random_range(1..8))
        .map(|_| {
            let (number, op) = scene.write(rng);
            (
                number,
                Arc::new(InPlace { op: Mutex::new(Some(op)), answer: Mutex::default(), polls: AtomicUsize::new(0) }),
            )
        })
        .collect();
    scene.count("misbehaving wakers", tasks.len() as u64);
    tasks.iter().for_each(|(_, task)| task.poll());
    for (number, task) in tasks {
        let Some(answer) = until_some(|| task.take_answer()) else {
            return Err(Finding::new("a call that is polled in its waker never ends"));
        };
        scene.note(number, &answer)?;
    }
    Ok(())
}

/// A waker that counts its calls. Only the waker of the last poll must be called.
struct Noted(AtomicUsize);

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls repeatedly without having been woken, each time with another waker that has many clones.
fn replaced(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let tx = finish("begin", scene.db.begin())??;
    let (number, mut op) = scene.write(rng);
    let mut last = None;
    let mut clones = Vec::new();
    for _ in 0..rng.random_range(1..200) {
        let noted = Arc::new(Noted(AtomicUsize::new(0)));
        let waker = Waker::from(noted.clone());
        clones.extend((0..rng.random_range(0..20)).map(|_| waker.clone()));
        if let Poll::Ready(answer) = op.as_mut().poll(&mut Context::from_waker(&waker)) {
            return scene.note(number, &answer);
        }
        last = Some(noted);
        scene.count("misbehaving wakers", 1);
    }
    drop((tx, clones));
    if let Some(last) = last
        && !until(|| last.0.load(Ordering::SeqCst) > 0)
    {
        return Err(Finding::new("the waker of the last poll was not called"));
    }
    let answer = finish("a call with many wakers", op)?;
    scene.note(number, &answer)
}
