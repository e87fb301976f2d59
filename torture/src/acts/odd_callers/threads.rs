//! Blocking waits where they are discouraged: on many threads at once, inside tasks, inside closures, in drop code, at
//! a thread's end.

use std::cell::RefCell;
use std::sync::{Arc, Barrier};
use std::thread;

use flatwater::rusqlite::Connection;
use flatwater::{Error, ErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Piece;
use super::scene::Scene;
use super::waiting::{finish, panic_quietly};
use crate::finding::Finding;
use crate::writes::INSERT;

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("waits on many threads beside tasks", many),
    Piece::new("waits inside tasks", in_tasks),
    Piece::new("waits inside closures", in_closures),
    Piece::new("waits in drop code", in_drop),
    Piece::new("waits in drop code of what a closure holds", in_drop_of_a_closure),
    Piece::new("waits in drop code while a thread unwinds", in_drop_while_unwinding),
    Piece::new("waits in drop code at a thread's end", at_a_threads_end),
];

/// One wait per thread, all at the same time.
fn many(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let threads = rng.random_range(2..24);
    let together = Barrier::new(threads);
    let seeds: Vec<u64> = (0..threads).map(|_| rng.random()).collect();
    thread::scope(|scope| {
        let waits = seeds.into_iter().map(|seed| {
            let together = &together;
            scope.spawn(move || {
                together.wait();
                wait_four_times(scene, &mut StdRng::seed_from_u64(seed))
            })
        });
        let waits: Vec<_> = waits.collect();
        waits.into_iter().try_for_each(|wait| wait.join().map_err(|_| Finding::new("a wait panicked"))?)
    })
}

fn wait_four_times(scene: &Scene, rng: &mut StdRng) -> Result<(), Finding> {
    let db = scene.handle(rng);
    for way in 0..4 {
        let number = scene.ledger.begin(way > 1);
        let both = "INSERT INTO t (n) VALUES (?1), (-?1)";
        let answer = match way {
            0 => db.execute(INSERT, (number,)).wait().map(drop),
            1 => db.query("INSERT INTO t (n) VALUES (?) RETURNING n", (number,)).wait().map(drop),
            2 => db.execute_many(INSERT, [(number,), (-number,)]).wait().map(drop),
            _ => db.write_with(move |tx| tx.execute(both, [number]).map_err(Error::from)).wait().map(drop),
        };
        scene.note(number, &answer)?;
        let count = scene.db.query_optional_value::<i64>("SELECT count(*) FROM t WHERE n = ?", (number,)).wait()?;
        if count != Some(i64::from(answer.is_ok())) {
            return Err(Finding::new(format!("{number} was answered {answer:?} and is there {count:?} times")));
        }
    }
    Ok(())
}

/// A task that blocks keeps its thread from other tasks, but every call must still complete.
fn in_tasks(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let runtime = if rng.random_bool(0.5) {
        tokio::runtime::Builder::new_current_thread().build()?
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?
    };
    let task = |waits: bool| {
        let scene = scene.clone();
        async move {
            let number = scene.ledger.begin(false);
            let call = scene.db.execute(INSERT, (number,));
            let answer = if waits { call.wait() } else { call.await };
            scene.note(number, &answer)
        }
    };
    let tasks: Vec<_> = (0..rng.random_range(2..20)).map(|n| runtime.spawn(task(n % 2 == 0))).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}

/// Checks that a closure that waits for its own database gets an error.
fn must_be_refused<T: std::fmt::Debug>(answer: &Result<T, Error>) -> Result<(), Finding> {
    match answer {
        Err(error) if error.kind() == ErrorKind::Misuse => Ok(()),
        other => Err(Finding::new(format!("a closure that waited for its own database was answered {other:?}"))),
    }
}

