//! Runtimes and executors that are dropped with calls in flight. The database continues under the next one.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Piece;
use super::scene::Scene;
use super::waiting::finish;
use crate::finding::Finding;

pub(crate) const PIECES: &[Piece] = &[
    Piece::new("a tokio runtime of one thread that is dropped with calls in flight", |scene, rng| tokio(scene, rng, 0)),
    Piece::new("a tokio runtime of two threads that is dropped with calls in flight", |scene, rng| {
        tokio(scene, rng, 2)
    }),
    Piece::new("an executor of smol that is dropped with calls in flight", smol),
    Piece::new("a set of futures that is dropped with calls in flight", unordered),
];

/// Writes until it is dropped.
async fn endless(scene: Arc<Scene>, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        let (number, op) = scene.write(&mut rng);
        let answer = op.await;
        scene.note_aside(number, &answer);
    }
}

fn seeds(rng: &mut StdRng) -> Vec<u64> {
    let tasks = rng.random_range(1..16);
    (0..tasks).map(|_| rng.random()).collect()
}

fn pause(rng: &mut StdRng) -> Duration {
    Duration::from_micros(rng.random_range(0..5000))
}

fn tokio(scene: &Arc<Scene>, rng: &mut StdRng, threads: usize) -> Result<(), Finding> {
    let runtime = if threads == 0 {
        tokio::runtime::Builder::new_current_thread().enable_time().build()?
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_time().build()?
    };
    for seed in seeds(rng) {
        runtime.spawn(endless(scene.clone(), seed));
    }
    let pause = pause(rng);
    runtime.block_on(async { tokio::time::sleep(pause).await });
    match rng.random_range(0..3) {
        0 => runtime.shutdown_timeout(Duration::from_millis(5)),
        // The runtime and its tasks end in the background.
        1 => runtime.shutdown_background(),
        _ => drop(runtime),
    }
    scene.count("dropped runtimes", 1);
    go_on(scene, rng)
}

fn smol(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let executor = smol::Executor::new();
    let tasks: Vec<_> = seeds(rng).into_iter().map(|seed| executor.spawn(endless(scene.clone(), seed))).collect();
    let until = std::time::Instant::now() + pause(rng);
    while std::time::Instant::now() < until {
        if !executor.try_tick() {
            thread::yield_now();
        }
    }
    if rng.random_bool(0.5) {
        tasks.into_iter().for_each(smol::Task::detach);
    }
    drop(executor);
    scene.count("dropped runtimes", 1);
    go_on(scene, rng)
}

fn unordered(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    let mut all: FuturesUnordered<_> =
        seeds(rng).into_iter().map(|seed| Box::pin(endless(scene.clone(), seed))).collect();
    for _ in 0..rng.random_range(1..20) {
        let _ = super::waiting::poll_once(&mut all.next());
        thread::sleep(Duration::from_micros(rng.random_range(0..300)));
    }
    drop(all);
    scene.count("dropped runtimes", 1);
    go_on(scene, rng)
}

/// Uses the same handle under another runtime, and without one.
fn go_on(scene: &Arc<Scene>, rng: &mut StdRng) -> Result<(), Finding> {
    scene.write_now(rng)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (number, op) = scene.write(rng);
    let answer = runtime.block_on(op);
    scene.note(number, &answer)?;
    finish("a read after a runtime was dropped", scene.db.query_optional_value::<i64>("SELECT count(*) FROM t", ()))??;
    Ok(())
}
