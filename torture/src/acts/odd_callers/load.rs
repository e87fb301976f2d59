//! The ordinary load during the pieces: tasks of a runtime and a thread without one, which use the API correctly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::scene::Scene;
use crate::finding::Finding;
use crate::writes::{COUNT, INSERT};

const TASKS: usize = 8;

/// A load that runs until it is stopped.
pub(crate) struct Load {
    stops: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), Finding>>>,
}

impl Load {
    pub(crate) fn start(scene: &Arc<Scene>, rng: &mut StdRng) -> Self {
        let stops = Arc::<AtomicBool>::default();
        let in_tasks = {
            let (scene, stops, seed) = (scene.clone(), stops.clone(), rng.random());
            thread::spawn(move || tasks(&scene, &stops, seed))
        };
        let blocking = {
            let (scene, stops) = (scene.clone(), stops.clone());
            thread::spawn(move || blocks(&scene, &stops))
        };
        Self { stops, threads: vec![in_tasks, blocking] }
    }

    /// Stops the load. Returns a finding if one of its calls failed.
    pub(crate) fn stop(self) -> Result<(), Finding> {
        self.stops.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().unwrap_or_else(|_| Err(Finding::new("the plain load panicked")))?;
        }
        Ok(())
    }
}

/// Writes of every kind, and reads of what was written.
fn tasks(scene: &Arc<Scene>, stops: &Arc<AtomicBool>, seed: u64) -> Result<(), Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut rng = StdRng::seed_from_u64(seed);
    let task = |seed: u64| {
        let (scene, stops, mut rng) = (scene.clone(), stops.clone(), StdRng::seed_from_u64(seed));
        async move {
            while !stops.load(Ordering::SeqCst) {
                let (number, op) = scene.write(&mut rng);
                let answer = op.await;
                scene.note(number, &answer)?;
                let count = scene.db.query_optional_value::<i64>(COUNT, (number,)).await?;
                if count != Some(i64::from(answer.is_ok())) {
                    return Err(Finding::new(format!(
                        "{number} is there {count:?} times, and was answered {answer:?}"
                    )));
                }
                tokio::time::sleep(std::time::Duration::from_millis(rng.random_range(0..5))).await;
            }
            Ok(())
        }
    };
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(task(rng.random()))).collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
}

/// A caller that blocks its own thread for each result.
fn blocks(scene: &Scene, stops: &AtomicBool) -> Result<(), Finding> {
    let db = &scene.db;
    while !stops.load(Ordering::SeqCst) {
        let number = scene.ledger.begin(false);
        scene.note(number, &db.execute(INSERT, (number,)).wait())?;
        thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}