fn in_closures(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let (inner, is_async) = (scene.db.clone(), rng.random_bool(0.5));
    let number = scene.ledger.begin(false);
    let tries = move |_: &Connection| {
        let wrote = if is_async {
            finish("a call inside a closure", inner.execute(INSERT, (number,)))
        } else {
            Ok(inner.execute(INSERT, (number,)).wait())
        };
        let read = inner.query("SELECT 1", ()).wait();
        let closed = inner.close().wait();
        Ok::<_, Error>((wrote, read, closed))
    };
    let (wrote, read, closed) = if rng.random_bool(0.5) {
        finish("read_with", scene.db.read_with(tries))??
    } else {
        finish("write_with", scene.db.write_with(move |tx| tries(tx)))??
    };
    let wrote = wrote?;
    scene.ledger.answered(number, &wrote);
    must_be_refused(&wrote)?;
    must_be_refused(&read)?;
    must_be_refused(&closed)
}

/// Waits for the database when it is dropped.
struct WaitsInDrop {
    scene: Arc<Scene>,
}

impl Drop for WaitsInDrop {
    fn drop(&mut self) {
        let number = self.scene.ledger.begin(false);
        self.scene.note_from_within(number, &self.scene.db.execute(INSERT, (number,)).wait());
    }
}

fn in_drop(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let waits = WaitsInDrop { scene: scene.clone() };
    let db = scene.db.clone();
    let task = async move {
        let _waits = waits;
        db.query_optional_value::<i64>("SELECT 1", ()).await
    };
    if rng.random_bool(0.5) {
        finish("a read", task)??;
    } else {
        let mut task = Box::pin(task);
        let _ = super::waiting::poll_once(&mut task);
        drop(task);
    }
    Ok(())
}

/// A closure's captures are dropped on a thread of the database, or with a call that was dropped.
fn in_drop_of_a_closure(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for _ in 0..rng.random_range(1..6) {
        let waits = WaitsInDrop { scene: scene.clone() };
        let closure = move |_: &Connection| {
            let _ = &waits;
            Ok::<_, Error>(())
        };
        let (reads, leaves) = (rng.random_bool(0.5), rng.random_bool(0.3));
        let db = scene.db.clone();
        let mut call = Box::pin(async move {
            if reads { db.read_with(closure).await } else { db.write_with(move |tx| closure(tx)).await }
        });
        if leaves {
            let _ = super::waiting::poll_once(&mut call);
            drop(call);
        } else {
            finish("a closure whose value waits in its drop", call)??;
        }
    }
    Ok(())
}

fn in_drop_while_unwinding(scene: &Arc<Scene>, _: &mut StdRng) -> Result<(), Finding> {
    let shared = scene.clone();
    let unwound = thread::spawn(move || {
        let _waits = WaitsInDrop { scene: shared };
        panic_quietly();
    });
    if unwound.join().is_ok() {
        return Err(Finding::new("a thread that panics ended well"));
    }
    Ok(())
}

thread_local! {
    static LAST: RefCell<Vec<WaitsInDrop>> = const { RefCell::new(Vec::new()) };
}

/// Uses the database while thread-local variables are destroyed, before or after the database's own ones.
fn at_a_threads_end(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    for ours_first in [true, false] {
        let (shared, seed) = (scene.clone(), rng.random());
        let ends = thread::spawn(move || {
            let leave = || LAST.with_borrow_mut(|last| last.push(WaitsInDrop { scene: shared.clone() }));
            if ours_first {
                leave();
            }
            let wrote = shared.write_now(&mut StdRng::seed_from_u64(seed));
            let body = shared.db.transaction(async |tx| tx.query("SELECT 1", ()).await);
            let read = finish("a transaction", body);
            if !ours_first {
                leave();
            }
            wrote.and_then(|()| match read? {
                Err(error) if !super::scene::is_idle(&error) => Err(error.into()),
                _ => Ok(()),
            })
        });
        ends.join().map_err(|_| Finding::new("a thread panicked that uses the database at its end"))??;
    }
    Ok(())
}
